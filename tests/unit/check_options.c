#include "build_config.h"

#include "options.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ARGS_MAX 8

static struct options options;
static char problem[256];

/* The arguments behind the program's name; NULL ends them. */
static int parse(const char *const words[])
{
    static char storage[ARGS_MAX][512];
    char *argv[ARGS_MAX + 1];
    int argc = 1;

    argv[0] = storage[0];
    snprintf(storage[0], sizeof(storage[0]), "stdio_bus");
    for (; words[argc - 1] != NULL; argc++) {
        ck_assert_int_lt(argc, ARGS_MAX);
        snprintf(storage[argc], sizeof(storage[argc]), "%s", words[argc - 1]);
        argv[argc] = storage[argc];
    }
    argv[argc] = NULL;
    problem[0] = '\0';
    return options_parse(&options, argc, argv, problem, sizeof(problem));
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})
#define EXPECT_OK(...)                                                                             \
    do {                                                                                           \
        int code = PARSE(__VA_ARGS__);                                                             \
        ck_assert_msg(code == STDIO_BUS_OK, "%s", problem);                                        \
        ck_assert_str_eq(problem, "");                                                             \
    } while (0)
#define EXPECT_PROBLEM(text, ...)                                                                  \
    do {                                                                                           \
        ck_assert_int_eq(PARSE(__VA_ARGS__), STDIO_BUS_EINVAL);                                    \
        ck_assert_str_eq(problem, text);                                                           \
    } while (0)

START_TEST(test_defaults)
{
    EXPECT_OK("--config", "c.json");
    ck_assert_int_eq(options.action, ACTION_RUN);
    ck_assert_int_eq(options.mode, MODE_STDIO);
    ck_assert_str_eq(options.config_path, "c.json");
    ck_assert_int_eq(options.config_fd, -1);
    ck_assert_ptr_null(options.unix_path);
    ck_assert_str_eq(options.tcp_host, "");
    ck_assert_uint_eq(options.tcp_port, 0);
    ck_assert_int_eq(options.log_level, LOG_LEVEL_INFO);
    ck_assert_ptr_null(options.framing);
    ck_assert_ptr_null(options.log_file);
}
END_TEST

START_TEST(test_both_ways_to_give_a_value)
{
    EXPECT_OK("--config=c=1.json", "--unix=/tmp/s", "--log-level=debug");
    ck_assert_str_eq(options.config_path, "c=1.json");
    ck_assert_int_eq(options.mode, MODE_UNIX);
    ck_assert_str_eq(options.unix_path, "/tmp/s");
    ck_assert_int_eq(options.log_level, LOG_LEVEL_DEBUG);
    EXPECT_OK("--log-level", "ERROR", "--unix", "--s", "--config", "-");
    ck_assert_int_eq(options.log_level, LOG_LEVEL_ERROR);
    ck_assert_str_eq(options.unix_path, "--s"); /* a value may look like an option */
    ck_assert_str_eq(options.config_path, "-");
}
END_TEST

START_TEST(test_config_is_required)
{
    static const char text[] =
        "--config PATH or --config-fd N is required; see stdio_bus --help";

    EXPECT_PROBLEM(text, "--stdio");
    EXPECT_PROBLEM(text, "--check-config");
    ck_assert_int_eq(parse((const char *const[]){NULL}), STDIO_BUS_EINVAL);
    ck_assert_str_eq(problem, text);
    EXPECT_PROBLEM("--config and --config-fd exclude each other", "--config", "c", "--config-fd",
                   "3");
    EXPECT_PROBLEM("--config: the path must not be empty", "--config", "");
    EXPECT_PROBLEM("--config: the path must not be empty", "--config=");
}
END_TEST

START_TEST(test_config_fd)
{
    static const char text[] = "--config-fd: must be the number of an open descriptor";

    EXPECT_OK("--config-fd", "3");
    ck_assert_int_eq(options.config_fd, 3);
    ck_assert_ptr_null(options.config_path);
    EXPECT_OK("--config-fd=2147483647");
    ck_assert_int_eq(options.config_fd, 2147483647);
    EXPECT_PROBLEM(text, "--config-fd", "2147483648");
    EXPECT_PROBLEM(text, "--config-fd", "99999999999999999999999999");
    EXPECT_PROBLEM(text, "--config-fd", "-1");
    EXPECT_PROBLEM(text, "--config-fd", "");
    EXPECT_PROBLEM(text, "--config-fd", "3x");
    EXPECT_PROBLEM(text, "--config-fd", " 3");
}
END_TEST

START_TEST(test_config_fd_zero)
{
    EXPECT_PROBLEM("--config-fd: in stdio mode descriptor 0 is the client's", "--config-fd", "0");
    EXPECT_OK("--config-fd", "0", "--unix", "s");
    ck_assert_int_eq(options.config_fd, 0);
    EXPECT_OK("--config-fd", "0", "--check-config");
}
END_TEST

START_TEST(test_actions)
{
    EXPECT_OK("--check-config", "--config", "c", "--tcp", ":1");
    ck_assert_int_eq(options.action, ACTION_CHECK_CONFIG);
    EXPECT_OK("--help");
    ck_assert_int_eq(options.action, ACTION_HELP);
    EXPECT_OK("-h", "--nonsense");
    ck_assert_int_eq(options.action, ACTION_HELP);
    EXPECT_OK("--unix", "a", "--version", "--stdio");
    ck_assert_int_eq(options.action, ACTION_VERSION);
    EXPECT_OK("-V");
    ck_assert_int_eq(options.action, ACTION_VERSION);
    EXPECT_PROBLEM("unknown option --nonsense; see stdio_bus --help", "--nonsense", "--help");
}
END_TEST

START_TEST(test_unknown)
{
    EXPECT_PROBLEM("unknown option --foo; see stdio_bus --help", "--foo");
    EXPECT_PROBLEM("unknown option --foo; see stdio_bus --help", "--foo=bar");
    EXPECT_PROBLEM("unknown option --conf; see stdio_bus --help", "--conf", "c");
    EXPECT_PROBLEM("unknown option --configs; see stdio_bus --help", "--configs", "c");
    EXPECT_PROBLEM("unknown option -x; see stdio_bus --help", "-x");
    EXPECT_PROBLEM("unknown option -hV; see stdio_bus --help", "-hV");
    EXPECT_PROBLEM("unknown option -config; see stdio_bus --help", "-config", "c");
    EXPECT_PROBLEM("unknown option --; see stdio_bus --help", "--");
    EXPECT_PROBLEM("unknown option --; see stdio_bus --help", "--=");
    EXPECT_PROBLEM("unknown option --a\\x0ab; see stdio_bus --help", "--a\nb");
    EXPECT_PROBLEM("unexpected argument \"c.json\"; see stdio_bus --help", "c.json");
    EXPECT_PROBLEM("unexpected argument \"-\"; see stdio_bus --help", "--config", "c", "-");
    EXPECT_PROBLEM("unexpected argument \"\"; see stdio_bus --help", "");
}
END_TEST

START_TEST(test_values_missing_or_too_many)
{
    EXPECT_PROBLEM("--config needs a value: --config PATH", "--config");
    EXPECT_PROBLEM("--config-fd needs a value: --config-fd N", "--config-fd");
    EXPECT_PROBLEM("--unix needs a value: --unix PATH", "--unix");
    EXPECT_PROBLEM("--tcp needs a value: --tcp HOST:PORT", "--tcp");
    EXPECT_PROBLEM("--log-level needs a value: --log-level LEVEL", "--log-level");
    EXPECT_PROBLEM("--stdio takes no value", "--stdio=yes");
    EXPECT_PROBLEM("--help takes no value", "--help=");
}
END_TEST

START_TEST(test_given_twice)
{
    EXPECT_PROBLEM("--stdio is given twice", "--stdio", "--stdio");
    EXPECT_PROBLEM("--unix is given twice", "--unix", "a", "--unix=a");
    EXPECT_PROBLEM("--config is given twice", "--config", "a", "--config", "b");
    EXPECT_PROBLEM("--stdio and --unix exclude each other", "--stdio", "--unix", "a");
    EXPECT_PROBLEM("--tcp and --stdio exclude each other", "--tcp", ":1", "--stdio");
    EXPECT_PROBLEM("--unix and --tcp exclude each other", "--unix", "a", "--tcp", ":1");
}
END_TEST

START_TEST(test_unix)
{
    const size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    char path[300], expected[128];

    memset(path, 'p', sizeof(path));
    path[max] = '\0';
    EXPECT_OK("--config", "c", "--unix", path);
    ck_assert_str_eq(options.unix_path, path);
    path[max] = 'p';
    path[max + 1] = '\0';
    snprintf(expected, sizeof(expected),
             "--unix: the path is %zu bytes long, a socket's may have %zu", max + 1, max);
    EXPECT_PROBLEM(expected, "--config", "c", "--unix", path);
    EXPECT_PROBLEM("--unix: the path must not be empty", "--config", "c", "--unix", "");
}
END_TEST

START_TEST(test_tcp)
{
    static const struct {
        const char *value, *host;
        unsigned port;
    } cases[] = {
        {"localhost:8080", "localhost", 8080}, {"127.0.0.1:0", "127.0.0.1", 0},
        {"0.0.0.0:65535", "0.0.0.0", 65535},   {":8080", "", 8080},
        {":00080", "", 80},                    {"[::1]:80", "::1", 80},
        {"[::]:1", "::", 1},                   {"[fe80::1%eth0]:9", "fe80::1%eth0", 9},
    };
    size_t i;

    for (i = 0; i < COUNT(cases); i++) {
        EXPECT_OK("--config", "c", "--tcp", cases[i].value);
        ck_assert_int_eq(options.mode, MODE_TCP);
        ck_assert_str_eq(options.tcp_host, cases[i].host);
        ck_assert_uint_eq(options.tcp_port, cases[i].port);
    }
}
END_TEST

START_TEST(test_tcp_refused)
{
    static const struct {
        const char *value, *problem;
    } cases[] = {
        {"", "--tcp: expected HOST:PORT, [IPV6]:PORT or :PORT"},
        {"8080", "--tcp: expected HOST:PORT, [IPV6]:PORT or :PORT"},
        {"localhost", "--tcp: expected HOST:PORT, [IPV6]:PORT or :PORT"},
        {"[::1]", "--tcp: expected HOST:PORT, [IPV6]:PORT or :PORT"},
        {"[::1", "--tcp: expected an address between [ and ]"},
        {"[]:80", "--tcp: expected an address between [ and ]"},
        {"[::1]x:80", "--tcp: expected an address between [ and ]"},
        {"::1:80", "--tcp: an IPv6 address needs brackets, as in [::1]:8080"},
        {"a:b:80", "--tcp: an IPv6 address needs brackets, as in [::1]:8080"},
        {":", "--tcp: port must be 0 to 65535"},
        {"localhost:", "--tcp: port must be 0 to 65535"},
        {":65536", "--tcp: port must be 0 to 65535"},
        {":99999999999999999999", "--tcp: port must be 0 to 65535"},
        {":-1", "--tcp: port must be 0 to 65535"},
        {":+1", "--tcp: port must be 0 to 65535"},
        {":http", "--tcp: port must be 0 to 65535"},
        {":80 ", "--tcp: port must be 0 to 65535"},
        {"[::1]:", "--tcp: port must be 0 to 65535"},
    };
    size_t i;

    for (i = 0; i < COUNT(cases); i++)
        EXPECT_PROBLEM(cases[i].problem, "--config", "c", "--tcp", cases[i].value);
}
END_TEST

START_TEST(test_connect)
{
    static const char *const paths[] = {"/run/bus.sock", "./a:80", "bus.sock", "/[::1]:80"};
    size_t i;

    for (i = 0; i < COUNT(paths); i++) {
        EXPECT_OK("--connect", paths[i]);
        ck_assert_int_eq(options.action, ACTION_CONNECT);
        ck_assert_int_eq(options.mode, MODE_UNIX);
        ck_assert_str_eq(options.unix_path, paths[i]);
    }
    EXPECT_OK("--connect=[::1]:80", "--log-level", "debug");
    ck_assert_int_eq(options.action, ACTION_CONNECT);
    ck_assert_int_eq(options.mode, MODE_TCP);
    ck_assert_str_eq(options.tcp_host, "::1");
    ck_assert_uint_eq(options.tcp_port, 80);
    EXPECT_OK("--connect", ":8080");
    ck_assert_str_eq(options.tcp_host, "");
}
END_TEST

START_TEST(test_connect_refused)
{
    static const char configured[] = "--connect takes no configuration, the daemon has one";
    char path[300];

    EXPECT_PROBLEM("--connect needs a value: --connect PATH|HOST:PORT", "--connect");
    EXPECT_PROBLEM("--connect: the path must not be empty", "--connect", "");
    EXPECT_PROBLEM("--connect: port must be 1 to 65535", "--connect", "localhost:0");
    EXPECT_PROBLEM("--connect: port must be 1 to 65535", "--connect", ":");
    EXPECT_PROBLEM("--connect: expected an address between [ and ]", "--connect", "[]:80");
    EXPECT_PROBLEM(configured, "--connect", "a", "--config", "c");
    EXPECT_PROBLEM(configured, "--config-fd", "3", "--connect", "a");
    EXPECT_PROBLEM(configured, "--connect", "a", "--check-config");
    EXPECT_PROBLEM("--unix and --connect exclude each other", "--unix", "a", "--connect", "a");
    memset(path, '/', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(PARSE("--connect", path), STDIO_BUS_EINVAL);
    ck_assert_msg(strstr(problem, "--connect: the path is 299 bytes long") != NULL, "%s", problem);
}
END_TEST

START_TEST(test_tcp_host_length)
{
    char value[300];

    memset(value, 'h', sizeof(value));
    memcpy(value + 255, ":80", 4);
    EXPECT_OK("--config", "c", "--tcp", value);
    ck_assert_uint_eq(strlen(options.tcp_host), 255);
    memcpy(value + 255, "h:80", 5);
    EXPECT_PROBLEM("--tcp: the host is 256 bytes long, it may have 255", "--config", "c", "--tcp",
                   value);
}
END_TEST

START_TEST(test_log_level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    size_t i;

    for (i = 0; i < COUNT(names); i++) {
        EXPECT_OK("--config", "c", "--log-level", names[i]);
        ck_assert_int_eq(options.log_level, (int)i);
    }
    EXPECT_PROBLEM("--log-level: must be debug, info, warn or error", "--log-level", "loud");
    EXPECT_PROBLEM("--log-level: must be debug, info, warn or error", "--log-level", "");
}
END_TEST

START_TEST(test_values_point_into_argv)
{
    char name[] = "stdio_bus", config[] = "--config=c.json", unix_option[] = "--unix";
    char path[] = "/tmp/s";
    char *argv[] = {name, config, unix_option, path, NULL};

    ck_assert_int_eq(options_parse(&options, 4, argv, problem, sizeof(problem)), STDIO_BUS_OK);
    ck_assert_ptr_eq(options.config_path, config + 9);
    ck_assert_ptr_eq(options.unix_path, path);
}
END_TEST

/* A small buffer cuts the explanation; nothing is written behind it. */
START_TEST(test_small_problem)
{
    char name[] = "stdio_bus", wrong[] = "--wrong", small[12] = "..........z";
    char *argv[] = {name, wrong, NULL};

    ck_assert_int_eq(options_parse(&options, 2, argv, small, 10), STDIO_BUS_EINVAL);
    ck_assert_str_eq(small, "unknown o");
    ck_assert_int_eq(small[10], 'z');
    ck_assert_int_eq(options_parse(&options, 0, argv, small, 10), STDIO_BUS_EINVAL);
}
END_TEST

START_TEST(test_framing)
{
    EXPECT_OK("--config=c", "--framing", "content-length");
    ck_assert_ptr_eq(options.framing, &framing_content_length);
    EXPECT_OK("--config=c", "--framing=length");
    ck_assert_ptr_eq(options.framing, &framing_length);
    EXPECT_OK("--config=c", "--framing=ndjson");
    ck_assert_ptr_eq(options.framing, &framing_ndjson);
    EXPECT_PROBLEM("--framing: must be ndjson, content-length or length", "--config=c",
                   "--framing=lsp");
}
END_TEST

START_TEST(test_log_file)
{
    EXPECT_OK("--config=c", "--log-file", "/var/log/bus");
    ck_assert_str_eq(options.log_file, "/var/log/bus");
    EXPECT_PROBLEM("--log-file: the path must not be empty", "--config=c", "--log-file=");
}
END_TEST

START_TEST(test_help)
{
    static const char *const names[] = {"--config PATH", "--config-fd N", "--stdio",
                                        "--unix PATH",   "--tcp HOST",    "--check-config",
                                        "--log-level",   "-h, --help",    "-V, --version",
                                        "--framing NAME", "--log-file PATH",
                                        "--connect PATH|HOST:PORT"};
    const char *line = options_help(), *end;
    size_t i;

    for (i = 0; i < COUNT(names); i++)
        ck_assert_msg(strstr(line, names[i]) != NULL, "%s is not in the help", names[i]);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
        ck_assert_msg(end - line <= 79, "too long: %.*s", (int)(end - line), line);
    ck_assert_str_eq(line, ""); /* the last line is whole */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("options");
    TCase *tcase = tcase_create("options");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, test_defaults);
    tcase_add_test(tcase, test_both_ways_to_give_a_value);
    tcase_add_test(tcase, test_config_is_required);
    tcase_add_test(tcase, test_config_fd);
    tcase_add_test(tcase, test_config_fd_zero);
    tcase_add_test(tcase, test_actions);
    tcase_add_test(tcase, test_unknown);
    tcase_add_test(tcase, test_values_missing_or_too_many);
    tcase_add_test(tcase, test_given_twice);
    tcase_add_test(tcase, test_unix);
    tcase_add_test(tcase, test_tcp);
    tcase_add_test(tcase, test_tcp_refused);
    tcase_add_test(tcase, test_connect);
    tcase_add_test(tcase, test_connect_refused);
    tcase_add_test(tcase, test_tcp_host_length);
    tcase_add_test(tcase, test_log_level);
    tcase_add_test(tcase, test_values_point_into_argv);
    tcase_add_test(tcase, test_small_problem);
    tcase_add_test(tcase, test_framing);
    tcase_add_test(tcase, test_log_file);
    tcase_add_test(tcase, test_help);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
