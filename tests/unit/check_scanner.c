/* The scanner. A text in pieces must have the result of the whole text, however it is cut and
 * wherever it is in memory. Every piece is an allocation of its exact size, so that the sanitizers
 * see a read after its end. */
#include "build_config.h"

#include "data/json_texts.h"
#include "quick_assert.h"
#include "suite.h"
#include "turns.h"
#include "json/scanner.h"

struct result {
    enum scan_status status;
    size_t position;
    enum scan_error error;
    struct scan_fields fields;
};

/* Runs the scanner over a copy of the first `len` bytes, `shift` bytes off its alignment. */
static enum scan_status run_copy(struct scanner *scanner, const char *text, size_t len,
                                 size_t shift)
{
    char *copy = malloc(len + shift + (len + shift == 0));
    enum scan_status status;

    QUICK_ASSERT(copy != NULL);
    memcpy(copy + shift, text, len);
    status = scanner_run(scanner, copy + shift, len);
    free(copy);
    return status;
}

static struct result result_of(const struct scanner *scanner, enum scan_status status)
{
    struct result result;

    memset(&result, 0, sizeof result);
    result.status = status;
    result.position = scanner->position;
    result.error = scanner->error;
    if (status == SCAN_MESSAGE)
        result.fields = scanner->fields;
    return result;
}

static struct result scan_whole(const char *text, size_t len)
{
    struct scanner scanner;

    scanner_reset(&scanner);
    return result_of(&scanner, run_copy(&scanner, text, len, 0));
}

/* The text comes in as `first` bytes and then `step` bytes at a time. */
static struct result scan_pieces(const char *text, size_t len, size_t first, size_t step)
{
    struct scanner scanner;
    enum scan_status status;
    size_t there = first < len ? first : len, calls = 0;

    scanner_reset(&scanner);
    for (;;) {
        status = run_copy(&scanner, text, there, calls++ % 16);
        if (status != SCAN_MORE || there == len)
            return result_of(&scanner, status);
        QUICK_ASSERT(scanner.position == there);
        there = len - there < step ? len : there + step;
    }
}

static void assert_same_field(const char *name, struct scan_field a, struct scan_field b)
{
    QUICK_ASSERT_MSG(a.type == b.type && a.offset == b.offset && a.len == b.len &&
                         a.escaped == b.escaped,
                     "%s: fields differ", name);
}

static void assert_same(const char *name, struct result a, struct result b)
{
    QUICK_ASSERT_MSG(a.status == b.status, "%s: status %d, not %d", name, (int)a.status,
                     (int)b.status);
    QUICK_ASSERT_MSG(a.position == b.position, "%s: position %zu, not %zu", name, a.position,
                     b.position);
    QUICK_ASSERT_MSG(a.error == b.error, "%s: %s, not %s", name, scan_error_text(a.error),
                     scan_error_text(b.error));
    assert_same_field(name, a.fields.id, b.fields.id);
    assert_same_field(name, a.fields.session_id, b.fields.session_id);
    assert_same_field(name, a.fields.method, b.fields.method);
    assert_same_field(name, a.fields.pool, b.fields.pool);
    QUICK_ASSERT(a.fields.has_result == b.fields.has_result);
    QUICK_ASSERT(a.fields.has_error == b.fields.has_error);
}

static void assert_same_in_two_pieces(const char *name, const char *text, size_t len)
{
    struct result whole = scan_whole(text, len);

    for (size_t split = 0; split <= len; split++)
        assert_same(name, scan_pieces(text, len, split, len), whole);
}

static void assert_same_at_chunk_sizes(const char *name, const char *text, size_t len)
{
    struct result whole = scan_whole(text, len);

    for (size_t size = 1; size <= 17; size++)
        assert_same(name, scan_pieces(text, len, size, size), whole);
    assert_same(name, scan_pieces(text, len, 63, 64), whole);
}

/* For the many generated texts. */
static void assert_same_at_some_chunk_sizes(const char *name, const char *text, size_t len)
{
    static const size_t sizes[] = {1, 3, 8, 17, 64};
    struct result whole = scan_whole(text, len);

    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_same(name, scan_pieces(text, len, sizes[i], sizes[i]), whole);
}

TEST_ROWS(every_text_has_its_verdict, JSON_TEXT_COUNT)
{
    const struct json_text *text = &json_texts[row];
    struct result result = scan_whole(text->text, text->len);

    ck_assert_msg(result.error == text->error, "%s: %s, not %s", text->name,
                  scan_error_text(result.error), scan_error_text(text->error));
    ck_assert_msg(result.position == text->at, "%s: position %zu, not %zu", text->name,
                  result.position, text->at);
    ck_assert_int_eq(result.status, text->error == SCAN_ERROR_NONE ? SCAN_MESSAGE : SCAN_INVALID);
}

TEST_ROWS(every_text_is_the_same_in_two_pieces, JSON_TEXT_COUNT)
{
    const struct json_text *text = &json_texts[row];

    assert_same_in_two_pieces(text->name, text->text, text->len);
}

TEST_ROWS(every_text_is_the_same_at_all_chunk_sizes, JSON_TEXT_COUNT)
{
    const struct json_text *text = &json_texts[row];

    assert_same_at_chunk_sizes(text->name, text->text, text->len);
}

TEST_ROWS(every_text_is_the_same_with_others_after_it, JSON_TEXT_COUNT)
{
    const struct json_text *text = &json_texts[row];
    static const char after[] = "\"]}\n{\"id\":1,\"x\":\"\xFF\\\n\n";
    char *both = malloc(text->len + sizeof after);

    ck_assert_ptr_nonnull(both);
    memcpy(both, text->text, text->len);
    memcpy(both + text->len, after, sizeof after);
    assert_same(text->name, scan_whole(both, text->len + sizeof after),
                scan_whole(text->text, text->len));
    free(both);
}

TEST_ROWS(the_first_wrong_byte_is_reported_when_it_is_there, JSON_TEXT_COUNT)
{
    const struct json_text *text = &json_texts[row];

    if (text->error == SCAN_ERROR_NONE)
        return;
    ck_assert_int_eq(scan_whole(text->text, text->at).status, SCAN_MORE);
    assert_same(text->name, scan_whole(text->text, text->at + 1),
                scan_whole(text->text, text->len));
}

static unsigned next_random(unsigned *state, unsigned limit)
{
    *state = *state * 1103515245 + 12345;
    return (*state >> 8) % limit;
}

/* A text of repeated parts. */
struct builder {
    char text[16384];
    size_t len;
};

static void build(struct builder *builder, const char *part, size_t times)
{
    size_t len = strlen(part);

    for (; times > 0; times--) {
        QUICK_ASSERT(builder->len + len <= sizeof builder->text);
        memcpy(builder->text + builder->len, part, len);
        builder->len += len;
    }
}

/* The object is the first of `depth` levels; the innermost is an object too. */
static void build_deep(struct builder *builder, const char *open, const char *close, size_t depth)
{
    builder->len = 0;
    build(builder, "{\"a\":", 1);
    build(builder, open, depth - 2);
    build(builder, "{}", 1);
    build(builder, close, depth - 2);
    build(builder, "}\n", 1);
}

TEST_ROWS(depth_is_limited_for_objects_and_arrays, 4)
{
    static const char *const opens[] = {"{\"a\":", "[", "{ \"a\" : ", "[ "};
    static const char *const closes[] = {"}", "]", " }", " ]"};
    struct builder b;
    struct result result;

    build_deep(&b, opens[row], closes[row], STDIO_BUS_MAX_DEPTH);
    ck_assert_int_eq(scan_whole(b.text, b.len).status, SCAN_MESSAGE);
    assert_same_at_some_chunk_sizes("deepest", b.text, b.len);

    build_deep(&b, opens[row], closes[row], STDIO_BUS_MAX_DEPTH + 1);
    result = scan_whole(b.text, b.len);
    ck_assert_int_eq(result.status, SCAN_INVALID);
    ck_assert_int_eq(result.error, SCAN_ERROR_DEPTH);
    ck_assert_uint_eq(result.position, 5 + strlen(opens[row]) * (STDIO_BUS_MAX_DEPTH - 1));
    assert_same_at_some_chunk_sizes("too deep", b.text, b.len);
}

/* At each of the 1024 levels the scanner knows whether an object or an array is to be closed. */
TEST(each_level_is_closed_by_its_own_kind)
{
    struct builder b = {{0}, 0};
    size_t middle, depth = 1;
    unsigned random = 12345;
    char closers[STDIO_BUS_MAX_DEPTH];

    build(&b, "{\"a\":", 1);
    closers[0] = '}';
    for (; depth < STDIO_BUS_MAX_DEPTH; depth++) {
        random = random * 1103515245 + 12345;
        build(&b, random >> 16 & 1 ? "{\"a\":" : "[", 1);
        closers[depth] = random >> 16 & 1 ? '}' : ']';
    }
    build(&b, "1", 1);
    middle = b.len;
    while (depth > 0)
        b.text[b.len++] = closers[--depth];
    b.text[b.len++] = '\n';
    ck_assert_int_eq(scan_whole(b.text, b.len).status, SCAN_MESSAGE);
    assert_same_at_some_chunk_sizes("levels", b.text, b.len);
    for (size_t i = middle; i < b.len - 1; i += b.len / (size_t)turns(280)) {
        char right = b.text[i];
        struct result result;
        b.text[i] = right == '}' ? ']' : '}';
        result = scan_whole(b.text, b.len);
        ck_assert_int_eq(result.error, SCAN_ERROR_SYNTAX);
        ck_assert_uint_eq(result.position, i);
        assert_same("wrong level", scan_pieces(b.text, b.len, middle, 1), result);
        b.text[i] = right;
    }
}

/* A special byte at every place of a string that is longer than a window. */
TEST_ROWS(special_bytes_are_found_at_every_place_of_a_string, 23)
{
    static const struct {
        const char *bytes;
        size_t wrong; /* which of them; 0xFF: none */
        enum scan_error error;
    } special[] = {
        {"\\n", 0xFF, SCAN_ERROR_NONE},
        {"\\\\", 0xFF, SCAN_ERROR_NONE},
        {"\\\"", 0xFF, SCAN_ERROR_NONE},
        {"\\/", 0xFF, SCAN_ERROR_NONE},
        {"\\u20aC", 0xFF, SCAN_ERROR_NONE},
        {"\xC3\xA9", 0xFF, SCAN_ERROR_NONE},
        {"\xE2\x82\xAC", 0xFF, SCAN_ERROR_NONE},
        {"\xF0\x9F\x98\x80", 0xFF, SCAN_ERROR_NONE},
        {"\x7F", 0xFF, SCAN_ERROR_NONE},
        {"!", 0xFF, SCAN_ERROR_NONE},
        {"[", 0xFF, SCAN_ERROR_NONE},
        {"]", 0xFF, SCAN_ERROR_NONE},
        {"#", 0xFF, SCAN_ERROR_NONE},
        {"\\q", 1, SCAN_ERROR_ESCAPE},
        {"\\\n", 1, SCAN_ERROR_CUT},
        {"\x01", 0, SCAN_ERROR_CONTROL},
        {"\x1F", 0, SCAN_ERROR_CONTROL},
        {"\n", 0, SCAN_ERROR_CUT},
        {"\x80", 0, SCAN_ERROR_UTF8},
        {"\xA2", 0, SCAN_ERROR_UTF8},
        {"\xDC!", 1, SCAN_ERROR_UTF8},
        {"\xFF", 0, SCAN_ERROR_UTF8},
        {"\xE2\x82!", 2, SCAN_ERROR_UTF8},
    };

    for (size_t at = 0; at < 140; at++) {
        struct builder b = {{0}, 0};
        struct result whole;
        size_t from;
        build(&b, "{\"a\":\"", 1);
        build(&b, "x", at);
        from = b.len;
        build(&b, special[row].bytes, 1);
        build(&b, "y", 140 - at);
        build(&b, "\"}\n", 1);
        whole = scan_whole(b.text, b.len);
        ck_assert_int_eq(whole.error, special[row].error);
        ck_assert_uint_eq(whole.position,
                          whole.status == SCAN_MESSAGE ? b.len : from + special[row].wrong);
        assert_same_at_some_chunk_sizes("special", b.text, b.len);
        assert_same("special", scan_pieces(b.text, b.len, from, 1), whole);
    }
}

/* Long texts of all kinds of escapes, now and then with an error. They begin with an escape, so
 * that the loop for long texts runs from the first byte on. */
TEST_ROWS(texts_with_escapes_are_the_same_however_they_are_cut, 16)
{
    /* clang-format off */
    static const char *const parts[] = {
        "\\n", "\\n",  "\\t", "\\\"", "\\n\\n",  "\\\\",     "\\\\\\\"", "\\/",  "\\r\\n",
        "\\b", "nnn",  "ttt", "[{",  "\\u00e9", "\xC3\xA9", ",",        "",    "0",
        "\xD0\xB6\xD0\xB7", "\xE6\xB6\x88\xE6\x81\xAF", "\xF0\x9F\x9A\x8C", "\xED\x9F\xBF"};
    static const char *const wrong[] = {
        "\\q", "\\", "\"", "\x01", "\n", "\xFF", "\\u12", "\\N", "\\\xC3\xA9", "\xC0\x80",
        "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3", "\xE6\xB6", "\xF0\x9F\x9A",
        "\x80"};
    /* clang-format on */
    unsigned random = (unsigned)row;

    for (int round = 0; round < turns(200); round++) {
        struct builder b = {{0}, 0};
        unsigned flaw = next_random(&random, 60);
        build(&b, "{\"id\":\"\\n", 1);
        for (unsigned n = next_random(&random, 40); n > 0; n--) {
            build(&b, "x", next_random(&random, 4) ? next_random(&random, 70) : 0);
            build(&b, parts[next_random(&random, COUNT(parts))], 1);
            if (n == flaw)
                build(&b, wrong[next_random(&random, COUNT(wrong))], 1);
        }
        build(&b, "\",\"method\":\"", 1);
        build(&b, "x", next_random(&random, 100));
        build(&b, "\"}\n", 1);
        assert_same("escapes", scan_pieces(b.text, b.len, 1, 1), scan_whole(b.text, b.len));
        assert_same("escapes", scan_pieces(b.text, b.len, next_random(&random, 200), 100),
                    scan_whole(b.text, b.len));
    }
}

/* Each lead byte with right and wrong bytes after it, at every place of a block, has the result of
 * the text read byte by byte. */
TEST_ROWS(not_ascii_is_the_same_in_long_texts, turns(66))
{
    static const char second[] = "\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC2\xE0\xF0\xFF\"\\";
    static const char others[] = "\x80\xBF\"";
    size_t place = 130 + row * 66 / (size_t)turns(66);

    for (unsigned lead = 0x80; lead <= 0xFF; lead++) {
        for (unsigned i = 0; i < (sizeof second - 1) * 3 * 3; i++) {
            const char sequence[] = {(char)lead, second[i / 9], others[i / 3 % 3], others[i % 3],
                                     '\0'};
            struct builder b = {{0}, 0};

            build(&b, "{\"a\":\"", 1);
            build(&b, "x", place);
            build(&b, sequence, 1);
            build(&b, "y", 70);
            build(&b, "\"}\n", 1);
            assert_same("not ASCII", scan_pieces(b.text, b.len, place, 1),
                        scan_whole(b.text, b.len));
        }
    }
}

/* A key or string of every length: its quote is at every place of a window. */
TEST(strings_of_every_length_are_accepted)
{
    for (size_t len = 0; len < 140; len++) {
        struct builder b = {{0}, 0};
        build(&b, "{\"", 1);
        build(&b, "k", len);
        build(&b, "\":\"", 1);
        build(&b, "v", len);
        build(&b, "\",\"id\":\"", 1);
        build(&b, "i", len);
        build(&b, "\"}\n", 1);
        ck_assert_int_eq(scan_whole(b.text, b.len).status, SCAN_MESSAGE);
        ck_assert_uint_eq(scan_whole(b.text, b.len).fields.id.len, len);
        assert_same_at_some_chunk_sizes("lengths", b.text, b.len);
    }
}

TEST_ROWS(numbers_of_every_length_are_judged, 28)
{
    static const struct {
        const char *before, *after;
        bool valid;
    } forms[] = {
        {"", "", true},      {"-", "", true},     {"0.", "", true},        {"-0.", "e1", true},
        {"", ".5", true},    {"", "e5", true},    {"", ".25E-12", true},   {"1e", "", true},
        {"1.5e-", "", true}, {"", " ", true},     {"", "x", false},        {"0", "", false},
        {"-0", "", false},   {"", ".", false},    {"", "e", false},        {"", "e+", false},
        {"", ".e1", false},  {"", ".5.5", false}, {"1e", ".5", false},     {"", "-", false},
        {"", "e1e1", false}, {"", "e--1", false}, {"", "e+-1", false},     {"", ":", false},
        {"", "/", false},    {"", "\"", false},   {"", "\xC3\xA9", false}, {"--", "", false},
    };

    for (size_t len = 1; len < 140; len++) {
        struct builder b = {{0}, 0};
        build(&b, "{\"a\":[", 1);
        build(&b, forms[row].before, 1);
        build(&b, "7", len);
        build(&b, forms[row].after, 1);
        build(&b, ",0],\"id\":", 1);
        build(&b, forms[row].before, 1);
        build(&b, "7", len);
        build(&b, forms[row].after, 1);
        build(&b, "}\n", 1);
        ck_assert_int_eq(scan_whole(b.text, b.len).status,
                         forms[row].valid ? SCAN_MESSAGE : SCAN_INVALID);
        assert_same_at_some_chunk_sizes("number", b.text, b.len);
    }
}

struct expected {
    const char *text;
    size_t len; /* of its bytes: the value may contain NUL */
    enum scan_type type;
    bool escaped;
};

/* clang-format off */
#define NONE {"", 0, SCAN_ABSENT, false}
#define VALUE(type, text) {text, sizeof(text) - 1, SCAN_##type, false}
#define ESCAPED(text) {text, sizeof(text) - 1, SCAN_STRING, true}
/* clang-format on */
/* Longer than a window. */
#define LONG_TEXT                                                                                  \
    "and so on, and so on, and so on, and so on, and so on, and so on, and so on, and so on, and "
#define LONG_ESCAPED LONG_TEXT LONG_TEXT LONG_TEXT "\\n" LONG_TEXT

static const struct {
    const char *text;
    struct expected id, session_id, method, pool;
    bool has_result, has_error;
} field_tests[] = {
    {"{}\n", NONE, NONE, NONE, NONE, false, false},
    {" \t{\"jsonrpc\":\"2.0\",\"id\":17,\"method\":\"m\",\"params\":{\"id\":2},"
     "\"sessionId\":\"s\"}\n",
     VALUE(NUMBER, "17"), VALUE(STRING, "s"), VALUE(STRING, "m"), NONE, false, false},
    {"{\"id\":\"a b\",\"result\":{\"error\":1,\"pool\":2}}\n", VALUE(STRING, "a b"), NONE, NONE,
     NONE, true, false},
    {"{\"id\":-1.5e+3 ,\"error\":{\"result\":1}}\n", VALUE(NUMBER, "-1.5e+3"), NONE, NONE, NONE,
     false, true},
    {"{\"result\":null,\"error\":null}\n", NONE, NONE, NONE, NONE, true, true},
    {"{\"pool\":\"p\",\"method\":\"\",\"id\":0}\n", VALUE(NUMBER, "0"), NONE, VALUE(STRING, ""),
     VALUE(STRING, "p"), false, false},
    {"{\"id\":true,\"sessionId\":false,\"method\":null,\"pool\":1}\n", VALUE(OTHER, "true"),
     VALUE(OTHER, "false"), VALUE(NULL, "null"), VALUE(NUMBER, "1"), false, false},
    {"{\"id\":[1,{\"id\":2}],\"sessionId\":{\"method\":[\"id\"]},\"pool\":[ ],\"method\":{}}\n",
     VALUE(OTHER, "[1,{\"id\":2}]"), VALUE(OTHER, "{\"method\":[\"id\"]}"), VALUE(OTHER, "{}"),
     VALUE(OTHER, "[ ]"), false, false},
    {"{\"\\u0069\\u0064\":1,\"\\u0073essionId\":\"\\u0073\",\"meth\\u006fd\":\"a\\\"b\"}\n",
     VALUE(NUMBER, "1"), ESCAPED("\\u0073"), ESCAPED("a\\\"b"), NONE, false, false},
    {"{\"r\\u0065sult\":1,\"erro\\u0072\":2,\"\\u0070\\u006F\\u006f\\u006C\":\"p\"}\n", NONE, NONE,
     NONE, VALUE(STRING, "p"), true, true},
    {"{\"\\u0073\\u0065\\u0073\\u0073\\u0069\\u006f\\u006e\\u0049\\u0064\":\"s\"}\n", NONE,
     VALUE(STRING, "s"), NONE, NONE, false, false},
    {"{\"id\":1,\"id\":\"two\"}\n", VALUE(STRING, "two"), NONE, NONE, NONE, false, false},
    {"{\"id\":\"\\n\",\"id\":\"n\"}\n", VALUE(STRING, "n"), NONE, NONE, NONE, false, false},
    {"{\"id\":\"n\",\"id\":\"\\n\"}\n", ESCAPED("\\n"), NONE, NONE, NONE, false, false},
    {"{\"id\":1,\"id\":null}\n", VALUE(NULL, "null"), NONE, NONE, NONE, false, false},
    {"{\"id\":null,\"\\u0069d\":1}\n", VALUE(NUMBER, "1"), NONE, NONE, NONE, false, false},
    {"{\"id\":\"\\n\",\"id\":[]}\n", VALUE(OTHER, "[]"), NONE, NONE, NONE, false, false},
    {"{\"id\":1,\"x\":{\"id\":2},\"y\":[{\"id\":3}]}\n", VALUE(NUMBER, "1"), NONE, NONE, NONE,
     false, false},
    {"{\"ID\":1,\"Id\":2,\"id \":3,\"i\":4,\"d\":5,\"idx\":6,\"\\u0069e\":7,\"\\\\id\":8}\n", NONE,
     NONE, NONE, NONE, false, false},
    {"{\"sessionID\":1,\"session_id\":2,\"sessionid\":3,\"sessionIdx\":4,\"results\":5}\n", NONE,
     NONE, NONE, NONE, false, false},
    {"{\"methods\":1,\"metho\":2,\"errors\":3,\"erro\":4,\"pools\":5,\"poo\":6,\"\":7}\n", NONE,
     NONE, NONE, NONE, false, false},
    {"{\"id\\u0000\":1,\"sessionId\\u0000\":2,\"sessionIdsessionIdsession\\u0049d\":3}\n", NONE,
     NONE, NONE, NONE, false, false},
    {"{\"a\":\"id\",\"b\":[\"id\",1],\"c\":\"method\"}\n", NONE, NONE, NONE, NONE, false, false},
    {"{\"a\":[\"" LONG_ESCAPED "\"],\"sessionId\":\"" LONG_ESCAPED "\",\"id\":\"" LONG_TEXT "\"}\n",
     VALUE(STRING, LONG_TEXT), ESCAPED(LONG_ESCAPED), NONE, NONE, false, false},
};

static void assert_field(const char *text, struct scan_field field, struct expected expected)
{
    ck_assert_int_eq(field.type, expected.type);
    if (field.type == SCAN_ABSENT)
        return;
    ck_assert_int_eq(field.escaped, expected.escaped);
    ck_assert_uint_eq(field.len, expected.len);
    ck_assert_mem_eq(text + field.offset, expected.text, expected.len);
}

TEST_ROWS(routing_fields_are_found, COUNT(field_tests))
{
    const char *text = field_tests[row].text;
    struct result result = scan_whole(text, strlen(text));

    ck_assert_int_eq(result.status, SCAN_MESSAGE);
    assert_field(text, result.fields.id, field_tests[row].id);
    assert_field(text, result.fields.session_id, field_tests[row].session_id);
    assert_field(text, result.fields.method, field_tests[row].method);
    assert_field(text, result.fields.pool, field_tests[row].pool);
    ck_assert_int_eq(result.fields.has_result, field_tests[row].has_result);
    ck_assert_int_eq(result.fields.has_error, field_tests[row].has_error);
    assert_same_in_two_pieces(text, text, strlen(text));
    assert_same_at_chunk_sizes(text, text, strlen(text));
}

TEST(blank_lines_are_blank)
{
    static const char *const blanks[] = {"\n", "\r\n", " \n", " \t\r \n", "\n\n", "\n{}\n", "\nx"};

    for (size_t i = 0; i < COUNT(blanks); i++) {
        struct result result = scan_whole(blanks[i], strlen(blanks[i]));
        ck_assert_int_eq(result.status, SCAN_BLANK);
        ck_assert_uint_eq(result.position, strcspn(blanks[i], "\n") + 1);
        assert_same_in_two_pieces("blank", blanks[i], strlen(blanks[i]));
    }
}

TEST(no_bytes_are_no_error)
{
    struct scanner scanner;

    scanner_reset(&scanner);
    ck_assert_int_eq(scanner_run(&scanner, NULL, 0), SCAN_MORE);
    ck_assert_uint_eq(scanner.position, 0);
    ck_assert_int_eq(run_copy(&scanner, "{\"id\":1", 7, 0), SCAN_MORE);
    ck_assert_int_eq(run_copy(&scanner, "{\"id\":1", 7, 0), SCAN_MORE);
    ck_assert_uint_eq(scanner.position, 7);
    ck_assert_int_eq(run_copy(&scanner, "{\"id\":1}\n", 9, 0), SCAN_MESSAGE);
}

TEST(fields_stay_until_the_next_run_and_not_longer)
{
    struct scanner scanner;

    scanner_reset(&scanner);
    ck_assert_int_eq(run_copy(&scanner, "{\"id\":1,\"result\":2}\n", 20, 0), SCAN_MESSAGE);
    scanner_reset(&scanner);
    ck_assert_int_eq(scanner.fields.id.type, SCAN_NUMBER);
    ck_assert(scanner.fields.has_result);
    ck_assert_int_eq(run_copy(&scanner, "{}\n", 3, 0), SCAN_MESSAGE);
    ck_assert_int_eq(scanner.fields.id.type, SCAN_ABSENT);
    ck_assert(!scanner.fields.has_result);
}

TEST_ROWS(a_reset_forgets_the_error, JSON_TEXT_COUNT)
{
    const struct json_text *text = &json_texts[row];
    struct scanner scanner;

    scanner_reset(&scanner);
    run_copy(&scanner, text->text, text->len - 1, 0);
    scanner_reset(&scanner);
    ck_assert_int_eq(run_copy(&scanner, "{\"id\":\"a\"}\n", 11, 0), SCAN_MESSAGE);
    ck_assert_int_eq(scanner.error, SCAN_ERROR_NONE);
    ck_assert_uint_eq(scanner.position, 11);
    ck_assert_uint_eq(scanner.fields.id.offset, 7);
    ck_assert_uint_eq(scanner.fields.id.len, 1);
}

/* Random changes to the texts. */
TEST_ROWS(damaged_texts_are_the_same_however_they_are_cut, 16)
{
    static const char bytes[] = "{}[]:,\"\\ \t\r\n0123456789.eE+-truefalsn/bu\x00\x01\x1F\x7F"
                                "\x80\xBF\xC2\xE0\xED\xF0\xF4\xFF";
    unsigned random = (unsigned)row;
    char text[512];

    for (int round = 0; round < turns(100); round++) {
        const struct json_text *from = &json_texts[next_random(&random, JSON_TEXT_COUNT)];
        size_t len = from->len < sizeof text ? from->len : sizeof text;
        memcpy(text, from->text, len);
        for (unsigned n = 1 + next_random(&random, 3); n > 0; n--)
            text[next_random(&random, (unsigned)len)] =
                bytes[next_random(&random, sizeof bytes - 1)];
        for (int cuts = 0; cuts < 8; cuts++) {
            size_t first = next_random(&random, (unsigned)len + 1);
            size_t step = 1 + next_random(&random, 100);
            assert_same(from->name, scan_pieces(text, len, first, step), scan_whole(text, len));
        }
        assert_same(from->name, scan_pieces(text, len, 1, 1), scan_whole(text, len));
    }
}

TEST(errors_have_different_texts)
{
    for (int i = SCAN_ERROR_NONE; i <= SCAN_ERROR_DEPTH; i++) {
        ck_assert_str_ne(scan_error_text((enum scan_error)i), "");
        for (int j = SCAN_ERROR_NONE; j < i; j++)
            ck_assert_str_ne(scan_error_text((enum scan_error)i),
                             scan_error_text((enum scan_error)j));
    }
}

TEST(a_scanner_is_small)
{
    ck_assert_uint_le(sizeof(struct scanner), 300);
}

WITHOUT_FORK
