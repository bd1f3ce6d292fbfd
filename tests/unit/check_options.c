#include "build_config.h"

#include "cli/parse.h"

#include <sys/un.h>

#include "base/error.h"
#include "cli/help.h"
#include "suite.h"

#define ARGS_MAX 12

static struct options options;
static char problem[256];

static const char *const sockets[] = {"toy", NULL}; /* of a service */

/* The arguments after the program's name; NULL ends them. */
static int parse(const char *const words[])
{
    static char storage[ARGS_MAX][512];
    static char *argv[ARGS_MAX + 1];
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
    setenv("HOME", "/check", 1);
    setenv("CHECK_EMPTY", "", 1);
    unsetenv("CHECK_NONE");
    return options_parse(&options, argc, argv, sockets, problem, sizeof problem);
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

static void expect_unix(const char *path)
{
    ck_assert(!options.stdio);
    ck_assert_uint_eq(options.listen_count, 1);
    ck_assert_int_eq(options.listens[0].kind, LISTEN_UNIX);
    ck_assert_str_eq(options.listens[0].path, path);
}

TEST(test_defaults)
{
    EXPECT_OK("--config", "c.json");
    ck_assert_int_eq(options.action, ACTION_RUN);
    ck_assert(options.stdio);
    ck_assert_str_eq(options.config_path, "c.json");
    ck_assert_int_eq(options.config_fd, -1);
    ck_assert_uint_eq(options.listen_count, 0);
    ck_assert_int_eq(options.log_level, LOG_LEVEL_INFO);
    ck_assert_ptr_null(options.framing);
    ck_assert_ptr_null(options.log_file);
}

TEST(test_both_ways_to_give_a_value)
{
    EXPECT_OK("--config=c=1.json", "--unix=/tmp/s", "--log-level=debug");
    ck_assert_str_eq(options.config_path, "c=1.json");
    expect_unix("/tmp/s");
    ck_assert_int_eq(options.log_level, LOG_LEVEL_DEBUG);
    EXPECT_OK("--log-level", "ERROR", "--unix", "--s", "--config", "-");
    ck_assert_int_eq(options.log_level, LOG_LEVEL_ERROR);
    expect_unix("--s"); /* a value may look like an option */
    ck_assert_str_eq(options.config_path, "-");
}

TEST(test_config_fd)
{
    EXPECT_OK("--config-fd", "3");
    ck_assert_int_eq(options.config_fd, 3);
    ck_assert_ptr_null(options.config_path);
    EXPECT_OK("--config-fd=2147483647");
    ck_assert_int_eq(options.config_fd, 2147483647);
    EXPECT_OK("--config-fd", "0", "--unix", "s");
    ck_assert_int_eq(options.config_fd, 0);
    EXPECT_OK("--config-fd", "0", "--check-config");
}

TEST(test_command)
{
    EXPECT_OK("--", "npx", "--help", "--");
    ck_assert_int_eq(options.action, ACTION_RUN);
    ck_assert(options.stdio);
    ck_assert_str_eq(options.line.words[0], "npx");
    ck_assert_str_eq(options.line.words[1], "--help");
    ck_assert_str_eq(options.line.words[2], "--");
    ck_assert_ptr_null(options.line.words[3]);
    ck_assert(options.line.one_client && options.line.protocol == NULL);
    ck_assert(options.line.clients == NULL && options.line.instances == NULL);
    EXPECT_OK("--unix=s", "--protocol=mcp", "--clients=sticky", "--instances=007", "--", "a");
    ck_assert(!options.line.one_client);
    ck_assert_str_eq(options.line.protocol, "mcp");
    ck_assert_str_eq(options.line.clients, "sticky");
    ck_assert_str_eq(options.line.instances, "007");
    EXPECT_OK("--protocol=mcp", "--idle-stop", "60", "--", "a");
    ck_assert_str_eq(options.line.idle_stop, "60");
    EXPECT_OK("--check-config", "--strict", "--", "a");
    ck_assert_int_eq(options.action, ACTION_CHECK_CONFIG);
    EXPECT_OK("--config", "c");
    ck_assert_ptr_null(options.line.words);
}

TEST(test_actions)
{
    EXPECT_OK("--check-config", "--config", "c", "--tcp", ":1");
    ck_assert_int_eq(options.action, ACTION_CHECK_CONFIG);
    ck_assert(!options.strict && options.has_mode && !options.has_log_level);
    EXPECT_OK("--strict", "--config", "c", "--check-config", "--log-level", "info");
    ck_assert(options.strict && !options.has_mode && options.has_log_level);
    EXPECT_PROBLEM("--strict is for --check-config", "--config", "c", "--strict");
    EXPECT_OK("--help");
    ck_assert_int_eq(options.action, ACTION_HELP);
    EXPECT_OK("-h", "--nonsense");
    ck_assert_int_eq(options.action, ACTION_HELP);
    EXPECT_OK("--unix", "a", "--version", "--stdio");
    ck_assert_int_eq(options.action, ACTION_VERSION);
    EXPECT_OK("--import", "f");
    ck_assert_int_eq(options.action, ACTION_IMPORT);
    ck_assert_str_eq(options.import_path, "f");
    EXPECT_OK("-V");
    ck_assert_int_eq(options.action, ACTION_VERSION);
}

TEST(test_unix)
{
    const size_t max = UNIX_PATH_MAX;
    char path[300], expected[128];

    memset(path, 'p', sizeof path);
    path[max] = '\0';
    EXPECT_OK("--config", "c", "--unix", path);
    expect_unix(path);
    path[max] = 'p';
    path[max + 1] = '\0';
    snprintf(expected, sizeof expected, "--unix: " UNIX_PATH_PROBLEM, max + 1, max);
    EXPECT_PROBLEM(expected, "--config", "c", "--unix", path);
}

TEST(test_tcp)
{
    static const struct {
        const char *value, *host;
        unsigned port;
    } cases[] = {
        {"localhost:8080", "localhost", 8080},
        {"127.0.0.1:0", "127.0.0.1", 0},
        {"0.0.0.0:65535", "0.0.0.0", 65535},
        {":8080", "", 8080},
        {":00080", "", 80},
        {"[::1]:80", "::1", 80},
        {"[::]:1", "::", 1},
        {"[fe80::1%eth0]:9", "fe80::1%eth0", 9},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        EXPECT_OK("--config", "c", "--tcp", cases[i].value);
        ck_assert(!options.stdio);
        ck_assert_uint_eq(options.listen_count, 1);
        ck_assert_int_eq(options.listens[0].kind, LISTEN_TCP);
        ck_assert_str_eq(options.listens[0].host, cases[i].host);
        ck_assert_uint_eq(options.listens[0].port, cases[i].port);
    }
}

/* Any number of listeners of any kind, in their order. */
TEST(test_listeners)
{
    EXPECT_OK("--http", "127.0.0.1:8080", "--unix=a", "--http=unix:/b", "--tcp=:1", "--unix", "c",
              "--", "cat");
    ck_assert(!options.stdio && options.has_mode && !options.line.one_client);
    ck_assert_uint_eq(options.listen_count, 5);
    ck_assert_int_eq(options.listens[0].kind, LISTEN_HTTP);
    ck_assert(!options.listens[0].is_unix);
    ck_assert_str_eq(options.listens[0].host, "127.0.0.1");
    ck_assert_uint_eq(options.listens[0].port, 8080);
    ck_assert_int_eq(options.listens[1].kind, LISTEN_UNIX);
    ck_assert_int_eq(options.listens[2].kind, LISTEN_HTTP);
    ck_assert(options.listens[2].is_unix);
    ck_assert_str_eq(options.listens[2].path, "/b");
    ck_assert_int_eq(options.listens[3].kind, LISTEN_TCP);
    ck_assert_str_eq(options.listens[4].path, "c");
    EXPECT_OK("--unix=a", "--http=:1", "--token-file=t", "--", "cat");
    ck_assert_str_eq(options.token_file, "t");
    ck_assert(!options.open);
    EXPECT_OK("--open", "--tcp=:1", "--", "cat");
    ck_assert(options.open);
    EXPECT_OK("--open", "--unix=a", "--", "cat");
}

TEST(test_connect)
{
    static const char *const paths[] = {"/run/bus.sock", "./a:80", "bus.sock", "/[::1]:80"};

    for (size_t i = 0; i < COUNT(paths); i++) {
        EXPECT_OK("--connect", paths[i]);
        ck_assert_int_eq(options.action, ACTION_CONNECT);
        ck_assert(options.connect.is_unix);
        ck_assert_str_eq(options.connect.path, paths[i]);
    }
    EXPECT_OK("--connect=[::1]:80", "--log-level", "debug");
    ck_assert_int_eq(options.action, ACTION_CONNECT);
    ck_assert(!options.connect.is_unix);
    ck_assert_str_eq(options.connect.host, "::1");
    ck_assert_uint_eq(options.connect.port, 80);
    EXPECT_OK("--connect", ":8080");
    ck_assert_str_eq(options.connect.host, "");
    ck_assert(options.pool == NULL && options.wait_sec == 0);
    EXPECT_OK("--connect", "~/s", "--pool", "a b", "--wait=7");
    ck_assert_str_eq(options.connect.path, "/check/s");
    ck_assert_str_eq(options.pool, "a b");
    ck_assert_int_eq(options.wait_sec, 7);
}

struct url_case {
    const char *text, *host, *authority, *path;
    unsigned port;
};

static const struct url_case urls[] = {
    {"http://127.0.0.1:8080/mcp", "127.0.0.1", "127.0.0.1:8080", "/mcp", 8080},
    {"http://example.org", "example.org", "example.org", "/", 80},
    {"http://example.org/a/b?c=d/#e", "example.org", "example.org", "/a/b?c=d/", 80},
    {"http://example.org:1?c", "example.org", "example.org:1", "/?c", 1},
    {"http://[::1]:65535/", "::1", "[::1]:65535", "/", 65535},
    {"http://[::1]", "::1", "[::1]", "/", 80},
};

TEST_ROWS(test_connect_url, COUNT(urls))
{
    const struct url_case *url = &urls[row];

    EXPECT_OK("--connect", url->text, "--token-file", "t", "--protocol", "mcp", "--wait", "3");
    ck_assert(options.has_url);
    ck_assert_str_eq(options.url.host, url->host);
    ck_assert_str_eq(options.url.authority, url->authority);
    ck_assert_str_eq(options.url.path, url->path);
    ck_assert_uint_eq(options.url.port, url->port);
}

TEST(test_connect_path_length)
{
    char path[300];

    memset(path, '/', sizeof path);
    path[sizeof path - 1] = '\0';
    ck_assert_int_eq(PARSE("--connect", path), STDIO_BUS_EINVAL);
    ck_assert_msg(strstr(problem, "--connect: the path is 299 bytes long") != NULL, "%s", problem);
}

TEST(test_tcp_host_length)
{
    char value[300];

    memset(value, 'h', sizeof value);
    memcpy(value + 255, ":80", 4);
    EXPECT_OK("--config", "c", "--tcp", value);
    ck_assert_uint_eq(strlen(options.listens[0].host), 255);
    memcpy(value + 255, "h:80", 5);
    EXPECT_PROBLEM("--tcp: the host is 256 bytes long, it may have 255", "--config", "c", "--tcp",
                   value);
}

TEST(test_log_level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};

    for (size_t i = 0; i < COUNT(names); i++) {
        EXPECT_OK("--config", "c", "--log-level", names[i]);
        ck_assert_int_eq(options.log_level, (int)i);
    }
}

TEST(test_values_point_into_argv)
{
    char name[] = "stdio_bus", config[] = "--config=c.json", unix_option[] = "--unix";
    char path[] = "/tmp/s";
    char *argv[] = {name, config, unix_option, path, NULL};

    ck_assert_int_eq(options_parse(&options, 4, argv, sockets, problem, sizeof problem),
                     STDIO_BUS_OK);
    ck_assert_ptr_eq(options.config_path, config + 9);
}

/* A small buffer cuts the explanation; nothing is written after it. */
TEST(test_small_problem)
{
    char name[] = "stdio_bus", wrong[] = "--wrong", small[12] = "..........z";
    char *argv[] = {name, wrong, NULL};

    ck_assert_int_eq(options_parse(&options, 2, argv, sockets, small, 10), STDIO_BUS_EINVAL);
    ck_assert_str_eq(small, "unknown o");
    ck_assert_int_eq(small[10], 'z');
    ck_assert_int_eq(options_parse(&options, 0, argv, sockets, small, 10), STDIO_BUS_EINVAL);
}

TEST(test_framing)
{
    EXPECT_OK("--config=c", "--framing", "content-length");
    ck_assert_ptr_eq(options.framing, &framing_content_length);
    EXPECT_OK("--config=c", "--framing=length");
    ck_assert_ptr_eq(options.framing, &framing_length);
    EXPECT_OK("--config=c", "--framing=ndjson");
    ck_assert_ptr_eq(options.framing, &framing_ndjson);
}

TEST(test_log_file)
{
    EXPECT_OK("--config=c", "--log-file", "/var/log/bus");
    ck_assert_str_eq(options.log_file, "/var/log/bus");
}

TEST(test_help)
{
    static const char *const names[] = {
        "--config PATH", "--config-fd N",  "--stdio",         "--unix PATH",
        "--tcp HOST",    "--check-config", "--log-level",     "-h, --help",
        "-V, --version", "--framing NAME", "--log-file PATH", "--connect PATH|HOST:PORT|URL",
        "--import FILE", "-- COMMAND",     "--protocol",      "--clients KIND",
        "--instances N", "--rmp [PATH]"};
    static char text[16384];
    const char *line = text, *end;
    size_t len = 0;

    for (const char *const *part = help_sections(); *part != NULL; part++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s", *part);

    for (size_t i = 0; i < COUNT(names); i++)
        ck_assert_msg(strstr(line, names[i]) != NULL, "%s is not in the help", names[i]);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
        ck_assert_msg(end - line <= 79, "too long: %.*s", (int)(end - line), line);
    ck_assert_str_eq(line, ""); /* the last line is whole */
}

#define HELP "; see stdio_bus --help"
#define REQUIRED "--config PATH, --config-fd N or -- COMMAND is required" HELP
#define NO_COMMAND "-- needs a command: -- COMMAND ARG..."
#define AFTER ": a command stands after --" HELP
#define OF_COMMAND " is for a command after --; a configuration has it as a key of a pool"
#define NO_FD "--config-fd: must be the number of an open descriptor"
#define CONFIGURED "--connect takes no configuration, the daemon has one"
#define IPV6 "--tcp: an IPv6 address needs brackets, as in [::1]:8080"

/* clang-format off */
static const struct {
    const char *problem, *words[5]; /* NULL ends them */
} refused[] = {
    {REQUIRED, {"--stdio"}},
    {REQUIRED, {"--check-config"}},
    {REQUIRED, {NULL}},
    {"--config and --config-fd exclude each other", {"--config", "c", "--config-fd", "3"}},
    {"--config: the path must not be empty", {"--config", ""}},
    {"--config: the path must not be empty", {"--config="}},
    {NO_FD, {"--config-fd", "2147483648"}},
    {NO_FD, {"--config-fd", "99999999999999999999999999"}},
    {NO_FD, {"--config-fd", "-1"}},
    {NO_FD, {"--config-fd", ""}},
    {NO_FD, {"--config-fd", "3x"}},
    {NO_FD, {"--config-fd", " 3"}},
    {"--config-fd: in stdio mode descriptor 0 is the client's", {"--config-fd", "0"}},
    {"unknown option --nonsense" HELP, {"--nonsense", "--help"}},
    {"unknown option --foo" HELP, {"--foo"}},
    {"unknown option --foo" HELP, {"--foo=bar"}},
    {"unknown option --conf" HELP, {"--conf", "c"}},
    {"unknown option --configs" HELP, {"--configs", "c"}},
    {"unknown option -x" HELP, {"-x"}},
    {"unknown option -hV" HELP, {"-hV"}},
    {"unknown option -config" HELP, {"-config", "c"}},
    {"unknown option --" HELP, {"--="}},
    {"unknown option --a\\x0ab" HELP, {"--a\nb"}},
    {"unexpected argument \"c.json\"" AFTER, {"c.json"}},
    {"unexpected argument \"-\"" AFTER, {"--config", "c", "-"}},
    {"unexpected argument \"\"" AFTER, {""}},
    {"--connect: CHECK_NONE is not set in the environment", {"--connect", "$CHECK_NONE/s"}},
    {"--connect: the path must not be empty", {"--connect", "$CHECK_EMPTY"}},
    {"--pool is for --connect", {"--config", "c", "--pool", "a"}},
    {"--wait is for --connect", {"--wait=1", "--", "cat"}},
    {"--pool is for --connect", {"--share", "--pool", "a", "--", "cat"}},
    {"--wait is for --connect", {"--share", "--wait=1", "--", "cat"}},
    {"--pool is for --connect", {"--list", "--pool", "a"}},
    {"--pool: must have 1 to 256 bytes", {"--connect", "s", "--pool", ""}},
    {"--wait: must be a number of seconds, at most 86400", {"--connect", "s", "--wait", "86401"}},
    {"--wait: must be a number of seconds, at most 86400", {"--connect", "s", "--wait", "1s"}},
    {"--import stands alone", {"--import", "f", "--config", "c"}},
    {"--import stands alone", {"--unix", "s", "--import", "f"}},
    {"--import stands alone", {"--import", "f", "--", "cat"}},
    {"--import stands alone", {"--import", "f", "--check-config"}},
    {"--import: the path must not be empty", {"--import="}},
    {NO_COMMAND, {"--"}},
    {NO_COMMAND, {"--", "", "a"}},
    {NO_COMMAND, {"--config", "c", "--"}},
    {"--config and a command after -- exclude each other", {"--config", "c", "--", "cat"}},
    {"--config-fd and a command after -- exclude each other", {"--config-fd=3", "--", "cat"}},
    {"--connect takes no command, the daemon has one", {"--connect", "s", "--", "cat"}},
    {"--protocol" OF_COMMAND, {"--config", "c", "--protocol", "mcp"}},
    {"--clients" OF_COMMAND, {"--clients=sticky", "--config", "c"}},
    {"--instances" OF_COMMAND, {"--connect", "s", "--instances", "2"}},
    {"--instances" OF_COMMAND, {"--instances", "2"}},
    {"--protocol: must be mcp, acp or lsp", {"--protocol", "MCP", "--", "cat"}},
    {"--clients: must be shared, sticky, exclusive or auto", {"--clients=", "--", "cat"}},
    {"--idle-stop" OF_COMMAND, {"--connect", "s", "--idle-stop", "2"}},
    {"--idle-stop: must be a number from 0 to 86400", {"--idle-stop", "86401", "--", "cat"}},
    {"--instances: must be a number from 1 to 1024", {"--instances", "0", "--", "cat"}},
    {"--instances: must be a number from 1 to 1024", {"--instances", "1025", "--", "cat"}},
    {"--instances: must be a number from 1 to 1024", {"--instances", "2x", "--", "cat"}},
    {"--instances needs a value: --instances N", {"--instances"}},
    {"--config needs a value: --config PATH", {"--config"}},
    {"--watch needs a value: --watch PATH", {"--share", "--watch", "--", "cat"}},
    {"--env needs a value: --env NAME,...", {"--share", "--env", "--", "cat"}},
    {"--config-fd needs a value: --config-fd N", {"--config-fd"}},
    {"--unix needs a value: --unix PATH", {"--unix"}},
    {"--tcp needs a value: --tcp HOST:PORT", {"--tcp"}},
    {"--log-level needs a value: --log-level LEVEL", {"--log-level"}},
    {"--connect needs a value: --connect PATH|HOST:PORT|URL", {"--connect"}},
    {"--stdio takes no value", {"--stdio=yes"}},
    {"--help takes no value", {"--help="}},
    {"--stdio is given twice", {"--stdio", "--stdio"}},
    {"--config is given twice", {"--config", "a", "--config", "b"}},
    {"--stdio and --unix exclude each other", {"--stdio", "--unix", "a"}},
    {"--tcp and --stdio exclude each other", {"--tcp", ":1", "--stdio"}},
    {"--http and --stdio exclude each other", {"--http", ":1", "--stdio"}},
    {"--unix and --connect exclude each other", {"--http=:1", "--unix=a", "--connect=a"}},
    {"--share and --http exclude each other", {"--share", "--http=:1", "--", "a"}},
    {"--token-file is for TCP and HTTP: no other connection needs a token",
     {"--unix=a", "--token-file=t", "--", "cat"}},
    {"--http needs a value: --http HOST:PORT|unix:PATH", {"--http"}},
    {"--http: expected HOST:PORT, [IPV6]:PORT or :PORT", {"--config", "c", "--http", "8080"}},
    {"--http: expected HOST:PORT, [IPV6]:PORT or :PORT", {"--config", "c", "--http", "/a"}},
    {"--http: the path must not be empty", {"--config", "c", "--http", "unix:"}},
    {"--unix and --connect exclude each other", {"--unix", "a", "--connect", "a"}},
    {"--unix: the path must not be empty", {"--config", "c", "--unix", ""}},
    {"--tcp: expected HOST:PORT, [IPV6]:PORT or :PORT", {"--config", "c", "--tcp", ""}},
    {"--tcp: expected HOST:PORT, [IPV6]:PORT or :PORT", {"--config", "c", "--tcp", "8080"}},
    {"--tcp: expected HOST:PORT, [IPV6]:PORT or :PORT", {"--config", "c", "--tcp", "localhost"}},
    {"--tcp: expected HOST:PORT, [IPV6]:PORT or :PORT", {"--config", "c", "--tcp", "[::1]"}},
    {"--tcp: expected an address between [ and ]", {"--config", "c", "--tcp", "[::1"}},
    {"--tcp: expected an address between [ and ]", {"--config", "c", "--tcp", "[]:80"}},
    {"--tcp: expected an address between [ and ]", {"--config", "c", "--tcp", "[::1]x:80"}},
    {IPV6, {"--config", "c", "--tcp", "::1:80"}},
    {IPV6, {"--config", "c", "--tcp", "a:b:80"}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", ":"}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", "localhost:"}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", ":65536"}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", ":99999999999999999999"}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", ":-1"}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", ":+1"}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", ":http"}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", ":80 "}},
    {"--tcp: port must be 0 to 65535", {"--config", "c", "--tcp", "[::1]:"}},
    {"--connect: the path must not be empty", {"--connect", ""}},
    {"--connect: port must be 1 to 65535", {"--connect", "localhost:0"}},
    {"--connect: port must be 1 to 65535", {"--connect", ":"}},
    {"--connect: expected an address between [ and ]", {"--connect", "[]:80"}},
    {"--connect: must begin with https:// or http://", {"--connect", "ws://example.org/mcp"}},
    {"--connect: expected http://HOST:PORT/PATH", {"--connect", "http:///mcp"}},
    {"--connect: expected http://HOST:PORT/PATH", {"--connect", "http://:80/mcp"}},
    {"--connect: expected ] after the IPv6 address", {"--connect", "http://[::1/mcp"}},
    {"--connect: port must be 1 to 65535", {"--connect", "http://a:65536/"}},
    {"--connect: port must be 1 to 65535", {"--connect", "http://a:/"}},
    {"--connect: port must be 1 to 65535", {"--connect", "http://[::1]x"}},
    {"--connect: a URL with a user name is not supported: use --token-file",
     {"--connect", "http://me@a/"}},
    {"--connect: a URL has no spaces and no characters but those of ASCII: encode them as %XX",
     {"--connect", "http://a/b c"}},
    {"--pool: the path of the URL names the pool, as in /mcp/p",
     {"--connect", "http://a/mcp", "--pool", "p"}},
    {"--protocol: over HTTP, --connect speaks mcp",
     {"--connect", "http://a/mcp", "--protocol", "lsp"}},
    {CONFIGURED, {"--connect", "http://a", "--config", "c"}},
    {CONFIGURED, {"--connect", "a", "--config", "c"}},
    {CONFIGURED, {"--config-fd", "3", "--connect", "a"}},
    {CONFIGURED, {"--connect", "a", "--check-config"}},
    {"--log-level: must be debug, info, warn or error", {"--log-level", "loud"}},
    {"--log-level: must be debug, info, warn or error", {"--log-level", ""}},
    {"--log-file: the path must not be empty", {"--config=c", "--log-file="}},
    {"--framing: must be ndjson, content-length or length", {"--config=c", "--framing=lsp"}},
    {"--rmp: the path must not be empty", {"--rmp="}},
    {"--rmp is for a daemon", {"--rmp", "--connect", "a"}},
    {"--rmp is for a daemon", {"--rmp", "--share", "--", "a"}},
    {"--rmp is for a daemon", {"--rmp", "--list"}},
    {"--page is for --list, without --json", {"--page", "--config=c"}},
    {"--page is for --list, without --json", {"--list", "--page", "--json"}},
    {"--page takes no value", {"--list", "--page=a"}},
    {"--json is for --list and --check-config", {"--json"}},
    {"--json is for --list and --check-config", {"--json", "--ping", "a"}},
    {"--json is for --list and --check-config", {"--share", "--json", "--", "a"}},
    {"--rmp is for a daemon", {"--rmp", "--import", "a"}},
    {"--config PATH, --config-fd N or -- COMMAND is required; see stdio_bus --help",
     {"--rmp", "--stdio"}},
};
/* clang-format on */

TEST_ROWS(test_refused, COUNT(refused))
{
    ck_assert_int_eq(parse(refused[row].words), STDIO_BUS_EINVAL);
    ck_assert_str_eq(problem, refused[row].problem);
}

/* The path may follow as a word or after '='; an option is no path. */
TEST(test_rmp)
{
    EXPECT_OK("--rmp");
    ck_assert_ptr_nonnull(options_socket(&options, "rmp"));
    ck_assert_str_eq(options_socket(&options, "rmp"), "");
    ck_assert(!options.stdio && options.listen_count == 0);
    EXPECT_OK("--rmp", "/s", "--config", "c");
    ck_assert_str_eq(options_socket(&options, "rmp"), "/s");
    ck_assert(!options.stdio && options.listen_count == 0);
    EXPECT_OK("--rmp=/s", "--unix", "/u", "--config", "c");
    ck_assert_str_eq(options_socket(&options, "rmp"), "/s");
    expect_unix("/u");
    EXPECT_OK("--rmp", "--stdio", "--config", "c");
    ck_assert_ptr_nonnull(options_socket(&options, "rmp"));
    ck_assert_str_eq(options_socket(&options, "rmp"), "");
    ck_assert(options.stdio);
    EXPECT_OK("--rmp", "--", "cat");
    ck_assert_str_eq(options.line.words[0], "cat");
    EXPECT_OK("--config", "c");
    ck_assert_ptr_null(options_socket(&options, "rmp"));
}

/* The path of a socket that a service names. */
TEST(test_socket_of_a_service)
{
    EXPECT_OK("--toy", "/t", "--unix", "/u", "--control", "/c", "--config", "c");
    ck_assert_str_eq(options_socket(&options, "toy"), "/t");
    ck_assert_str_eq(options_socket(&options, "control"), "/c");
    ck_assert_int_eq(PARSE("--toy", "/t", "--toy=/t", "--config", "c"), STDIO_BUS_EINVAL);
    ck_assert_str_eq(problem, "--toy is given twice");
    ck_assert_int_eq(PARSE("--toy"), STDIO_BUS_EINVAL);
    ck_assert_str_eq(problem, "--toy needs a value: --toy PATH");
    ck_assert_int_eq(PARSE("--connect", "/s", "--toy", "/t"), STDIO_BUS_EINVAL);
    ck_assert_str_eq(problem, "--toy is for a daemon");
}
