#include "build_config.h"

#include "share/tools.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/terminal.h"
#include "share/care.h"
#include "share/identity.h"
#include "share/shares.h"
#include "share/usage.h"

#define LINES_DEFAULT 100
#define LINES_MAX 1000
#define HIDDEN "..."

struct call {
    struct json_text *text;
    struct shares shares;
    const struct share *share; /* that the argument "name" names */
    const char *name;
    int64_t lines;
    char reason[CARE_TEXT_MAX];
};

typedef enum tools_outcome call_fn(struct call *call);

static enum tools_outcome fail(struct call *call, const char *reason)
{
    json_text_literal(call->text, reason);
    return TOOLS_FAILED;
}

/* --- what is shown --- */

/* Whether an argument is a path, the name of a package or a plain word. */
static bool is_plain(struct slice word)
{
    size_t i;

    if (memchr(word.data, ':', word.len) != NULL || memchr(word.data, '=', word.len) != NULL)
        return false;
    if (memchr(word.data, '/', word.len) != NULL || word.data[0] == '@')
        return true;
    for (i = 0; i < word.len; i++) {
        if (!(word.data[i] >= 'a' && word.data[i] <= 'z') && word.data[i] != '-')
            return false;
    }
    return true;
}

/* The program, names of options, and arguments that are no secrets. */
static void write_command(struct json_text *text, struct slice identity)
{
    struct slice rest = identity;
    char *word = malloc(identity.len + 1);
    bool is_first = true, is_value = false;
    size_t len;

    text->failed |= word == NULL;
    row_begin(text, "command", '[');
    while (word != NULL && identity_take_word(word, &len, &rest)) {
        const char *equals = memchr(word, '=', len);
        bool is_option = len > 2 && word[0] == '-' && word[1] == '-';

        if (is_option)
            row_slice(text, NULL, slice_of(word, equals != NULL ? (size_t)(equals - word) : len));
        else if (is_first || (!is_value && len > 0 && is_plain(slice_of(word, len))))
            row_slice(text, NULL, slice_of(word, len));
        else
            row_string(text, NULL, HIDDEN);
        is_value = is_option && equals == NULL;
        is_first = false;
    }
    row_end(text, ']');
    free(word);
}

static void write_server(struct json_text *text, const struct share *share,
                         const struct usage *usage)
{
    size_t processes;
    long kib = share_usage(share, usage, &processes);

    row_begin(text, NULL, '{');
    row_string(text, "name", share->base);
    write_command(text, share_identity(share));
    share_write_text(text, share, "state");
    row_number(text, "state_ms", share_number(share, "state_ms"));
    row_number(text, "calls", share_number(share, "calls"));
    row_number(text, "clients", share_number(share, "clients"));
    row_number(text, "processes", (int64_t)processes);
    if (kib >= 0)
        row_number(text, "memory_bytes", (int64_t)kib * 1024);
    row_number(text, "daemon_pid", share_number(share, "pid"));
    row_number(text, "daemon_runs_ms", share_number(share, "seconds") * 1000);
    share_write_text(text, share, "failure");
    share_write_text(text, share, "one_client");
    row_end(text, '}');
}

/* Without their memory where it cannot be learned. */
static enum tools_outcome list(struct call *call)
{
    struct usage usage;
    size_t i;

    (void)usage_read(&usage);
    row_begin(call->text, NULL, '{');
    row_begin(call->text, "servers", '[');
    for (i = 0; i < call->shares.count; i++)
        write_server(call->text, &call->shares.at[i], &usage);
    row_end(call->text, ']');
    row_end(call->text, '}');
    usage_free(&usage);
    return TOOLS_DONE_JSON;
}

static enum tools_outcome status(struct call *call)
{
    struct usage usage;

    (void)usage_read(&usage);
    write_server(call->text, call->share, &usage);
    usage_free(&usage);
    return TOOLS_DONE_JSON;
}

/* The beginning of the last lines. */
static char *last_lines(char *text, int64_t lines)
{
    char *at = text + strlen(text);

    while (at > text && lines >= 0) {
        at--;
        if (*at == '\n' && at[1] != '\0')
            lines--;
        if (lines == 0)
            return at + 1;
    }
    return at;
}

static enum tools_outcome logs(struct call *call)
{
    char *log = care_read_log(&call->shares, call->name, call->reason), *line, *end;

    if (log == NULL)
        return fail(call, call->reason);
    for (line = last_lines(log, call->lines); *line != '\0'; line = end) {
        end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        else
            end = line + strlen(line);
        json_text_add(call->text, slice_of(line, printable_clean(line)));
        json_text_literal(call->text, "\n");
    }
    free(log);
    return TOOLS_DONE;
}

/* --- what is done --- */

static enum tools_outcome act(struct call *call, enum care_act kind)
{
    if (care_act(call->share, kind, call->reason) != EXIT_DONE)
        return fail(call, call->reason);
    json_text_literal(call->text, call->reason);
    return TOOLS_DONE;
}

static enum tools_outcome stop(struct call *call)
{
    return act(call, CARE_STOP);
}

static enum tools_outcome restart(struct call *call)
{
    return act(call, CARE_RESTART);
}

/* --- the table --- */

#define SCHEMA(properties, required)                                                               \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required                 \
    "],\"additionalProperties\":false}"
#define NAME                                                                                       \
    "\"name\":{\"type\":\"string\",\"description\":\"A name of the tool list, or the process ID "  \
    "of "                                                                                          \
    "its daemon.\"}"
#define READS "{\"readOnlyHint\":true,\"openWorldHint\":false}"
#define ENDS "{\"readOnlyHint\":false,\"destructiveHint\":true,\"openWorldHint\":false"

static const struct tool {
    const char *name, *title, *description, *schema, *annotations;
    call_fn *run;
    bool has_name, has_lines; /* arguments */
    bool is_of_the_past;      /* the server may have ended */
} tools[] = {
    {"list", "List the shared servers",
     "Lists the MCP servers that programs of this user share through stdio_bus: name, command, "
     "state (awake, asleep, not started), calls, clients, processes, memory, and why one does not "
     "start.",
     SCHEMA("", ""), READS, list, false, false, false},
    {"status", "Show one shared server", "Shows what the tool list says of one server.",
     SCHEMA(NAME, "\"name\""), READS, status, true, false, false},
    {"logs", "Show the log of a shared server",
     "Shows the last lines of the log of a server, with what it has written to stderr.",
     SCHEMA(NAME ",\"lines\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}",
            "\"name\""),
     READS, logs, true, true, true},
    {"restart", "Restart a shared server",
     "Replaces the processes of a server, for example after its program has changed. Requests in "
     "flight are answered first, for 5 seconds at most; its clients stay connected.",
     SCHEMA(NAME, "\"name\""), ENDS ",\"idempotentHint\":false}", restart, true, false, false},
    {"stop", "Stop a shared server",
     "Ends the processes of a server until a client needs it again. Requests in flight are "
     "answered first, for 5 seconds at most; its clients stay connected.",
     SCHEMA(NAME, "\"name\""), ENDS ",\"idempotentHint\":true}", stop, true, false, false},
};

void tools_define(struct json_text *to)
{
    size_t i;

    for (i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        row_begin(to, NULL, '{');
        row_string(to, "name", tools[i].name);
        row_string(to, "title", tools[i].title);
        row_string(to, "description", tools[i].description);
        json_text_literal(to, ",\"inputSchema\":");
        json_text_literal(to, tools[i].schema);
        json_text_literal(to, ",\"annotations\":");
        json_text_literal(to, tools[i].annotations);
        row_end(to, '}');
    }
}

/* --- a call --- */

/* False: the value is none for this argument. */
static bool take_argument(struct call *call, const struct tool *tool,
                          const struct json_value *argument)
{
    if (tool->has_name && slice_is(argument->key, "name") && argument->type == JSON_STRING &&
        strlen(argument->text.data) == argument->text.len) {
        call->name = argument->text.data;
        return true;
    }
    return tool->has_lines && slice_is(argument->key, "lines") &&
           document_integer(argument, &call->lines) && call->lines >= 1 && call->lines <= LINES_MAX;
}

/* False: they are wrong. */
static bool take_arguments(struct call *call, const struct tool *tool,
                           const struct json_value *arguments)
{
    const struct json_value *argument;

    if (arguments != NULL && arguments->type != JSON_OBJECT)
        return false;
    for (argument = arguments != NULL ? arguments->first : NULL; argument != NULL;
         argument = argument->next) {
        if (!take_argument(call, tool, argument))
            return false;
    }
    return !tool->has_name || call->name != NULL;
}

static enum tools_outcome run(struct call *call, const struct tool *tool)
{
    char directory[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];

    if (shares_open(&call->shares, directory, reason) != STDIO_BUS_OK)
        return fail(call, reason);
    if (tool->has_name && !tool->is_of_the_past) {
        call->share = care_find(&call->shares, call->name, call->reason);
        if (call->share == NULL)
            return fail(call, call->reason);
    }
    return tool->run(call);
}

enum tools_outcome tools_call(struct json_text *text, struct slice name,
                              const struct json_value *arguments)
{
    struct call call = {.text = text, .shares = {.is_quiet = true}, .lines = LINES_DEFAULT};
    const struct tool *tool = tools, *end = tools + sizeof tools / sizeof tools[0];
    enum tools_outcome outcome;

    while (tool < end && !slice_is(name, tool->name))
        tool++;
    if (tool == end)
        return TOOLS_UNKNOWN;
    if (!take_arguments(&call, tool, arguments)) {
        json_text_literal(text, "the arguments must be as in the schema: ");
        json_text_literal(text, tool->schema);
        return TOOLS_FAILED;
    }
    outcome = run(&call, tool);
    shares_free(&call.shares);
    return outcome;
}
