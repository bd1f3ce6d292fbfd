/* DESIGN 2, "Sockets". */
#include "build_config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness.h"

START_TEST(design_unix_socket_is_private)
{
    struct daemon daemon;
    struct stat st;
    mode_t old = umask(0);
    START(&daemon, .instances = 1);
    umask(old);
    ck_assert_int_eq(stat(daemon.socket_path, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    daemon_stop(&daemon);
}
END_TEST

/* A setup in stdio form whose arguments make it listen on `path`. */
static struct setup listen_on(const char *path)
{
    return (struct setup){.mode = SETUP_STDIO, .default_mode = true,
                          .arguments = {"--unix", path}};
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

/* Left behind by a daemon that was killed: the next one takes its place. */
START_TEST(design_stale_socket_is_replaced)
{
    struct daemon daemon;
    struct client client;
    char dir[160], path[190];
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/stale", dir);
    close(bind_socket(path, false));
    struct setup setup = listen_on(path);
    daemon_start(&daemon, &setup);
    daemon_wait_log(&daemon, "listening on ");
    snprintf(daemon.socket_path, sizeof daemon.socket_path, "%s", path);
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
    struct stat st;
    ck_assert_int_ne(stat(path, &st), 0);
    harness_remove_dir(dir);
}
END_TEST

/* Somebody listens there: refused, and it is still there afterwards. */
START_TEST(design_live_socket_is_refused)
{
    char dir[160], path[200];
    struct stat before, after;
    struct text err = {0};
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/live", dir);
    int listener = bind_socket(path, true);
    ck_assert_int_eq(stat(path, &before), 0);
    struct setup setup = listen_on(path);
    ck_assert_int_eq(daemon_run(&setup, NULL, &err), 71);
    ck_assert_msg(strstr(err.data, path) != NULL, "%s", err.data);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert(before.st_ino == after.st_ino);
    text_free(&err);
    close(listener);
    harness_remove_dir(dir);
}
END_TEST

START_TEST(design_file_that_is_no_socket_is_refused)
{
    char dir[160], path[200];
    struct text err = {0}, content = {0};
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/precious", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, "data", 4), 4);
    close(fd);
    struct setup setup = listen_on(path);
    ck_assert_int_eq(daemon_run(&setup, NULL, &err), 71);
    ck_assert_msg(strstr(err.data, path) != NULL, "%s", err.data);
    ck_assert(read_file(&content, path));
    ck_assert_str_eq(content.data, "data");
    text_free(&err);
    text_free(&content);
    harness_remove_dir(dir);
}
END_TEST

START_TEST(design_directory_that_is_not_there)
{
    struct text err = {0};
    struct setup setup = listen_on("/nowhere/at/all/socket");
    ck_assert_int_eq(daemon_run(&setup, NULL, &err), 71);
    ck_assert_msg(strstr(err.data, "No such file") != NULL, "%s", err.data);
    text_free(&err);
}
END_TEST

/* Another daemon's socket in our place is not ours to remove. */
START_TEST(design_only_our_socket_is_removed)
{
    struct daemon daemon;
    struct stat st;
    char path[200], dir[160];
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/socket", dir);
    struct setup setup = listen_on(path);
    daemon_start(&daemon, &setup);
    daemon_wait_log(&daemon, "listening on ");
    ck_assert_int_eq(unlink(path), 0);
    int other = bind_socket(path, true);
    daemon_stop(&daemon);
    ck_assert_int_eq(stat(path, &st), 0);
    close(other);
    harness_remove_dir(dir);
}
END_TEST

START_TEST(design_tcp_port_in_use_is_refused)
{
    struct sockaddr_in taken = {.sin_family = AF_INET};
    socklen_t len = sizeof taken;
    struct text err = {0};
    char address[32];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    taken.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&taken, len), 0);
    ck_assert_int_eq(listen(listener, 5), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&taken, &len), 0);
    snprintf(address, sizeof address, "127.0.0.1:%u", (unsigned)ntohs(taken.sin_port));
    struct setup setup = {.mode = SETUP_TCP, .address = address};
    ck_assert_int_eq(daemon_run(&setup, NULL, &err), 71);
    ck_assert_msg(strstr(err.data, "in use") != NULL, "%s", err.data);
    text_free(&err);
    close(listener);
}
END_TEST

/* Right after its end the same port can be used again, connections or not. */
START_TEST(design_tcp_port_can_be_used_again)
{
    struct daemon daemon;
    struct client client;
    char address[32];
    START(&daemon, .mode = SETUP_TCP, .instances = 1);
    snprintf(address, sizeof address, "127.0.0.1:%u", daemon.port);
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    daemon_stop(&daemon);
    START(&daemon, .mode = SETUP_TCP, .instances = 1, .address = address);
    daemon_stop(&daemon);
    client_close(&client);
}
END_TEST

START_TEST(design_bind_outside_loopback_is_warned_of)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .mode = SETUP_TCP, .instances = 1, .address = "0.0.0.0:0");
    daemon_wait_log(&daemon, " WARN .*authentication");
    client_connect(&client, &daemon);
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
    START(&daemon, .mode = SETUP_TCP, .instances = 1);
    ck_assert(!daemon_logged(&daemon, "authentication"));
    daemon_stop(&daemon);
}
END_TEST

/* What was still being sent when the daemon closed does not take the error line with it. */
START_TEST(design_error_line_survives_unread_input)
{
    struct daemon daemon;
    struct client client;
    struct text rest = {0};
    START(&daemon, .mode = SETUP_TCP, .instances = 1);
    text_fill(&rest, 'x', 300000);
    for (int i = 0; i < 10; i++) {
        client_connect(&client, &daemon);
        client_send_bytes(&client, "nonsense\n", 9);
        client_send_bytes(&client, rest.data, rest.len);
        client_error(&client, "null", -32700, "");
        client_expect_eof(&client);
        client_close(&client);
    }
    text_free(&rest);
    daemon_stop(&daemon);
}
END_TEST

/* SIGKILL leaves the file; the next daemon starts all the same, many times over. */
START_TEST(design_socket_of_a_killed_daemon)
{
    char dir[160], path[200];
    harness_make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/socket", dir);
    struct setup setup = listen_on(path);
    for (int i = 0; i < 3; i++) {
        struct daemon daemon;
        daemon_start(&daemon, &setup);
        daemon_wait_log(&daemon, "listening on ");
        daemon_kill(&daemon);
        ck_assert_int_eq(access(path, F_OK), 0);
    }
    harness_remove_dir(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("design: sockets");
    TCase *local = harness_case(suite, "Unix");
    tcase_add_test(local, design_unix_socket_is_private);
    tcase_add_test(local, design_stale_socket_is_replaced);
    tcase_add_test(local, design_live_socket_is_refused);
    tcase_add_test(local, design_file_that_is_no_socket_is_refused);
    tcase_add_test(local, design_directory_that_is_not_there);
    tcase_add_test(local, design_only_our_socket_is_removed);
    tcase_add_test(local, design_socket_of_a_killed_daemon);
    TCase *tcp = harness_case(suite, "TCP");
    tcase_add_test(tcp, design_tcp_port_in_use_is_refused);
    tcase_add_test(tcp, design_tcp_port_can_be_used_again);
    tcase_add_test(tcp, design_bind_outside_loopback_is_warned_of);
    tcase_add_test(tcp, design_error_line_survives_unread_input);
    return harness_run(suite);
}
