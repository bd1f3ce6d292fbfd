/* doc/security.md: who connects, and what other users of the machine can do. */
#include "build_config.h"

#include <sys/un.h>

#include "harness.h"
#include "transport/origin.h"

TEST(security_connections_are_logged)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "echo", NULL);
    daemon_wait_log(daemon, ORIGIN_HAS_CREDENTIALS ? " INFO  \\[client=1\\] connected: uid [0-9]+"
                                                   : " INFO  \\[client=1\\] connected: ");
    client_send(client, "{'id':2,'method':'plain'}");
    client_result(client, "2");
    client_close(client);
    daemon_wait_log(daemon, " INFO  \\[client=1\\] disconnected: .*; 2 messages in \\([0-9]+ bytes"
                            "\\), 2 out \\([0-9]+ bytes\\)$");
}

TEST(security_connections_are_logged_by_uid_and_pid)
{
    if (!ORIGIN_HAS_CREDENTIALS)
        return;
    struct daemon *daemon = START(.instances = 1);
    client_expect_quiet(client_connect(daemon));
    daemon_wait_log(daemon,
                    test_format("connected: uid %ld, gid %ld", (long)geteuid(), (long)getegid()));
}

TEST(security_connections_are_logged_by_address)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1);
    client_expect_quiet(client_connect(daemon));
    daemon_wait_log(daemon, " INFO  \\[client=1\\] connected: 127\\.0\\.0\\.1:[0-9]+$");
}

/* A client that comes and goes does not flood the log. */
TEST(security_reconnecting_client_does_not_flood_the_log)
{
    struct daemon *daemon = START(.instances = 1);
    for (int i = 0; i < 300; i++) {
        struct client *client = client_connect(daemon);
        client_expect_quiet(client);
        client_close(client);
    }
    daemon_signal(daemon, SIGTERM);
    daemon_wait_log(daemon, "more lines of .* left out within [0-9]+ s, the first: "
                            "\\[client=[0-9]+\\] connected: ");
    daemon_wait_log(daemon, "more lines of .* left out within .* disconnected: ");
    ck_assert_uint_lt(daemon_count_log(daemon, "connected: "), 200);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The umask does not count. */
TEST(security_socket_has_the_mode_and_group_of_the_configuration)
{
    struct stat st;
    mode_t old = umask(0077);
    struct daemon *daemon =
        START(.members = test_format("'listen':{'mode':'0660','group':%ld}", (long)getegid()));
    umask(old);
    ck_assert_int_eq(lstat(daemon->socket_path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0660);
    ck_assert_uint_eq(st.st_gid, getegid());
    client_expect_quiet(client_connect(daemon));
}

static const char *allow(uid_t uid)
{
    return test_format("'listen':{'allow_uids':[%ld]}", (long)uid);
}

TEST(security_user_that_is_not_allowed_is_refused)
{
    if (!ORIGIN_HAS_CREDENTIALS)
        return;
    struct daemon *daemon = START(.members = allow(geteuid() + 1));
    struct client *client = client_connect(daemon);
    client_error(client, "null", -32000, "this user may not connect (listen.allow_uids)");
    client_expect_eof(client);
    daemon_wait_log(daemon, test_format(" WARN  refused uid %ld, .*allow_uids", (long)geteuid()));
    ck_assert(!daemon_logged(daemon, "connected"));
}

TEST(security_user_that_is_allowed_is_served)
{
    if (!ORIGIN_HAS_CREDENTIALS)
        return;
    struct daemon *daemon = START(.members = allow(geteuid()));
    client_expect_quiet(client_connect(daemon));
}

/* However many connections another user opens and leaves open. */
TEST(security_refused_user_keeps_nobody_out)
{
    if (!ORIGIN_HAS_CREDENTIALS || geteuid() != 0)
        return; /* only the superuser can be two users */
    struct daemon *daemon =
        START(.members =
                  "'listen':{'mode':'0666','allow_uids':[0]},'limits':{'max_connections':5}");
    ck_assert_int_eq(chmod(test_format("%s/..", daemon->dir), 0755), 0);
    ck_assert_int_eq(chmod(daemon->dir, 0755), 0);
    ck_assert_int_eq(seteuid(4711), 0);
    steps_without("this user may send no signal to the daemon");
    for (int i = 0; i < 200; i++)
        client_connect(daemon);
    ck_assert_int_eq(seteuid(0), 0);
    client_expect_quiet(client_connect(daemon));
    ck_assert(!daemon_logged(daemon, "max_connections"));
}

/* On TCP the daemon cannot know the users: it does not start without the check that was asked for.
 */
TEST(security_allow_uids_needs_a_unix_socket)
{
    if (!ORIGIN_HAS_CREDENTIALS)
        return;
    expect_word(RUN(78, .mode = SETUP_TCP, .members = allow(0)), "listen.allow_uids");
}

TEST(security_socket_keys_are_ignored_on_stdio)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .members = "'listen':{'mode':'0666'}");
    struct client *client = client_stdio(daemon);
    client_expect_quiet(client);
    daemon_wait_log(daemon, " WARN .*listen.mode.* no effect without --unix");
    client_finish(client, daemon);
}

/* Stale or not: its owner may be about to use the path again. */
TEST(security_socket_of_another_user_is_not_removed)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    if (geteuid() != 0)
        return; /* only the superuser can make such a socket */
    snprintf(address.sun_path, sizeof address.sun_path, "%s/other", test_dir());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    ck_assert_int_eq(lchown(address.sun_path, 4711, 4711), 0);
    struct setup setup = {
        .mode = SETUP_STDIO, .default_mode = true, .arguments = {"--unix", address.sun_path}};
    expect_word(daemon_run(&setup, 71, NULL), "another user (uid 4711)");
    ck_assert_int_eq(lstat(address.sun_path, &st), 0);
}

/* --- the log file --- */

/* A directory with the mode; "log" in it is a symbolic link to "target". */
static const char *dir_with_link(mode_t mode)
{
    const char *dir = test_dir();
    ck_assert_int_eq(symlink("target", test_format("%s/log", dir)), 0);
    ck_assert_int_eq(chmod(dir, mode), 0);
    return dir;
}

static const mode_t shared_modes[] = {0770, 0703, 01777};

TEST_ROWS(security_log_file_is_no_link_in_a_shared_directory, COUNT(shared_modes))
{
    const char *dir = dir_with_link(shared_modes[row]);
    const char *log = test_format("%s/log", dir);
    const char *output = RUN(78, .mode = SETUP_STDIO, .arguments = {"--log-file", log});
    expect_word(output, "it is a symbolic link in a directory that other users can write to");
    ck_assert_int_ne(access(test_format("%s/target", dir), F_OK), 0);
}

TEST(security_log_file_is_a_link_in_a_directory_of_its_own)
{
    const char *dir = dir_with_link(0755);
    RUN(0, .mode = SETUP_STDIO, .arguments = {"--log-file", test_format("%s/log", dir)});
    ck_assert_int_eq(access(test_format("%s/target", dir), F_OK), 0);
}

/* Another user has put a link where the log file was: the log continues in the old file. */
TEST(security_log_file_is_not_reopened_as_a_link)
{
    const char *dir = test_dir(), *log = test_format("%s/log", dir);
    struct text *text = test_text();
    ck_assert_int_eq(chmod(dir, 01777), 0);
    struct daemon *daemon = START(.arguments = {"--log-file", log}, .no_wait = true);
    snprintf(daemon->log_path, sizeof daemon->log_path, "%s/moved", dir);
    WAIT_UNTIL(access(daemon->socket_path, F_OK) == 0, "it does not listen");
    ck_assert_int_eq(rename(log, daemon->log_path), 0);
    ck_assert_int_eq(symlink("target", log), 0);
    steps_without_upgrades("the next program opens the log file, too");
    daemon_signal(daemon, SIGUSR1);
    daemon_wait_log(daemon, " ERROR .*log file again.*it is a symbolic link");
    client_expect_quiet(client_connect(daemon));
    daemon_wait_log(daemon, "\\[client=1\\] connected");
    ck_assert(!read_file(text, test_format("%s/target", dir)));
}
