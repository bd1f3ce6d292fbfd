#include "build_config.h"

#include "rmp.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "deadline.h"
#include "steps.h"
#include "suite.h"

#define HEADER_LEN 64

uint64_t rmp_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct daemon *rmp_start(const char *keys, const char *members)
{
    struct setup setup = {.mode = SETUP_STDIO, .default_mode = true};
    setup.config = test_format("{'rmp':{'socket_path':'@DIR@/rmp.sock'%s}%s}",
                               keys != NULL ? keys : "", members != NULL ? members : "");
    struct daemon *daemon = daemon_start(&setup);
    daemon_wait_log(daemon, "listening on .*/rmp.sock");
    snprintf(daemon->socket_path, sizeof daemon->socket_path, "%s/rmp.sock", daemon->dir);
    return daemon;
}

/* --- writing --- */

static void put(struct text *to, uint64_t value, unsigned bytes)
{
    while (bytes-- > 0)
        text_add(to, &(char){(char)(value >> 8 * bytes & 0xFF)}, 1);
}

static void put_string(struct text *to, const char *string)
{
    put(to, 0xDA, 1);
    put(to, strlen(string), 2);
    text_add(to, string, strlen(string));
}

static const char *type_of(const struct rmp_sent *sent)
{
    if (sent->type != NULL)
        return sent->type;
    if (sent->op != NULL)
        return "intent.control.v1";
    return sent->schema == 3006 ? "toolresult.action.decision.v1" : "observation.trace.line.v1";
}

static unsigned schema_of(const struct rmp_sent *sent)
{
    if (sent->schema != 0)
        return sent->schema;
    return sent->op != NULL ? 9 : 3003;
}

static void put_payload(struct text *to, const struct rmp_sent *sent)
{
    if (sent->op == NULL) {
        put(to, 0x81, 1);
        put_string(to, "x");
        put(to, 0xC6, 1);
        put(to, sent->filler, 4);
        text_fill(to, 'x', sent->filler);
        return;
    }
    put(to, 0x81u + (sent->key != NULL) + (sent->replay != NULL), 1);
    if (sent->replay != NULL)
        put_string(to, "replay");
    if (sent->replay != NULL && strcmp(sent->replay, "true") == 0)
        put(to, 0xC3, 1);
    else if (sent->replay != NULL)
        put_string(to, sent->replay);
    put_string(to, "op");
    put_string(to, sent->op);
    if (sent->key == NULL)
        return;
    put_string(to, sent->key);
    put_string(to, sent->value);
}

static void put_body(struct text *to, const struct rmp_sent *sent)
{
    put(to, sent->topic != NULL ? 0x83 : 0x82, 1);
    put_string(to, "type");
    put_string(to, type_of(sent));
    put_string(to, "payload");
    put_payload(to, sent);
    if (sent->topic == NULL)
        return;
    put_string(to, "meta");
    put(to, sent->ack ? 0x82 : 0x81, 1);
    put_string(to, "topic");
    put_string(to, sent->topic);
    if (!sent->ack)
        return;
    put_string(to, "ack");
    put(to, 0xC3, 1);
}

static uint64_t created_of(const struct rmp_sent *sent)
{
    return sent->created_ms != 0 ? sent->created_ms : rmp_now_ms();
}

static uint64_t ttl_of(const struct rmp_sent *sent)
{
    if (sent->no_ttl)
        return 0;
    return sent->ttl_ms != 0 ? sent->ttl_ms : 30000;
}

void rmp_frame(struct text *to, const struct rmp_sent *sent)
{
    struct text body = {0};
    if (sent->body.len > 0)
        text_add(&body, sent->body.data, sent->body.len);
    else
        put_body(&body, sent);
    put(to, HEADER_LEN + body.len, 4);
    text_add(to, "RMP0\0\0\0\100\0\0\0\0", 12);
    put(to, schema_of(sent), 2);
    put(to, 0, 2);
    put(to, body.len, 4);
    put(to, created_of(sent), 8);
    put(to, ttl_of(sent), 8);
    put(to, 0, 8);
    put(to, sent->trace, 8);
    put(to, sent->msg_id, 8);
    put(to, 0, 4);
    text_add(to, body.data, body.len);
    text_free(&body);
}

void rmp_send(struct client *client, const struct rmp_sent *sent)
{
    struct text frame = {0};
    rmp_frame(&frame, sent);
    client_send_bytes(client, frame.data, frame.len);
    text_free(&frame);
}

static void send_payload(struct client *client, const struct text *payload)
{
    struct text frame = {0};
    put(&frame, payload->len, 4);
    text_add(&frame, payload->data, payload->len);
    client_send_bytes(client, frame.data, frame.len);
    text_free(&frame);
}

void rmp_command(struct client *client, const char *format, ...)
{
    struct text command = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&command, format, arguments);
    va_end(arguments);
    text_quote(&command, 0);
    send_payload(client, &command);
    text_free(&command);
}

void client_publish(struct client *client, unsigned id, const struct rmp_sent *sent)
{
    struct text command = {0}, body = {0};
    struct rmp_sent without_topic = *sent;
    without_topic.topic = NULL;
    put_body(&body, &without_topic);
    text_printf(&command,
                "{'Publish':{'id':%u,'topic':'%s','message':{'header':{'header_version':0,"
                "'header_len':64,'flags':0,'schema_id':%u,'body_len':0,'created_at_ms':%" PRIu64
                ",'ttl_ms':%" PRIu64 ",'trace_id':%" PRIu64 ",'msg_id':%" PRIu64 "},'body':[",
                id, sent->topic, schema_of(sent), created_of(sent), ttl_of(sent), sent->trace,
                sent->msg_id);
    for (size_t i = 0; i < body.len; i++)
        text_printf(&command, "%s%u", i > 0 ? "," : "", (unsigned char)body.data[i]);
    text_printf(&command, "]}}}");
    text_quote(&command, 0);
    send_payload(client, &command);
    text_free(&command);
    text_free(&body);
}

/* --- reading --- */

static uint64_t get(const char *from, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | (unsigned char)from[i];
    return value;
}

static const char *wait_bytes(struct client *client, size_t len)
{
    int64_t deadline = deadline_usual();
    if (client->input.len - client->consumed < len)
        harness_step();
    while (client->input.len - client->consumed < len) {
        if (!client_read_before(client, deadline))
            ck_abort_msg("%s instead of a frame", client->eof ? "the end" : "nothing");
    }
    return client->input.data + client->consumed;
}

struct rmp_got rmp_next(struct client *client)
{
    struct rmp_got got = {.is_frame = false};
    size_t len = (size_t)get(wait_bytes(client, 4), 4);
    const char *at = wait_bytes(client, 4 + len) + 4;
    client->consumed += 4 + len;
    got.payload = (struct span){at, len};
    got.is_frame = len >= HEADER_LEN && memcmp(at, "RMP0", 4) == 0;
    if (!got.is_frame)
        return got;
    got.schema = (unsigned)get(at + 12, 2);
    got.created_ms = get(at + 20, 8);
    got.ttl_ms = get(at + 28, 8);
    got.trace = get(at + 44, 8);
    got.msg_id = get(at + 52, 8);
    got.body = (struct span){at + HEADER_LEN, len - HEADER_LEN};
    ck_assert_uint_eq(get(at + 16, 4), got.body.len);
    return got;
}

void rmp_expect(struct client *client, const char *format, ...)
{
    struct rmp_got got = rmp_next(client);
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&text, format, arguments);
    va_end(arguments);
    text_quote(&text, 0);
    ck_assert_msg(!got.is_frame && got.payload.len == text.len &&
                      memcmp(got.payload.data, text.data, text.len) == 0,
                  "%.*s instead of %s", (int)got.payload.len, got.payload.data, text.data);
    text_free(&text);
}

void rmp_expect_frame(struct client *client, const struct text *frame)
{
    struct rmp_got got = rmp_next(client);
    ck_assert_msg(got.payload.len == frame->len - 4 &&
                      memcmp(got.payload.data, frame->data + 4, got.payload.len) == 0,
                  "another frame: %.*s", (int)got.payload.len, got.payload.data);
}

void rmp_expect_message(struct client *client, unsigned sub_id, uint64_t msg_id)
{
    struct rmp_got got = rmp_next(client);
    const char *start = test_format("{\"Message\":{\"sub_id\":%u,", sub_id);
    const char *id = test_format("\"msg_id\":%" PRIu64 "}", msg_id);
    ck_assert_msg(!got.is_frame && got.payload.len > strlen(start) &&
                      memcmp(got.payload.data, start, strlen(start)) == 0 &&
                      memmem(got.payload.data, got.payload.len, id, strlen(id)) != NULL,
                  "%.*s instead of message %" PRIu64, (int)got.payload.len, got.payload.data,
                  msg_id);
}

struct rmp_got rmp_expect_word(struct client *client, unsigned schema, const char *word)
{
    struct rmp_got got = rmp_next(client);
    ck_assert_msg(got.is_frame, "%.*s instead of a frame", (int)got.payload.len, got.payload.data);
    ck_assert_msg(got.schema == schema &&
                      memmem(got.body.data, got.body.len, word, strlen(word)) != NULL,
                  "schema %u, and no %s: %.*s", got.schema, word, (int)got.body.len, got.body.data);
    return got;
}

/* --- conversations --- */

void rmp_hello(struct client *client, bool frames, const char *kind)
{
    if (frames) {
        RMP_SEND(client, .op = "hello", .key = "kind", .value = kind);
        rmp_expect_word(client, RMP_OK_SCHEMA, "hello");
        return;
    }
    rmp_command(client, "{'Hello':{'kind':'%s'}}", kind);
    rmp_expect(client, "'HelloAck'");
}

void rmp_subscribe(struct client *client, bool frames, const char *topic, unsigned sub_id)
{
    if (frames) {
        RMP_SEND(client, .op = "subscribe", .key = "topic", .value = topic);
        rmp_expect_word(client, RMP_OK_SCHEMA, "subscribe");
        return;
    }
    rmp_command(client, "{'Subscribe':{'id':%u,'topic':'%s','sub_id':%u}}", sub_id + 100, topic,
                sub_id);
    rmp_expect(client, "{'SubscribeAck':{'id':%u,'result':{'Ok':null}}}", sub_id + 100);
}
