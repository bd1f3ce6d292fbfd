#include "build_config.h"

#include "format/message.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/json_string.h"

/* Below it a double is an integer's only where that integer has a double of its own. */
#define DOUBLE_EXACT 9007199254740992.0

/* Enough for any 64-bit exponent to be computed with; nobody counts that far. */
#define EXPONENT_DIGITS_MAX 18

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number that is its own text already: an integer without sign or exponent. */
static bool is_plain_integer(struct slice raw)
{
    for (size_t i = 0; i < raw.len; i++) {
        if (!is_digit(raw.data[i]))
            return false;
    }
    return true;
}

/* The number in parts: its value is `digits` times ten to the power of `exponent`. */
struct decimal {
    char digits[STDIO_BUS_MAX_REQUEST_ID_LEN]; /* without zeros at either end; none: 0 */
    size_t count;
    int64_t exponent;
    bool negative;
};

/* Reads what follows the letter e; false when it is too large to compute with. */
static bool read_exponent(const char *p, const char *end, int64_t *exponent)
{
    bool negative = *p == '-';
    int64_t value = 0;

    if (!is_digit(*p))
        p++;
    while (p < end && *p == '0')
        p++;
    if (end - p > EXPONENT_DIGITS_MAX)
        return false;
    for (; p < end; p++)
        value = value * 10 + (*p - '0');
    *exponent = negative ? -value : value;
    return true;
}

/* `raw` is a number as the scanner accepts it. False when its exponent is too large. */
static bool read_decimal(struct decimal *decimal, struct slice raw)
{
    const char *p = raw.data, *end = raw.data + raw.len;
    bool fraction = false, known = true;
    int64_t exponent = 0;

    decimal->negative = *p == '-';
    decimal->count = 0;
    decimal->exponent = 0;
    if (decimal->negative)
        p++;
    for (; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        if (fraction)
            decimal->exponent--;
        if (*p != '0' || decimal->count > 0)
            decimal->digits[decimal->count++] = *p;
    }
    if (p < end)
        known = read_exponent(p + 1, end, &exponent);
    decimal->exponent += exponent;
    for (; decimal->count > 0 && decimal->digits[decimal->count - 1] == '0'; decimal->count--)
        decimal->exponent++;
    return known || decimal->count == 0;
}

/* Who reads numbers as doubles, and most do, takes a fraction that is close enough for an integer,
 * and answers with that. */
static struct slice rounded_text(char to[MESSAGE_ID_TEXT_MAX], struct slice raw)
{
    double value;

    memcpy(to, raw.data, raw.len);
    to[raw.len] = '\0';
    value = strtod(to, NULL);
    if (!(value > -DOUBLE_EXACT && value < DOUBLE_EXACT) || (double)(int64_t)value != value)
        return raw;
    return slice_of(to, (size_t)snprintf(to, MESSAGE_ID_TEXT_MAX, "%" PRId64, (int64_t)value));
}

/* The text of a number (see struct message_id), in `to` where it isn't `raw` itself. */
static struct slice number_text(char to[MESSAGE_ID_TEXT_MAX], struct slice raw)
{
    struct decimal decimal;
    size_t len = 0;

    if (is_plain_integer(raw))
        return raw;
    if (!read_decimal(&decimal, raw))
        return rounded_text(to, raw);
    if (decimal.count == 0)
        return slice_of("0", 1);
    if (decimal.exponent < 0)
        return rounded_text(to, raw);
    if (decimal.negative)
        to[len++] = '-';
    memcpy(to + len, decimal.digits, decimal.count);
    len += decimal.count;
    if (decimal.exponent <= STDIO_BUS_MAX_REQUEST_ID_LEN - (int64_t)decimal.count) {
        memset(to + len, '0', (size_t)decimal.exponent);
        len += (size_t)decimal.exponent;
    } else {
        len += (size_t)snprintf(to + len, MESSAGE_ID_TEXT_MAX - len, "e%" PRId64, decimal.exponent);
    }
    return slice_of(to, len);
}

static struct slice raw_text(struct slice bytes, const struct scan_field *field)
{
    return slice_of(bytes.data + field->offset, field->len);
}

/* The string of `field`, in `to` where it has escapes. False: over `max` bytes. */
static bool string_text(struct slice *text, struct slice bytes, const struct scan_field *field,
                        char *to, size_t max)
{
    *text = raw_text(bytes, field);
    if (field->escaped)
        *text = slice_of(to, json_string_decode(to, max, *text));
    return text->len <= max;
}

static enum message_problem read_id(struct message *message, const struct scan_field *field,
                                    struct message_scratch *scratch)
{
    struct slice text = raw_text(message->bytes, field);

    switch (field->type) {
    case SCAN_STRING:
        if (!string_text(&text, message->bytes, field, scratch->id, STDIO_BUS_MAX_REQUEST_ID_LEN))
            return MESSAGE_ID_LENGTH;
        message->id.type = ID_STRING;
        break;
    case SCAN_NUMBER:
        if (text.len > STDIO_BUS_MAX_REQUEST_ID_LEN)
            return MESSAGE_ID_LENGTH;
        text = number_text(scratch->id, text);
        message->id.type = ID_NUMBER;
        break;
    case SCAN_OTHER:
        return MESSAGE_ID_TYPE;
    default:
        return MESSAGE_OK;
    }
    message->id.text = text;
    return MESSAGE_OK;
}

static enum message_problem read_session_id(struct message *message,
                                            const struct scan_field *field, char *to)
{
    struct slice text;

    if (field->type == SCAN_ABSENT)
        return MESSAGE_OK;
    if (field->type != SCAN_STRING)
        return MESSAGE_SESSION_TYPE;
    if (!string_text(&text, message->bytes, field, to, STDIO_BUS_MAX_SESSION_ID_LEN))
        return MESSAGE_SESSION_LENGTH;
    message->session_id = text;
    return MESSAGE_OK;
}

static enum message_problem read_pool(struct message *message, const struct scan_field *field,
                                      char *to)
{
    struct slice text;

    if (field->type == SCAN_ABSENT)
        return MESSAGE_OK;
    if (field->type != SCAN_STRING)
        return MESSAGE_POOL_TYPE;
    if (!string_text(&text, message->bytes, field, to, STDIO_BUS_MAX_SESSION_ID_LEN))
        return MESSAGE_POOL_LENGTH;
    message->pool = text;
    return MESSAGE_OK;
}

enum message_problem message_from_scan(struct message *message, struct slice bytes,
                                       const struct scan_fields *fields,
                                       struct message_scratch *scratch)
{
    enum message_problem problem;

    memset(message, 0, sizeof *message);
    message->bytes = bytes;
    message->has_result = fields->has_result;
    message->has_error = fields->has_error;
    problem = read_id(message, &fields->id, scratch);
    if (problem == MESSAGE_OK)
        problem = read_session_id(message, &fields->session_id, scratch->session_id);
    if (problem == MESSAGE_OK)
        problem = read_pool(message, &fields->pool, scratch->pool);
    if (problem == MESSAGE_OK && fields->method.type == SCAN_STRING)
        message->method = raw_text(bytes, &fields->method);
    return problem;
}

enum message_problem message_read_id(struct message_id *id, struct slice bytes,
                                     const struct scan_field *field,
                                     struct message_scratch *scratch)
{
    struct scan_fields fields = {.id = *field};
    struct message message;
    enum message_problem problem = message_from_scan(&message, bytes, &fields, scratch);

    *id = message.id;
    return problem;
}

const char *message_problem_text(enum message_problem problem)
{
    switch (problem) {
    case MESSAGE_OK:
        return "no problem";
    case MESSAGE_ID_TYPE:
        return "id must be a string or a number";
    case MESSAGE_ID_LENGTH:
        return "id is too long";
    case MESSAGE_SESSION_TYPE:
        return "sessionId must be a string";
    case MESSAGE_SESSION_LENGTH:
        return "sessionId is too long";
    case MESSAGE_POOL_TYPE:
        return "pool must be a string";
    case MESSAGE_POOL_LENGTH:
        return "pool is too long";
    }
    return "";
}

struct line {
    char *to;
    size_t size, len;
    bool full;
};

static void add_raw(struct line *line, struct slice text)
{
    if (line->full || line->size - line->len < text.len) {
        line->full = true;
        return;
    }
    memcpy(line->to + line->len, text.data, text.len);
    line->len += text.len;
}

static void add(struct line *line, const char *text)
{
    add_raw(line, slice_of(text, strlen(text)));
}

static void add_string(struct line *line, struct slice text)
{
    size_t room = line->size - line->len, len = 0;

    add(line, "\"");
    if (!line->full) {
        room = line->size - line->len;
        len = json_string_encode(line->to + line->len, room, text);
    }
    if (len > room)
        line->full = true;
    else
        line->len += len;
    add(line, "\"");
}

static void add_id(struct line *line, struct message_id id)
{
    if (id.type == ID_STRING)
        add_string(line, id.text);
    else if (id.type == ID_NUMBER)
        add_raw(line, id.text);
    else
        add(line, "null");
}

size_t message_write_around(char *to, size_t size, const char *before, struct message_id id,
                            const char *behind)
{
    struct line line = {to, size, 0, false};

    add(&line, before);
    add_id(&line, id);
    add(&line, behind);
    return line.full ? 0 : line.len;
}

size_t message_write_error(char *to, size_t size, struct message_id id, int code, const char *text)
{
    struct line line = {to, size, 0, false};
    char number[16];

    add(&line, "{\"jsonrpc\":\"2.0\",\"id\":");
    add_id(&line, id);
    snprintf(number, sizeof number, "%d", code);
    add(&line, ",\"error\":{\"code\":");
    add(&line, number);
    add(&line, ",\"message\":");
    add_string(&line, slice_of(text, strlen(text)));
    add(&line, "}}\n");
    return line.full ? 0 : line.len;
}
