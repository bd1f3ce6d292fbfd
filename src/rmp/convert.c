#include "build_config.h"

#include "rmp/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "rmp/frame.h"
#include "json/string.h"

#define EXACT_MAX ((uint64_t)1 << 53) /* from here on a double may be another integer */

/* --- from MsgPack to JSON --- */

void convert_add_base64(struct json_text *text, struct slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789+/=";
    const unsigned char *p = (const unsigned char *)bytes.data;

    for (size_t left = bytes.len; left > 0; p += 3) {
        unsigned group = (unsigned)p[0] << 16 | (left > 1 ? (unsigned)p[1] << 8 : 0) |
                         (left > 2 ? p[2] : 0);
        const char quad[4] = {digits[group >> 18], digits[group >> 12 & 63],
                              digits[left > 1 ? group >> 6 & 63 : 64],
                              digits[left > 2 ? group & 63 : 64]};

        json_text_add(text, slice_of(quad, sizeof quad));
        left -= left < 3 ? left : 3;
    }
}

static bool is_exact(uint64_t magnitude)
{
    return magnitude < EXACT_MAX;
}

static void add_integer(struct json_text *text, const struct msgpack_value *value, bool quoted)
{
    bool negative = value->type == MSGPACK_INT;
    uint64_t magnitude = negative ? (uint64_t)0 - (uint64_t)value->as.sint : value->as.uint;
    const char *quote = quoted || !is_exact(magnitude) ? "\"" : "";

    json_text_format(text, "%s%s%llu%s", quote, negative ? "-" : "", (unsigned long long)magnitude,
                     quote);
}

/* The shortest of the usual precisions that reads back as the same number. */
static void add_real(struct json_text *text, double real)
{
    char shown[32];

    if (!isfinite(real)) {
        json_text_literal(text, "null");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        double back;

        snprintf(shown, sizeof shown, "%.*g", precision, real);
        back = strtod(shown, NULL);
        if (!(back < real) && !(back > real))
            break;
    }
    json_text_literal(text, shown);
}

static void add_bin(struct json_text *text, struct slice bytes, bool is_id)
{
    char uuid[RMP_UUID_LEN + 1];

    json_text_literal(text, "\"");
    if (is_id && bytes.len == RMP_ID_LEN)
        json_text_literal(text, rmp_uuid_write(uuid, rmp_id_read(bytes.data)));
    else
        convert_add_base64(text, bytes);
    json_text_literal(text, "\"");
}

static void add_ext(struct json_text *text, const struct msgpack_value *value)
{
    json_text_format(text, "{\"ext\":%d,\"data\":\"", value->ext_type);
    convert_add_base64(text, value->bytes);
    json_text_literal(text, "\"}");
}

bool convert_names_id(struct slice key)
{
    static const char *const keys[] = {"trace_id", "request_id", "opening_id", "run_id", "span_id"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (slice_is(key, keys[i]))
            return true;
    }
    return false;
}

static void add_scalar(struct json_text *text, const struct msgpack_value *value, bool is_id)
{
    switch (value->type) {
    case MSGPACK_NIL:
        json_text_literal(text, "null");
        break;
    case MSGPACK_BOOL:
        json_text_literal(text, value->as.boolean ? "true" : "false");
        break;
    case MSGPACK_UINT:
    case MSGPACK_INT:
        add_integer(text, value, false);
        break;
    case MSGPACK_FLOAT:
        add_real(text, value->as.real);
        break;
    case MSGPACK_STR:
        json_text_string(text, value->bytes);
        break;
    case MSGPACK_BIN:
        add_bin(text, value->bytes, is_id);
        break;
    case MSGPACK_EXT:
        add_ext(text, value);
        break;
    case MSGPACK_ARRAY:
    case MSGPACK_MAP:
        break;
    }
}

/* Adds the key of a pair and its colon. *is_id: whether the value is an id. */
static bool add_key(struct json_text *text, struct slice *input, bool *is_id)
{
    struct msgpack_value key;

    if (!msgpack_read(input, &key))
        return false;
    *is_id = key.type == MSGPACK_STR && convert_names_id(key.bytes);
    if (key.type == MSGPACK_STR)
        json_text_string(text, key.bytes);
    else if (key.type == MSGPACK_UINT || key.type == MSGPACK_INT)
        add_integer(text, &key, true);
    else if (key.type == MSGPACK_BOOL)
        json_text_literal(text, key.as.boolean ? "\"true\"" : "\"false\"");
    else
        return false;
    json_text_literal(text, ":");
    return true;
}

static bool add_value(struct json_text *text, struct slice *input, bool is_id, unsigned depth)
{
    struct msgpack_value value;
    bool is_map;

    if (!msgpack_read(input, &value))
        return false;
    is_map = value.type == MSGPACK_MAP;
    if (!is_map && value.type != MSGPACK_ARRAY) {
        add_scalar(text, &value, is_id);
        return true;
    }
    if (depth == 0)
        return false;
    json_text_literal(text, is_map ? "{" : "[");
    for (uint32_t i = 0; i < value.count; i++) {
        bool names = false;

        if (i > 0)
            json_text_literal(text, ",");
        if ((is_map && !add_key(text, input, &names)) || !add_value(text, input, names, depth - 1))
            return false;
    }
    json_text_literal(text, is_map ? "}" : "]");
    return true;
}

bool convert_to_json(struct json_text *text, struct slice msgpack)
{
    return add_value(text, &msgpack, false, MSGPACK_MAX_DEPTH) && msgpack.len == 0;
}

/* --- from JSON to MsgPack --- */

/* The JSON is valid: each step looks at no more than it needs. MsgPack has the number of elements
 * before them, so they are counted first, for all arrays and objects in the order of their opening
 * brackets. */
struct counts {
    uint32_t *items;
    size_t len, capacity;
};

struct conversion {
    const char *at, *end;
    const struct counts *counts;
    size_t next; /* of the counts */
    bool is_id;  /* the value that follows is an id */
    char *decoded;
    size_t decoded_room;
    bool failed; /* out of memory */
};

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* The closing quote of the string whose opening quote is at `at`. */
static const char *closing_quote(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        if (*at == '\\')
            at++;
    }
    return at;
}

/* --- counting --- */

static int open_count(struct counts *counts, bool empty)
{
    uint32_t *items = array_grow(counts->items, &counts->capacity, counts->len + 1, sizeof *items);

    if (items == NULL)
        return STDIO_BUS_ERR;
    counts->items = items;
    items[counts->len++] = empty ? 0 : 1;
    return STDIO_BUS_OK;
}

static int count_elements(struct counts *counts, struct slice json)
{
    const char *at = json.data, *end = json.data + json.len, *inner;
    size_t open[MSGPACK_MAX_DEPTH] = {0};
    unsigned depth = 0;

    for (; at < end; at++) {
        if (*at == '"') {
            at = closing_quote(at, end);
        } else if (*at == '{' || *at == '[') {
            if (depth == MSGPACK_MAX_DEPTH)
                return STDIO_BUS_EINVAL;
            open[depth++] = counts->len;
            inner = skip_space(at + 1, end);
            if (open_count(counts, inner < end && (*inner == '}' || *inner == ']')) != STDIO_BUS_OK)
                return STDIO_BUS_ERR;
        } else if (depth > 0 && (*at == '}' || *at == ']')) {
            depth--;
        } else if (depth > 0 && *at == ',') {
            counts->items[open[depth - 1]]++;
        }
    }
    return STDIO_BUS_OK;
}

/* --- writing --- */

/* A surrogate alone is no character: U+FFFD, which is as long. */
static void replace_surrogates(char *text, size_t len)
{
    static const char replacement[3] = {'\xEF', '\xBF', '\xBD'};

    for (size_t i = 0; i + 2 < len; i++) {
        if ((unsigned char)text[i] == 0xED && (unsigned char)text[i + 1] >= 0xA0)
            memcpy(text + i, replacement, sizeof replacement);
    }
}

/* The text of the string whose opening quote is at conversion->at, which is moved past it. */
static struct slice read_string(struct conversion *conversion)
{
    const char *start = conversion->at + 1, *close = closing_quote(conversion->at, conversion->end);
    struct slice raw = slice_of(start, (size_t)(close - start));
    char *decoded;

    conversion->at = close + 1;
    if (raw.len == 0 || memchr(raw.data, '\\', raw.len) == NULL)
        return raw;
    decoded = array_grow(conversion->decoded, &conversion->decoded_room, raw.len, 1);
    if (decoded == NULL) {
        conversion->failed = true;
        return slice_of("", 0);
    }
    conversion->decoded = decoded;
    raw.len = json_string_decode(decoded, raw.len, raw);
    raw.data = decoded;
    replace_surrogates(decoded, raw.len);
    return raw;
}

/* False: the text is no integer that fits into 64 bits. */
static bool read_integer(struct slice text, uint64_t *integer)
{
    *integer = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';

        if (digit > 9 || *integer > (UINT64_MAX - digit) / 10)
            return false;
        *integer = *integer * 10 + digit;
    }
    return text.len > 0;
}

static void put_id(struct msgpack_writer *writer, struct slice text)
{
    char bytes[RMP_ID_LEN];
    struct rmp_id id;
    uint64_t integer;

    if (rmp_uuid_read(text, &id)) {
        rmp_id_write(bytes, id);
        msgpack_put_bin(writer, slice_of(bytes, sizeof bytes));
    } else if (read_integer(text, &integer)) {
        msgpack_put_uint(writer, integer);
    } else {
        msgpack_put_str(writer, text);
    }
}

static void put_string(struct conversion *conversion, struct msgpack_writer *writer)
{
    struct slice text = read_string(conversion);
    const char *after = skip_space(conversion->at, conversion->end);
    bool is_key = after < conversion->end && *after == ':';

    if (conversion->is_id && !is_key)
        put_id(writer, text);
    else
        msgpack_put_str(writer, text);
    conversion->is_id = is_key && convert_names_id(text);
}

static bool is_of_number(char c)
{
    return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

static void put_number(struct conversion *conversion, struct msgpack_writer *writer)
{
    const char *start = conversion->at, *end = conversion->end;
    bool negative = *start == '-';
    const char *digits = start + negative, *at = digits;
    uint64_t integer;

    while (at < end && is_of_number(*at))
        at++;
    conversion->at = at;
    if (!read_integer(slice_of(digits, (size_t)(at - digits)), &integer) ||
        (negative && integer > (uint64_t)INT64_MAX))
        msgpack_put_double(writer, strtod(start, NULL));
    else if (negative)
        msgpack_put_int(writer, -(int64_t)integer);
    else
        msgpack_put_uint(writer, integer);
}

static void put_literal(struct conversion *conversion, struct msgpack_writer *writer)
{
    char first = *conversion->at;

    conversion->at += first == 'f' ? 5 : 4;
    if (first == 'n')
        msgpack_put_nil(writer);
    else
        msgpack_put_bool(writer, first == 't');
}

static void put_all(struct conversion *conversion, struct msgpack_writer *writer)
{
    while (conversion->at < conversion->end) {
        char c = *conversion->at;
        bool is_value = true;

        if (c == '"') {
            put_string(conversion, writer);
            continue;
        }
        if (c == '{' || c == '[') {
            const struct counts *counts = conversion->counts;
            uint32_t count = conversion->next < counts->len ? counts->items[conversion->next] : 0;

            conversion->next++;
            conversion->at++;
            if (c == '{')
                msgpack_put_map(writer, count);
            else
                msgpack_put_array(writer, count);
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            put_number(conversion, writer);
        } else if (c == 't' || c == 'f' || c == 'n') {
            put_literal(conversion, writer);
        } else { /* between values */
            conversion->at++;
            is_value = false;
        }
        if (is_value)
            conversion->is_id = false;
    }
}

/* Writes into the room; returns the length that is needed, or 0 if out of memory. */
static size_t put_json(struct slice json, const struct counts *counts, char *to, size_t size)
{
    struct conversion conversion = {.at = json.data, .end = json.data + json.len, .counts = counts};
    struct msgpack_writer writer = {.to = to, .size = size};

    put_all(&conversion, &writer);
    free(conversion.decoded);
    return conversion.failed ? 0 : writer.len;
}

int convert_to_msgpack(struct slice json, char **msgpack, size_t *len)
{
    struct counts counts = {.items = NULL};
    int status = count_elements(&counts, json);

    if (status == STDIO_BUS_OK) {
        *len = put_json(json, &counts, NULL, 0);
        *msgpack = *len > 0 ? malloc(*len) : NULL;
        if (*msgpack == NULL || put_json(json, &counts, *msgpack, *len) == 0)
            status = STDIO_BUS_ERR;
        if (status != STDIO_BUS_OK && *msgpack != NULL)
            free(*msgpack);
    }
    free(counts.items);
    return status;
}

/* --- looking into an object --- */

/* The end of the value at `at`: the comma or bracket after it. */
static const char *value_end(const char *at, const char *end)
{
    unsigned depth = 0;

    for (; at < end; at++) {
        if (*at == '"')
            at = closing_quote(at, end);
        else if (*at == '{' || *at == '[')
            depth++;
        else if (depth == 0 && (*at == ',' || *at == '}' || *at == ']'))
            break;
        else if (*at == '}' || *at == ']')
            depth--;
    }
    return at;
}

static struct slice trimmed(const char *start, const char *end)
{
    while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n' || end[-1] == '\r'))
        end--;
    return slice_of(start, (size_t)(end - start));
}

bool convert_find(struct slice json, const char *key, struct slice *value)
{
    const char *end = json.data + json.len, *at = skip_space(json.data, end);
    bool found = false;

    if (at == end || *at != '{')
        return false;
    for (at = skip_space(at + 1, end); at < end && *at == '"'; at = skip_space(at, end)) {
        struct slice name = slice_of(at + 1, (size_t)(closing_quote(at, end) - at - 1));
        const char *start = skip_space(name.data + name.len + 1, end);

        start = skip_space(start + 1, end); /* after the colon */
        at = value_end(start, end);
        if (slice_is(name, key)) {
            *value = trimmed(start, at);
            found = true;
        }
        if (at < end)
            at++; /* the comma */
    }
    return found;
}
