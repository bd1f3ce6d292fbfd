#include "build_config.h"

#include "cli/ctl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/ctl_columns.h"
#include "cli/ctl_mcp.h"
#include "cli/ctl_page.h"
#include "cli/ctl_table.h"
#include "cli/ctl_top.h"
#include "config/parts.h"
#include "json/text.h"

#define PATH_VARIABLE "STDIO_BUS_CONTROL"
#define PATH_DEFAULT "/run/stdio_bus/control.sock"
#define NODES_ANSWER_MS 300

/* --- the commands --- */

/* What follows a command. */
enum argument {
    ARGUMENT_NONE,
    ARGUMENT_WORKER,
    ARGUMENT_CLIENT,
    ARGUMENT_POOL,     /* or a worker, by its number */
    ARGUMENT_ANY_POOL, /* the same, or nothing */
    ARGUMENT_LEVEL,
    ARGUMENT_ORDER /* by what rows are sorted, or nothing */
};

struct ctl {
    const char *path;
    const struct ctl_command *command;
    const char *argument;
    bool is_terminal; /* stdout */
    bool asked_json, asked_table;
    bool json; /* not tables */
    const struct service *const *page_services;
    struct control_link link;
    struct json_text out;
};

struct ctl_command {
    const char *name;
    enum argument argument;
    const struct ctl_column *columns; /* of a list of the same name */
    int (*run)(struct ctl *ctl);      /* NULL: one request, whose result is printed */
};

static int run_nodes(struct ctl *ctl);
static int run_metrics(struct ctl *ctl);
static int run_events(struct ctl *ctl);
static int run_top(struct ctl *ctl);
static int run_page(struct ctl *ctl);

static const struct ctl_command commands[] = {
    {.name = "status"},
    {.name = "pools", .columns = ctl_pool_columns},
    {.name = "workers", .columns = ctl_worker_columns},
    {.name = "clients", .columns = ctl_client_columns},
    {.name = "sessions", .columns = ctl_session_columns},
    {.name = "requests", .columns = ctl_request_columns},
    {.name = "nodes", .columns = ctl_node_columns, .run = run_nodes},
    {.name = "restart", .argument = ARGUMENT_WORKER},
    {.name = "drain", .argument = ARGUMENT_POOL},
    {.name = "resume", .argument = ARGUMENT_ANY_POOL},
    {.name = "disconnect", .argument = ARGUMENT_CLIENT},
    {.name = "log", .argument = ARGUMENT_LEVEL},
    {.name = "reload"},
    {.name = "upgrade"},
    {.name = "metrics", .run = run_metrics},
    {.name = "events", .run = run_events},
    {.name = "page", .run = run_page},
    {.name = "top", .argument = ARGUMENT_ORDER, .run = run_top},
    {.name = NULL},
};

/* What a command lacks without an argument; NULL: nothing. */
static const char *const needs[] = {
    [ARGUMENT_WORKER] = "the number of a worker comes after it",
    [ARGUMENT_CLIENT] = "the number of a client comes after it",
    [ARGUMENT_POOL] = "a pool, or the number of a worker, comes after it",
    [ARGUMENT_LEVEL] = "a level comes after it",
    [ARGUMENT_ORDER] = NULL,
};

static const char usage[] =
    "usage: stdio_bus ctl [PATH] COMMAND [--json | --table]\n"
    "       stdio_bus ctl --mcp\n"
    "  status, pools, workers, clients, sessions, requests\n"
    "                        what there is\n"
    "  nodes                 other daemons that are reached over NATS\n"
    "  top [ORDER]           the busiest clients and workers, by messages, bytes,\n"
    "                        requests or queue; on a terminal every second, until q\n"
    "  page                  all of this in a browser: prints an address, and serves it\n"
    "                        until interrupted\n"
    "  events                what happens, until interrupted\n"
    "  metrics               counters in the text format of Prometheus\n"
    "  restart WORKER        end this worker's process and start the next one\n"
    "  drain POOL|WORKER     give it nothing new; what it has goes on\n"
    "  resume [POOL|WORKER]  the end of that\n"
    "  disconnect CLIENT     close its connection\n"
    "  log LEVEL             debug, info, warn or error\n"
    "  reload                read the configuration again\n"
    "  upgrade               go on as the program that is installed now\n"
    "--mcp is an MCP server on stdin and stdout: an agent lists the shared servers of\n"
    "this user (stdio_bus --list), reads their logs, restarts and stops them.\n"
    "PATH, with a slash, is that of the control socket (--control); without it the\n"
    "environment's " PATH_VARIABLE ", or " PATH_DEFAULT ".\n";

/* --- printing --- */

/* Prints link.reason. */
static int refused(const struct ctl *ctl, int status)
{
    terminal_line(stderr, "stdio_bus: ctl: %s", ctl->link.reason);
    return status;
}

/* The same, of a request. */
static int request_refused(const struct ctl *ctl)
{
    terminal_line(stderr, "stdio_bus: ctl: %s%s%s: %s", ctl->command->name,
                  ctl->argument != NULL ? " " : "", ctl->argument != NULL ? ctl->argument : "",
                  ctl->link.reason);
    return EXIT_REFUSED;
}

/* Prints ctl->out, and empties it. */
static int print(struct ctl *ctl, enum terminal_form form)
{
    bool good;

    errno = ENOMEM;
    good = !ctl->out.failed &&
           terminal_lines(stdout, form, json_text_slice(&ctl->out)) == STDIO_BUS_OK &&
           fflush(stdout) != EOF;
    json_text_free(&ctl->out);
    if (good)
        return EXIT_DONE;
    snprintf(ctl->link.reason, sizeof ctl->link.reason, "cannot write to stdout: %s",
             strerror(errno));
    return refused(ctl, EXIT_OS_ERROR);
}

static enum terminal_form form_of(const struct ctl *ctl)
{
    return ctl->json ? TERMINAL_JSON : TERMINAL_TEXT;
}

/* A value on the line of its key, the members of an object below it, and the elements of an array
 * each with the key. */
static void add_value(struct ctl *ctl, const struct json_value *value, const char *key,
                      size_t depth)
{
    const struct json_value *member;
    char cell[CTL_CELL_MAX];
    size_t len = strlen(key);
    enum ctl_kind kind = CTL_NUMBER;

    if (value->type == JSON_ARRAY) {
        for (member = value->first; member != NULL; member = member->next)
            add_value(ctl, member, key, depth);
        return;
    }
    if (len > 3 && strcmp(key + len - 3, "_ms") == 0)
        kind = CTL_TIME;
    else if (len >= 6 && strcmp(key + len - 6, "memory") == 0)
        kind = CTL_BYTES;
    ctl_table_cell(&ctl->out, "", CTL_TEXT, depth);
    terminal_text(cell, sizeof cell, slice_of(key, kind == CTL_TIME ? len - 3 : len));
    ctl_table_cell(&ctl->out, cell, CTL_TEXT, value->type != JSON_OBJECT ? 23 - depth : 0);
    if (value->type != JSON_OBJECT) {
        ctl_cell(cell, value, kind);
        json_text_literal(&ctl->out, cell);
    }
    json_text_literal(&ctl->out, "\n");
    for (member = value->type == JSON_OBJECT ? value->first : NULL; member != NULL;
         member = member->next)
        add_value(ctl, member, member->key.data, depth + 2);
}

static void add_line(struct ctl *ctl, struct slice line)
{
    json_text_add(&ctl->out, line);
    json_text_literal(&ctl->out, "\n");
}

static void add_result(struct ctl *ctl, const struct json_value *result, struct slice line)
{
    const struct json_value *list = NULL, *member;

    if (ctl->json) {
        add_line(ctl, control_link_result(line));
        return;
    }
    if (ctl->command->columns != NULL)
        list = document_member(result, ctl->command->name);
    if (list != NULL)
        ctl_table_add_list(&ctl->out, list, ctl->command->columns, terminal_width(STDOUT_FILENO));
    for (member = result->first; list == NULL && member != NULL; member = member->next)
        add_value(ctl, member, member->key.data, 0);
}

/* --- commands of their own kind --- */

static int run_metrics(struct ctl *ctl)
{
    struct slice line;
    const struct json_value *result = control_link_ask(&ctl->link, "metrics", NULL, &line);

    if (result == NULL || result->type != JSON_STRING)
        return request_refused(ctl);
    json_text_add(&ctl->out, result->text);
    return print(ctl, TERMINAL_TEXT);
}

static void add_event(struct ctl *ctl, struct slice line)
{
    static const char *const keys[] = {"event", "of", "pool", "text"};
    static const size_t widths[] = {13, 23, 0, 0};
    struct document document;
    struct document_error error;
    const struct json_value *params;
    char cell[CTL_CELL_MAX];
    int status;
    size_t i;

    if (ctl->json) {
        add_line(ctl, line);
        return;
    }
    status = document_read(&document, line, &error);
    if (status != STDIO_BUS_OK) {
        terminal_line(stderr, "stdio_bus: ctl: an event is not shown: %s",
                      status == STDIO_BUS_ERR ? "out of memory" : error.text);
        return;
    }
    params = document_member(document.root, "params");
    for (i = 0; params != NULL && i < sizeof keys / sizeof keys[0]; i++) {
        ctl_cell(cell, document_member(params, keys[i]), CTL_TEXT);
        ctl_table_cell(&ctl->out, cell, CTL_TEXT, widths[i]);
        json_text_literal(&ctl->out, widths[i] > 0 ? "" : " ");
    }
    json_text_literal(&ctl->out, "\n");
    document_free(&document);
}

static int run_events(struct ctl *ctl)
{
    struct slice line;
    int status = EXIT_DONE;

    if (control_link_ask(&ctl->link, "events", NULL, &line) == NULL)
        return request_refused(ctl);
    while (status == EXIT_DONE && control_link_read(&ctl->link, &line, -1)) {
        add_event(ctl, line);
        status = print(ctl, form_of(ctl));
    }
    return status != EXIT_DONE || ctl->link.reason[0] == '\0' ? status
                                                              : refused(ctl, EXIT_NO_DAEMON);
}

static int run_top(struct ctl *ctl)
{
    int order = 0, status;

    while (ctl->argument != NULL && ctl_top_orders[order] != NULL &&
           strcmp(ctl_top_orders[order], ctl->argument) != 0)
        order++;
    if (ctl_top_orders[order] == NULL) {
        snprintf(ctl->link.reason, sizeof ctl->link.reason,
                 "top: %s: not messages, bytes, requests or queue", ctl->argument);
        return refused(ctl, EXIT_USAGE_ERROR);
    }
    status = ctl_top_run(&ctl->link, (enum ctl_top_order)order);
    return status == EXIT_DONE ? status : refused(ctl, status);
}

static int run_page(struct ctl *ctl)
{
    int status;

    if (!WITH_PAGE || !WITH_HTTP) {
        snprintf(ctl->link.reason, sizeof ctl->link.reason, "page: built without %s",
                 part_names[WITH_HTTP ? PART_PAGE : PART_HTTP]);
        return refused(ctl, EXIT_USAGE_ERROR);
    }
    status = ctl_page_run(&ctl->link, ctl->path, ctl->page_services);
    return status == EXIT_REFUSED ? request_refused(ctl) : status;
}

/* --- the command line --- */

/* A number from 1 on, perhaps after "KIND="; 0: it is none. */
static long number_of(const char *word, const char *kind)
{
    size_t len = strlen(kind);
    const char *at = word;
    long number = 0;

    if (strncmp(word, kind, len) == 0 && word[len] == '=')
        at = word + len + 1;
    for (; *at >= '0' && *at <= '9' && number < 100000000; at++)
        number = number * 10 + (*at - '0');
    return *at == '\0' ? number : 0;
}

/* False: the argument is none for this command. */
static bool write_params(struct json_text *to, enum argument kind, const char *word)
{
    const char *key = kind == ARGUMENT_CLIENT ? "client" : "worker";
    bool may_be_pool = kind == ARGUMENT_POOL || kind == ARGUMENT_ANY_POOL;
    long number;

    row_begin(to, NULL, '{');
    if (kind == ARGUMENT_LEVEL) {
        row_string(to, "level", word);
    } else if (word != NULL) {
        number = number_of(word, key);
        if (number > 0)
            row_number(to, key, number);
        else if (may_be_pool)
            row_string(to, "pool", strncmp(word, "pool=", 5) == 0 ? word + 5 : word);
        else
            return false;
    }
    row_end(to, '}');
    json_text_add(to, slice_of("", 1)); /* a NUL */
    return !to->failed;
}

static int run_command(struct ctl *ctl)
{
    const struct ctl_command *command = ctl->command;
    struct json_text params = {.data = NULL};
    const struct json_value *result;
    struct slice line;
    int status;

    if (!write_params(&params, command->argument, ctl->argument)) {
        status = params.failed ? EXIT_OS_ERROR : EXIT_USAGE_ERROR;
        if (params.failed)
            snprintf(ctl->link.reason, sizeof ctl->link.reason, "out of memory");
        else
            snprintf(ctl->link.reason, sizeof ctl->link.reason, "%s: %s is no number of a %s",
                     command->name, ctl->argument,
                     command->argument == ARGUMENT_CLIENT ? "client" : "worker");
        json_text_free(&params);
        return refused(ctl, status);
    }
    result = control_link_ask(&ctl->link, command->name, params.data, &line);
    if (result != NULL)
        add_result(ctl, result, line);
    status = result != NULL ? print(ctl, form_of(ctl)) : request_refused(ctl);
    json_text_free(&params);
    return status;
}

/* The first request asks the nodes, the second one lists what they have answered. */
static int run_nodes(struct ctl *ctl)
{
    struct slice line;

    if (control_link_ask(&ctl->link, "nodes", NULL, &line) == NULL)
        return request_refused(ctl);
    poll(NULL, 0, NODES_ANSWER_MS);
    return run_command(ctl);
}

/* NULL, or the problem with the words of a command and what may follow it. */
static const char *check_words(struct ctl *ctl, const char *name, const char *argument)
{
    const struct ctl_command *command = commands;

    while (command->name != NULL && strcmp(command->name, name) != 0)
        command++;
    ctl->command = command;
    ctl->argument = argument;
    if (command->name == NULL)
        return "no such command";
    if (argument != NULL)
        return command->argument == ARGUMENT_NONE ? "nothing comes after it" : NULL;
    return needs[command->argument];
}

/* Returns EXIT_DONE, or EXIT_USAGE_ERROR after the problem was printed. */
static int read_words(struct ctl *ctl, int argc, char *const argv[])
{
    const char *words[2] = {NULL, NULL}, *problem, *at;
    size_t count = 0;
    int i;

    for (i = 0, at = NULL; i < argc && at == NULL; i++) {
        if (strcmp(argv[i], "--json") == 0)
            ctl->asked_json = true;
        else if (strcmp(argv[i], "--table") == 0)
            ctl->asked_table = true;
        else if (count == 0 && ctl->path == NULL && strchr(argv[i], '/') != NULL)
            ctl->path = argv[i];
        else if (argv[i][0] == '-' || count == 2)
            at = argv[i];
        else
            words[count++] = argv[i];
    }
    if (at == NULL && count == 0) {
        terminal_lines(stderr, TERMINAL_TEXT, slice_of_text(usage));
        return EXIT_USAGE_ERROR;
    }
    problem = at == NULL ? check_words(ctl, words[0], words[1]) : "neither an option nor expected";
    if (problem == NULL)
        return EXIT_DONE;
    terminal_line(stderr, "stdio_bus: ctl: %s: %s; stdio_bus ctl --help lists the commands",
                  at != NULL ? at : words[0], problem);
    return EXIT_USAGE_ERROR;
}

static int run_mcp(void)
{
    char text[PART_MISSING_MAX];

    if (WITH_SHARE)
        return ctl_mcp_run();
    terminal_line(stderr, "stdio_bus: ctl --mcp: %s", part_missing(text, PART_SHARE));
    return EXIT_USAGE_ERROR;
}

int ctl_run(int argc, char *const argv[], const struct service *const *page_services)
{
    struct ctl ctl = {.path = NULL, .page_services = page_services};
    int status;

    signal(SIGPIPE, SIG_IGN);
    if (argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        json_text_literal(&ctl.out, usage);
        return print(&ctl, TERMINAL_TEXT);
    }
    if (argc == 1 && strcmp(argv[0], "--mcp") == 0)
        return run_mcp();
    status = read_words(&ctl, argc, argv);
    if (status != EXIT_DONE)
        return status;
    ctl.is_terminal = isatty(STDOUT_FILENO) != 0;
    ctl.json = ctl.asked_json || !(ctl.asked_table || ctl.is_terminal);
    if (ctl.path == NULL)
        ctl.path = getenv(PATH_VARIABLE);
    if (ctl.path == NULL || *ctl.path == '\0')
        ctl.path = PATH_DEFAULT;
    if (!control_link_open(&ctl.link, ctl.path)) {
        terminal_line(
            stderr, "stdio_bus: ctl: %s%s", ctl.link.reason,
            strcmp(ctl.path, PATH_DEFAULT) == 0
                ? "; name its control socket: stdio_bus ctl PATH COMMAND, with the PATH of its "
                  "--control"
                : "");
        return EXIT_NO_DAEMON;
    }
    status = ctl.command->run != NULL ? ctl.command->run(&ctl) : run_command(&ctl);
    control_link_close(&ctl.link);
    json_text_free(&ctl.out);
    return status;
}
