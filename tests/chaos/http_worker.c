/* http_worker: the worker of http_chaos. Each request "work" says how it is to be served: params
 * {mark, delay, notes, loose, ask, pad, forever}. It gets as many notes, then perhaps a question,
 * then its answer, all of which carry its mark; several are served at once. What is wrong is a line
 * on stderr that begins with "WRONG". */
#include "build_config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"
#include "json.h"
#include "text.h"

#define TASKS 512
#define QUESTION_MS 3000 /* a reply that comes later does not come */

struct task {
    char id[160], mark[40], token[160]; /* id "": a free place */
    long notes, sent, loose, pad, gap;
    bool ask, asked, forever;
    unsigned long question; /* not 0: waits for the reply to it */
    int64_t next_ms;
};

static struct task tasks[TASKS];
static unsigned long last_question;
static volatile sig_atomic_t ends;
static struct text output;

static void put(char *to, size_t size, struct span span)
{
    snprintf(to, size, "%.*s", (int)span.len, span.data != NULL ? span.data : "");
}

static void pad(long count)
{
    text_printf(&output, ",\"pad\":\"");
    text_fill(&output, 'p', count > 0 ? (size_t)count : 0);
    text_printf(&output, "\"");
}

static void note(struct task *task)
{
    task->sent++;
    text_printf(&output,
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                "\"progressToken\":%s,\"progress\":%ld,\"mark\":\"%s\"",
                task->token, task->sent, task->mark);
    pad(task->pad);
    text_printf(&output, "}}\n");
}

static void loose_notes(const struct task *task)
{
    for (long i = 1; i <= task->loose; i++)
        text_printf(&output,
                    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"
                    "\"level\":\"info\",\"loose\":%ld,\"mark\":\"%s\"}}\n",
                    i, task->mark);
}

static void ask(struct task *task)
{
    task->asked = true;
    task->question = ++last_question;
    task->next_ms = now_ms() + QUESTION_MS;
    text_printf(&output,
                "{\"jsonrpc\":\"2.0\",\"id\":\"q%lu\",\"method\":\"sampling/createMessage\","
                "\"params\":{\"mark\":\"%s\",\"_meta\":{\"progressToken\":%s}}}\n",
                task->question, task->mark, task->token);
}

static void answer(struct task *task)
{
    text_printf(&output,
                "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"mark\":\"%s\",\"notes\":%ld,"
                "\"pid\":%ld",
                task->id, task->mark, task->sent, (long)getpid());
    pad(task->pad);
    text_printf(&output, "}}\n");
    task->id[0] = '\0';
}

static void serve(struct task *task)
{
    if (task->sent < task->notes)
        note(task);
    else if (task->question == 0 && task->ask && !task->asked)
        ask(task);
    else if (!task->forever)
        answer(task);
    if (task->question == 0)
        task->next_ms = now_ms() + task->gap;
    else if (task->next_ms <= now_ms())
        task->question = 0;
}

/* --- messages --- */

static void take_work(struct span id, struct span params)
{
    struct task *task = tasks;
    struct span token = json_get(params, "_meta.progressToken");

    while (task->id[0] != '\0') {
        if (++task == tasks + TASKS) {
            fprintf(stderr, "WRONG: more than %d requests at once\n", TASKS);
            return;
        }
    }
    memset(task, 0, sizeof *task);
    put(task->id, sizeof task->id, id);
    put(task->mark, sizeof task->mark, json_text(json_get(params, "mark")));
    put(task->token, sizeof task->token, token);
    task->notes = token.data != NULL ? json_long(json_get(params, "notes"), 0) : 0;
    task->ask = token.data != NULL && json_is_true(json_get(params, "ask"));
    task->forever = json_is_true(json_get(params, "forever"));
    task->pad = json_long(json_get(params, "pad"), 0);
    task->loose = json_long(json_get(params, "loose"), 0);
    task->gap = json_long(json_get(params, "delay"), 0) / (task->notes + 1);
    task->next_ms = now_ms() + task->gap;
    loose_notes(task);
}

static void take_cancel(struct span id)
{
    for (struct task *task = tasks; id.data != NULL && task < tasks + TASKS; task++) {
        if (span_is(id, task->id))
            task->id[0] = '\0';
    }
}

static void take_reply(struct span line, struct span id)
{
    struct span mark = json_text(json_get(line, "result.mark"));
    char name[40];

    for (struct task *task = tasks; task < tasks + TASKS; task++) {
        snprintf(name, sizeof name, "\"q%lu\"", task->question);
        if (task->id[0] == '\0' || task->question == 0 || !span_is(id, name))
            continue;
        if (json_get(line, "error").data == NULL && !span_is(mark, task->mark))
            fprintf(stderr, "WRONG: reply %.*s to the question of %s\n", SHOWN(line), task->mark);
        task->question = 0;
        task->next_ms = now_ms() + task->gap;
    }
}

static void take(struct span line)
{
    struct span id = json_get(line, "id"), method = json_text(json_get(line, "method"));

    if (method.data == NULL)
        take_reply(line, id);
    else if (span_is(method, "notifications/cancelled"))
        take_cancel(json_get(line, "params.requestId"));
    else if (span_is(method, "work"))
        take_work(id, json_get(line, "params"));
    else if (span_is(method, "subscriptions/listen"))
        take_work(id, span_of("{\"mark\":\"listen\",\"forever\":true}"));
    else if (id.data != NULL)
        text_printf(&output,
                    "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"protocolVersion\":"
                    "\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"w\","
                    "\"version\":\"1\"},\"supportedVersions\":[\"2026-07-28\"],"
                    "\"pid\":%ld}}\n",
                    (int)id.len, id.data, (long)getpid());
}

static void flush(void)
{
    size_t written = 0;

    while (written < output.len) {
        ssize_t n = write(STDOUT_FILENO, output.data + written, output.len - written);

        if (n < 0 && errno != EINTR)
            _exit(1);
        written += n > 0 ? (size_t)n : 0;
    }
    output.len = 0;
}

/* Returns false at the end of the input. */
static bool take_input(struct text *input)
{
    ssize_t n = read(STDIN_FILENO, text_room(input, 65536), 65536);
    size_t begin = 0;
    char *end;

    if (n <= 0)
        return n < 0 && errno == EINTR;
    input->len += (size_t)n;
    while ((end = memchr(input->data + begin, '\n', input->len - begin)) != NULL) {
        take((struct span){input->data + begin, (size_t)(end - input->data) - begin});
        begin = (size_t)(end - input->data) + 1;
    }
    memmove(input->data, input->data + begin, input->len - begin);
    input->len -= begin;
    return true;
}

static void note_end(int signo)
{
    (void)signo;
    ends = 1;
}

/* What can only be ended by a cancellation must have been. */
static void report_left(void)
{
    for (struct task *task = tasks; task < tasks + TASKS; task++) {
        if (task->id[0] != '\0' && task->forever)
            fprintf(stderr, "WRONG: %s was not cancelled\n", task->mark);
    }
}

int main(int argc, char *argv[])
{
    struct pollfd polled = {.fd = STDIN_FILENO, .events = POLLIN};
    struct text input = {0};

    (void)argc;
    (void)argv;
    signal(SIGTERM, note_end); /* of the daemon, which ends */
    while (!ends) {
        poll(&polled, 1, 5);
        if (polled.revents != 0 && !take_input(&input))
            break;
        for (struct task *task = tasks; task < tasks + TASKS; task++) {
            if (task->id[0] != '\0' && task->next_ms <= now_ms())
                serve(task);
        }
        flush();
    }
    report_left();
    return 0;
}
