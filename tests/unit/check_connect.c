#include "build_config.h"

#include "cli/connect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "deadline.h"
#include "network.h"
#include "quick_assert.h"
#include "suite.h"

#define BIG ((size_t)3 << 20)

/* A process that copies, and the other ends of its descriptors. */
static struct {
    pid_t pid;
    int in, out; /* of its stdin and stdout */
    int daemon;
} copier;

static char reason[256];

static void ignore_signal(int signo)
{
    (void)signo;
}

/* The child's ends are 0 and 1 of each pair. Its status is connect_copy's, or 1. */
static void start_copier(const int in[2], const int out[2], const int sockets[2])
{
    struct sigaction action = {.sa_handler = ignore_signal};
    int status;

    copier.pid = fork();
    ck_assert_int_ge(copier.pid, 0);
    if (copier.pid == 0) {
        close(in[1]);
        close(out[0]);
        close(sockets[1]);
        signal(SIGPIPE, SIG_IGN);
        sigaction(SIGUSR1, &action, NULL); /* no SA_RESTART */
        status = connect_copy(sockets[0], in[0], out[1], slice_of("", 0), reason, sizeof reason);
        _exit((status == 0) == (reason[0] == '\0') ? status : 1);
    }
    close(in[0]);
    close(out[1]);
    close(sockets[0]);
    copier.in = in[1];
    copier.out = out[0];
    copier.daemon = sockets[1];
    signal(SIGPIPE, SIG_IGN);
}

/* Copies between `in` (-1: a new pipe), a new pipe or socket, and a socket of the daemon. */
static void start_with(int in_fd, bool out_is_socket)
{
    int in[2] = {in_fd, -1}, out[2], sockets[2];

    ck_assert(in_fd >= 0 || pipe(in) == 0);
    ck_assert_int_eq(out_is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, out) : pipe(out), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    ck_assert_int_eq(fcntl(sockets[0], F_SETFL, O_NONBLOCK), 0);
    start_copier(in, out, sockets);
}

static void start(void)
{
    start_with(-1, false);
}

static void end_of(int *fd)
{
    close(*fd);
    *fd = -1;
}

static void expect_status(int expected)
{
    int64_t deadline = deadline_usual();
    int status = 0;

    while (waitpid(copier.pid, &status, WNOHANG) == 0) {
        ck_assert_msg(!deadline_over(deadline), "it does not end");
        nap();
    }
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), expected);
}

static void put(int fd, const char *text)
{
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void expect_text(int fd, const char *text)
{
    char got[256];
    size_t len = 0;
    ssize_t n;

    while (len < strlen(text)) {
        ck_assert(wait_fd(fd, POLLIN, deadline_usual()));
        n = read(fd, got + len, sizeof got - 1 - len);
        ck_assert_int_gt(n, 0);
        len += (size_t)n;
    }
    got[len] = '\0';
    ck_assert_str_eq(got, text);
}

static void expect_end(int fd)
{
    char byte;

    ck_assert(wait_fd(fd, POLLIN, deadline_usual()));
    ck_assert_int_eq(read(fd, &byte, 1), 0);
}

/* The daemon writes its last text and goes. */
static void expect_end_after(const char *text, int status)
{
    put(copier.daemon, text);
    end_of(&copier.daemon);
    expect_text(copier.out, text);
    expect_end(copier.out);
    expect_status(status);
}

static char byte_at(size_t i)
{
    return (char)(i % 251);
}

/* Writes what fits of BIG bytes, of which `done` were written before. */
static size_t feed(int fd, size_t done)
{
    char bytes[4000];
    size_t i, len = BIG - done < sizeof bytes ? BIG - done : sizeof bytes;
    ssize_t n;

    for (i = 0; i < len; i++)
        bytes[i] = byte_at(done + i);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    n = write(fd, bytes, len);
    return n > 0 ? (size_t)n : 0;
}

static size_t take_at_most(int fd, size_t done, size_t max)
{
    static char bytes[65536];
    ssize_t n, i;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    n = read(fd, bytes, max);
    for (i = 0; i < n; i++)
        QUICK_ASSERT(bytes[i] == byte_at(done + (size_t)i));
    return n > 0 ? (size_t)n : 0;
}

static size_t take(int fd, size_t done)
{
    return take_at_most(fd, done, 65536);
}

static void take_until(int fd, size_t taken, size_t end)
{
    while (taken < end) {
        ck_assert(wait_fd(fd, POLLIN, deadline_usual()));
        taken += take(fd, taken);
    }
}

/* BIG bytes from one descriptor to the other. */
static void pass(int from, int to)
{
    int64_t deadline = deadline_usual();
    size_t fed = 0, taken = 0;

    while (taken < BIG) {
        size_t more = feed(from, fed), got = take(to, taken);

        ck_assert_msg(!deadline_over(deadline), "%zu of %zu bytes arrived", taken, BIG);
        fed += more;
        taken += got;
        if (more == 0 && got == 0)
            nap();
    }
}

/* Writes until nothing fits for a while. */
static size_t fill_up(int fd)
{
    size_t fed = 0, more;

    do {
        more = feed(fd, fed);
        fed += more;
    } while (more > 0 || wait_fd(fd, POLLOUT, now_ms() + 200));
    ck_assert_uint_lt(fed, BIG); /* memory is bounded */
    return fed;
}

/* --- copying --- */

TEST(end_of_input_is_passed_on)
{
    start();
    put(copier.in, "question\n");
    expect_text(copier.daemon, "question\n");
    put(copier.in, "last words");
    end_of(&copier.in);
    expect_text(copier.daemon, "last words");
    expect_end(copier.daemon);
    put(copier.daemon, "answer"); /* it continues in the other direction */
    expect_text(copier.out, "answer");
    put(copier.daemon, "\n");
    end_of(&copier.daemon);
    expect_text(copier.out, "\n");
    expect_end(copier.out);
    expect_status(EXIT_DONE);
}

TEST(nothing_at_all_is_orderly)
{
    start();
    end_of(&copier.in);
    expect_end(copier.daemon);
    end_of(&copier.daemon);
    expect_status(EXIT_DONE);
}

TEST(input_from_a_file)
{
    char path[] = "/tmp/check_connect_XXXXXX";
    int in = mkstemp(path);

    ck_assert_int_ge(in, 0);
    put(in, "line\n");
    ck_assert_int_eq(lseek(in, 0, SEEK_SET), 0);
    ck_assert_int_eq(unlink(path), 0);
    start_with(in, false);
    expect_text(copier.daemon, "line\n");
    expect_end(copier.daemon);
    end_of(&copier.daemon);
    expect_status(EXIT_DONE);
}

TEST(input_that_cannot_be_read)
{
    start_with(open("/", O_RDONLY), false);
    expect_status(EXIT_OS_ERROR);
}

/* Each direction continues while the other is stuck, and nothing is lost in either. */
TEST(a_reader_that_stalls_holds_its_direction_alone)
{
    size_t fed, taken = 0;

    start();
    fed = fill_up(copier.daemon);                    /* the reader of stdout stalls */
    taken += take_at_most(copier.out, taken, 10000); /* there is room, but not for all */
    pass(copier.in, copier.daemon);
    take_until(copier.out, taken, fed);
    fed = fill_up(copier.in); /* the daemon does not read */
    pass(copier.daemon, copier.out);
    take_until(copier.daemon, 0, fed);
    end_of(&copier.in);
    expect_end(copier.daemon);
    put(copier.daemon, "\n");
    end_of(&copier.daemon);
    expect_status(EXIT_DONE);
}

TEST(signals_are_no_end)
{
    size_t fed = 0, taken = 0;

    start();
    put(copier.in, "it runs");
    expect_text(copier.daemon, "it runs");
    while (taken < BIG) {
        fed += feed(copier.daemon, fed);
        taken += take(copier.out, taken);
        ck_assert_int_eq(kill(copier.pid, SIGUSR1), 0);
    }
    put(copier.daemon, "\n");
    end_of(&copier.in);
    expect_end(copier.daemon);
    end_of(&copier.daemon);
    expect_status(EXIT_DONE);
}

/* The descriptors may be shared with a shell. */
TEST(flags_of_others_are_left_alone)
{
    int in[2], out[2], sockets[2], kept_in, kept_out;

    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    ck_assert_int_eq(fcntl(sockets[0], F_SETFL, O_NONBLOCK), 0);
    kept_in = dup(in[0]);
    kept_out = dup(out[1]);
    start_copier(in, out, sockets);
    put(copier.in, "a\n");
    expect_text(copier.daemon, "a\n");
    put(copier.daemon, "b\n");
    expect_text(copier.out, "b\n");
    ck_assert_int_eq(fcntl(kept_in, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(fcntl(kept_out, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(kill(copier.pid, SIGKILL), 0);
}

/* --- the end --- */

TEST_ROWS(closed_stdout_is_noticed_at_once, 2)
{
    start_with(-1, row == 1);
    put(copier.daemon, "a\n");
    expect_text(copier.out, "a\n");
    end_of(&copier.out);
    expect_status(EXIT_STDOUT_CLOSED);
}

TEST(stdout_closed_while_it_is_full)
{
    start();
    fill_up(copier.daemon);
    end_of(&copier.out);
    expect_status(EXIT_STDOUT_CLOSED);
}

TEST_ROWS(daemon_goes_first, 4)
{
    static const char *const last[] = {"{}\n", "Content-Length: 2\r\n\r\n{}", "",
                                       "Content-Length: 5\r\n\r\n{}\t\r "};

    start();
    expect_end_after(last[row], EXIT_DAEMON_LEFT);
}

TEST_ROWS(daemon_goes_within_a_message, 3)
{
    static const char *const cut[] = {"{}\n{\"id\"", "{}\n{\"id\"", "{}\n{\"id\": "};

    start();
    if (row == 1)
        end_of(&copier.in);
    expect_end_after(cut[row], EXIT_CONNECTION_LOST);
}

/* Its last message is delivered. */
TEST(daemon_goes_with_input_unread)
{
    start();
    put(copier.in, "unread\n");
    ck_assert(wait_fd(copier.daemon, POLLIN, deadline_usual()));
    expect_end_after("bye\n", EXIT_CONNECTION_LOST);
}

/* It stops reading, and still writes. */
TEST(daemon_that_stopped_reading_is_still_read)
{
    start();
    ck_assert_int_eq(shutdown(copier.daemon, SHUT_RD), 0);
    put(copier.in, "refused\n");
    put(copier.daemon, "why\n");
    expect_text(copier.out, "why\n");
    end_of(&copier.in);
    end_of(&copier.daemon);
    expect_status(EXIT_DAEMON_LEFT);
}

/* The socket has hung up, while stdout has no room for the bytes before that. */
TEST(waiting_is_not_busy)
{
    struct rusage used;
    size_t fed;

    start();
    fed = fill_up(copier.daemon);
    end_of(&copier.daemon);
    end_of(&copier.in);
    poll(NULL, 0, 500);
    take_until(copier.out, 0, fed);
    /* strchr finds the NUL at the end, too, with which a message may end. */
    expect_status(strchr("\n}", byte_at(fed - 1)) != NULL ? EXIT_DONE : EXIT_CONNECTION_LOST);
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &used), 0);
    ck_assert_int_eq(used.ru_utime.tv_sec + used.ru_stime.tv_sec, 0);
    ck_assert_int_lt(used.ru_utime.tv_usec + used.ru_stime.tv_usec, 250000);
}

/* --- connecting --- */

static int listen_at(const char *host, uint16_t *port)
{
    struct sockaddr_storage address;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    socklen_t len = sizeof address;
    bool is_v6 = strchr(host, ':') != NULL;
    int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);

    memset(&address, 0, sizeof address);
    address.ss_family = is_v6 ? AF_INET6 : AF_INET;
    inet_pton(address.ss_family, host, is_v6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, is_v6 ? sizeof *v6 : sizeof *v4), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(is_v6 ? v6->sin6_port : v4->sin_port);
    return fd;
}

TEST_ROWS(tcp_without_delays, 4)
{
    static const char *const hosts[] = {"127.0.0.1", "", "::1", "localhost"};
    struct options options = {.config_fd = -1};
    socklen_t len = sizeof(int);
    int on = 0, fd, listener;

    if ((row == 2 && !have_ipv6()) || (row == 3 && !have_localhost()))
        return;
    snprintf(options.connect.host, sizeof options.connect.host, "%s", hosts[row]);
    listener = listen_at(row == 2 ? "::1" : "127.0.0.1", &options.connect.port);
    fd = connect_open(&options, reason, sizeof reason);
    ck_assert_msg(fd >= 0, "%s", reason);
    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    ck_assert_int_ne(on, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    close(fd);
    close(listener);
}

static void expect_refusal(const struct options *options, const char *text)
{
    int fd = dup(STDERR_FILENO), lowest = fd;

    close(fd);
    reason[0] = '\0';
    ck_assert_int_eq(connect_open(options, reason, sizeof reason), -1);
    ck_assert_msg(strstr(reason, text) == reason, "%s", reason);
    fd = dup(STDERR_FILENO);
    ck_assert_int_eq(fd, lowest); /* nothing is left open */
    close(fd);
}

TEST(connection_refused)
{
    struct options options = {.connect = {.host = "127.0.0.1"}};

    close(listen_at("127.0.0.1", &options.connect.port));
    expect_refusal(&options, "cannot connect to 127.0.0.1, port ");
    ck_assert_msg(strstr(reason, ": Connection refused") != NULL, "%s", reason);
    snprintf(options.connect.host, sizeof options.connect.host, "nowhere.invalid");
    expect_refusal(&options, "cannot connect to nowhere.invalid, port ");
    options.connect.is_unix = true;
    snprintf(options.connect.path, sizeof options.connect.path, "/nowhere/at/all");
    expect_refusal(&options, "cannot connect to /nowhere/at/all: No such file or directory");
    snprintf(options.connect.path, sizeof options.connect.path, "/");
    expect_refusal(&options, "cannot connect to /: ");
}

/* Who may not is told where that is decided. */
TEST(connection_not_allowed)
{
    struct options options = {.connect = {.is_unix = true}};
    char folder[] = "/tmp/check_connect.XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(options.connect.path, sizeof options.connect.path, "%s/socket", folder);
    ck_assert_int_eq(chmod(folder, 0), 0);
    if (geteuid() != 0 || (chown(folder, 65534, 65534) == 0 && setuid(65534) == 0)) {
        expect_refusal(&options, "cannot connect to /tmp/check_connect.");
        ck_assert_msg(strstr(reason, "denied; see mode and group in stdio_bus.conf(5)") != NULL,
                      "%s", reason);
    }
    rmdir(folder);
}
