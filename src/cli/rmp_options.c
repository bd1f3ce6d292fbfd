#include "build_config.h"

#include "cli/rmp_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rmp/frame.h"

#define TTL_MS 30000

static const char help[] =
    "usage: stdio_bus_rmp pub [--type TYPE] [--ttl MS] [--trace UUID] TOPIC JSON\n"
    "       stdio_bus_rmp sub [--json] [--count N] [--replay] TOPIC...\n"
    "       stdio_bus_rmp trace [--count N] [--replay] TRACE_ID [TOPIC...]\n"
    "       stdio_bus_rmp submit [--follow | --local] [--params PARAM]... [--trace UUID] FILE\n"
    "       stdio_bus_rmp decode [--json] < FRAME\n"
    "\n"
    "Talks to the topic bus (RMP) of a running stdio_bus.\n"
    "\n"
    "  pub               publish a JSON object and wait until the daemon has taken it\n"
    "    --type TYPE     of the body; default observation.generic.v1\n"
    "    --ttl MS        how long the message is good for; default 30000\n"
    "    --trace UUID    its trace; default: a new one, which is printed\n"
    "  sub               print what is published on topics, a line each\n"
    "    --json          header and body as one JSON object a line\n"
    "    --count N       end after N messages\n"
    "    --replay        the events of a run that the daemon has kept come first\n"
    "  trace             print each message of one trace with its length on the wire;\n"
    "                    of its run's events, rlp/ctrl, rlp/sys/drops and the TOPICs\n"
    "  submit            submit a run, and wait 2000 ms for its acceptance\n"
    "    --follow        print the run's events until its end, also those before now\n"
    "    --local         run it without a daemon, with the pools of --config, and follow it\n"
    "    --params PARAM  KEY=VALUE, or a JSON object: put into the params of the opening, in\n"
    "                    place of those it has; VALUE is JSON or else a string. Repeatable\n"
    "    --trace UUID    its trace; the same one twice is one run\n"
    "  decode            print frames, in binary or hexadecimal, from stdin\n"
    "\n"
    "  --socket PATH     of the daemon; default: as the daemon itself finds it\n"
    "  --config PATH     the daemon's configuration, whose \"rmp\" names the socket\n"
    "  --help, --version\n";

const char *rmp_options_help(void)
{
    return help;
}

struct parsing {
    struct rmp_options *options;
    char **next; /* in argv; NULL-terminated */
    char *reason;
    size_t reason_size;
};

static bool fail(const struct parsing *parsing, const char *option, const char *problem)
{
    snprintf(parsing->reason, parsing->reason_size, "%s: %s", option, problem);
    return false;
}

static bool take_text(struct parsing *parsing, const char *option, const char **text)
{
    if (*parsing->next == NULL)
        return fail(parsing, option, "its value is missing");
    *text = *parsing->next++;
    return true;
}

static bool take_number(struct parsing *parsing, const char *option, uint64_t *number)
{
    const char *text;
    char *end;

    if (!take_text(parsing, option, &text))
        return false;
    *number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || end - text > 18)
        return fail(parsing, option, "its value is no number");
    return true;
}

static bool take_trace(struct parsing *parsing, const char *option)
{
    const char *text;

    if (!take_text(parsing, option, &text))
        return false;
    parsing->options->has_trace = true;
    return rmp_uuid_read(slice_of_text(text), &parsing->options->trace_id) ||
           fail(parsing, option, "its value is no UUID");
}

static bool take_params(struct parsing *parsing, const char *option)
{
    struct rmp_options *options = parsing->options;

    if (options->param_count == RMP_PARAMS_MAX)
        return fail(parsing, option, "there are too many");
    return take_text(parsing, option, &options->params[options->param_count++]);
}

static bool take_option(struct parsing *parsing, const char *option)
{
    struct rmp_options *options = parsing->options;

    if (strcmp(option, "--socket") == 0)
        return take_text(parsing, option, &options->socket);
    if (strcmp(option, "--config") == 0)
        return take_text(parsing, option, &options->config);
    if (strcmp(option, "--type") == 0)
        return take_text(parsing, option, &options->type);
    if (strcmp(option, "--ttl") == 0)
        return take_number(parsing, option, &options->ttl_ms);
    if (strcmp(option, "--count") == 0)
        return take_number(parsing, option, &options->count);
    if (strcmp(option, "--trace") == 0)
        return take_trace(parsing, option);
    if (strcmp(option, "--params") == 0)
        return take_params(parsing, option);
    if (strcmp(option, "--json") == 0)
        return options->json = true;
    if (strcmp(option, "--follow") == 0)
        return options->follow = true;
    if (strcmp(option, "--local") == 0)
        return options->local = true;
    if (strcmp(option, "--replay") == 0)
        return options->replay = true;
    return fail(parsing, option, "no such option");
}

static const struct {
    const char *name;
    int min, max; /* arguments */
    const char *wanted;
} commands[] = {
    {"pub", 2, 2, "TOPIC and JSON"},
    {"sub", 1, 1024, "at least one TOPIC"},
    {"trace", 1, 1024, "a TRACE_ID"},
    {"submit", 1, 1, "one FILE"},
    {"decode", 0, 0, "no argument: the frame comes from stdin"},
};

/* There is no daemon then. */
static bool check_local(struct parsing *parsing)
{
    const struct rmp_options *options = parsing->options;

    if (options->local && strcmp(options->command, "submit") != 0)
        return fail(parsing, "--local", "it is for submit");
    if (options->local && options->socket != NULL)
        return fail(parsing, "--local", "it excludes --socket");
    return true;
}

static bool check_command(struct parsing *parsing)
{
    const struct rmp_options *options = parsing->options;

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(options->command, commands[i].name) != 0)
            continue;
        if (options->arg_count >= commands[i].min && options->arg_count <= commands[i].max)
            return true;
        snprintf(parsing->reason, parsing->reason_size, "%s needs %s", commands[i].name,
                 commands[i].wanted);
        return false;
    }
    return fail(parsing, options->command, "no such command");
}

/* The arguments are moved together, in front of those that are still to be read. */
bool rmp_options_parse(struct rmp_options *options, int argc, char *argv[], char *reason,
                       size_t reason_size)
{
    struct parsing parsing = {options, argv + (argc > 0), reason, reason_size};
    bool only_args = false;

    *options = (struct rmp_options){.type = "observation.generic.v1", .ttl_ms = TTL_MS};
    options->args = parsing.next;
    while (*parsing.next != NULL) {
        char *word = *parsing.next++;

        if (only_args || strncmp(word, "--", 2) != 0) {
            if (options->command == NULL)
                options->command = word;
            else
                options->args[options->arg_count++] = word;
        } else if (word[2] == '\0') {
            only_args = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "--version") == 0) {
            options->command = NULL;
            options->version = strcmp(word, "--version") == 0;
            return true;
        } else if (!take_option(&parsing, word)) {
            return false;
        }
    }
    if (options->command == NULL) {
        snprintf(reason, reason_size, "a command is missing: pub, sub, trace, submit or decode");
        return false;
    }
    return check_command(&parsing) && check_local(&parsing);
}
