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

void frames_send(struct client *client, const char *format, ...)
{
    struct text body = {0}, frame = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&body, format, arguments);
    va_end(arguments);
    text_quote(&body, 0);
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
    va_list arguments;
    va_start(arguments, format);
    message_expect(frames_next(client), format, arguments);
    va_end(arguments);
}

struct span frames_result(struct client *client, const char *id)
{
    return message_result(frames_next(client), id);
}

void frames_error(struct client *client, const char *id, int code, const char *word)
{
    message_error(frames_next(client), id, code, word);
}

long frames_pid(struct client *client, int id)
{
    char raw[16];
    snprintf(raw, sizeof raw, "%d", id);
    frames_send(client, "{'jsonrpc':'2.0','id':%d,'method':'echo'}", id);
    long pid = json_number(frames_result(client, raw), "pid");
    ck_assert_int_gt(pid, 0);
    return pid;
}

struct client *frames_connect(const struct daemon *daemon)
{
    struct client *client = client_connect(daemon);
    frames_pid(client, 0);
    return client;
}
