/* mcp_counter: a small MCP server in C, over stdin and stdout, for the demonstration.
 *
 * Its tool `next` returns the next number of a counter that all requests have in common: who shares
 * the server sees it. Its tool `count` counts to a number, with progress. As servers in C may, it
 * reads JSON with the daemon's own reader. Ends at the end of its input. */
#include "build_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "json/document.h"
#include "json/string.h"

#define PROTOCOL_VERSION "2025-11-25"
#define PAUSE_MS 100
#define COUNT_MAX 1000

enum { METHOD_NOT_FOUND = -32601, INVALID_PARAMS = -32602, INVALID_REQUEST = -32600 };

static const char tools[] =
    "{\"tools\":["
    "{\"name\":\"next\",\"description\":\"The next number\",\"inputSchema\":{\"type\":\"object\"}},"
    "{\"name\":\"count\",\"description\":\"Counts to a number, ten a second\",\"inputSchema\":"
    "{\"type\":\"object\",\"properties\":{\"to\":{\"type\":\"integer\"}},\"required\":[\"to\"]}}"
    "]}";

/* NULL: there is none, or no object. */
static const struct json_value *member(const struct json_value *object, const char *key)
{
    return object != NULL && object->type == JSON_OBJECT ? document_member(object, key) : NULL;
}

/* An id or a token, as JSON. */
static void print_value(const struct json_value *value)
{
    char text[1024];
    struct json_output out = {text, sizeof text, 0, false};

    if (value->type == JSON_STRING)
        json_output_string(&out, value->text);
    else
        json_output_add(&out, value->text);
    fwrite(text, 1, out.len, stdout);
}

/* Strings of the reader end with a NUL. */
static bool is(const struct json_value *value, const char *text)
{
    return value != NULL && value->type == JSON_STRING && strcmp(value->text.data, text) == 0;
}

static void begin_answer(const struct json_value *id)
{
    fputs("{\"jsonrpc\":\"2.0\",\"id\":", stdout);
    print_value(id);
}

static void end_message(void)
{
    fputs("}\n", stdout);
    fflush(stdout);
}

static void answer(const struct json_value *id, const char *result)
{
    begin_answer(id);
    printf(",\"result\":%s", result);
    end_message();
}

static void refuse(const struct json_value *id, int code, const char *text)
{
    begin_answer(id);
    printf(",\"error\":{\"code\":%d,\"message\":\"%s\"}", code, text);
    end_message();
}

static void answer_with_text(const struct json_value *id, const char *format, long number)
{
    char result[200];
    int len = snprintf(result, sizeof result, "{\"content\":[{\"type\":\"text\",\"text\":\"");

    len += snprintf(result + len, sizeof result - (size_t)len, format, number, (long)getpid());
    snprintf(result + len, sizeof result - (size_t)len, "\"}]}");
    answer(id, result);
}

static void report_progress(const struct json_value *token, long done, long total)
{
    fputs("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
          "\"params\":{\"progressToken\":",
          stdout);
    print_value(token);
    printf(",\"progress\":%ld,\"total\":%ld}", done, total);
    end_message();
}

static void count(const struct json_value *id, const struct json_value *params)
{
    const struct json_value *token = member(member(params, "_meta"), "progressToken");
    const struct json_value *to = member(member(params, "arguments"), "to");
    int64_t total;

    if (to == NULL || !document_integer(to, &total) || total < 1 || total > COUNT_MAX) {
        refuse(id, INVALID_PARAMS, "to must be a number from 1 to 1000");
        return;
    }
    for (long done = 1; done <= total; done++) {
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
        if (token != NULL)
            report_progress(token, done, (long)total);
    }
    answer_with_text(id, "counted to %ld in process %ld", (long)total);
}

static void call(const struct json_value *id, const struct json_value *params)
{
    static long counter;
    const struct json_value *name = member(params, "name");

    if (is(name, "next"))
        answer_with_text(id, "number %ld, from process %ld", ++counter);
    else if (is(name, "count"))
        count(id, params);
    else
        refuse(id, INVALID_PARAMS, "no such tool");
}

/* As servers do that are written for one client, it takes one handshake. */
static void initialize(const struct json_value *id)
{
    static bool initialized;

    if (initialized) {
        refuse(id, INVALID_REQUEST, "already initialized");
        return;
    }
    initialized = true;
    answer(id, "{\"protocolVersion\":\"" PROTOCOL_VERSION "\",\"capabilities\":{\"tools\":{}},"
               "\"serverInfo\":{\"name\":\"counter\",\"version\":\"1\"}}");
}

static void take(const struct json_value *message)
{
    const struct json_value *id = member(message, "id"), *method = member(message, "method");

    if (id == NULL || (id->type != JSON_STRING && id->type != JSON_NUMBER) || method == NULL)
        return; /* a notification */
    if (is(method, "initialize"))
        initialize(id);
    else if (is(method, "ping"))
        answer(id, "{}");
    else if (is(method, "tools/list"))
        answer(id, tools);
    else if (is(method, "tools/call"))
        call(id, member(message, "params"));
    else
        refuse(id, METHOD_NOT_FOUND, "no such method");
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    while ((len = getline(&line, &size, stdin)) > 0) {
        struct document_error error;
        struct document document;

        if (document_read(&document, slice_of(line, (size_t)len), &error) != STDIO_BUS_OK) {
            fprintf(stderr, "mcp_counter: %s\n", error.text);
            continue;
        }
        take(document.root);
        document_free(&document);
    }
    free(line);
    return 0;
}
