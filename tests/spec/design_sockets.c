/* DESIGN 2, "Sockets". */
#include "build_config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "harness.h"

TEST(design_unix_socket_is_private)
{
    struct stat st;
    mode_t old = umask(0);
    struct daemon *daemon = START(.instances = 1);
    umask(old);
    ck_assert_int_eq(stat(daemon->socket_path, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_int_eq(st.st_mode & 0777, 0600);
}

/* A setup whose arguments make the daemon listen on `path`. */
static struct setup listen_on(const char *path)
{
    return (struct setup){.mode = SETUP_STDIO, .default_mode = true, .arguments = {"--unix", path}};
}

static struct daemon *start_on(const char *path)
{
    struct setup setup = listen_on(path);
    struct daemon *daemon = daemon_start(&setup);
    daemon_wait_log(daemon, "listening on ");
    snprintf(daemon->socket_path, sizeof daemon->socket_path, "%s", path);
    return daemon;
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

/* The socket of a daemon that was killed. */
TEST(design_stale_socket_is_replaced)
{
    const char *path = test_format("%s/stale", test_dir());
    close(bind_socket(path, false));
    struct daemon *daemon = start_on(path);
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    client_close(client);
    daemon_stop(daemon);
    struct stat st;
    ck_assert_int_ne(stat(path, &st), 0);
}

/* The socket of another process that listens is left alone. */
TEST(design_live_socket_is_refused)
{
    const char *path = test_format("%s/live", test_dir());
    struct stat before, after;
    int listener = bind_socket(path, true);
    ck_assert_int_eq(stat(path, &before), 0);
    struct setup setup = listen_on(path);
    const char *log = daemon_run(&setup, 71, NULL);
    expect_word(log, path);
    ck_assert_msg(strstr(log, "started ") == NULL, "a worker was started in vain");
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert(before.st_ino == after.st_ino);
    close(listener);
}

TEST(design_file_that_is_no_socket_is_refused)
{
    const char *path = test_format("%s/precious", test_dir());
    struct text *content = test_text();
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, "data", 4), 4);
    close(fd);
    struct setup setup = listen_on(path);
    expect_word(daemon_run(&setup, 71, NULL), path);
    ck_assert(read_file(content, path));
    ck_assert_str_eq(content->data, "data");
}

TEST(design_directory_that_is_not_there)
{
    struct setup setup = listen_on("/nowhere/at/all/socket");
    expect_word(daemon_run(&setup, 71, NULL), "No such file");
}

/* Another process has put its own socket in the place of the daemon's. */
/* Of 108 bytes on Linux, and 104 elsewhere and in a portable build. */
TEST(design_path_that_no_socket_can_have)
{
    const char *path = test_format("%s/%s", test_dir(), test_fill('x', 120));
    const char *shown = RUN(64, .mode = SETUP_STDIO, .default_mode = true,
                            .arguments = {"--unix", path});
    expect_word(shown, test_format("--unix: the path is %zu bytes long, a socket's may have 10",
                                   strlen(path)));
    expect_word(shown, ": choose a shorter one, such as ~/NAME.sock");
    expect_word(RUN(78, .mode = SETUP_STDIO, .default_mode = true,
                    .members = test_format("'listen':{'unix':'%s'}", path)),
                ": choose a shorter one, such as ~/NAME.sock");
}

TEST(design_only_its_own_socket_is_removed)
{
    struct stat st;
    const char *path = test_format("%s/socket", test_dir());
    struct daemon *daemon = start_on(path);
    ck_assert_int_eq(unlink(path), 0);
    int other = bind_socket(path, true);
    daemon_stop(daemon);
    ck_assert_int_eq(stat(path, &st), 0);
    close(other);
}

TEST(design_tcp_port_in_use_is_refused)
{
    struct sockaddr_in taken = {.sin_family = AF_INET};
    socklen_t len = sizeof taken;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    taken.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&taken, len), 0);
    ck_assert_int_eq(listen(listener, 5), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&taken, &len), 0);
    const char *address = test_format("127.0.0.1:%u", (unsigned)ntohs(taken.sin_port));
    expect_word(RUN(71, .mode = SETUP_TCP, .address = address), "in use");
    close(listener);
}

/* Right after the exit, in spite of connections that were open. */
TEST(design_tcp_port_can_be_used_again)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1);
    const char *address = test_format("127.0.0.1:%u", daemon->port);
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    daemon_stop(daemon);
    daemon_stop(START(.mode = SETUP_TCP, .instances = 1, .address = address));
}

TEST_ROWS(design_bind_outside_loopback_logs_a_warning, 2)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1, .address = "0.0.0.0:0",
                                  .members = row == 0 ? NULL : "'listen':{'open':true}");
    daemon_wait_log(daemon, row == 0 ? " WARN .*other machines.*token_file.*open"
                                     : " WARN .*other machines.*without authentication");
    struct client *client = client_connect(daemon);
    client_expect_quiet(client);
    client_close(client);
    daemon_stop(daemon);
    daemon = START(.mode = SETUP_TCP, .instances = 1);
    ck_assert(!daemon_logged(daemon, "other machines"));
}

/* Input that the daemon did not read before it closed does not destroy the error line. */
TEST(design_error_line_survives_unread_input)
{
    const char *rest = test_fill('x', 300000);
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1);
    for (int i = 0; i < 10; i++) {
        struct client *client = client_connect(daemon);
        client_send_bytes(client, "nonsense\n", 9);
        client_send_bytes(client, rest, 300000);
        client_error(client, "null", -32700, "");
        client_expect_eof(client);
        client_close(client);
    }
}

/* SIGKILL leaves the file; the next daemon starts all the same. */
TEST(design_socket_of_a_killed_daemon)
{
    const char *path = test_format("%s/socket", test_dir());
    for (int i = 0; i < 3; i++) {
        daemon_kill(start_on(path));
        ck_assert_int_eq(access(path, F_OK), 0);
    }
}
