/* ADR-010: stdout carries messages alone; the log goes to stderr or to a file. */
#include "build_config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

static void read_all(struct text *to, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;
    to->len = 0;
    while (fd >= 0 && n > 0) {
        n = read(fd, text_room(to, 4096), 4096);
        to->len += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    text_room(to, 1)[0] = '\0';
}

/* Waits until the file has this word. */
static void wait_word(const char *path, const char *word)
{
    struct text text = {0};
    int64_t deadline = deadline_usual();
    for (;;) {
        read_all(&text, path);
        if (strstr(text.data, word) != NULL)
            break;
        ck_assert_msg(!deadline_over(deadline), "%s has no \"%s\": %s", path, word, text.data);
        nap();
    }
    text_free(&text);
}

static bool has_word(const char *path, const char *word)
{
    struct text text = {0};
    read_all(&text, path);
    bool has = strstr(text.data, word) != NULL;
    text_free(&text);
    return has;
}

/* A daemon in stdio mode whose log goes to DIR/test-log. */
static void start_logging(struct daemon *daemon, struct client *client, bool by_environment)
{
    static char environment[512];
    char dir[] = "/tmp/sbt-log.XXXXXX";
    if (by_environment) {
        ck_assert_ptr_nonnull(mkdtemp(dir));
        snprintf(environment, sizeof environment, "%s/test-log", dir);
        setenv("STDIO_BUS_LOG", environment, 1);
        START(daemon, .mode = SETUP_STDIO,
              .arguments = {"--framing", "content-length", "--log-level", "debug"});
        unsetenv("STDIO_BUS_LOG");
    } else {
        START(daemon, .mode = SETUP_STDIO,
              .arguments = {"--framing", "content-length", "--log-level", "debug", "--log-file",
                            "@DIR@/test-log"});
        snprintf(environment, sizeof environment, "%s/test-log", daemon->dir);
    }
    daemon->leaves_files = true;
    client_stdio(client, daemon);
    setenv("LOG_PATH", environment, 1);
}

START_TEST(adr_010_log_file)
{
    struct daemon daemon;
    struct client client;
    struct stat status;
    start_logging(&daemon, &client, _i == 1);
    const char *path = getenv("LOG_PATH");
    frames_pid(&client, 1);
    client_send_bytes(&client, "Content-Length: 2\r\n\r\n[]", 23);
    frames_error(&client, "null", -32700, "not a JSON object");
    wait_word(path, " WARN  [client=1] refused a frame: not a JSON object\n");
    wait_word(path, " DEBUG [client=1] forwarding a message (id 1, sessionId none)");
    ck_assert_uint_eq(daemon_count_log(&daemon, "."), 0); /* nothing on stderr */
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0137, 0); /* not for everybody to read */
    ck_assert_uint_eq(client.input.len, client.consumed);
    client_half_close(&client);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(unlink(path), 0);
    if (_i == 1) {
        *strrchr(path, '/') = '\0';
        ck_assert_int_eq(rmdir(path), 0);
    }
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

START_TEST(adr_010_log_is_reopened_on_sigusr1)
{
    struct daemon daemon;
    struct client client;
    char moved[256];
    start_logging(&daemon, &client, false);
    const char *path = getenv("LOG_PATH");
    frames_pid(&client, 71);
    wait_word(path, "id 71");
    daemon_path(&daemon, moved, "test-log.1");
    ck_assert_int_eq(rename(path, moved), 0);
    frames_pid(&client, 72);
    wait_word(moved, "id 72");
    daemon_signal(&daemon, SIGUSR1);
    int64_t deadline = deadline_usual();
    while (access(path, F_OK) != 0) {
        ck_assert(!deadline_over(deadline));
        nap();
    }
    frames_pid(&client, 73);
    wait_word(path, "id 73");
    ck_assert(!has_word(moved, "id 73"));
    client_half_close(&client);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(unlink(moved), 0);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

/* Without a log file the signal means nothing, and ends nothing. */
START_TEST(adr_010_sigusr1_without_a_file)
{
    struct daemon daemon;
    struct client client;
    START(&daemon, .arguments = {"--log-level", "debug"});
    client_connect(&client, &daemon);
    daemon_signal(&daemon, SIGUSR1);
    client_expect_quiet(&client);
    client_close(&client);
    daemon_stop(&daemon);
}
END_TEST

/* The limit of a service, ulimit -f: the log ends there, and nothing else does. */
START_TEST(design_log_file_at_the_file_size_limit)
{
    struct daemon daemon;
    struct client client;
    struct rlimit limit, low;
    struct stat status;
    int id = 0;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = limit;
    low.rlim_cur = 4096;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &low), 0);
    start_logging(&daemon, &client, false);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const char *path = getenv("LOG_PATH");
    do {
        frames_pid(&client, ++id);
        ck_assert_int_eq(stat(path, &status), 0);
    } while (status.st_size < 4096);
    frames_pid(&client, ++id); /* it had more to say, and was refused */
    frames_pid(&client, ++id);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 4096);
    client_half_close(&client);
    client_expect_eof(&client);
    client_close(&client);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(daemon_wait(&daemon), 0);
}
END_TEST

START_TEST(adr_010_log_file_that_cannot_be_opened)
{
    struct text out = {0}, err = {0};
    struct setup setup = {.mode = SETUP_STDIO, .arguments = {"--log-file", "/no/such/place/log"}};
    ck_assert_int_eq(daemon_run(&setup, &out, &err), 78);
    ck_assert_str_eq(err.data, "stdio_bus: cannot open the log file /no/such/place/log: "
                               "No such file or directory\n");
    ck_assert_uint_eq(out.len, 0);
    text_free(&out);
    text_free(&err);
}
END_TEST

/* Not even when somebody asks for it. */
START_TEST(adr_010_log_never_goes_to_stdout)
{
    struct text out = {0}, err = {0};
    struct setup setup = {.mode = SETUP_STDIO, .arguments = {"--log-file", "/dev/stdout"}};
    ck_assert_int_eq(daemon_run(&setup, &out, &err), 78);
    ck_assert_str_eq(err.data, "stdio_bus: the log file /dev/stdout is stdout, which is for "
                               "messages alone\n");
    ck_assert_uint_eq(out.len, 0);
    text_free(&out);
    text_free(&err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ADR-010: log");
    TCase *log = harness_case(suite, "log");
    tcase_add_loop_test(log, adr_010_log_file, 0, 2);
    tcase_add_test(log, adr_010_log_is_reopened_on_sigusr1);
    tcase_add_test(log, adr_010_sigusr1_without_a_file);
    tcase_add_test(log, design_log_file_at_the_file_size_limit);
    tcase_add_test(log, adr_010_log_file_that_cannot_be_opened);
    tcase_add_test(log, adr_010_log_never_goes_to_stdout);
    return harness_run(suite);
}
