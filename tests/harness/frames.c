#include "build_config.h"

#include "frames.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"

#define NAME "Content-Length: "
#define NAME_LEN (sizeof NAME - 1)
#define END "\r\n\r\n"
#define HEAD_MAX 64

void frames_add(struct text *to, const void *body, size_t len)
{
    text_printf(to, NAME "%zu" END, len);
    text_add(to, body, len);
}

static void add_text(struct text *to, const char *format, va_list arguments)
{
    text_vprintf(to, format, arguments);
    text_quote(to, 0);
}

void frames_send(struct client *client, const char *format, ...)
{
    struct text body = {0}, frame = {0};
    va_list arguments;
    va_start(arguments, format);
    add_text(&body, format, arguments);
    va_end(arguments);
    frames_add(&frame, body.data, body.len);
    client_send_bytes(client, frame.data, frame.len);
    text_free(&body);
    text_free(&frame);
}

/* The bytes that were not given out yet, once there are `len` of them. */
static const char *wait_bytes(struct client *client, size_t len)
{
    int64_t deadline = deadline_usual();
    while (client->input.len - client->consumed < len) {
        if (!client_read_before(client, deadline))
            ck_abort_msg("%s instead of a frame", client->eof ? "the end" : "nothing");
    }
    return client->input.data + client->consumed;
}

struct span frames_next(struct client *client)
{
    size_t head = NAME_LEN + 1 + strlen(END);
    const char *at = wait_bytes(client, head);
    char *digits_end;
    long len;
    while (memcmp(at + head - strlen(END), END, strlen(END)) != 0) {
        ck_assert_msg(head < HEAD_MAX, "not a head: %.*s", (int)head, at);
        at = wait_bytes(client, ++head);
    }
    ck_assert_msg(memcmp(at, NAME, NAME_LEN) == 0, "not a head: %.*s", (int)head, at);
    len = strtol(at + NAME_LEN, &digits_end, 10);
    ck_assert_msg(len >= 0 && digits_end == at + head - strlen(END), "not a head: %.*s", (int)head,
                  at);
    at = wait_bytes(client, head + (size_t)len);
    client->consumed += head + (size_t)len;
    return (struct span){at + head, (size_t)len};
}

void frames_expect(struct client *client, const char *format, ...)
{
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    add_text(&text, format, arguments);
    va_end(arguments);
    struct span body = frames_next(client);
    ck_assert_msg(span_is(body, text.data), "instead of %.300s\n%.*s", text.data,
                  body.len < 300 ? (int)body.len : 300, body.data);
    text_free(&text);
}

struct span frames_result(struct client *client, const char *id)
{
    struct text raw = {0};
    text_printf(&raw, "%s", id);
    text_quote(&raw, 0);
    struct span body = frames_next(client), result = json_get(body, "result");
    ck_assert_msg(span_is(json_get(body, "id"), raw.data) && result.data != NULL,
                  "not the answer to %s: %.*s", raw.data, body.len < 300 ? (int)body.len : 300,
                  body.data);
    text_free(&raw);
    return result;
}

void frames_error(struct client *client, const char *id, int code, const char *word)
{
    struct text head = {0}, body = {0};
    struct span span = frames_next(client);
    text_printf(&head, "{'jsonrpc':'2.0','id':%s,'error':{'code':%d,'message':'", id, code);
    text_quote(&head, 0);
    text_add(&body, span.data, span.len);
    ck_assert_msg(body.len > head.len && memcmp(body.data, head.data, head.len) == 0 &&
                      strstr(body.data + head.len, word) != NULL,
                  "not error %d for %s naming \"%s\": %.300s", code, id, word, body.data);
    text_free(&head);
    text_free(&body);
}

long frames_pid(struct client *client, int id)
{
    char raw[16];
    snprintf(raw, sizeof raw, "%d", id);
    frames_send(client, "{'jsonrpc':'2.0','id':%d,'method':'echo'}", id);
    long pid = json_long(json_get(frames_result(client, raw), "pid"), -1);
    ck_assert_int_gt(pid, 0);
    return pid;
}
