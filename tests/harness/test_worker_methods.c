#include "build_config.h"

#include "test_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct span param(const struct request *request, const char *name)
{
    return json_get(request->params, name);
}

static long param_long(const struct request *request, const char *name, long fallback)
{
    return json_long(param(request, name), fallback);
}

static void add_span(struct text *to, struct span span)
{
    text_add(to, span.data, span.len);
}

/* {"jsonrpc":"2.0","id":ID,"sessionId":S, */
static void add_head(struct text *to, struct span id, struct span session)
{
    text_printf(to, "{\"jsonrpc\":\"2.0\",\"id\":");
    add_span(to, id);
    text_add(to, ",", 1);
    if (session.data != NULL) {
        text_printf(to, "\"sessionId\":");
        add_span(to, session);
        text_add(to, ",", 1);
    }
}

static void add_answer(struct text *to, const struct request *request, const char *result,
                       size_t len)
{
    add_head(to, request->id, request->session);
    text_printf(to, "\"result\":");
    text_add(to, result, len);
    text_add(to, "}\n", 2);
}

void worker_answer(struct worker *worker, const struct request *request, const char *result,
                   size_t len)
{
    if (request->id.data == NULL)
        return;
    if (!worker->holding) {
        add_answer(&worker->output, request, result, len);
        return;
    }
    struct held_answer *held = calloc(1, sizeof *held), **end = &worker->held;
    if (held == NULL)
        abort();
    add_answer(&held->text, request, result, len);
    while (*end != NULL)
        end = &(*end)->next;
    *end = held;
}

static void reverse_held(struct worker *worker)
{
    struct held_answer *turned = NULL;
    while (worker->held != NULL) {
        struct held_answer *next = worker->held->next;
        worker->held->next = turned;
        turned = worker->held;
        worker->held = next;
    }
    worker->held = turned;
}

void worker_release(struct worker *worker, bool reverse)
{
    if (reverse)
        reverse_held(worker);
    while (worker->held != NULL) {
        struct held_answer *held = worker->held;
        worker->held = held->next;
        text_add(&worker->output, held->text.data, held->text.len);
        text_free(&held->text);
        free(held);
    }
    worker->holding = false;
}

static void echo_result(struct worker *worker, const struct request *request, struct text *result)
{
    text_printf(result, "{\"worker\":\"%s\",\"pid\":%ld,\"params\":", worker->name,
                (long)worker->pid);
    add_span(result, request->params.data != NULL ? request->params : span_of("null"));
    text_add(result, "}", 1);
}

static void do_echo(struct worker *worker, const struct request *request)
{
    struct text result = {0};
    echo_result(worker, request, &result);
    worker_answer(worker, request, result.data, result.len);
    text_free(&result);
}

static void do_plain(struct worker *worker, const struct request *request)
{
    struct span params = request->params, result = {0};
    if (params.data != NULL && params.data[0] == '{')
        result = json_get(params, "result");
    if (result.data == NULL)
        result = params.data != NULL ? params : span_of("null");
    worker_answer(worker, request, result.data, result.len);
}

static void do_length(struct worker *worker, const struct request *request)
{
    char number[24];
    int len = snprintf(number, sizeof number, "%zu", request->line.len);
    worker_answer(worker, request, number, (size_t)len);
}

static void do_mirror(struct worker *worker, const struct request *request)
{
    struct text result = {0};
    text_printf(&result, "{\"line\":\"");
    text_hex(&result, request->line.data, request->line.len);
    text_printf(&result, "\"}");
    worker_answer(worker, request, result.data, result.len);
    text_free(&result);
}

static void do_big(struct worker *worker, const struct request *request)
{
    struct text result = {0};
    text_add(&result, "\"", 1);
    text_fill(&result, 'x', (size_t)param_long(request, "size", 0));
    text_add(&result, "\"", 1);
    worker_answer(worker, request, result.data, result.len);
    text_free(&result);
}

static void do_split(struct worker *worker, const struct request *request)
{
    worker_flush(worker);
    do_echo(worker, request);
    for (size_t i = 0; i < worker->output.len; i++)
        worker_write(worker->output.data + i, 1);
    worker->output.len = 0;
}

static void do_nothing(struct worker *worker, const struct request *request)
{
    (void)worker;
    (void)request;
}

static void do_answer_twice(struct worker *worker, const struct request *request)
{
    do_echo(worker, request);
    do_echo(worker, request);
}

static void do_answer_as(struct worker *worker, const struct request *request)
{
    struct request other = *request;
    other.id = param(request, "id");
    do_echo(worker, &other);
}

static void do_fail(struct worker *worker, const struct request *request)
{
    add_head(&worker->output, request->id, request->session);
    text_printf(&worker->output, "\"error\":{\"code\":%ld,\"message\":\"as you asked\"",
                param_long(request, "code", -32603));
    if (param(request, "data").data != NULL) {
        text_printf(&worker->output, ",\"data\":");
        add_span(&worker->output, param(request, "data"));
    }
    text_printf(&worker->output, "}}\n");
}

static void do_say_only(struct worker *worker, const struct request *request)
{
    add_span(&worker->output, param(request, "message"));
    text_add(&worker->output, "\n", 1);
}

static void do_say(struct worker *worker, const struct request *request)
{
    do_say_only(worker, request);
    do_echo(worker, request);
}

static void do_notify(struct worker *worker, const struct request *request)
{
    long n = param_long(request, "n", 1), size = param_long(request, "size", 0);
    struct span session = param(request, "session");
    if (session.data == NULL)
        session = request->session;
    for (long i = 0; i < n; i++) {
        text_printf(&worker->output, "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"sessionId\":");
        add_span(&worker->output, session);
        text_printf(&worker->output, ",\"params\":{\"n\":%ld,\"pad\":\"", i);
        text_fill(&worker->output, 'x', (size_t)size);
        text_printf(&worker->output, "\"}}\n");
        if (worker->output.len >= 65536)
            worker_flush(worker);
    }
    do_echo(worker, request);
}

void worker_decode_hex(struct text *to, struct span hex)
{
    for (size_t i = 0; i + 1 < hex.len; i += 2) {
        char digits[3] = {hex.data[i], hex.data[i + 1], '\0'};
        char byte = (char)strtol(digits, NULL, 16);
        text_add(to, &byte, 1);
    }
}

static void do_garbage(struct worker *worker, const struct request *request)
{
    struct span hex = json_text(param(request, "hex"));
    struct text bytes = {0}, many = {0};
    long times = param_long(request, "times", 1);
    worker_decode_hex(&bytes, hex);
    worker_flush(worker);
    for (; times != 0; times--) {
        text_add(&many, bytes.data, bytes.len);
        if (many.len >= 65536 || times == 1) {
            worker_write(many.data, many.len);
            many.len = 0;
        }
    }
    text_free(&many);
    text_free(&bytes);
}

static void do_hold(struct worker *worker, const struct request *request)
{
    do_echo(worker, request);
    worker->holding = true;
}

static void do_release(struct worker *worker, const struct request *request)
{
    worker_release(worker, json_is_true(param(request, "reverse")));
    do_echo(worker, request);
}

static void do_ask(struct worker *worker, const struct request *request)
{
    struct asked *asked = calloc(1, sizeof *asked);
    struct span params = param(request, "params");
    if (asked == NULL)
        abort();
    add_span(&asked->id, param(request, "id"));
    add_span(&asked->origin_id, request->id);
    if (request->session.data != NULL)
        add_span(&asked->origin_session, request->session);
    asked->next = worker->asked;
    worker->asked = asked;
    add_head(&worker->output, param(request, "id"), request->session);
    text_printf(&worker->output, "\"method\":\"question\",\"params\":");
    add_span(&worker->output, params.data != NULL ? params : span_of("null"));
    text_add(&worker->output, "}\n", 2);
}

/* A client's reply to a request of this worker. */
static void handle_reply(struct worker *worker, const struct request *reply)
{
    struct span line = {reply->line.data, reply->line.len - (worker->framing == NULL)};
    struct asked **link = &worker->asked;
    while (*link != NULL && !span_is(reply->id, (*link)->id.data))
        link = &(*link)->next;
    if (*link == NULL) {
        worker->stray_reply.len = 0;
        add_span(&worker->stray_reply, line);
        return;
    }
    struct asked *asked = *link;
    struct request origin = {.id = span_of(asked->origin_id.data)};
    if (asked->origin_session.len > 0)
        origin.session = span_of(asked->origin_session.data);
    *link = asked->next;
    worker_answer(worker, &origin, line.data, line.len);
    text_free(&asked->id);
    text_free(&asked->origin_id);
    text_free(&asked->origin_session);
    free(asked);
}

static void answer_kept(struct worker *worker, const struct request *request,
                        const struct text *kept)
{
    if (kept->len > 0)
        worker_answer(worker, request, kept->data, kept->len);
    else
        worker_answer(worker, request, "null", 4);
}

static void do_reply_text(struct worker *worker, const struct request *request)
{
    answer_kept(worker, request, &worker->stray_reply);
}

static void add_note(struct worker *worker, const struct request *request, const char *method,
                     const char *key, struct span value)
{
    text_printf(&worker->output,
                "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{\"%s\":", method, key);
    add_span(&worker->output, value);
    if (param(request, "n").data != NULL) {
        text_printf(&worker->output, ",\"n\":");
        add_span(&worker->output, param(request, "n"));
    }
    text_printf(&worker->output, "}}\n");
}

static void do_progress(struct worker *worker, const struct request *request)
{
    add_note(worker, request, "notifications/progress", "progressToken",
             param(request, "_meta.progressToken"));
    do_echo(worker, request);
}

static void do_update(struct worker *worker, const struct request *request)
{
    add_note(worker, request, "session/update", "sessionId", param(request, "sessionId"));
    do_echo(worker, request);
}

static void do_last_note(struct worker *worker, const struct request *request)
{
    answer_kept(worker, request, &worker->last_note);
}

static void do_die(struct worker *worker, const struct request *request)
{
    long signal_number = param_long(request, "signal", 0);
    if (json_is_true(param(request, "answer")))
        do_echo(worker, request);
    if (json_is_true(param(request, "cut")) && worker->output.len > 0)
        worker->output.len--;
    worker_flush(worker);
    if (signal_number != 0)
        raise((int)signal_number);
    _exit((int)param_long(request, "code", 1));
}

static void do_close_stdout(struct worker *worker, const struct request *request)
{
    if (json_is_true(param(request, "answer")))
        do_echo(worker, request);
    worker_flush(worker);
    close(STDOUT_FILENO);
}

static void do_close_stdin(struct worker *worker, const struct request *request)
{
    do_echo(worker, request);
    close(STDIN_FILENO);
    worker_flush(worker);
    for (;;)
        worker_wait_signal(worker);
}

static void do_stop_reading(struct worker *worker, const struct request *request)
{
    do_echo(worker, request);
    worker_wait_usr1(worker);
}

static void do_on_sigterm(struct worker *worker, const struct request *request)
{
    worker_on_sigterm(worker, json_text(param(request, "do")), (int)param_long(request, "code", 0));
    do_echo(worker, request);
}

/* The grandchild closes its end of a pipe when it is set up. */
static void do_grandchild(struct worker *worker, const struct request *request)
{
    int ready[2];
    char byte, result[64];
    worker_flush(worker);
    if (pipe(ready) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        if (json_is_true(param(request, "ignore")))
            signal(SIGTERM, SIG_IGN);
        if (!json_is_true(param(request, "hold"))) {
            close(STDIN_FILENO);
            close(STDOUT_FILENO);
        }
        close(ready[0]);
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    while (read(ready[0], &byte, 1) > 0)
        continue;
    close(ready[0]);
    int len = snprintf(result, sizeof result, "{\"pid\":%ld}", (long)pid);
    worker_answer(worker, request, result, (size_t)len);
}

static void do_write_stderr(struct worker *worker, const struct request *request)
{
    struct span words = json_text(param(request, "text"));
    struct text line = {0};
    add_span(&line, words);
    text_add(&line, "\n", 1);
    if (write(STDERR_FILENO, line.data, line.len) < 0)
        _exit(5);
    text_free(&line);
    do_echo(worker, request);
}

static void do_environment(struct worker *worker, const struct request *request)
{
    worker_answer(worker, request, worker->birth.data, worker->birth.len);
}

static void do_discover(struct worker *worker, const struct request *request)
{
    const char *what = worker->discover != NULL ? worker->discover : "";
    if (strncmp(what, "odd-", 4) == 0)
        what = param(request, "odd").data != NULL ? what + 4 : "";
    if (strcmp(what, "exit") == 0)
        _exit(1);
    if (strcmp(what, "error") == 0) {
        add_head(&worker->output, request->id, request->session);
        text_printf(&worker->output, "\"error\":{\"code\":-32601,\"message\":\"unknown\"}}\n");
    } else if (strcmp(what, "silence") != 0) {
        do_echo(worker, request);
    }
}

/* The file may be another one at each request. */
static void do_list(struct worker *worker, const struct request *request)
{
    struct span cursor = json_text(param(request, "cursor"));
    long number = cursor.data != NULL ? strtol(cursor.data, NULL, 10) : 1;
    char line[4096] = "";
    FILE *file = worker->lists != NULL ? fopen(worker->lists, "r") : NULL;
    if (file == NULL) {
        do_echo(worker, request);
        return;
    }
    while (number-- > 0 && fgets(line, sizeof line, file) != NULL)
        ;
    fclose(file);
    worker_answer(worker, request, line, strcspn(line, "\n"));
}

static void add_heard(struct worker *worker, const struct request *request)
{
    static const char *const names[] = {"protocolVersion", "level", "uri"};
    struct span method = json_text(request->method);
    text_printf(&worker->heard, "%s%.*s", worker->heard.len > 0 ? "," : "", SHOWN(method));
    for (int i = 0; i < 3; i++) {
        struct span value = json_text(param(request, names[i]));
        if (value.data != NULL)
            text_printf(&worker->heard, " %.*s", SHOWN(value));
    }
}

static void add_to_handshake(struct worker *worker, const struct request *request)
{
    if (worker->handshake.len > 0)
        text_add(&worker->handshake, ",", 1);
    add_span(&worker->handshake,
             (struct span){request->line.data, request->line.len - (worker->framing == NULL)});
    add_heard(worker, request);
}

static void do_handshake_part(struct worker *worker, const struct request *request)
{
    add_to_handshake(worker, request);
    if (param(request, "code").data != NULL)
        do_fail(worker, request);
    else
        do_echo(worker, request);
}

/* Whether another process has made the file already. */
static bool is_marked(struct span path)
{
    char name[512];
    if (path.data == NULL)
        return false;
    snprintf(name, sizeof name, "%.*s", SHOWN(path));
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static void do_initialize(struct worker *worker, const struct request *request)
{
    static const char other[] = "{\"protocolVersion\":\"other\"}";
    struct span result = param(request, "result"), then = {0};
    add_to_handshake(worker, request);
    if (worker->one_initialize && worker->initialized) {
        add_head(&worker->output, request->id, request->session);
        text_printf(&worker->output, "\"error\":{\"code\":-32600,\"message\":\"again\"}}\n");
        return;
    }
    worker->initialized = true;
    if (is_marked(json_text(param(request, "mark"))))
        then = json_text(param(request, "then"));
    if (span_is(then, "silence"))
        return;
    if (span_is(then, "die"))
        _exit(1);
    if (span_is(json_text(param(request, "then")), "big"))
        do_big(worker, request);
    else if (span_is(then, "error"))
        do_fail(worker, request);
    else if (span_is(then, "version"))
        worker_answer(worker, request, other, sizeof other - 1);
    else if (result.data != NULL)
        worker_answer(worker, request, result.data, result.len);
    else
        do_echo(worker, request);
}

static void do_handshake(struct worker *worker, const struct request *request)
{
    struct text result = {0};
    text_add(&result, "[", 1);
    text_add(&result, worker->handshake.data, worker->handshake.len);
    text_add(&result, "]", 1);
    worker_answer(worker, request, result.data, result.len);
    text_free(&result);
}

static void do_heard(struct worker *worker, const struct request *request)
{
    struct text result = {0};
    text_printf(&result, "\"%.*s\"", (int)worker->heard.len,
                worker->heard.len > 0 ? worker->heard.data : "");
    worker_answer(worker, request, result.data, result.len);
    text_free(&result);
}

static void add_event(struct worker *worker, const char *trace, const struct request *request,
                      const char *kind, const char *message)
{
    text_printf(&worker->output, "{\"jsonrpc\":\"2.0\",\"method\":\"run/event\",\"params\":"
                                 "{\"trace_id\":");
    add_span(&worker->output, param(request, trace));
    text_printf(&worker->output, ",\"kind\":\"%s\",\"message\":\"%s\"}}\n", kind, message);
}

static void do_submit(struct worker *worker, const struct request *request)
{
    struct span yaml = json_text(param(request, "opening_yaml"));
    char result[64];

    if (span_is(yaml, "silence"))
        return;
    if (span_is(yaml, "early") || span_is(yaml, "early reject")) {
        add_event(worker, "request_id", request, "plan", "early");
        add_event(worker, "request_id", request, "log", "zero");
    }
    if (yaml.len > 5 &&
        (memcmp(yaml.data, "show:", 5) == 0 || memcmp(yaml.data, "open:", 5) == 0)) {
        worker_answer(worker, request, "{}", 2);
        text_printf(&worker->output, "{\"jsonrpc\":\"2.0\",\"method\":\"run/event\",\"params\":"
                                     "{\"kind\":\"log\",\"trace_id\":");
        add_span(&worker->output, param(request, "request_id"));
        text_printf(&worker->output, ",\"message\":");
        add_span(&worker->output, param(request, "opening_yaml"));
        text_printf(&worker->output, "}}\n");
        if (yaml.data[0] == 's')
            add_event(worker, "request_id", request, "status", "completed");
        return;
    }
    if (span_is(yaml, "reject") || span_is(yaml, "early reject")) {
        do_fail(worker, request);
        return;
    }
    snprintf(result, sizeof result, "{\"opening_id\":7,\"opening_name\":\"run %u\"}",
             ++worker->runs);
    worker_answer(worker, request, result, strlen(result));
    if (span_is(yaml, "stay"))
        return;
    add_event(worker, "request_id", request, "log", "one");
    add_event(worker, "request_id", request, "status",
              span_is(yaml, "fail") ? "failed" : "completed");
}

static void do_cancel(struct worker *worker, const struct request *request)
{
    worker_answer(worker, request, "{}", 2);
    add_event(worker, "trace_id", request, "status", "cancelled");
}

static void obey(struct worker *worker, const struct request *request);

static void do_execute(struct worker *worker, const struct request *request)
{
    struct request inner = *request;

    inner.method = param(request, "node.method");
    inner.params = param(request, "inputs");
    if (!span_is(json_text(inner.method), "agent/execute"))
        obey(worker, &inner);
}

static const struct method {
    const char *name;
    void (*run)(struct worker *worker, const struct request *request);
} methods[] = {
    {"echo", do_echo},
    {"plain", do_plain},
    {"length", do_length},
    {"mirror", do_mirror},
    {"big", do_big},
    {"split", do_split},
    {"no_answer", do_nothing},
    {"subscriptions/listen", do_nothing},
    {"tools/list", do_list},
    {"server/discover", do_discover},
    {"initialize", do_initialize},
    {"notifications/initialized", do_handshake_part},
    {"logging/setLevel", do_handshake_part},
    {"resources/subscribe", do_handshake_part},
    {"resources/unsubscribe", do_handshake_part},
    {"handshake", do_handshake},
    {"heard", do_heard},
    {"answer_twice", do_answer_twice},
    {"answer_as", do_answer_as},
    {"fail", do_fail},
    {"say", do_say},
    {"say_only", do_say_only},
    {"notify", do_notify},
    {"garbage", do_garbage},
    {"hold", do_hold},
    {"release", do_release},
    {"ask", do_ask},
    {"reply_text", do_reply_text},
    {"progress", do_progress},
    {"update", do_update},
    {"session/load", do_update},
    {"session/prompt", do_plain},
    {"last_note", do_last_note},
    {"die", do_die},
    {"close_stdout", do_close_stdout},
    {"close_stdin", do_close_stdin},
    {"stop_reading", do_stop_reading},
    {"on_sigterm", do_on_sigterm},
    {"grandchild", do_grandchild},
    {"write_stderr", do_write_stderr},
    {"environment", do_environment},
    {"agent/execute", do_execute},
    {"run/submit", do_submit},
    {"run/cancel", do_cancel},
};

static void read_request(struct request *request, struct span line)
{
    struct json_cursor cursor;
    struct span key, value;
    memset(request, 0, sizeof *request);
    request->line = line;
    json_open(&cursor, line);
    while (json_next(&cursor, &key, &value)) {
        if (span_is(key, "id"))
            request->id = value;
        else if (span_is(key, "sessionId"))
            request->session = value;
        else if (span_is(key, "method"))
            request->method = value;
        else if (span_is(key, "params"))
            request->params = value;
        else if (span_is(key, "result") || span_is(key, "error"))
            request->is_reply = true;
    }
    if (span_is(request->id, "null"))
        request->id.data = NULL;
}

static void obey(struct worker *worker, const struct request *request)
{
    struct span name = json_text(request->method);
    for (size_t i = 0; name.data != NULL && i < sizeof methods / sizeof methods[0]; i++) {
        if (span_is(name, methods[i].name)) {
            methods[i].run(worker, request);
            return;
        }
    }
    if (request->id.data == NULL) {
        worker->last_note.len = 0;
        add_span(&worker->last_note, (struct span){request->line.data, request->line.len - 1});
    }
    do_echo(worker, request);
}

void worker_handle(struct worker *worker, struct span line)
{
    struct request request;
    read_request(&request, line);
    if (request.is_reply) {
        handle_reply(worker, &request);
        return;
    }
    obey(worker, &request);
}
