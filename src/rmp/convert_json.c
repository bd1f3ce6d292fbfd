#include "build_config.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "rmp/convert.h"
#include "rmp/uuid.h"
#include "json/string.h"

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
        if (slice_equal(name, slice_of(key, strlen(key)))) {
            *value = trimmed(start, at);
            found = true;
        }
        if (at < end)
            at++; /* the comma */
    }
    return found;
}
