/* ADR-010: stdout carries only messages; the log goes to stderr or to a file. */
#include "build_config.h"

#include <sys/resource.h>

#include "harness.h"

static bool has_word(const char *path, const char *word)
{
    struct text text = {0};
    bool has = read_file(&text, path) && strstr(text.data, word) != NULL;
    text_free(&text);
    return has;
}

static void wait_word(const char *path, const char *word)
{
    WAIT_UNTIL(has_word(path, word), "%s has no \"%s\"", path, word);
}

#define LOGGING "--framing", "content-length", "--log-level", "debug"

/* A daemon in stdio mode whose log goes to DIR/test-log. Puts that path into *path. */
static struct daemon *start_logging(const char **path)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO,
                                  .arguments = {LOGGING, "--log-file", "@DIR@/test-log"});
    *path = test_format("%s/test-log", daemon->dir);
    return daemon;
}

/* The same, where the environment names a file in another directory. */
static struct daemon *start_logging_by_environment(const char **path)
{
    *path = test_format("%s/test-log", test_dir());
    setenv("STDIO_BUS_LOG", *path, 1);
    struct daemon *daemon = START(.mode = SETUP_STDIO, .arguments = {LOGGING});
    unsetenv("STDIO_BUS_LOG");
    return daemon;
}

TEST_ROWS(adr_010_log_file, 2)
{
    struct stat status;
    const char *path;
    struct daemon *daemon = row == 0 ? start_logging(&path) : start_logging_by_environment(&path);
    struct client *client = client_stdio(daemon);
    frames_pid(client, 1);
    client_send_bytes(client, "Content-Length: 2\r\n\r\n[]", 23);
    frames_error(client, "null", -32700, "not a JSON object");
    wait_word(path, " WARN  [client=1] refused a frame: not a JSON object\n");
    wait_word(path, " DEBUG [client=1] forwarding a message (id 1, sessionId none)");
    ck_assert_uint_eq(daemon_count_log(daemon, "."), 0); /* nothing on stderr */
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0137, 0); /* not readable for other users */
    ck_assert_uint_eq(client->input.len, client->consumed);
    client_finish(client, daemon);
}

TEST(adr_010_log_is_reopened_on_sigusr1)
{
    const char *path;
    struct daemon *daemon = start_logging(&path);
    struct client *client = client_stdio(daemon);
    const char *moved = test_format("%s.1", path);
    frames_pid(client, 71);
    wait_word(path, "id 71");
    ck_assert_int_eq(rename(path, moved), 0);
    frames_pid(client, 72);
    wait_word(moved, "id 72");
    daemon_signal(daemon, SIGUSR1);
    WAIT_UNTIL(access(path, F_OK) == 0, "there is no new log");
    frames_pid(client, 73);
    wait_word(path, "id 73");
    ck_assert(!has_word(moved, "id 73"));
    client_finish(client, daemon);
}

/* Without a log file the signal has no effect. */
TEST(adr_010_sigusr1_without_a_file)
{
    struct daemon *daemon = START(.arguments = {"--log-level", "debug"});
    struct client *client = client_connect(daemon);
    daemon_signal(daemon, SIGUSR1);
    client_expect_quiet(client);
}

/* At the limit of a service (ulimit -f) the log ends, and the daemon continues. */
TEST(design_log_file_at_the_file_size_limit)
{
    struct rlimit limit, low;
    struct stat status;
    const char *path;
    int id = 0;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = limit;
    low.rlim_cur = 4096;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &low), 0);
    struct daemon *daemon = start_logging(&path);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct client *client = client_stdio(daemon);
    do {
        frames_pid(client, ++id);
        ck_assert_int_eq(stat(path, &status), 0);
    } while (status.st_size < 4096);
    frames_pid(client, ++id); /* these two log more lines, which the limit cuts off */
    frames_pid(client, ++id);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 4096);
    client_finish(client, daemon);
}

static const struct {
    const char *path, *message;
} bad_files[] = {
    {"/no/such/place/log",
     "stdio_bus: cannot open the log file /no/such/place/log: No such file or directory\n"},
    {"/dev/stdout", "stdio_bus: the log file /dev/stdout is stdout, which is for messages alone\n"},
};

TEST_ROWS(adr_010_log_file_is_refused, COUNT(bad_files))
{
    ck_assert_str_eq(RUN(78, .mode = SETUP_STDIO, .arguments = {"--log-file", bad_files[row].path}),
                     bad_files[row].message);
}
