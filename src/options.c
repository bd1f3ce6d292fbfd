#include "build_config.h"

#include "options.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SEE_HELP "; see stdio_bus --help"

struct parser {
    struct options *options;
    char *problem;
    size_t problem_size;
    unsigned seen; /* one bit per entry of option_specs */
    const struct option_spec *mode; /* the option that chose the mode, or NULL */
};

struct option_spec {
    const char *name; /* without the dashes */
    char letter;      /* -h; or '\0' */
    const char *value_name; /* NULL: takes no value */
    bool is_mode;
    bool (*apply)(struct parser *parser, const char *value);
};

/* Explains and returns false. */
__attribute__((format(printf, 2, 3))) static bool fail(struct parser *parser, const char *format,
                                                       ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(parser->problem, parser->problem_size, format, args);
    va_end(args);
    return false;
}

/* A word of the command line as it may be shown. `shown` holds SHOWN_MAX bytes. */
#define SHOWN_MAX 128
static const char *show(char *shown, const char *word, size_t len)
{
    return log_escape(shown, SHOWN_MAX, slice_of(word, len));
}

/* Digits and nothing else, at most `max`. */
static bool read_number(const char *text, long max, long *number)
{
    *number = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || *number > (max - (*text - '0')) / 10)
            return false;
        *number = *number * 10 + (*text - '0');
    }
    return true;
}

/* ---- what each option does ------------------------------------------------------------------ */

static bool apply_config(struct parser *parser, const char *value)
{
    parser->options->config_path = value;
    return *value != '\0' || fail(parser, "--config: the path must not be empty");
}

static bool apply_config_fd(struct parser *parser, const char *value)
{
    long fd;

    if (!read_number(value, INT_MAX, &fd))
        return fail(parser, "--config-fd: must be the number of an open descriptor");
    parser->options->config_fd = (int)fd;
    return true;
}

static bool apply_stdio(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->mode = MODE_STDIO;
    return true;
}

static bool set_path(struct parser *parser, const char *option, const char *path)
{
    size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

    parser->options->mode = MODE_UNIX;
    parser->options->unix_path = path;
    if (*path == '\0')
        return fail(parser, "--%s: the path must not be empty", option);
    if (strlen(path) > max)
        return fail(parser, "--%s: the path is %zu bytes long, a socket's may have %zu", option,
                    strlen(path), max);
    return true;
}

static bool apply_unix(struct parser *parser, const char *value)
{
    return set_path(parser, "unix", value);
}

/* The part before the port, brackets taken off. */
static bool set_host(struct parser *parser, const char *option, const char *host, size_t len)
{
    struct options *options = parser->options;

    if (len > 0 && host[0] == '[') {
        if (len < 3 || host[len - 1] != ']')
            return fail(parser, "--%s: expected an address between [ and ]", option);
        host++;
        len -= 2;
    } else if (memchr(host, ':', len) != NULL) {
        return fail(parser, "--%s: an IPv6 address needs brackets, as in [::1]:8080", option);
    }
    if (len >= sizeof(options->tcp_host))
        return fail(parser, "--%s: the host is %zu bytes long, it may have %zu", option, len,
                    sizeof(options->tcp_host) - 1);
    memcpy(options->tcp_host, host, len);
    options->tcp_host[len] = '\0';
    return true;
}

static bool set_address(struct parser *parser, const char *option, const char *address,
                        long port_min)
{
    const char *colon = strrchr(address, ':');
    long port;

    parser->options->mode = MODE_TCP;
    if (colon == NULL || strchr(colon, ']') != NULL)
        return fail(parser, "--%s: expected HOST:PORT, [IPV6]:PORT or :PORT", option);
    if (!set_host(parser, option, address, (size_t)(colon - address)))
        return false;
    if (!read_number(colon + 1, UINT16_MAX, &port) || port < port_min)
        return fail(parser, "--%s: port must be %ld to 65535", option, port_min);
    parser->options->tcp_port = (uint16_t)port;
    return true;
}

static bool apply_tcp(struct parser *parser, const char *value)
{
    return set_address(parser, "tcp", value, 0);
}

/* No host has a slash in its name, and no address is without a colon. */
static bool apply_connect(struct parser *parser, const char *value)
{
    if (strchr(value, '/') != NULL || strchr(value, ':') == NULL)
        return set_path(parser, "connect", value);
    return set_address(parser, "connect", value, 1);
}

static bool apply_framing(struct parser *parser, const char *value)
{
    parser->options->framing = framing_named(value);
    return parser->options->framing != NULL || fail(parser, "--framing: must be " FRAMING_NAMES);
}

static bool apply_log_file(struct parser *parser, const char *value)
{
    parser->options->log_file = value;
    return *value != '\0' || fail(parser, "--log-file: the path must not be empty");
}

static bool apply_check_config(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->action = ACTION_CHECK_CONFIG;
    return true;
}

static bool apply_log_level(struct parser *parser, const char *value)
{
    return log_level_from_name(value, &parser->options->log_level) ||
           fail(parser, "--log-level: must be debug, info, warn or error");
}

static bool apply_help(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->action = ACTION_HELP;
    return true;
}

static bool apply_version(struct parser *parser, const char *value)
{
    (void)value;
    parser->options->action = ACTION_VERSION;
    return true;
}

static const struct option_spec option_specs[] = {
    {"config", '\0', "PATH", false, apply_config},
    {"config-fd", '\0', "N", false, apply_config_fd},
    {"stdio", '\0', NULL, true, apply_stdio},
    {"unix", '\0', "PATH", true, apply_unix},
    {"tcp", '\0', "HOST:PORT", true, apply_tcp},
    {"connect", '\0', "PATH|HOST:PORT", true, apply_connect},
    {"framing", '\0', "NAME", false, apply_framing},
    {"check-config", '\0', NULL, false, apply_check_config},
    {"log-file", '\0', "PATH", false, apply_log_file},
    {"log-level", '\0', "LEVEL", false, apply_log_level},
    {"help", 'h', NULL, false, apply_help},
    {"version", 'V', NULL, false, apply_version},
};

/* ---- the command line ----------------------------------------------------------------------- */

/* The option that `word` names, up to its '=' or end; NULL after the problem was explained. */
static const struct option_spec *find_option(struct parser *parser, const char *word)
{
    bool is_long = word[0] == '-' && word[1] == '-' && word[2] != '\0';
    size_t len = is_long ? strcspn(word, "=") : strlen(word);
    char shown[SHOWN_MAX];
    size_t i;

    for (i = 0; i < COUNT(option_specs); i++) {
        const struct option_spec *spec = &option_specs[i];
        if (is_long && strlen(spec->name) == len - 2 && memcmp(word + 2, spec->name, len - 2) == 0)
            return spec;
        if (!is_long && len == 2 && word[0] == '-' && word[1] == spec->letter)
            return spec;
    }
    show(shown, word, len);
    if (word[0] == '-' && len > 1)
        fail(parser, "unknown option %s" SEE_HELP, shown);
    else
        fail(parser, "unexpected argument \"%s\"" SEE_HELP, shown);
    return NULL;
}

/* That it stands here once, and beside no other mode. */
static bool note_option(struct parser *parser, const struct option_spec *spec)
{
    unsigned bit = 1U << (spec - option_specs);

    if ((parser->seen & bit) != 0)
        return fail(parser, "--%s is given twice", spec->name);
    parser->seen |= bit;
    if (!spec->is_mode)
        return true;
    if (parser->mode != NULL)
        return fail(parser, "--%s and --%s exclude each other", parser->mode->name, spec->name);
    parser->mode = spec;
    return true;
}

/* The option at argv[*i]; moves *i to the last word it takes. */
static bool read_option(struct parser *parser, int argc, char *const argv[], int *i)
{
    const struct option_spec *spec = find_option(parser, argv[*i]);
    const char *value;

    if (spec == NULL)
        return false;
    value = argv[*i][1] == '-' ? strchr(argv[*i], '=') : NULL;
    if (value != NULL)
        value++;
    if (spec->value_name == NULL && value != NULL)
        return fail(parser, "--%s takes no value", spec->name);
    if (spec->value_name != NULL && value == NULL) {
        if (*i + 1 >= argc)
            return fail(parser, "--%s needs a value: --%s %s", spec->name, spec->name,
                        spec->value_name);
        value = argv[++*i];
    }
    return note_option(parser, spec) && spec->apply(parser, value);
}

/* What the options must be together. */
static bool check_options(struct parser *parser)
{
    struct options *options = parser->options;
    bool configured = options->config_path != NULL || options->config_fd >= 0;

    if (parser->mode != NULL && parser->mode->apply == apply_connect) {
        if (configured || options->action == ACTION_CHECK_CONFIG)
            return fail(parser, "--connect takes no configuration, the daemon has one");
        options->action = ACTION_CONNECT;
        return true;
    }
    if (!configured)
        return fail(parser, "--config PATH or --config-fd N is required" SEE_HELP);
    if (options->config_path != NULL && options->config_fd >= 0)
        return fail(parser, "--config and --config-fd exclude each other");
    if (options->config_fd == 0 && options->mode == MODE_STDIO && options->action == ACTION_RUN)
        return fail(parser, "--config-fd: in stdio mode descriptor 0 is the client's");
    return true;
}

int options_parse(struct options *options, int argc, char *const argv[], char *problem,
                  size_t problem_size)
{
    struct parser parser = {options, problem, problem_size, 0, NULL};
    int i;

    *options = (struct options){.config_fd = -1, .log_level = LOG_LEVEL_INFO};
    for (i = 1; i < argc; i++) {
        if (!read_option(&parser, argc, argv, &i))
            return STDIO_BUS_EINVAL;
        if (options->action == ACTION_HELP || options->action == ACTION_VERSION)
            return STDIO_BUS_OK; /* whatever follows */
    }
    return check_options(&parser) ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}

const char *options_help(void)
{
    return "usage: stdio_bus --config PATH [--stdio | --unix PATH | --tcp HOST:PORT]\n"
           "       stdio_bus --connect PATH|HOST:PORT\n"
           "\n"
           "Starts pools of programs that talk JSON over stdin and stdout, keeps them\n"
           "running, and routes messages between them and many clients.\n"
           "\n"
           "configuration (one of them is required):\n"
           "  --config PATH      read the configuration from a file; stdio_bus.conf(5)\n"
           "  --config-fd N      read it from the open descriptor N\n"
           "  --check-config     only check the configuration; exit 0, or 78 with the\n"
           "                     reasons\n"
           "\n"
           "mode (one of them):\n"
           "  --stdio            one client, on stdin and stdout (default)\n"
           "  --unix PATH        many clients, on a Unix domain socket\n"
           "  --tcp HOST:PORT    many clients, on TCP; [IPV6]:PORT; :PORT for loopback;\n"
           "                     port 0 lets the system choose. No authentication.\n"
           "\n"
           "  --framing NAME     how clients mark where messages begin and end: ndjson\n"
           "                     (default), content-length or length\n"
           "\n"
           "client of a running daemon, without a configuration:\n"
           "  --connect PATH|HOST:PORT\n"
           "                     copies stdin and stdout to and from its socket\n"
           "\n"
           "log:\n"
           "  --log-level LEVEL  debug, info (default), warn or error\n"
           "  --log-file PATH    append it to this file, not to stderr; SIGUSR1 reopens it\n"
           "\n"
           "other:\n"
           "  -h, --help         print this text\n"
           "  -V, --version      print the version\n"
           "\n"
           "example:\n"
           "  $ cat bus.json\n"
           "  {\"pools\": [{\"id\": \"tools\", \"command\": \"my-mcp-server\",\n"
           "              \"args\": [\"--verbose\"], \"instances\": 2}]}\n"
           "  $ stdio_bus --config bus.json --unix /tmp/bus.sock\n"
           "\n"
           "exit status: 0 done, 64 usage, 65 malformed input in stdio mode, 69 no worker\n"
           "left, 71 system error, 78 configuration; of --connect: 69 cannot connect, 74\n"
           "stdout is closed, 75 the daemon went first, 76 the connection broke\n";
}
