#include "build_config.h"

#include "cli/ctl_mcp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/terminal.h"
#include "share/tools.h"
#include "json/document.h"
#include "json/message.h"
#include "json/text.h"

#define LINE_MAX_BYTES ((size_t)256 * 1024)
#define STATELESS "2026-07-28"
#define LATEST "2025-11-25" /* with a handshake */
#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define UNSUPPORTED_VERSION (-32022)
#define NO_MEMORY (-32603)
#define SERVER                                                                                     \
    "{\"name\":\"stdio_bus\",\"title\":\"stdio_bus\",\"version\":\"" PACKAGE_VERSION "\"}"
#define CAPABILITIES "\"capabilities\":{\"tools\":{}},\"instructions\":\"" INSTRUCTIONS "\""
#define INSTRUCTIONS                                                                               \
    "The MCP servers that programs of this user share through stdio_bus: what they are doing, "    \
    "their logs, restart and stop."
#define LONG_TIME ",\"ttlMs\":3600000,\"cacheScope\":\"public\"" /* for what never changes */

/* A request, and its answer. */
struct exchange {
    const struct json_value *id, *method, *params; /* id NULL: it is a notification */
    bool stateless;
    struct json_text out;
};

/* --- answers --- */

static void begin(struct exchange *exchange)
{
    struct json_text *out = &exchange->out;

    json_text_literal(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (exchange->id == NULL)
        json_text_literal(out, "null");
    else if (exchange->id->type == JSON_STRING)
        json_text_string(out, exchange->id->text);
    else
        json_text_add(out, exchange->id->text);
}

/* `data` is JSON; NULL: none. */
static void fail(struct exchange *exchange, int code, const char *message, const char *data)
{
    begin(exchange);
    json_text_format(&exchange->out, ",\"error\":{\"code\":%d,\"message\":", code);
    json_text_string(&exchange->out, slice_of_text(message));
    if (data != NULL) {
        json_text_literal(&exchange->out, ",\"data\":");
        json_text_literal(&exchange->out, data);
    }
    json_text_literal(&exchange->out, "}}\n");
}

static void begin_result(struct exchange *exchange)
{
    begin(exchange);
    json_text_literal(&exchange->out, ",\"result\":{");
}

/* After at least one member. */
static void end_result(struct exchange *exchange)
{
    if (exchange->stateless)
        json_text_literal(&exchange->out, ",\"resultType\":\"complete\",\"_meta\":{"
                                          "\"io.modelcontextprotocol/serverInfo\":" SERVER "}");
    json_text_literal(&exchange->out, "}}\n");
}

static void add_lifetime(struct exchange *exchange)
{
    if (exchange->stateless)
        json_text_literal(&exchange->out, LONG_TIME);
}

/* --- the methods --- */

static void initialize(struct exchange *exchange)
{
    static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18"};
    const struct json_value *asked = document_member_of(exchange->params, "protocolVersion",
                                                        JSON_STRING);
    const char *version = LATEST;

    if (asked == NULL) {
        fail(exchange, JSONRPC_INVALID_PARAMS, "initialize needs a protocolVersion", NULL);
        return;
    }
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        if (slice_is(asked->text, versions[i]))
            version = versions[i];
    }
    begin_result(exchange);
    json_text_literal(&exchange->out, "\"protocolVersion\":");
    json_text_string(&exchange->out, slice_of_text(version));
    json_text_literal(&exchange->out, "," CAPABILITIES ",\"serverInfo\":" SERVER "}}\n");
}

static void discover(struct exchange *exchange)
{
    exchange->stateless = true;
    begin_result(exchange);
    json_text_literal(&exchange->out, "\"supportedVersions\":[\"" STATELESS "\"]," CAPABILITIES);
    add_lifetime(exchange);
    end_result(exchange);
}

static void ping(struct exchange *exchange)
{
    begin_result(exchange);
    json_text_literal(&exchange->out, "}}\n");
}

static void list_tools(struct exchange *exchange)
{
    begin_result(exchange);
    json_text_literal(&exchange->out, "\"tools\":[");
    tools_define(&exchange->out);
    json_text_literal(&exchange->out, "]");
    add_lifetime(exchange);
    end_result(exchange);
}

static void call_tool(struct exchange *exchange)
{
    const struct json_value *name = document_member_of(exchange->params, "name", JSON_STRING);
    struct json_text text = {.data = NULL};
    enum tools_outcome outcome = TOOLS_UNKNOWN;

    if (name != NULL)
        outcome = tools_call(&text, name->text, document_member(exchange->params, "arguments"));
    if (outcome == TOOLS_UNKNOWN) {
        fail(exchange, JSONRPC_INVALID_PARAMS, "no such tool; tools/list has their names", NULL);
        return;
    }
    begin_result(exchange);
    json_text_literal(&exchange->out, "\"content\":[{\"type\":\"text\",\"text\":");
    json_text_string(&exchange->out, text.len > 0 ? json_text_slice(&text) : slice_of("", 0));
    json_text_literal(&exchange->out, "}]");
    if (outcome == TOOLS_DONE_JSON) {
        json_text_literal(&exchange->out, ",\"structuredContent\":");
        json_text_add(&exchange->out, json_text_slice(&text));
    }
    if (outcome == TOOLS_FAILED)
        json_text_literal(&exchange->out, ",\"isError\":true");
    end_result(exchange);
    exchange->out.failed |= text.failed;
    json_text_free(&text);
}

static const struct {
    const char *name;
    void (*answer)(struct exchange *exchange);
} methods[] = {
    {"initialize", initialize}, {"server/discover", discover}, {"ping", ping},
    {"tools/list", list_tools}, {"tools/call", call_tool},
};

/* Which era the request is of. False: of a version that is not known here, and it is answered. */
static bool read_era(struct exchange *exchange)
{
    const struct json_value *meta = document_member_of(exchange->params, "_meta", JSON_OBJECT);
    const struct json_value *version = document_member_of(meta, META_VERSION, JSON_STRING);

    exchange->stateless = version != NULL;
    if (version == NULL || slice_is(version->text, STATELESS))
        return true;
    fail(exchange, UNSUPPORTED_VERSION, "unsupported protocol version",
         "{\"supported\":[\"" STATELESS "\"]}");
    return false;
}

static void answer_request(struct exchange *exchange)
{
    if (!read_era(exchange))
        return;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (slice_is(exchange->method->text, methods[i].name)) {
            methods[i].answer(exchange);
            return;
        }
    }
    fail(exchange, JSONRPC_METHOD_NOT_FOUND, "no such method", NULL);
}

/* --- messages --- */

/* Notifications, and answers to nothing, have no answer. */
static void answer_message(struct exchange *exchange, const struct json_value *root)
{
    const struct json_value *id = root->type == JSON_OBJECT ? document_member(root, "id") : NULL;

    exchange->method = document_member_of(root, "method", JSON_STRING);
    exchange->params = document_member_of(root, "params", JSON_OBJECT);
    if (id != NULL && (id->type == JSON_STRING || id->type == JSON_NUMBER))
        exchange->id = id;
    if (root->type == JSON_OBJECT && exchange->method == NULL &&
        (document_member(root, "result") != NULL || document_member(root, "error") != NULL))
        return;
    if (exchange->method == NULL || (id != NULL && exchange->id == NULL))
        fail(exchange, JSONRPC_INVALID_REQUEST, "this is no request of JSON-RPC", NULL);
    else if (id != NULL)
        answer_request(exchange);
}

/* Returns the exit status. */
static int send_answer(struct exchange *exchange)
{
    int status = EXIT_DONE;

    if (exchange->out.failed) {
        json_text_free(&exchange->out);
        fail(exchange, NO_MEMORY, "out of memory", NULL);
    }
    if (exchange->out.failed)
        terminal_line(stderr, "stdio_bus: ctl: out of memory: a request is not answered");
    else if (exchange->out.len > 0 &&
             (terminal_lines(stdout, TERMINAL_JSON, json_text_slice(&exchange->out)) !=
                  STDIO_BUS_OK ||
              fflush(stdout) != 0))
        status = EXIT_OS_ERROR;
    json_text_free(&exchange->out);
    return status;
}

static int take_line(struct slice line)
{
    struct exchange exchange = {.id = NULL};
    struct document_error error;
    struct document document;
    int status = document_read(&document, line, &error);

    if (status == STDIO_BUS_OK)
        answer_message(&exchange, document.root);
    else if (status == STDIO_BUS_ERR)
        fail(&exchange, NO_MEMORY, "out of memory", NULL);
    else
        fail(&exchange, JSONRPC_PARSE_ERROR, error.text, NULL);
    status = send_answer(&exchange);
    document_free(&document);
    return status;
}

/* --- stdin --- */

/* Lines of at most LINE_MAX_BYTES; the rest of a longer one is skipped. */
struct input {
    char *bytes;
    size_t len;
    bool skips;
};

static bool is_blank(struct slice line)
{
    while (line.len > 0 && strchr(" \t\r", line.data[line.len - 1]) != NULL)
        line.len--;
    return line.len == 0;
}

static int take_lines(struct input *input)
{
    char *newline, *at = input->bytes, *end = input->bytes + input->len;
    int status = EXIT_DONE;

    while (status == EXIT_DONE && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        struct slice line = slice_of(at, (size_t)(newline - at));

        if (!input->skips && !is_blank(line))
            status = take_line(line);
        input->skips = false;
        at = newline + 1;
    }
    input->len = (size_t)(end - at);
    memmove(input->bytes, at, input->len);
    return status;
}

static int refuse_long_line(struct input *input)
{
    struct exchange exchange = {.id = NULL};

    input->len = 0;
    if (input->skips)
        return EXIT_DONE;
    input->skips = true;
    fail(&exchange, JSONRPC_INVALID_REQUEST, "the line is too long", NULL);
    return send_answer(&exchange);
}

/* 0: the end; -1 with errno set. */
static ssize_t read_more(struct input *input)
{
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t got;

    do {
        got = descriptor_poll(&ready, 1, -1) < 0
                  ? -1
                  : read(STDIN_FILENO, input->bytes + input->len, LINE_MAX_BYTES - input->len);
    } while (got < 0 && (errno == EINTR || errno == EAGAIN));
    if (got > 0)
        input->len += (size_t)got;
    return got;
}

int ctl_mcp_run(void)
{
    struct input input = {.bytes = malloc(LINE_MAX_BYTES)};
    int status = EXIT_DONE;
    ssize_t got = -1;

    while (input.bytes != NULL && status == EXIT_DONE && (got = read_more(&input)) > 0) {
        status = take_lines(&input);
        if (status == EXIT_DONE && input.len == LINE_MAX_BYTES)
            status = refuse_long_line(&input);
    }
    if (status == EXIT_DONE && got == 0 && input.len > 0 && !input.skips)
        status = take_line(slice_of(input.bytes, input.len));
    if (status != EXIT_DONE || got < 0) {
        terminal_line(stderr, "stdio_bus: ctl: --mcp: %s", strerror(errno));
        status = EXIT_OS_ERROR;
    }
    free(input.bytes);
    return status;
}
