#include "build_config.h"

#include "json/message.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/number.h"
#include "json/string.h"

/* A routing field that is longer than this is too long in any case; so is a part of it. */
#define CUT_TAIL 1024

/* The bytes before `start` will be dropped: moves the id to the front if it is there. Returns its
 * length then, otherwise 0. */
static size_t keep_id(struct scan_field *id, char *message, size_t start)
{
    if (id->type == SCAN_ABSENT)
        return 0;
    if (id->offset >= start) {
        id->offset -= start;
        return 0;
    }
    if (id->len > CUT_TAIL) {
        id->len = CUT_TAIL;
        id->escaped = false;
    }
    memmove(message, message + id->offset, id->len);
    id->offset = 0;
    return id->len;
}

static size_t scanner_cut(struct scanner *scanner, char *message, size_t len)
{
    struct scan_fields *fields = &scanner->fields;
    size_t start = len - CUT_TAIL, kept;

    if (len <= SCANNER_KEPT_MAX)
        return len;
    fields->session_id.type = fields->pool.type = SCAN_ABSENT;
    fields->method.offset = fields->method.len = 0;
    kept = keep_id(&fields->id, message, start);
    /* A token that began before is no routing field, or too long for one. */
    if (scanner->token_start < start) {
        scanner->token_start = start;
        scanner->token_escaped = false;
    }
    memmove(message + kept, message + start, CUT_TAIL);
    scanner->token_start -= start - kept;
    scanner->position -= start - kept;
    return kept + CUT_TAIL;
}

/* --- the body --- */

static void reset_body(void *state, bool sized)
{
    struct scanner *scanner = state;

    scanner_reset(scanner);
    if (sized)
        scanner->form = SCAN_SIZED;
    else if (scanner->splits_arrays)
        scanner->form = SCAN_LINE_OR_ARRAY;
}

static enum body_status refuse_body(const struct scanner *scanner, struct frame *frame)
{
    /* In a sized body a newline is no end, only a wrong byte inside a token. */
    bool cut_by_newline = scanner->form == SCAN_SIZED && scanner->error == SCAN_ERROR_CUT;

    frame->problem = scan_error_text(cut_by_newline ? SCAN_ERROR_SYNTAX : scanner->error);
    return scanner->error == SCAN_ERROR_TRAILING ? BODY_TRAILING : BODY_INVALID;
}

static enum body_status run_body(void *state, struct slice input, struct frame *frame)
{
    struct scanner *scanner = state;
    enum scan_status status = scanner_run(scanner, input.data, input.len);

    if (status == SCAN_MORE)
        return BODY_MORE;
    frame->consumed = scanner->position;
    if (status == SCAN_INVALID)
        return refuse_body(scanner, frame);
    scanner_next(scanner);
    return status == SCAN_MESSAGE ? BODY_WHOLE : BODY_BLANK;
}

static enum body_status end_body(void *state, struct frame *frame)
{
    struct scanner *scanner = state;

    frame->consumed = scanner->position;
    frame->problem = "the body ends inside the JSON object";
    return scanner_end(scanner) == SCAN_MESSAGE ? BODY_WHOLE : BODY_INVALID;
}

static void mark_body(void *state, bool cut)
{
    struct scanner *scanner = state;

    scanner->fields.oddities |= cut ? SCAN_CUT : SCAN_LONG;
}

static size_t cut_body(void *state, char *body, size_t len)
{
    return scanner_cut(state, body, len);
}

const struct body_check json_body_check = {
    .reset = reset_body,
    .run = run_body,
    .end = end_body,
    .mark = mark_body,
    .cut = cut_body,
};

/* --- the routing fields --- */

/* Below this limit each integer has a double of its own. */
#define DOUBLE_EXACT 9007199254740992.0

/* The significant digits that tell any two decimals, and any two doubles, apart. */
#define DECIMAL_DIGITS 15
#define DOUBLE_DIGITS 17

#define DOUBLE_TEXT_MAX 32

/* An integer without sign, fraction and exponent, which every reader takes as it stands. */
static bool is_plain_integer(struct slice raw)
{
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.data[i] < '0' || raw.data[i] > '9')
            return false;
    }
    return true;
}

/* The fewest digits that stand for this double. */
static struct slice double_text(char to[DOUBLE_TEXT_MAX], double value)
{
    int len = 0;

    for (int digits = DECIMAL_DIGITS; digits <= DOUBLE_DIGITS; digits++) {
        len = snprintf(to, DOUBLE_TEXT_MAX, "%.*g", digits, value);
        if (strtod(to, NULL) == value)
            break;
    }
    return slice_of(to, (size_t)len);
}

/* An integer of 2 to the power of 53 or more, or a fraction. */
static struct slice number_text(char to[MESSAGE_ID_TEXT_MAX], double value)
{
    char shortest[DOUBLE_TEXT_MAX];
    struct slice text = double_text(shortest, value);
    struct decimal decimal;
    size_t len = 0, count;

    decimal_read(&decimal, text);
    if (decimal.exponent < 0) {
        memcpy(to, text.data, text.len);
        return slice_of(to, text.len);
    }
    if (decimal.negative)
        to[len++] = '-';
    count = decimal_digits(&decimal, to + len);
    len += count;
    if (decimal.exponent <= STDIO_BUS_MAX_REQUEST_ID_LEN - (int64_t)count) {
        memset(to + len, '0', (size_t)decimal.exponent);
        len += (size_t)decimal.exponent;
    } else {
        len += (size_t)snprintf(to + len, MESSAGE_ID_TEXT_MAX - len, "e%" PRId64, decimal.exponent);
    }
    return slice_of(to, len);
}

/* The text of a number that is no plain integer (see struct message_id), in `to` where it is not
 * `raw` itself. Its data is NULL when no double is as large. */
static struct slice read_number(char to[MESSAGE_ID_TEXT_MAX], struct slice raw)
{
    double value;

    if (raw.data[0] == '-' && is_plain_integer(slice_of(raw.data + 1, raw.len - 1)))
        return slice_is(raw, "-0") ? slice_of_text("0") : raw;
    memcpy(to, raw.data, raw.len);
    to[raw.len] = '\0';
    value = strtod(to, NULL);
    if (!isfinite(value))
        return slice_of(NULL, 0);
    if (value > -DOUBLE_EXACT && value < DOUBLE_EXACT && (double)(int64_t)value == value)
        return slice_of(to, (size_t)snprintf(to, MESSAGE_ID_TEXT_MAX, "%" PRId64, (int64_t)value));
    return number_text(to, value);
}

/* Leaves *id as it is where there is none. */
static inline enum message_problem read_id(struct message_id *id, struct slice bytes,
                                           const struct scan_field *field,
                                           struct message_scratch *scratch)
{
    struct slice text = {bytes.data + field->offset, field->len};

    switch (field->type) {
    case SCAN_STRING:
        if (field->escaped)
            scan_field_string(field, bytes, scratch->id, STDIO_BUS_MAX_REQUEST_ID_LEN, &text);
        if (text.len > STDIO_BUS_MAX_REQUEST_ID_LEN)
            return MESSAGE_ID_LENGTH;
        id->type = ID_STRING;
        break;
    case SCAN_NUMBER:
        if (text.len > STDIO_BUS_MAX_REQUEST_ID_LEN)
            return MESSAGE_ID_LENGTH;
        if (!is_plain_integer(text)) {
            text = read_number(scratch->id, text);
            if (text.data == NULL)
                return MESSAGE_ID_RANGE;
        }
        id->type = ID_NUMBER;
        break;
    case SCAN_OTHER:
        return MESSAGE_ID_TYPE;
    default:
        return MESSAGE_OK;
    }
    id->text = text;
    return MESSAGE_OK;
}

/* A sessionId or a pool, which is not absent. */
static enum message_problem read_name(struct slice *name, struct slice bytes,
                                      const struct scan_field *field, char *to,
                                      enum message_problem wrong_type,
                                      enum message_problem too_long)
{
    struct slice text;

    if (field->type != SCAN_STRING)
        return wrong_type;
    if (!scan_field_string(field, bytes, to, STDIO_BUS_MAX_SESSION_ID_LEN, &text))
        return too_long;
    *name = text;
    return MESSAGE_OK;
}

enum message_problem message_from_scan(struct message *message, struct slice bytes,
                                       const struct scan_fields *fields,
                                       struct message_scratch *scratch)
{
    enum message_problem problem;

    memset(message, 0, sizeof *message);
    message->bytes = bytes;
    message->fields = fields;
    message->has_result = fields->has_result;
    message->has_error = fields->has_error;
    problem = read_id(&message->id, bytes, &fields->id, scratch);
    if (problem == MESSAGE_OK && fields->session_id.type != SCAN_ABSENT)
        problem = read_name(&message->session_id, bytes, &fields->session_id, scratch->session_id,
                            MESSAGE_SESSION_TYPE, MESSAGE_SESSION_LENGTH);
    if (problem == MESSAGE_OK && fields->pool.type != SCAN_ABSENT)
        problem = read_name(&message->pool, bytes, &fields->pool, scratch->pool, MESSAGE_POOL_TYPE,
                            MESSAGE_POOL_LENGTH);
    if (problem == MESSAGE_OK && fields->method.type == SCAN_STRING)
        message->method = (struct slice){bytes.data + fields->method.offset, fields->method.len};
    return problem;
}

enum message_problem message_read_id(struct message_id *id, struct slice bytes,
                                     const struct scan_field *field,
                                     struct message_scratch *scratch)
{
    *id = (struct message_id){.type = ID_NONE};
    return read_id(id, bytes, field, scratch);
}

bool message_scan(struct scanner *scanner, struct slice text)
{
    scanner_reset(scanner);
    scanner->form = SCAN_SIZED;
    scanner->splits_arrays = false;
    return scanner_run(scanner, text.data, text.len) != SCAN_INVALID &&
           scanner_end(scanner) == SCAN_MESSAGE;
}

const char *message_problem_text(enum message_problem problem)
{
    static const char *const texts[] = {
        [MESSAGE_OK] = "no problem",
        [MESSAGE_ID_TYPE] = "id must be a string or a number",
        [MESSAGE_ID_LENGTH] = "id is too long",
        [MESSAGE_ID_RANGE] = "id is a number that is too large",
        [MESSAGE_SESSION_TYPE] = "sessionId must be a string",
        [MESSAGE_SESSION_LENGTH] = "sessionId is too long",
        [MESSAGE_POOL_TYPE] = "pool must be a string",
        [MESSAGE_POOL_LENGTH] = "pool is too long",
        [MESSAGE_TOO_LONG] = "message exceeds max_input_buffer",
    };

    return texts[problem];
}

/* --- replies --- */

static void add_text(struct json_output *out, const char *json)
{
    json_output_add(out, slice_of_text(json));
}

static void add_id(struct json_output *out, struct message_id id)
{
    if (id.type == ID_STRING)
        json_output_string(out, id.text);
    else if (id.type == ID_NUMBER)
        json_output_add(out, id.text);
    else
        add_text(out, "null");
}

size_t message_write_around(char *to, size_t size, const char *before, struct message_id id,
                            const char *after)
{
    struct json_output out = {.to = to, .size = size};

    add_text(&out, before);
    add_id(&out, id);
    add_text(&out, after);
    return out.full ? 0 : out.len;
}

size_t message_write_error_data(char *to, size_t size, struct message_id id, int code,
                                const char *text, const char *data)
{
    struct json_output out = {.to = to, .size = size};
    char number[16];

    snprintf(number, sizeof number, "%d", code);
    add_text(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    add_id(&out, id);
    add_text(&out, ",\"error\":{\"code\":");
    add_text(&out, number);
    add_text(&out, ",\"message\":");
    json_output_string(&out, slice_of_text(text));
    if (data != NULL) {
        add_text(&out, ",\"data\":");
        add_text(&out, data);
    }
    add_text(&out, "}}\n");
    return out.full ? 0 : out.len;
}

size_t message_write_error(char *to, size_t size, struct message_id id, int code, const char *text)
{
    return message_write_error_data(to, size, id, code, text, NULL);
}

/* Behind the first of these words; data NULL: there is none. */
static struct slice after_word(struct slice bytes, const char *word)
{
    size_t len = strlen(word), at;

    for (at = 0; at + len <= bytes.len; at++) {
        if (memcmp(bytes.data + at, word, len) == 0)
            return slice_of(bytes.data + at + len, bytes.len - at - len);
    }
    return slice_of(NULL, 0);
}

struct slice message_refusal_text(struct slice bytes)
{
    static const char end[] = "\"}}";
    size_t end_len = sizeof end - 1;
    struct slice text = after_word(bytes, "\"id\":null,\"error\":{\"code\":");

    if (text.data != NULL)
        text = after_word(text, "\"message\":\"");
    if (text.data == NULL)
        return text;
    text = slice_without_newline(text);
    if (text.len < end_len || memcmp(text.data + text.len - end_len, end, end_len) != 0)
        return slice_of(NULL, 0);
    text.len -= end_len;
    return text;
}
