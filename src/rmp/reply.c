#include "build_config.h"

#include "rmp/reply.h"

#include "base/assert.h"
#include "rmp/msgpack.h"
#include "json/string.h"

#define TEXT_MAX 1024 /* bytes of a text; six times as many fit in an answer */

/* --- numbers and texts --- */

#define DIGITS_MAX 40 /* of 2^128 - 1: 39 */

/* Divides the id by ten. Returns the rest. */
static unsigned divide_by_ten(struct rmp_id *id)
{
    uint64_t upper = (id->high % 10) << 32 | id->low >> 32;
    uint64_t lower = (upper % 10) << 32 | (id->low & UINT32_MAX);

    id->high /= 10;
    id->low = (upper / 10) << 32 | lower / 10;
    return (unsigned)(lower % 10);
}

static size_t write_id(char *to, struct rmp_id id)
{
    char digits[DIGITS_MAX] UNINITIALIZED, *p = digits + sizeof digits;

    while (id.high != 0)
        *--p = (char)('0' + divide_by_ten(&id));
    do {
        *--p = (char)('0' + id.low % 10);
        id.low /= 10;
    } while (id.low != 0);
    memcpy(to, p, (size_t)(digits + sizeof digits - p));
    return (size_t)(digits + sizeof digits - p);
}

static void add_json(struct json_output *out, const char *text)
{
    json_output_add(out, slice_of_text(text));
}

static void add_id(struct json_output *out, struct rmp_id id)
{
    char digits[DIGITS_MAX] UNINITIALIZED;

    json_output_add(out, slice_of(digits, write_id(digits, id)));
}

static void add_number(struct json_output *out, uint64_t number)
{
    add_id(out, (struct rmp_id){.low = number});
}

/* Adds the text, or as much of it as fits, in whole characters. */
static void add_text(struct json_output *out, struct slice text)
{
    if (text.len > TEXT_MAX) {
        text.len = TEXT_MAX;
        while (text.len > 0 && ((unsigned char)text.data[text.len] & 0xC0) == 0x80)
            text.len--;
    }
    json_output_string(out, text);
}

/* --- answers --- */

static struct json_output start_frame(char to[RMP_REPLY_MAX])
{
    return (struct json_output){.to = to + RMP_PREFIX_LEN, .size = RMP_REPLY_MAX - RMP_PREFIX_LEN};
}

static size_t end_frame(char to[RMP_REPLY_MAX], const struct json_output *out)
{
    ASSERT(!out->full);
    wire_put_u32(to, (uint32_t)out->len);
    return RMP_PREFIX_LEN + out->len;
}

size_t rmp_reply_hello(char to[RMP_REPLY_MAX])
{
    struct json_output out = start_frame(to);

    add_json(&out, "\"HelloAck\"");
    return end_frame(to, &out);
}

/* The members that follow the name of an error. */
static void add_mismatch(struct json_output *out, uint64_t expected)
{
    add_json(out, "{\"expected\":");
    add_number(out, expected);
    add_json(out, ",\"actual\":");
}

static void add_expiry(struct json_output *out, const struct rmp_result *result)
{
    add_json(out, "{\"created_at_ms\":");
    add_number(out, result->created_at_ms);
    add_json(out, ",\"ttl_ms\":");
    add_number(out, result->ttl_ms);
    add_json(out, "}");
}

static void add_details(struct json_output *out, const struct rmp_result *result)
{
    switch (result->outcome) {
    case RMP_RESULT_INVALID_TTL:
        add_number(out, result->ttl_ms);
        break;
    case RMP_RESULT_UNKNOWN_SCHEMA:
        add_number(out, result->schema_id);
        break;
    case RMP_RESULT_FORBIDDEN:
        add_text(out, result->text);
        break;
    case RMP_RESULT_BACKPRESSURE_TIMEOUT:
        add_json(out, "{\"topic\":");
        add_text(out, result->text);
        add_json(out, "}");
        break;
    case RMP_RESULT_BODY_LENGTH_MISMATCH:
        add_mismatch(out, result->expected);
        add_number(out, result->actual);
        add_json(out, "}");
        break;
    case RMP_RESULT_BODY_TYPE_MISMATCH:
        add_mismatch(out, result->schema_id);
        add_text(out, result->text);
        add_json(out, "}");
        break;
    case RMP_RESULT_INVALID_EXPIRY:
        add_expiry(out, result);
        break;
    default:
        break;
    }
}

static void add_result(struct json_output *out, const struct rmp_result *result)
{
    static const struct {
        const char *start, *end;
    } outcomes[RMP_RESULT_COUNT] = {
        [RMP_RESULT_OK] = {"{\"Ok\":null", "}"},
        [RMP_RESULT_CLOSED] = {"{\"Err\":\"Closed\"", "}"},
        [RMP_RESULT_MESSAGE_EXPIRED] = {"{\"Err\":\"MessageExpired\"", "}"},
        [RMP_RESULT_INVALID_TTL] = {"{\"Err\":{\"InvalidTtl\":", "}}"},
        [RMP_RESULT_BODY_LENGTH_MISMATCH] = {"{\"Err\":{\"BodyLengthMismatch\":", "}}"},
        [RMP_RESULT_BACKPRESSURE_TIMEOUT] = {"{\"Err\":{\"BackpressureTimeout\":", "}}"},
        [RMP_RESULT_FORBIDDEN] = {"{\"Err\":{\"Forbidden\":", "}}"},
        [RMP_RESULT_BODY_TYPE_MISMATCH] = {"{\"Err\":{\"BodyTypeMismatch\":", "}}"},
        [RMP_RESULT_INVALID_EXPIRY] = {"{\"Err\":{\"InvalidExpiry\":", "}}"},
        [RMP_RESULT_UNKNOWN_SCHEMA] = {"{\"Err\":{\"UnknownSchema\":", "}}"},
    };

    add_json(out, outcomes[result->outcome].start);
    add_details(out, result);
    add_json(out, outcomes[result->outcome].end);
}

static size_t write_ack(char to[RMP_REPLY_MAX], const char *start, uint64_t id,
                        const struct rmp_result *result)
{
    struct json_output out = start_frame(to);

    add_json(&out, start);
    add_number(&out, id);
    add_json(&out, ",\"result\":");
    add_result(&out, result);
    add_json(&out, "}}");
    return end_frame(to, &out);
}

size_t rmp_reply_publish(char to[RMP_REPLY_MAX], uint64_t id, const struct rmp_result *result)
{
    return write_ack(to, "{\"PublishAck\":{\"id\":", id, result);
}

size_t rmp_reply_subscribe(char to[RMP_REPLY_MAX], uint64_t id, const struct rmp_result *result)
{
    return write_ack(to, "{\"SubscribeAck\":{\"id\":", id, result);
}

/* --- messages --- */

/* Each byte as digits and a comma, and how many bytes these are. */
#define ONES(n) ('0' + (n) % 10)
#define TENS(n) ('0' + (n) / 10 % 10)
#define HUNDREDS(n) ('0' + (n) / 100)
#define BYTE(n)                                                                                    \
    {                                                                                              \
        {(n) > 99  ? HUNDREDS(n)                                                                   \
         : (n) > 9 ? TENS(n)                                                                       \
                   : ONES(n),                                                                      \
         (n) > 99  ? TENS(n)                                                                       \
         : (n) > 9 ? ONES(n)                                                                       \
                   : ',',                                                                          \
         (n) > 99 ? ONES(n) : ',', ','},                                                           \
            2 + ((n) > 9) + ((n) > 99)                                                             \
    }
#define BYTES_4(n) BYTE(n), BYTE((n) + 1), BYTE((n) + 2), BYTE((n) + 3)
#define BYTES_16(n) BYTES_4(n), BYTES_4((n) + 4), BYTES_4((n) + 8), BYTES_4((n) + 12)
#define BYTES_64(n) BYTES_16(n), BYTES_16((n) + 16), BYTES_16((n) + 32), BYTES_16((n) + 48)

static const struct {
    char text[4];
    unsigned char len;
} bytes[256] = {BYTES_64(0), BYTES_64(64), BYTES_64(128), BYTES_64(192)};

/* Writes up to 4 bytes more than it returns. */
static size_t write_bytes(char *to, struct slice body)
{
    char *start = to;

    for (size_t i = 0; i < body.len; i++) {
        unsigned char byte = (unsigned char)body.data[i];

        memcpy(to, bytes[byte].text, sizeof bytes[byte].text);
        to += bytes[byte].len;
    }
    return (size_t)(to - start) - (body.len > 0); /* the last one has no comma */
}

size_t rmp_message_start(char to[RMP_MESSAGE_START_MAX], uint64_t sub_id, size_t rest_len)
{
    struct json_output out = {.to = to + RMP_PREFIX_LEN,
                              .size = RMP_MESSAGE_START_MAX - RMP_PREFIX_LEN};

    add_json(&out, "{\"Message\":{\"sub_id\":");
    add_number(&out, sub_id);
    wire_put_u32(to, (uint32_t)(out.len + rest_len));
    return RMP_PREFIX_LEN + out.len;
}

size_t rmp_message_rest(char *to, const struct rmp_header *header, struct slice body)
{
    struct json_output out = {.to = to, .size = RMP_MESSAGE_REST_MAX(body.len)};

    add_json(&out, ",\"message\":{\"header\":{\"header_version\":0,\"header_len\":64,\"flags\":0,"
                   "\"schema_id\":");
    add_number(&out, header->schema_id);
    add_json(&out, ",\"body_len\":");
    add_number(&out, body.len);
    add_json(&out, ",\"created_at_ms\":");
    add_number(&out, header->created_at_ms);
    add_json(&out, ",\"ttl_ms\":");
    add_number(&out, header->ttl_ms);
    add_json(&out, ",\"trace_id\":");
    add_id(&out, header->trace_id);
    add_json(&out, ",\"msg_id\":");
    add_number(&out, header->msg_id);
    add_json(&out, "},\"body\":[");
    out.len += write_bytes(to + out.len, body);
    add_json(&out, "]}}}");
    ASSERT(!out.full);
    return out.len;
}
