#include "build_config.h"

#include "json/document.h"

#include "base/error.h"
#include "suite.h"

static struct document document;
static struct document_error error;
static char *source;

static void forget(void)
{
    document_free(&document);
    free(source);
    source = NULL;
}

/* Reads a copy that is exactly as long as the text, so that a sanitizer sees a read after its
 * end. */
static int read_bytes(const char *text, size_t len)
{
    forget();
    source = malloc(len > 0 ? len : 1);
    ck_assert_ptr_nonnull(source);
    memcpy(source, text, len);
    return document_read(&document, slice_of(source, len), &error);
}

static const struct json_value *read_ok(const char *text)
{
    int code = read_bytes(text, strlen(text));

    ck_assert_msg(code == STDIO_BUS_OK, "%s: %zu:%zu: %s: %s", text, error.at.line, error.at.column,
                  error.path, error.text);
    return document.root;
}

/* The error as "LINE:COLUMN: PATH: TEXT"; the same for text of any bytes. */
static void expect_error_bytes(const char *text, size_t len, const char *expected)
{
    char got[512];
    int code = read_bytes(text, len);

    ck_assert_msg(code == STDIO_BUS_EINVAL, "%s: accepted, not: %s", text, expected);
    ck_assert_ptr_null(document.root);
    ck_assert_ptr_null(document.strings);
    snprintf(got, sizeof(got), "%zu:%zu: %s%s%s", error.at.line, error.at.column, error.path,
             error.path[0] != '\0' ? ": " : "", error.text);
    ck_assert_str_eq(got, expected);
}

static void expect_error(const char *text, const char *expected)
{
    expect_error_bytes(text, strlen(text), expected);
}

static void expect_text(const struct json_value *value, const char *bytes, size_t len)
{
    ck_assert_int_eq(value->type, JSON_STRING);
    ck_assert_uint_eq(value->text.len, len);
    ck_assert_mem_eq(value->text.data, bytes, len + 1);
}

TEST(test_values)
{
    const struct json_value *root = read_ok(
        "{\"null\": null, \"yes\": true, \"no\": false, \"number\": -12.50e+3, \"text\": \"a b\","
        " \"empty\": \"\", \"list\": [1, [], {}], \"object\": {\"\": 0}}");
    const struct json_value *list;

    ck_assert_int_eq(root->type, JSON_OBJECT);
    ck_assert_uint_eq(root->count, 8);
    ck_assert_int_eq(document_member(root, "null")->type, JSON_NULL);
    ck_assert_int_eq(document_member(root, "yes")->type, JSON_BOOLEAN);
    ck_assert(document_member(root, "yes")->boolean);
    ck_assert_int_eq(document_member(root, "no")->type, JSON_BOOLEAN);
    ck_assert(!document_member(root, "no")->boolean);
    ck_assert_int_eq(document_member(root, "number")->type, JSON_NUMBER);
    ck_assert(slice_equal(document_member(root, "number")->text, slice_of("-12.50e+3", 9)));
    expect_text(document_member(root, "text"), "a b", 3);
    expect_text(document_member(root, "empty"), "", 0);
    list = document_member(root, "list");
    ck_assert_int_eq(list->type, JSON_ARRAY);
    ck_assert_uint_eq(list->count, 3);
    ck_assert_int_eq(list->first->next->type, JSON_ARRAY);
    ck_assert_int_eq(list->first->next->next->type, JSON_OBJECT);
    ck_assert_ptr_null(list->first->next->next->next);
    ck_assert_int_eq(document_member(document_member(root, "object"), "")->type, JSON_NUMBER);
    ck_assert_ptr_null(document_member(root, "nul"));
    ck_assert_ptr_null(document_member(root, "nulll"));
}

TEST(test_any_root)
{
    ck_assert_int_eq(read_ok("null")->type, JSON_NULL);
    ck_assert_int_eq(read_ok(" \t\r\n 7 \t\r\n ")->type, JSON_NUMBER);
    ck_assert_int_eq(read_ok("\"\"")->type, JSON_STRING);
    ck_assert_int_eq(read_ok("[]")->type, JSON_ARRAY);
    ck_assert_int_eq(read_ok("{ }")->type, JSON_OBJECT);
    ck_assert_int_eq(read_ok("[ ]")->type, JSON_ARRAY);
}

TEST(test_string_escapes)
{
    expect_text(read_ok("\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t\""), "\" \\ / \b \f \n \r \t", 15);
    expect_text(read_ok("\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\\uffff\""),
                "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbf", 13);
    expect_text(read_ok("\"\\ud800\\udc00\\udbff\\udfff\""), "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8);
    expect_text(read_ok("\"\\u007f\\u0080\\u07ff\\u0800\""), "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80", 8);
    expect_text(read_ok("\"a\\u0000b\""), "a\0b", 3);
    expect_text(read_ok("\"\x7f\""), "\x7f", 1);
}

TEST(test_utf8_accepted)
{
    static const char *const texts[] = {
        "\xc2\x80",     "\xdf\xbf",      "\xe0\xa0\x80",     "\xed\x9f\xbf",
        "\xee\x80\x80", "\xef\xbf\xbf",  "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
        "\xef\xbb\xbf", "z\xc3\xbcrich", "\xf3\xbf\xbf\xbf",
    };
    char text[16];

    for (size_t i = 0; i < COUNT(texts); i++) {
        snprintf(text, sizeof(text), "\"%s\"", texts[i]);
        expect_text(read_ok(text), texts[i], strlen(texts[i]));
    }
}

TEST(test_utf8_refused)
{
    /* clang-format off */
    static const char *const texts[] = {
        "\x80",             "\xbf",             "\xc0\xaf",         "\xc1\xbf",
        "\xc2",             "\xc2z",            "\xe0\x80\xaf",     "\xe0\x9f\xbf",
        "\xe2\x82",         "\xe2\x82z",        "\xe2z\xac",        "\xed\xa0\x80",
        "\xed\xbf\xbf",     "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98",     "\xf0\x9f\x98z",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80", "\xfe",
        "\xff",
    };
    /* clang-format on */
    char text[16], expected[64];

    for (size_t i = 0; i < COUNT(texts); i++) {
        snprintf(text, sizeof(text), "[\"\xc3\xbc%s\"]", texts[i]);
        snprintf(expected, sizeof(expected), "1:4: [0]: expected UTF-8, found byte 0x%02x",
                 (unsigned char)texts[i][0]);
        expect_error(text, expected);
        text[strlen(text) - 2] = '\0'; /* the same as the very last bytes */
        expect_error(text, expected);
    }
}

TEST(test_numbers_accepted)
{
    static const char *const texts[] = {
        "0",    "-0",       "7",    "1234567890", "0.5",
        "-0.0", "1e5",      "1E5",  "1e+05",      "1e-5",
        "0e0",  "10.01e10", "-1.5", "1e99",       "99999999999999999999999999999"};

    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct json_value *value = read_ok(texts[i]);
        ck_assert_int_eq(value->type, JSON_NUMBER);
        ck_assert(slice_equal(value->text, slice_of(texts[i], strlen(texts[i]))));
    }
}

TEST(test_numbers_refused)
{
    expect_error("01", "1:2: expected no digit after a leading 0, found '1'");
    expect_error("-01", "1:3: expected no digit after a leading 0, found '1'");
    expect_error("-", "1:2: expected a digit after '-', found the end of the file");
    expect_error("-a", "1:2: expected a digit after '-', found 'a'");
    expect_error("1.", "1:3: expected a digit after the decimal point, found the end of the file");
    expect_error("1.e5", "1:3: expected a digit after the decimal point, found 'e5'");
    expect_error("1e", "1:3: expected a digit in the exponent, found the end of the file");
    expect_error("1e+", "1:4: expected a digit in the exponent, found the end of the file");
    expect_error("1e+-1", "1:4: expected a digit in the exponent, found '-'");
    expect_error("+1", "1:1: expected a value, found '+'");
    expect_error(".5", "1:1: expected a value, found '.'");
    expect_error("0x10", "1:2: expected the end of the file, found 'x10'");
    expect_error("NaN", "1:1: expected a value, found 'NaN'");
    expect_error("-Infinity", "1:2: expected a digit after '-', found 'Infinity'");
}

TEST(test_integers)
{
    static const struct {
        const char *text;
        int64_t integer;
    } integral[] = {
        {"0", 0},
        {"-0", 0},
        {"-0.0e7", 0},
        {"1", 1},
        {"-17", -17},
        {"1.0", 1},
        {"1e0", 1},
        {"1E3", 1000},
        {"12.5e1", 125},
        {"12.50e+1", 125},
        {"1000e-3", 1},
        {"0.001e3", 1},
        {"0e999999999999999999999", 0},
        {"0.0e-999999999999999999999", 0},
        {"9223372036854775806", INT64_MAX - 1},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", INT64_MAX},
        {"-9223372036854775808", -INT64_MAX},
        {"92233720368547758070", INT64_MAX},
        {"1e18", 1000000000000000000},
        {"1e19", INT64_MAX},
        {"-1e999999999999999999999", -INT64_MAX},
    };
    static const char *const others[] = {
        "0.5",  "1.5",   "1e-1", "12e-1", "1000.5", "1e-999999999999999999999",
        "null", "\"1\"", "true", "[1]",   "{}"};
    int64_t integer;

    for (size_t i = 0; i < COUNT(integral); i++) {
        ck_assert_msg(document_integer(read_ok(integral[i].text), &integer), "%s",
                      integral[i].text);
        ck_assert_int_eq(integer, integral[i].integer);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        ck_assert_msg(!document_integer(read_ok(others[i]), &integer), "%s", others[i]);
}

TEST(test_positions)
{
    const struct json_value *root = read_ok("\n  {\t\"z\xc3\xbc\": [1,\r\n\n \"\xe2\x82\xac\", 3],"
                                            "\n\"b\" : {}}");
    const struct json_value *list = root->first, *object = list->next;

    ck_assert_uint_eq(root->at.line, 2);
    ck_assert_uint_eq(root->at.column, 3);
    ck_assert_uint_eq(list->key_at.line, 2);
    ck_assert_uint_eq(list->key_at.column, 5);
    ck_assert_uint_eq(list->at.line, 2);
    ck_assert_uint_eq(list->at.column, 11);
    ck_assert_uint_eq(list->first->at.column, 12);
    ck_assert_uint_eq(list->first->next->at.line, 4);
    ck_assert_uint_eq(list->first->next->at.column, 2);
    ck_assert_uint_eq(list->first->next->next->at.column, 7);
    ck_assert_uint_eq(object->key_at.line, 5);
    ck_assert_uint_eq(object->key_at.column, 1);
    ck_assert_uint_eq(object->at.column, 7);
}

TEST(test_paths)
{
    const struct json_value *root =
        read_ok("{\"pools\": [0, {\"max-size_1\": [[2]]}], \"a b\": {\"\": {\"c\\n\\\"\": 1}}}");
    const struct json_value *value;
    char path[DOCUMENT_PATH_MAX], small[8];

    ck_assert_uint_eq(document_path(path, sizeof(path), root), 0);
    ck_assert_str_eq(path, "");
    value = document_member(root, "pools")->first->next;
    ck_assert_uint_eq(document_path(path, sizeof(path), value), 8);
    ck_assert_str_eq(path, "pools[1]");
    value = value->first->first->first;
    ck_assert_uint_eq(document_path(path, sizeof(path), value), 25);
    ck_assert_str_eq(path, "pools[1].max-size_1[0][0]");
    ck_assert_uint_eq(document_path(small, sizeof(small), value), 7);
    ck_assert_str_eq(small, "pools[1");
    value = document_member(root, "a b")->first->first;
    document_path(path, sizeof(path), value);
    ck_assert_str_eq(path, "[\"a b\"][\"\"][\"c\\x0a\\x22\"]");
    value = read_ok("[0]");
    document_path(path, sizeof(path), value->first);
    ck_assert_str_eq(path, "[0]");
}

TEST(test_structure_errors)
{
    expect_error("", "1:1: expected a value, found the end of the file");
    expect_error(" \n\n  ", "3:3: expected a value, found the end of the file");
    expect_error("nul", "1:1: expected a value, found 'nul'");
    expect_error("truefalse", "1:1: expected a value, found 'truefalse'");
    expect_error("a_word_of_more_than_20",
                 "1:1: expected a value, found 'a_word_of_more_than_...'");
    expect_error("{} {}", "1:4: expected the end of the file, found '{'");
    expect_error("[1,2],", "1:6: expected the end of the file, found ','");
    expect_error("[1 2]", "1:4: expected ',' or ']', found '2'");
    expect_error("[1}", "1:3: expected ',' or ']', found '}'");
    expect_error("[", "1:2: [0]: expected a value, found the end of the file");
    expect_error("[,]", "1:2: [0]: expected a value, found ','");
    expect_error("[1,]", "1:4: [1]: expected a value, found ']'");
    expect_error("]", "1:1: expected a value, found ']'");
    expect_error("{1: 2}", "1:2: expected a key in double quotes or '}', found '1'");
    expect_error("{'a': 2}", "1:2: expected a key in double quotes or '}', found a single quote");
    expect_error("{\"a\": 1,}", "1:9: expected a key in double quotes after ',', found '}'");
    expect_error("{\"a\" 1}", "1:6: expected ':' after the key, found '1'");
    expect_error("{\"a\":}", "1:6: a: expected a value, found '}'");
    expect_error("{\"a\": 1 \"b\": 2}", "1:9: expected ',' or '}', found '\"'");
    expect_error("{\"a\": 1]", "1:8: expected ',' or '}', found ']'");
    expect_error("{\"a\": {\"b\": [0, {\n\"c\": x}]}}",
                 "2:6: a.b[1].c: expected a value, found 'x'");
    expect_error("{\"a\": [1, // one\n2]}",
                 "1:11: a[1]: expected a value, found '/' (JSON has no comments)");
    expect_error("\xef\xbb\xbf{}", "1:1: expected a value, found a byte order mark");
    expect_error("\xc3\xbc", "1:1: expected a value, found byte 0xc3");
    expect_error("\f1", "1:1: expected a value, found byte 0x0c");
    expect_error_bytes("[\0]", 3, "1:2: [0]: expected a value, found byte 0x00");
    expect_error_bytes("{}\0", 3, "1:3: expected the end of the file, found byte 0x00");
}

TEST(test_string_errors)
{
    expect_error("[\"ab", "1:5: [0]: expected '\"' at the end of the string, "
                          "found the end of the file");
    expect_error("[\"ab\n\"]", "1:5: [0]: expected '\"' at the end of the string, "
                               "found the end of the line");
    expect_error("\"a\r\n\"", "1:3: expected '\"' at the end of the string, "
                              "found the end of the line");
    expect_error("\"a\tb\"", "1:3: expected \\u0009 in a string, found byte 0x09");
    expect_error("\"\x1f\"", "1:2: expected \\u001f in a string, found byte 0x1f");
    expect_error_bytes("\"\0\"", 3, "1:2: expected \\u0000 in a string, found byte 0x00");
    expect_error("\"\\x41\"", "1:3: expected one of \" \\ / b f n r t u after the backslash, "
                              "found 'x41'");
    expect_error("\"\\", "1:3: expected one of \" \\ / b f n r t u after the backslash, "
                         "found the end of the file");
    expect_error_bytes("\"\\\0\"", 4,
                       "1:3: expected one of \" \\ / b f n r t u after the "
                       "backslash, found byte 0x00");
    expect_error("\"\\u12g4\"", "1:6: expected four hexadecimal digits after \\u, found 'g4'");
    expect_error("\"\\u12\"", "1:6: expected four hexadecimal digits after \\u, found '\"'");
    expect_error("\"\\U0041\"", "1:3: expected one of \" \\ / b f n r t u after the backslash, "
                                "found 'U0041'");
    expect_error("\"a\\udc00\"", "1:3: \\udc00 is a second half of a surrogate pair alone");
    expect_error("\"\\ud800\"", "1:2: \\ud800 is a first half of a surrogate pair alone");
    expect_error("\"\\ud800\\n\"", "1:2: \\ud800 is a first half of a surrogate pair alone");
    expect_error("\"\\ud800\\ud800\"", "1:2: \\ud800 is a first half of a surrogate pair alone");
    expect_error("\"\\ud800\\u0041\"", "1:2: \\ud800 is a first half of a surrogate pair alone");
    expect_error("\"\\ud800\\uzzzz\"",
                 "1:10: expected four hexadecimal digits after \\u, found 'zzzz'");
}

TEST(test_duplicate_keys)
{
    expect_error("{\"a\": 1,\n \"b\": 2, \"a\": 3}", "2:10: duplicate key \"a\", first at 1:2");
    expect_error("{\"x\": {\"id\": 1, \"\\u0069d\": 2}}",
                 "1:17: x: duplicate key \"id\", first at 1:8");
    expect_error("[{\"\": 1, \"\": 2}]", "1:10: [0]: duplicate key \"\", first at 1:3");
    read_ok("{\"a\": {\"a\": 1}, \"A\": {\"a\": 2}, \"a\\u0000\": 3}");
}

static void nest(char *to, size_t depth, char open, char close)
{
    memset(to, open, depth);
    memset(to + depth, close, depth);
    to[2 * depth] = '\0';
}

TEST(test_depth)
{
    char text[512];

    nest(text, DOCUMENT_MAX_DEPTH, '[', ']');
    read_ok(text);
    nest(text, DOCUMENT_MAX_DEPTH + 1, '[', ']');
    ck_assert_int_eq(read_bytes(text, strlen(text)), STDIO_BUS_EINVAL);
    ck_assert_str_eq(error.text, "nested deeper than 64 levels");
    ck_assert_uint_eq(error.at.column, DOCUMENT_MAX_DEPTH + 1);

    text[0] = '\0';
    for (size_t i = 0; i <= DOCUMENT_MAX_DEPTH; i++)
        memcpy(text + 5 * i, "{\"a\":", 6);
    ck_assert_int_eq(read_bytes(text, strlen(text)), STDIO_BUS_EINVAL);
    ck_assert_str_eq(error.text, "nested deeper than 64 levels");
    ck_assert_uint_eq(error.at.column, 5 * DOCUMENT_MAX_DEPTH + 1);

    read_ok("[[[]], [[]], {\"a\": {}}]"); /* closed levels do not count */
    for (size_t i = 0; i < 100; i++)
        memcpy(text + 4 * i, i == 0 ? "[[] " : ",[] ", 4);
    memcpy(text + 400, "]", 2);
    ck_assert_uint_eq(read_ok(text)->count, 100);
}

/* A document that is cut anywhere is refused; nothing after the cut is read. */
TEST(test_every_cut)
{
    static const char text[] = "{\"a\": [-1.5e+3, \"\\u00e9\\ud83d\\ude00\xe2\x82\xac\", true,"
                               " null], \"b\": {\"c\": false, \"d\": []}}";

    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        ck_assert_msg(read_bytes(text, len) == STDIO_BUS_EINVAL, "cut at %zu", len);
        ck_assert_uint_eq(error.at.line, 1);
        ck_assert_uint_le(error.at.column, len + 1);
    }
    read_ok(text);
}

TEST(test_free_of_nothing)
{
    struct document nothing;

    memset(&nothing, 0, sizeof(nothing));
    document_free(&nothing);
    ck_assert_ptr_null(nothing.root);
    ck_assert_int_eq(document_read(&nothing, slice_of(NULL, 0), &error), STDIO_BUS_EINVAL);
}

TEST(test_type_names)
{
    ck_assert_str_eq(document_type_name(JSON_NULL), "null");
    ck_assert_str_eq(document_type_name(JSON_BOOLEAN), "a boolean");
    ck_assert_str_eq(document_type_name(JSON_NUMBER), "a number");
    ck_assert_str_eq(document_type_name(JSON_STRING), "a string");
    ck_assert_str_eq(document_type_name(JSON_ARRAY), "an array");
    ck_assert_str_eq(document_type_name(JSON_OBJECT), "an object");
}

FIXTURE(NULL, forget)
