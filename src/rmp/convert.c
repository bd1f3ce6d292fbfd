#include "build_config.h"

#include "rmp/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rmp/uuid.h"

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
        if (slice_equal(key, slice_of(keys[i], strlen(keys[i]))))
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
