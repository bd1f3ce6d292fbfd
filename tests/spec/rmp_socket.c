/* RMP v0, section 12: the RMP socket: its place, its rights, and its clients. */
#include "build_config.h"

#include <poll.h>
#include <sys/un.h>

#include "harness.h"
#include "rmp.h"

/* A setup without a configuration: --rmp with this word after it, or none. */
static struct setup listen_on(const char *path)
{
    return (struct setup){
        .mode = SETUP_STDIO, .default_mode = true, .no_config = true, .arguments = {"--rmp", path}};
}

static struct daemon *start_on(const char *path)
{
    struct setup setup = listen_on(path);
    struct daemon *daemon = daemon_start(&setup);
    daemon_wait_log(daemon, "listening on ");
    snprintf(daemon->socket_path, sizeof daemon->socket_path, "%s", path);
    return daemon;
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    ck_assert_msg(stat(path, &status) == 0, "no %s", path);
    return status.st_mode & 0777;
}

static int bind_socket(const char *path, bool listening)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listening)
        ck_assert_int_eq(listen(fd, 5), 0);
    return fd;
}

/* --- the place --- */

/* Missing directories are made for this user alone; the group of the user may connect. */
TEST(rmp_socket_and_its_directory_have_modes)
{
    const char *directory = test_format("%s/a", test_dir());
    const char *path = test_format("%s/s", directory);
    mode_t old = umask(0);
    struct daemon *daemon = start_on(path);
    umask(old);
    ck_assert_int_eq(mode_of(path), 0660);
    ck_assert_int_eq(mode_of(directory), 0700);
    rmp_hello(client_connect(daemon), false, "Agent");
    daemon_stop(daemon);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}

TEST(rmp_socket_in_the_home_directory)
{
    const char *home = test_dir();
    const char *runloop = test_format("%s/.runloop", home);
    const char *directory = test_format("%s/sock", runloop);
    ck_assert_int_eq(setenv("HOME", home, 1), 0);
    struct setup setup = listen_on(NULL);
    struct daemon *daemon = daemon_start(&setup);
    daemon_wait_log(daemon, "listening on .*/.runloop/sock/rmp.sock");
    daemon_stop(daemon);
    ck_assert_int_eq(mode_of(runloop), 0700);
    ck_assert_int_eq(rmdir(directory), 0);
    ck_assert_int_eq(rmdir(runloop), 0);
}

/* The option stands above the configuration, socket_path above sockets_dir. */
TEST_ROWS(rmp_socket_that_is_set_first_counts, 3)
{
    static const char *const configs[] = {
        "{'rmp':{'sockets_dir':'@DIR@','socket_path':''}}",
        "{'rmp':{'socket_path':'@DIR@/own','sockets_dir':'/nowhere'}}",
        "{'rmp':{'socket_path':'/nowhere/own'}}",
    };
    static const char *const names[] = {"/rmp.sock", "/own", "/third"};
    struct daemon *daemon = START(.mode = SETUP_STDIO, .default_mode = true, .config = configs[row],
                                  .arguments = {row == 2 ? "--rmp=@DIR@/third" : NULL});
    daemon_wait_log(daemon, test_format("listening on .*%s$", names[row]));
    daemon_stop(daemon);
}

/* No other place is tried. */
TEST_ROWS(rmp_socket_that_cannot_be_had_ends_the_start, 4)
{
    const char *path = test_format("%s/taken", test_dir());
    int listener = -1, fd;
    struct setup setup = listen_on(path);
    if (row == 0)
        setup = listen_on("/dev/null/a/s");
    if (row == 1)
        listener = bind_socket(path, true);
    if (row == 2) {
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_eq(write(fd, "data", 4), 4);
        close(fd);
    }
    if (row == 3)
        setup = (struct setup){.mode = SETUP_STDIO,
                               .default_mode = true,
                               .config = "{'rmp':{'sockets_dir':'/dev/null'}}"};
    expect_word(daemon_run(&setup, 71, NULL), row == 1 || row == 2 ? path : "/dev/null");
    close(listener);
}

/* The socket of a daemon that was killed. */
TEST(rmp_stale_socket_is_replaced)
{
    const char *path = test_format("%s/stale", test_dir());
    close(bind_socket(path, false));
    rmp_hello(client_connect(start_on(path)), true, "agent");
}

/* --- beside JSON-RPC --- */

/* The end of stdin ends nothing, and nothing is read from it. */
TEST(rmp_alone_reads_no_stdin)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    ck_assert_int_eq(write(daemon->stdin_fd, "{\"id\":1,\"method\":\"echo\"}\n", 24), 24);
    close(daemon->stdin_fd);
    daemon->stdin_fd = -1;
    for (unsigned i = 0; i < 3; i++)
        rmp_hello(client_connect(daemon), i % 2 == 1, "Agent");
    ck_assert(!wait_fd(daemon->stdout_fd, POLLIN, now_ms()));
}

TEST(rmp_beside_a_unix_socket)
{
    struct daemon *daemon = START(.mode = SETUP_UNIX, .instances = 1,
                                  .arguments = {"--rmp=@DIR@/rmp.sock"});
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "echo", NULL);
    char path[sizeof daemon->socket_path];
    snprintf(path, sizeof path, "%s", daemon->socket_path);
    snprintf(daemon->socket_path, sizeof daemon->socket_path, "%s/rmp.sock", daemon->dir);
    rmp_hello(client_connect(daemon), false, "Agent");
    snprintf(daemon->socket_path, sizeof daemon->socket_path, "%s", path);
    client_ask(client, "2", NULL, "echo", NULL);
}

/* Another socket needs a pool. */
TEST(rmp_without_pools_is_alone)
{
    expect_word(RUN(78, .mode = SETUP_UNIX, .config = "{'rmp':{'sockets_dir':'@DIR@'}}"), "pool");
}

/* --- clients --- */

TEST(rmp_clients_count_against_max_connections)
{
    struct daemon *daemon = rmp_start(NULL, ",'limits':{'max_connections':2}");
    struct client *clients[2] = {client_connect(daemon), client_connect(daemon)};
    for (unsigned i = 0; i < 2; i++)
        rmp_hello(clients[i], false, "Agent");
    client_expect_eof(client_connect(daemon));
    daemon_wait_log(daemon, " WARN .*refused .*max_connections 2");
    client_close(clients[0]);
    daemon_wait_log(daemon, "\\[rmp=1\\] disconnected");
    rmp_hello(client_connect(daemon), false, "Agent");
}

TEST(rmp_user_who_is_not_allowed_is_refused)
{
    const char *other = test_format(",'listen':{'allow_uids':[%u]}", (unsigned)getuid() + 1);
    struct daemon *daemon = rmp_start(NULL, other);
    client_expect_eof(client_connect(daemon));
    daemon_wait_log(daemon, " WARN .*refused .*listen.allow_uids");
}

TEST(rmp_client_is_logged)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);
    daemon_wait_log(daemon, " INFO .*\\[rmp=1\\] connected: uid ");
    rmp_hello(client, false, "Agent");
    client_close(client);
    daemon_wait_log(daemon, " INFO .*\\[rmp=1\\] disconnected: .*; 1 frames in .* 1 out");
}

/* A subscriber that has shut down its sending side still gets messages; any other is closed. */
TEST_ROWS(rmp_half_closed_client, 2)
{
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon), *publisher = client_connect(daemon);
    if (row == 1)
        rmp_subscribe(client, true, "a/b", 0);
    ck_assert_int_eq(shutdown(client->out, SHUT_WR), 0);
    if (row == 0) {
        client_expect_eof(client);
        return;
    }
    RMP_SEND(publisher, .topic = "a/b", .msg_id = 3);
    ck_assert_uint_eq(rmp_next(client).msg_id, 3);
    client_close(client);
    daemon_wait_log(daemon, "\\[rmp=1\\] disconnected");
}

/* Subscribers get what is queued before the daemon ends. */
TEST_ROWS(rmp_shutdown_delivers_what_is_queued, 2)
{
    enum { MESSAGES = 400 };
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *subscriber = client_connect_small(daemon), *publisher = client_connect(daemon);
    rmp_subscribe(subscriber, row == 1, "a/b", 1);
    for (unsigned i = 1; i <= MESSAGES; i++)
        RMP_PUBLISH(publisher, i, .topic = "a/b", .msg_id = i, .filler = 2000);
    for (unsigned i = 1; i <= MESSAGES; i++)
        rmp_expect(publisher, "{'PublishAck':{'id':%u,'result':{'Ok':null}}}", i);
    daemon_signal(daemon, SIGTERM);
    daemon_wait_log(daemon, "shutting down");
    for (unsigned i = 1; i <= MESSAGES; i++) {
        if (row == 1)
            ck_assert_uint_eq(rmp_next(subscriber).msg_id, i);
        else
            rmp_expect_message(subscriber, 1, i);
    }
    client_expect_eof(subscriber);
    client_close(publisher);
    client_close(subscriber);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}
