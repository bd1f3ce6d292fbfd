/* mcp_counter: a small MCP server in C, over stdin and stdout, for the demonstration.
 *
 *     cc -o mcp_counter mcp_counter.c
 *
 * Its tool `next` returns the next number of a counter that all requests have in common: who shares
 * the server sees it. Its tool `count` counts to a number, with progress. Ends at the end of its
 * input. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "json_member.h"

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

static void begin_answer(const char *id)
{
    fputs("{\"jsonrpc\":\"2.0\",\"id\":", stdout);
    fwrite(id, 1, json_length(id), stdout);
}

static void end_message(void)
{
    fputs("}\n", stdout);
    fflush(stdout);
}

static void answer(const char *id, const char *result)
{
    begin_answer(id);
    printf(",\"result\":%s", result);
    end_message();
}

static void refuse(const char *id, int code, const char *text)
{
    begin_answer(id);
    printf(",\"error\":{\"code\":%d,\"message\":\"%s\"}", code, text);
    end_message();
}

static void answer_with_text(const char *id, const char *format, long number)
{
    char result[200];
    int len = snprintf(result, sizeof result, "{\"content\":[{\"type\":\"text\",\"text\":\"");

    len += snprintf(result + len, sizeof result - (size_t)len, format, number, (long)getpid());
    snprintf(result + len, sizeof result - (size_t)len, "\"}]}");
    answer(id, result);
}

static void report_progress(const char *token, long done, long total)
{
    fputs("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
          "\"params\":{\"progressToken\":",
          stdout);
    fwrite(token, 1, json_length(token), stdout);
    printf(",\"progress\":%ld,\"total\":%ld}", done, total);
    end_message();
}

static void count(const char *id, const char *params)
{
    const char *token = json_member(json_member(params, "_meta"), "progressToken");
    const char *to = json_member(json_member(params, "arguments"), "to");
    long total = to != NULL ? strtol(to, NULL, 10) : 0;

    if (total < 1 || total > COUNT_MAX) {
        refuse(id, INVALID_PARAMS, "to must be a number from 1 to 1000");
        return;
    }
    for (long done = 1; done <= total; done++) {
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
        if (json_is_id(token))
            report_progress(token, done, total);
    }
    answer_with_text(id, "counted to %ld in process %ld", total);
}

static void call(const char *id, const char *params)
{
    static long counter;
    const char *name = json_member(params, "name");

    if (json_is(name, "next"))
        answer_with_text(id, "number %ld, from process %ld", ++counter);
    else if (json_is(name, "count"))
        count(id, params);
    else
        refuse(id, INVALID_PARAMS, "no such tool");
}

/* As servers do that are written for one client, it takes one handshake. */
static void initialize(const char *id)
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

static void take(const char *message)
{
    const char *id = json_member(message, "id"), *method = json_member(message, "method");

    if (!json_is_id(id) || method == NULL)
        return; /* a notification */
    if (json_is(method, "initialize"))
        initialize(id);
    else if (json_is(method, "ping"))
        answer(id, "{}");
    else if (json_is(method, "tools/list"))
        answer(id, tools);
    else if (json_is(method, "tools/call"))
        call(id, json_member(message, "params"));
    else
        refuse(id, METHOD_NOT_FOUND, "no such method");
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, stdin) > 0)
        take(line);
    free(line);
    return 0;
}
