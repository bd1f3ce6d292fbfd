#include "build_config.h"

#include "transport/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#ifdef HAVE_FLOCK
#include <sys/file.h>
#endif

#include "base/clock.h"
#include "base/error.h"
#include "base/unix_path.h"
#include "network.h"
#include "suite.h"
#include "transport/address.h"

#define DEADLINE_MS 20000 /* longer than anything that is waited for */
#define FDS_MAX 2000      /* descriptors that are looked at */
#define ACCEPTED_MAX 128

static struct stdio_bus_event_loop *loop;
static struct log test_log;
static FILE *log_file;
static char folder[64], path[128];
static struct listener listener;
static int accepted[ACCEPTED_MAX], accepted_count;
static struct origin last_origin;
static bool close_when_accepted;
static struct access socket_access;

static void set_up(void)
{
    loop = stdio_bus_event_loop_create();
    ck_assert_ptr_nonnull(loop);
    log_file = tmpfile();
    ck_assert_ptr_nonnull(log_file);
    log_open(&test_log, fileno(log_file), LOG_LEVEL_DEBUG);
    snprintf(folder, sizeof folder, "/tmp/check_listener_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    memset(&listener, 0, sizeof listener);
    accepted_count = 0;
    close_when_accepted = false;
    socket_access = (struct access){.mode = ACCESS_MODE_DEFAULT};
}

static void tear_down(void)
{
    listener_close(&listener);
    for (int i = 0; i < accepted_count; i++)
        close(accepted[i]);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left in it */
    log_close(&test_log);
    fclose(log_file);
    stdio_bus_event_loop_destroy(loop);
}

static void on_accepted(void *user_data, int fd, const struct origin *origin)
{
    ck_assert_ptr_eq(user_data, &accepted);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_lt(accepted_count, ACCEPTED_MAX);
    accepted[accepted_count++] = fd;
    last_origin = *origin;
    if (close_when_accepted)
        listener_close(&listener);
}

static int open_unix(const char *name)
{
    return listener_open_unix(&listener, loop, &test_log, name, &socket_access, on_accepted,
                              &accepted);
}

static int open_tcp(const char *host, uint16_t port)
{
    return listener_open_tcp(&listener, loop, &test_log, host, port, on_accepted, &accepted);
}

/* What was logged so far. */
static const char *logged(void)
{
    static char text[8192];
    ssize_t got = pread(fileno(log_file), text, sizeof text - 1, 0);

    ck_assert_int_ge(got, 0);
    text[got] = '\0';
    return text;
}

static int count_logged(const char *word)
{
    const char *at;
    int count = 0;

    for (at = logged(); (at = strstr(at, word)) != NULL; at++)
        count++;
    return count;
}

static int count_fds(void)
{
    int count = 0, i;

    for (i = 0; i < FDS_MAX; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

static void run_until_accepted(int count)
{
    int64_t deadline = clock_now_ms() + DEADLINE_MS;

    while (accepted_count < count) {
        ck_assert_int_lt(clock_now_ms(), deadline);
        ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 100), 0);
    }
    ck_assert_int_eq(accepted_count, count);
}

/* --- Unix sockets --- */

static struct sockaddr_un unix_address(const char *name)
{
    struct sockaddr_un address;

    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    ck_assert_uint_lt(strlen(name), sizeof address.sun_path);
    memcpy(address.sun_path, name, strlen(name));
    return address;
}

static int connect_unix(const char *name)
{
    struct sockaddr_un address = unix_address(name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static mode_t mode_of(const char *name)
{
    struct stat status;

    ck_assert_int_eq(lstat(name, &status), 0);
    return status.st_mode;
}

static bool exists(const char *name)
{
    struct stat status;

    return lstat(name, &status) == 0;
}

TEST(unix_socket_accepts)
{
    int clients[40], i;

    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    ck_assert_ptr_nonnull(strstr(logged(), path));
    for (i = 0; i < 40; i++)
        clients[i] = connect_unix(path);
    run_until_accepted(40);
    ck_assert(last_origin.is_local);
    if (last_origin.has_credentials) {
        ck_assert_uint_eq(last_origin.uid, geteuid());
        ck_assert_uint_eq(last_origin.gid, getegid());
        ck_assert_ptr_nonnull(strstr(last_origin.text, "uid "));
    }
    ck_assert_int_eq(last_origin.has_credentials, ORIGIN_HAS_CREDENTIALS);
    ck_assert_int_eq(write(clients[0], "x", 1), 1);
    ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 0), 0); /* it is at rest */
    for (i = 0; i < 40; i++)
        close(clients[i]);
    listener_close(&listener);
    ck_assert(!exists(path));
    listener_close(&listener);
}

TEST_ROWS(unix_socket_is_its_owners_alone, 4)
{
    static const mode_t masks[] = {0, 022, 077, 0777};
    mode_t mask = masks[row];

    umask(mask);
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    ck_assert(S_ISSOCK(mode_of(path)));
    ck_assert_uint_eq(mode_of(path) & 07777, 0600);
    ck_assert_uint_eq(umask(mask), mask);
}

/* A socket file on which no process listens. */
static void make_stale(const char *name)
{
    struct sockaddr_un address = unix_address(name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    close(fd);
    ck_assert(exists(name));
}

TEST(stale_socket_is_replaced)
{
    int client;

    make_stale(path);
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    ck_assert_uint_eq(mode_of(path) & 07777, 0600);
    client = connect_unix(path);
    run_until_accepted(1);
    close(client);
    listener_close(&listener);
    ck_assert(!exists(path));
}

static const mode_t modes[] = {0600, 0660, 0666, 0777};

/* Whatever the umask, and after the socket was given to a group. */
TEST_ROWS(socket_has_the_mode_that_was_asked_for, 2 * COUNT(modes))
{
    mode_t old = umask(row % 2 == 0 ? 0 : 0777);

    socket_access.mode = modes[row / 2];
    socket_access.has_group = row % 2 == 0;
    socket_access.group = getegid();
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    umask(old);
    ck_assert_uint_eq(mode_of(path) & 07777, modes[row / 2]);
}

TEST(socket_has_the_group_that_was_asked_for)
{
    struct stat status;

    if (geteuid() != 0)
        return; /* only the superuser knows a group that it may give the socket to */
    socket_access = (struct access){.mode = 0660, .has_group = true, .group = 4711};
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    ck_assert_int_eq(lstat(path, &status), 0);
    ck_assert_uint_eq(status.st_gid, 4711);
    ck_assert_uint_eq(status.st_mode & 07777, 0660);
}

/* Without the group, the socket would be open to another one. */
TEST(socket_is_removed_if_it_cannot_have_the_group)
{
    if (geteuid() == 0 && (setgid(65534) != 0 || chown(folder, 65534, 65534) != 0 ||
                           setgroups(0, NULL) != 0 || setuid(65534) != 0))
        return;
    socket_access = (struct access){.mode = 0660, .has_group = true, .group = 4711};
    ck_assert_int_eq(open_unix(path), STDIO_BUS_ERR);
    ck_assert(!exists(path));
    ck_assert_ptr_nonnull(strstr(logged(), "cannot set its group and mode"));
}

/* Also a stale one: its owner may be about to use the path again. */
TEST(socket_of_another_user_is_left_alone)
{
    if (geteuid() != 0)
        return;
    make_stale(path);
    ck_assert_int_eq(lchown(path, 4711, 4711), 0);
    ck_assert_int_eq(open_unix(path), STDIO_BUS_ERR);
    ck_assert(exists(path));
    ck_assert_ptr_nonnull(strstr(logged(), "it is a socket of another user (uid 4711)"));
    listener_close(&listener);
    ck_assert(exists(path));
}

TEST(live_socket_is_refused)
{
    struct listener second;
    int fds;

    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    fds = count_fds();
    memset(&second, 0, sizeof second);
    ck_assert_int_eq(listener_open_unix(&second, loop, &test_log, path, &socket_access, on_accepted,
                                        &accepted),
                     STDIO_BUS_ERR);
    ck_assert_int_eq(count_logged("ERROR"), 1);
    listener_close(&second);
    ck_assert_int_eq(count_fds(), fds);
    connect_unix(path);    /* the first one is as it was */
    run_until_accepted(2); /* and was probed */
}

enum { RIVALS = 8, RACES = 25 };

/* Opens the listener when `go` ends, reports the result, and stays until it is killed. */
static void compete(const int go[2], int result)
{
    struct stdio_bus_event_loop *own = stdio_bus_event_loop_create();
    char byte;

    close(go[1]);
    if (own == NULL || read(go[0], &byte, 1) != 0)
        _exit(1);
    byte = (char)-listener_open_unix(&listener, own, &test_log, path, &socket_access, on_accepted,
                                     &accepted);
    if (write(result, &byte, 1) != 1)
        _exit(1);
    pause();
    _exit(0);
}

/* However many begin at once in the place of a stale one, one gets it. */
TEST(rivals_do_not_take_each_other_for_stale)
{
    pid_t rivals[RIVALS];
    char results[RIVALS];
    int go[2], reports[2], race, i, winners;

    for (race = 0; race < RACES; race++) {
        make_stale(path);
        ck_assert_int_eq(pipe(go), 0);
        ck_assert_int_eq(pipe(reports), 0);
        for (i = 0; i < RIVALS; i++) {
            rivals[i] = fork();
            ck_assert_int_ge(rivals[i], 0);
            if (rivals[i] == 0)
                compete(go, reports[1]);
        }
        close(go[0]);
        close(go[1]);
        for (i = winners = 0; i < RIVALS; i++) {
            ck_assert_int_eq(read(reports[0], &results[i], 1), 1);
            winners += results[i] == STDIO_BUS_OK;
        }
        for (i = 0; i < RIVALS; i++) {
            kill(rivals[i], SIGKILL);
            ck_assert_int_eq(waitpid(rivals[i], NULL, 0), rivals[i]);
        }
        close(reports[0]);
        close(reports[1]);
        unlink(path);
        ck_assert_int_eq(winners, 1);
    }
}

#ifdef HAVE_FLOCK
/* A daemon waits while another one opens a socket in the same directory, but not for ever: the lock
 * may be held for another reason. */
TEST(lock_is_waited_for_and_not_insisted_on)
{
    int locked = open(folder, O_RDONLY | O_CLOEXEC), fds;
    int64_t start = clock_now_ms();

    ck_assert_int_ge(locked, 0);
    ck_assert_int_eq(flock(locked, LOCK_EX), 0);
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    ck_assert_int_ge(clock_now_ms() - start, 1900);
    listener_close(&listener);
    close(locked);
    /* Its own lock goes with the descriptor, at once. */
    locked = open(folder, O_RDONLY | O_CLOEXEC);
    fds = count_fds();
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    ck_assert_int_eq(count_fds(), fds + 1);
    ck_assert_int_eq(flock(locked, LOCK_EX | LOCK_NB), 0);
}
#endif

/* In use, without an answer: a datagram socket, as /dev/log is, or a full backlog. */
TEST_ROWS(socket_that_does_not_answer_is_refused, 2)
{
    struct sockaddr_un address = unix_address(path);
    int fd = socket(AF_UNIX, row == 0 ? SOCK_DGRAM : SOCK_STREAM, 0);
    int waiting[16], count = 0, i;

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (row == 1) {
        ck_assert_int_eq(listen(fd, 1), 0);
        for (i = 0; i < 16; i++) {
            waiting[i] = socket(AF_UNIX, SOCK_STREAM, 0);
            ck_assert_int_eq(fcntl(waiting[i], F_SETFL, O_NONBLOCK), 0);
            count += connect(waiting[i], (struct sockaddr *)&address, sizeof address) == 0;
        }
        ck_assert_int_lt(count, 16); /* the last ones found it full */
    }
    ck_assert_int_eq(open_unix(path), STDIO_BUS_ERR);
    ck_assert_int_eq(count_logged("ERROR"), 1);
    ck_assert(exists(path));
}

TEST_ROWS(what_is_no_socket_is_left_alone, 5)
{
    static const char content[] = "precious";
    char target[160], read_back[16] = "";
    int fd, fds = count_fds();

    snprintf(target, sizeof target, "%s/target", folder);
    if (row == 0) {
        ck_assert_int_eq(mkfifo(path, 0644), 0);
    } else if (row == 1) {
        ck_assert_int_eq(mkdir(path, 0755), 0);
    } else if (row == 4) {
        make_stale(target);
        ck_assert_int_eq(symlink(target, path), 0);
    } else {
        fd = open(row == 2 ? path : target, O_WRONLY | O_CREAT, 0644);
        ck_assert_int_eq(write(fd, content, sizeof content), sizeof content);
        close(fd);
        if (row == 3)
            ck_assert_int_eq(symlink(target, path), 0);
    }
    ck_assert_int_eq(open_unix(path), STDIO_BUS_ERR);
    ck_assert_int_eq(count_logged("ERROR"), 1);
    ck_assert_ptr_nonnull(strstr(logged(), path));
    listener_close(&listener);
    ck_assert_int_eq(count_fds(), fds);
    ck_assert(row != 0 || S_ISFIFO(mode_of(path)));
    ck_assert(row != 1 || S_ISDIR(mode_of(path)));
    ck_assert(row < 3 || (S_ISLNK(mode_of(path)) && exists(target)));
    if (row == 2 || row == 3) {
        fd = open(path, O_RDONLY);
        ck_assert_int_eq(read(fd, read_back, sizeof read_back), sizeof content);
        ck_assert_str_eq(read_back, content);
        close(fd);
    }
    ck_assert_int_eq(remove(path), 0);
    unlink(target);
}

TEST_ROWS(only_its_own_file_is_unlinked, 3)
{
    int fd;

    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    ck_assert_int_eq(unlink(path), 0); /* without its knowledge */
    if (row == 1) {
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        close(fd);
    } else if (row == 2) {
        make_stale(path); /* another daemon's, say */
    }
    listener_close(&listener);
    ck_assert_int_eq(exists(path), row != 0);
}

TEST(longest_name)
{
    size_t max = UNIX_PATH_MAX;
    char name[256];
    int client;

    snprintf(name, sizeof name, "%s/", folder);
    memset(name + strlen(name), 'x', max - strlen(name));
    name[max] = 'y';
    name[max + 1] = '\0';
    ck_assert_int_eq(open_unix(name), STDIO_BUS_ERR); /* one too many */
    ck_assert_int_eq(count_logged("ERROR"), 1);
    name[max] = '\0';
    ck_assert(!exists(name)); /* nor was it cut and bound */
    ck_assert_int_eq(open_unix(name), STDIO_BUS_OK);
    client = connect_unix(name);
    run_until_accepted(1);
    close(client);
    listener_close(&listener);
    ck_assert(!exists(name));
}

TEST(name_that_cannot_be)
{
    char name[256];
    int fds = count_fds();

    snprintf(name, sizeof name, "%s/nowhere/socket", folder);
    ck_assert_int_eq(open_unix(name), STDIO_BUS_ERR);
    ck_assert_ptr_nonnull(strstr(logged(), strerror(ENOENT)));
    listener_close(&listener);
    ck_assert_int_eq(open_unix(""), STDIO_BUS_ERR); /* no abstract socket either */
    listener_close(&listener);
    ck_assert_int_eq(count_fds(), fds);
    ck_assert_int_eq(count_logged("ERROR"), 2);
}

TEST(unix_socket_without_descriptors)
{
    struct rlimit limit;
    int lowest = dup(STDERR_FILENO), fds = count_fds() - 1;

    close(lowest);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)lowest;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(open_unix(path), STDIO_BUS_ERR);
    listener_close(&listener);
    ck_assert_int_eq(count_fds(), fds);
    ck_assert(!exists(path));
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
}

/* --- TCP --- */

static uint16_t port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;

    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static int connect_tcp4(uint16_t port)
{
    struct sockaddr_in address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int connect_tcp6(uint16_t port)
{
    struct sockaddr_in6 address;
    int fd = socket(AF_INET6, SOCK_STREAM, 0);

    memset(&address, 0, sizeof address);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_loopback;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

TEST_ROWS(tcp_over_ipv4, 2)
{
    char text[64];
    int client;
    uint16_t port;

    ck_assert_int_eq(open_tcp(row == 0 ? "" : "127.0.0.1", 0), STDIO_BUS_OK);
    ck_assert_int_eq(listener.count, 1);
    port = port_of(listener.sockets[0].fd);
    ck_assert_uint_ne(port, 0);
    snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)port);
    ck_assert_ptr_nonnull(strstr(logged(), text)); /* the port that was picked */
    ck_assert_int_eq(count_logged("WARN"), 0);
    client = connect_tcp4(port);
    run_until_accepted(1);
    snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)port_of(client));
    ck_assert_str_eq(last_origin.text, text);
}

TEST(tcp_over_ipv4_in_ipv6_form)
{
    ck_assert_int_eq(open_tcp("::ffff:127.0.0.1", 0), STDIO_BUS_OK);
    ck_assert_ptr_nonnull(strstr(logged(), "listening on 127.0.0.1:"));
    ck_assert_int_eq(count_logged("WARN"), 0);
    connect_tcp4(port_of(listener.sockets[0].fd));
    run_until_accepted(1);
    ck_assert_int_eq(strncmp(last_origin.text, "127.0.0.1:", 10), 0);
    ck_assert(last_origin.is_local);
}

TEST(tcp_over_ipv6)
{
    char text[64];
    int client;
    uint16_t port;

    if (!have_ipv6())
        return;
    ck_assert_int_eq(open_tcp("::1", 0), STDIO_BUS_OK);
    port = port_of(listener.sockets[0].fd);
    snprintf(text, sizeof text, "[::1]:%u", (unsigned)port);
    ck_assert_ptr_nonnull(strstr(logged(), text));
    ck_assert_int_eq(count_logged("WARN"), 0);
    client = connect_tcp6(port);
    run_until_accepted(1);
    snprintf(text, sizeof text, "[::1]:%u", (unsigned)port_of(client));
    ck_assert_str_eq(last_origin.text, text);
}

/* An IPv6 socket does not take the IPv4 port along. */
TEST(both_families_have_sockets_of_their_own)
{
    struct listener second;
    int client;
    uint16_t port;

    if (!have_ipv6())
        return;
    ck_assert_int_eq(open_tcp("::", 0), STDIO_BUS_OK);
    port = port_of(listener.sockets[0].fd);
    memset(&second, 0, sizeof second);
    ck_assert_int_eq(listener_open_tcp(&second, loop, &test_log, "127.0.0.1", port, on_accepted,
                                       &accepted),
                     STDIO_BUS_OK);
    client = connect_tcp4(port);
    run_until_accepted(1);
    ck_assert_int_eq(strncmp(last_origin.text, "127.0.0.1:", 10), 0);
    close(client);
    listener_close(&second);
}

TEST(name_with_any_number_of_addresses)
{
    uint16_t port;

    if (!have_localhost())
        return;
    ck_assert_int_eq(open_tcp("localhost", 0), STDIO_BUS_OK);
    ck_assert_int_eq(listener.count, 1); /* a second address would get another port */
    port = port_of(listener.sockets[0].fd);
    listener_close(&listener);
    ck_assert_int_eq(open_tcp("localhost", port), STDIO_BUS_OK);
    ck_assert_int_ge(listener.count, 1);
    (void)(strstr(logged(), "127.0.0.1:") != NULL ? connect_tcp4(port) : connect_tcp6(port));
    run_until_accepted(1);
}

TEST(outside_loopback_is_noted)
{
    ck_assert_int_eq(open_tcp("0.0.0.0", 0), STDIO_BUS_OK);
    ck_assert(listener.is_outside);
    listener_close(&listener);
    ck_assert_int_eq(open_tcp("", 0), STDIO_BUS_OK);
    ck_assert(!listener.is_outside);
}

TEST(tcp_that_cannot_be)
{
    struct listener second;
    char endless[400];
    int fds;
    uint16_t port;

    ck_assert_int_eq(open_tcp("", 0), STDIO_BUS_OK);
    port = port_of(listener.sockets[0].fd);
    fds = count_fds();
    memset(&second, 0, sizeof second);
    ck_assert_int_eq(listener_open_tcp(&second, loop, &test_log, "", port, on_accepted, &accepted),
                     STDIO_BUS_ERR);
    ck_assert_ptr_nonnull(strstr(logged(), strerror(EADDRINUSE)));
    listener_close(&second);
    /* An address that is documentation's alone. */
    ck_assert_int_eq(listener_open_tcp(&second, loop, &test_log, "192.0.2.1", 0, on_accepted,
                                       &accepted),
                     STDIO_BUS_ERR);
    listener_close(&second);
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    ck_assert_int_eq(listener_open_tcp(&second, loop, &test_log, endless, 0, on_accepted,
                                       &accepted),
                     STDIO_BUS_ERR);
    listener_close(&second);
    ck_assert_int_eq(count_logged("ERROR"), 3);
    ck_assert_int_eq(count_fds(), fds);
}

TEST(port_is_free_for_a_restart)
{
    int client;
    uint16_t port;

    ck_assert_int_eq(open_tcp("", 0), STDIO_BUS_OK);
    port = port_of(listener.sockets[0].fd);
    client = connect_tcp4(port);
    run_until_accepted(1);
    close(accepted[0]); /* we close first: the connection is remembered for minutes */
    accepted_count = 0;
    close(client);
    listener_close(&listener);
    ck_assert_int_eq(open_tcp("", port), STDIO_BUS_OK);
    client = connect_tcp4(port);
    run_until_accepted(1);
}

TEST(address_in_words)
{
    struct sockaddr_storage storage;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
    const struct sockaddr *address = (const struct sockaddr *)&storage;
    char text[ADDRESS_TEXT_MAX];

    memset(&storage, 0, sizeof storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(5000);
    ck_assert_int_eq(inet_pton(AF_INET, "127.1.2.3", &v4->sin_addr), 1);
    ck_assert_str_eq(address_text(text, sizeof text, address), "127.1.2.3:5000");
    ck_assert(address_is_loopback(address));
    ck_assert_int_eq(inet_pton(AF_INET, "128.0.0.1", &v4->sin_addr), 1);
    ck_assert(!address_is_loopback(address));
    memset(&storage, 0, sizeof storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(65535);
    ck_assert_int_eq(inet_pton(AF_INET6, "::1", &v6->sin6_addr), 1);
    ck_assert_str_eq(address_text(text, sizeof text, address), "[::1]:65535");
    ck_assert(address_is_loopback(address));
    ck_assert_int_eq(inet_pton(AF_INET6, "2001:db8:1111:2222:3333:4444:5555:6666", &v6->sin6_addr),
                     1);
    ck_assert_str_eq(address_text(text, sizeof text, address),
                     "[2001:db8:1111:2222:3333:4444:5555:6666]:65535"); /* is not cut */
    ck_assert(!address_is_loopback(address));
    memset(&storage, 0, sizeof storage);
    storage.ss_family = AF_UNIX;
    ck_assert_str_eq(address_text(text, sizeof text, address), "unix");
    ck_assert(address_is_loopback(address));
}

/* --- when descriptors run out --- */

/* From now on this number of descriptors is to be had; -1: as many as ever. */
static void leave_descriptors(int free)
{
    struct rlimit limit;
    int lowest;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (free < 0)
        return;
    lowest = dup(STDERR_FILENO);
    ck_assert_int_ge(lowest, 0);
    close(lowest);
    limit.rlim_cur = (rlim_t)(lowest + free);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_ROWS(rests_while_there_is_no_descriptor, 2)
{
    int i, calls = 0;

    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    for (i = 0; i < 3; i++)
        connect_unix(path);
    leave_descriptors(1);
    run_until_accepted(1);
    for (i = 0; i < 20; i++)
        calls += stdio_bus_event_loop_run_once(loop, 5);
    ck_assert_int_le(calls, 1); /* no busy loop */
    ck_assert_int_eq(accepted_count, 1);
    ck_assert_int_eq(count_logged("ERROR"), 1);
    ck_assert_ptr_nonnull(strstr(logged(), strerror(EMFILE)));
    leave_descriptors(-1);
    if (row == 0)
        listener_descriptor_freed(&listener);
    else /* by another process: it looks again by itself */
        timers_run(stdio_bus_event_loop_timers(loop), stdio_bus_event_loop_now_ms(loop) + 5000);
    run_until_accepted(3);
    ck_assert(!timer_started(&listener.rest));
}

TEST(tells_once_while_it_goes_on_and_rests_again)
{
    int i;

    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    for (i = 0; i < 30; i++)
        connect_unix(path);
    for (i = 0; i < 5; i++) {
        int before = accepted_count;

        leave_descriptors(2);
        listener_descriptor_freed(&listener);
        run_until_accepted(before + 2);
        while (!timer_started(&listener.rest))
            ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 100), 0);
    }
    ck_assert_int_eq(count_logged("ERROR"), 1);
    leave_descriptors(-1);
    listener_descriptor_freed(&listener);
    run_until_accepted(30);
}

TEST(rests_past_the_highest_descriptor_it_may_use)
{
    int clients[3], i, highest;

    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    for (i = 0; i < 3; i++)
        clients[i] = connect_unix(path);
    highest = clients[2];
    listener.fd_max = highest + 1;
    run_until_accepted(2); /* the second is past it, and is not lost */
    for (i = 0; i < 5; i++)
        ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 5), 0);
    close(accepted[--accepted_count]);
    close(accepted[--accepted_count]);
    listener_descriptor_freed(&listener);
    run_until_accepted(1);
}

TEST(descriptor_freed_while_it_does_not_rest)
{
    struct listener zeroed;
    memset(&zeroed, 0, sizeof zeroed);
    listener_descriptor_freed(&zeroed);
    listener_close(&zeroed);
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    listener_descriptor_freed(&listener);
    connect_unix(path);
    run_until_accepted(1);
}

TEST_ROWS(closed_in_its_own_callback, 2)
{
    int i;

    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    for (i = 0; i < 3; i++)
        connect_unix(path);
    close_when_accepted = true;
    if (row == 1)
        listener.fd_max = 0;
    run_until_accepted(1);
    for (i = 0; i < 3; i++)
        ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 1), 0);
    ck_assert_int_eq(accepted_count, 1);
    ck_assert(!timer_started(&listener.rest)); /* its memory may be gone by then */
    ck_assert(!exists(path));
}

TEST(closed_while_it_rests)
{
    ck_assert_int_eq(open_unix(path), STDIO_BUS_OK);
    connect_unix(path);
    leave_descriptors(0);
    while (!timer_started(&listener.rest))
        ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 100), 0);
    leave_descriptors(-1);
    listener_close(&listener);
    ck_assert(!timer_started(&listener.rest));
    listener_descriptor_freed(&listener);
    ck_assert(!timer_started(&listener.rest));
}

FIXTURE(set_up, tear_down)
