/* The inside of JSON strings. */
#include "build_config.h"

#include "suite.h"
#include "json/string.h"

struct pair {
    const char *raw;
    size_t raw_len;
    const char *decoded;
    size_t decoded_len;
};

#define PAIR(raw, decoded)                                                                         \
    {                                                                                              \
        raw, sizeof(raw) - 1, decoded, sizeof(decoded) - 1                                         \
    }

static const struct pair decoding[] = {
    PAIR("", ""),
    PAIR("plain", "plain"),
    PAIR("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"),
    PAIR("a\\nb\\n", "a\nb\n"),
    PAIR("\\u0041\\u0062", "Ab"),
    PAIR("\\u0000", "\0"),
    PAIR("x\\u0000y", "x\0y"),
    PAIR("\\u007f\\u0080", "\x7F\xC2\x80"),
    PAIR("\\u07ff\\u0800", "\xDF\xBF\xE0\xA0\x80"),
    PAIR("\\uABCD\\uabcd", "\xEA\xAF\x8D\xEA\xAF\x8D"),
    PAIR("\\uffff", "\xEF\xBF\xBF"),
    PAIR("\\ud83d\\ude00", "\xF0\x9F\x98\x80"),
    PAIR("\\uD800\\uDC00", "\xF0\x90\x80\x80"),
    PAIR("\\udbff\\udfff", "\xF4\x8F\xBF\xBF"),
    PAIR("\\ud83d", "\xED\xA0\xBD"),
    PAIR("\\ude00", "\xED\xB8\x80"),
    PAIR("\\ude00\\ud83d", "\xED\xB8\x80\xED\xA0\xBD"),
    PAIR("\\ud83d\\ud83d\\ude00", "\xED\xA0\xBD\xF0\x9F\x98\x80"),
    PAIR("\\ud83dx", "\xED\xA0\xBDx"),
    PAIR("\\ud83d\\n", "\xED\xA0\xBD\n"),
    PAIR("\\ud83d\\u0041", "\xED\xA0\xBD"
                           "A"),
    PAIR("\\ud83d\\\\ude00", "\xED\xA0\xBD\\ude00"),
    PAIR("\xC3\xA9\\u00e9\xC3\xA9", "\xC3\xA9\xC3\xA9\xC3\xA9"),
};

static const struct pair encoding[] = {
    PAIR("", ""),
    PAIR("plain /", "plain /"),
    PAIR("\\\"\\\\\\b\\f\\n\\r\\t", "\"\\\b\f\n\r\t"),
    PAIR("\\u0000\\u0001\\u001f", "\0\x01\x1F"),
    PAIR("\x7F", "\x7F"),
    PAIR("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
    PAIR("\\ud83d", "\xED\xA0\xBD"),
    PAIR("\\ude00\\ud83d", "\xED\xB8\x80\xED\xA0\xBD"),
    PAIR("\\ud800\\udbff\\udc00\\udfff", "\xED\xA0\x80\xED\xAF\xBF\xED\xB0\x80\xED\xBF\xBF"),
    PAIR("\xED\x9F\xBF", "\xED\x9F\xBF"),
    PAIR("a\\ufffdb", "a\xFF"
                      "b"),
    PAIR("\\ufffd\\ufffd", "\xC0\xAF"),
    PAIR("\\ufffd", "\xC3"),
    PAIR("\\ufffd\\ufffd", "\xED\xA0"),
    PAIR("\\ufffd\\ufffdx", "\xE2\x82x"),
    PAIR("\\ufffd\\ufffd\\ufffd\\ufffd", "\xF5\x80\x80\x80"),
};

typedef size_t convert(char *to, size_t size, struct slice from);

/* With just enough room, and with any less. */
static void assert_converts(convert *function, const char *from, size_t from_len, const char *to,
                            size_t to_len)
{
    for (size_t size = 0; size <= to_len; size++) {
        char *input = malloc(from_len + 1), *room = malloc(size + 1);
        size_t len;
        ck_assert(input != NULL && room != NULL);
        memcpy(input, from, from_len);
        room[size] = '#';
        len = function(room, size, slice_of(input, from_len));
        ck_assert_msg(room[size] == '#', "%s: written after the end", from);
        if (size < to_len) {
            ck_assert_uint_eq(len, size + 1);
        } else {
            ck_assert_uint_eq(len, to_len);
            ck_assert_mem_eq(room, to, to_len);
        }
        free(input);
        free(room);
    }
}

TEST_ROWS(escapes_are_decoded, COUNT(decoding))
{
    const struct pair *pair = &decoding[row];

    assert_converts(json_string_decode, pair->raw, pair->raw_len, pair->decoded, pair->decoded_len);
}

/* The text between the quotes that json_output_string writes. */
static size_t encode(char *to, size_t size, struct slice text)
{
    struct json_output out = {.to = malloc(size + 3), .size = size + 2};

    ck_assert_ptr_nonnull(out.to);
    out.to[out.size] = '#';
    json_output_string(&out, text);
    ck_assert_msg(out.to[out.size] == '#', "written after the end");
    if (!out.full) {
        ck_assert_uint_ge(out.len, 2);
        ck_assert(out.to[0] == '"' && out.to[out.len - 1] == '"');
        memcpy(to, out.to + 1, out.len - 2);
    }
    free(out.to);
    return out.full ? size + 1 : out.len - 2;
}

TEST_ROWS(text_is_encoded, COUNT(encoding))
{
    const struct pair *pair = &encoding[row];

    assert_converts(encode, pair->decoded, pair->decoded_len, pair->raw, pair->raw_len);
}

TEST(empty_text_stays_empty)
{
    char room[1];

    ck_assert_uint_eq(json_string_decode(room, 0, slice_of(NULL, 0)), 0);
    ck_assert_uint_eq(encode(room, 0, slice_of(NULL, 0)), 0);
}

/* Every unit of UTF-16, decoded, encoded and decoded again, stays the same. */
TEST(every_unit_survives_both_ways)
{
    for (unsigned unit = 0; unit <= 0xFFFF; unit++) {
        char raw[8], decoded[8], encoded[8], again[8];
        size_t len, encoded_len, again_len;
        snprintf(raw, sizeof raw, "\\u%04X", unit);
        len = json_string_decode(decoded, sizeof decoded, slice_of(raw, 6));
        ck_assert_uint_eq(len, unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3);
        encoded_len = encode(encoded, sizeof encoded, slice_of(decoded, len));
        ck_assert_uint_le(encoded_len, sizeof encoded);
        again_len = json_string_decode(again, sizeof again, slice_of(encoded, encoded_len));
        ck_assert(slice_equal(slice_of(again, again_len), slice_of(decoded, len)));
    }
}
