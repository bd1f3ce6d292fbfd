/* Messages: routing fields as decoded values, and error replies. */
#include "build_config.h"

#include "suite.h"
#include "json/message.h"
#include "json/scanner.h"

/* A message with all that its slices point into. */
struct sample {
    struct message message;
    struct message_scratch scratch;
    enum message_problem problem;
    char text[2048];
};

/* `text` comes without its newline. */
static void read_sample(struct sample *sample, const char *text)
{
    struct scanner scanner;
    size_t len = strlen(text) + 1;

    ck_assert_uint_le(len, sizeof sample->text);
    memcpy(sample->text, text, len - 1);
    sample->text[len - 1] = '\n';
    scanner_reset(&scanner);
    ck_assert_msg(scanner_run(&scanner, sample->text, len) == SCAN_MESSAGE, "%s: %s", text,
                  scan_error_text(scanner.error));
    memset(&sample->message, 0xAA, sizeof sample->message);
    memset(&sample->scratch, 0xAA, sizeof sample->scratch);
    sample->problem = message_from_scan(&sample->message, slice_of(sample->text, len),
                                        &scanner.fields, &sample->scratch);
    ck_assert(sample->message.bytes.data == sample->text);
    ck_assert_uint_eq(sample->message.bytes.len, len);
}

/* A message that has nothing but the id written as `id`. */
static void read_id(struct sample *sample, const char *id)
{
    char text[1024];

    snprintf(text, sizeof text, "{\"id\":%s}", id);
    read_sample(sample, text);
}

/* Whether the slice is a part of the message itself. */
static bool is_in_place(const struct sample *sample, struct slice slice)
{
    return slice.data >= sample->text && slice.data < sample->text + sizeof sample->text;
}

static const char *repeated(char *to, char c, size_t times, const char *after)
{
    memset(to, c, times);
    memcpy(to + times, after, strlen(after) + 1);
    return to;
}

TEST(plain_fields_are_not_copied)
{
    struct sample s;

    read_sample(&s, "{\"jsonrpc\":\"2.0\",\"id\":\"req-1\",\"method\":\"tools/call\","
                    "\"sessionId\":\"s-1\",\"pool\":\"main\",\"result\":1}");
    ck_assert_int_eq(s.problem, MESSAGE_OK);
    ck_assert_int_eq(s.message.id.type, ID_STRING);
    ck_assert(slice_is(s.message.id.text, "req-1") && is_in_place(&s, s.message.id.text));
    ck_assert(slice_is(s.message.method, "tools/call") && is_in_place(&s, s.message.method));
    ck_assert(slice_is(s.message.session_id, "s-1") && is_in_place(&s, s.message.session_id));
    ck_assert(slice_is(s.message.pool, "main") && is_in_place(&s, s.message.pool));
    ck_assert(s.message.has_result && !s.message.has_error);
    ck_assert(message_is_response(&s.message));

    read_sample(&s, "{\"id\":1234567890,\"error\":{}}");
    ck_assert_int_eq(s.message.id.type, ID_NUMBER);
    ck_assert(slice_is(s.message.id.text, "1234567890") && is_in_place(&s, s.message.id.text));
    ck_assert(s.message.has_error && !s.message.has_result);
    ck_assert(message_is_response(&s.message));
}

TEST(absent_fields_are_absent)
{
    static const char *const texts[] = {
        "{}", "{\"id\":null,\"method\":null}",
        "{\"params\":{\"id\":1,\"sessionId\":\"s\",\"method\":\"m\",\"pool\":\"p\",\"result\":1}}",
        "{\"id\":1,\"id\":null,\"method\":3}"};
    struct sample s;

    for (size_t i = 0; i < COUNT(texts); i++) {
        read_sample(&s, texts[i]);
        ck_assert_int_eq(s.problem, MESSAGE_OK);
        ck_assert_int_eq(s.message.id.type, ID_NONE);
        ck_assert_ptr_null(s.message.session_id.data);
        ck_assert_ptr_null(s.message.method.data);
        ck_assert_ptr_null(s.message.pool.data);
        ck_assert(!message_is_response(&s.message));
    }
}

TEST(empty_strings_are_not_absent)
{
    struct sample s;

    read_sample(&s, "{\"id\":\"\",\"sessionId\":\"\",\"method\":\"\",\"pool\":\"\"}");
    ck_assert_int_eq(s.problem, MESSAGE_OK);
    ck_assert_int_eq(s.message.id.type, ID_STRING);
    ck_assert_uint_eq(s.message.id.text.len, 0);
    ck_assert_ptr_nonnull(s.message.id.text.data);
    ck_assert_ptr_nonnull(s.message.session_id.data);
    ck_assert_ptr_nonnull(s.message.method.data);
    ck_assert_ptr_nonnull(s.message.pool.data);
    ck_assert_uint_eq(s.message.session_id.len, 0);
}

TEST(escaped_fields_are_decoded)
{
    struct sample s;

    read_sample(&s, "{\"id\":\"a\\u0062\\n\",\"sessionId\":\"\\ud83d\\ude00\",\"method\":\"a\\/b\","
                    "\"pool\":\"\\\"p\\\"\"}");
    ck_assert_int_eq(s.problem, MESSAGE_OK);
    ck_assert(slice_is(s.message.id.text, "ab\n"));
    ck_assert(slice_is(s.message.session_id, "\xF0\x9F\x98\x80"));
    ck_assert(slice_is(s.message.method, "a\\/b"));
    ck_assert(slice_is(s.message.pool, "\"p\""));
}

/* Ids of one line are the same, those of different lines are not. */
static const char *const same_ids[][8] = {
    {"1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "100000e-5", "0.00001e5"},
    {"0", "-0", "0.0", "-0.0", "0e5", "-0e-5", "0.000e99999999999999999999", "0e-0"},
    {"2", "2.00000000000000000001", "1.99999999999999999999", "2.0000000000000001"},
    {"2.000000000000001"},
    {"-3", "-3.00000000000000000001"},
    {"4503599627370497", "4503599627370497.0000001"},
    {"-1", "-1.0", "-10e-1", "-0.1E1"},
    {"10", "1e1", "1.0e1", "1e01", "1e+0001", "0.01e3", "10.00"},
    {"12300", "123e2", "1.23e4", "12300.0", "1230000e-2"},
    {"9007199254740992", "9007199254740992.0", "9007199254740993.0", "9.007199254740993e15"},
    {"9007199254740993"},
    {"18446744073709552000", "1.8446744073709551616e19", "18446744073709551616.0"},
    {"18446744073709551616"},
    {"1e23", "9.9999999999999992e22", "100000000000000000000000"},
    {"1e200", "10e199", "1.0e200", "0.1e201", "1E+200"},
    {"-1e200", "-10e199"},
    {"12e199", "1.2e200"},
    {"1e201"},
    {"1.5", "1.50", "15e-1", "0.15E+1", "1.50000000000000000000001"},
    {"1e-1", "0.1", "0.1000000000000000055511151231257827", "0.10000000000000001"},
    {"0.1000000000000001"},
    {"5e-324", "4.9406564584124654e-324", "3e-324"},
    {"1.7976931348623157e308", "1.7976931348623158e308", "17976931348623157e292"},
    {"\"1\"", "\"\\u0031\""},
    {"\"1.0\""},
    {"\"\""},
    {"\"ab\"", "\"a\\u0062\"", "\"\\u0061b\""},
    {"\"a/b\"", "\"a\\/b\""},
    {"\"\\ud83d\\ude00\"", "\"\xF0\x9F\x98\x80\"", "\"\\uD83D\\uDE00\""},
    {"\"\\ud83d\"", "\"\\uD83D\""},
    {"\"\\ude00\""},
    {"\"\\ude00\\ud83d\""},
    {"\"\\u0000\""},
    {"\"\\u0000\\u0000\""},
    {"null"},
};

TEST_ROWS(ids_are_compared_by_value, COUNT(same_ids))
{
    struct sample a, b;

    for (size_t i = 0; i < COUNT(same_ids); i++) {
        read_id(&a, same_ids[row][0]);
        ck_assert_int_eq(a.problem, MESSAGE_OK);
        for (size_t k = 0; k < 8 && same_ids[i][k] != NULL; k++) {
            read_id(&b, same_ids[i][k]);
            ck_assert_int_eq(b.problem, MESSAGE_OK);
            ck_assert_msg(message_id_equal(a.message.id, b.message.id) == (i == (size_t)row),
                          "%s and %s", same_ids[row][0], same_ids[i][k]);
        }
    }
}

TEST(numbers_have_their_canonical_text)
{
    /* clang-format off */
    static const char *const pairs[][2] = {
        {"7", "7"},           {"-7", "-7"},         {"7.0", "7"},          {"-0", "0"},
        {"1e3", "1000"},      {"-2.50e1", "-25"},   {"1.5", "1.5"},        {"1e-2", "0.01"},
        {"1e128", "1e128"},   {"-12e300", "-12e300"}, {"100e300", "1e302"}, {"0.5E1", "5"},
        {"-1.50", "-1.5"},    {"1e-400", "0"},      {"-1e-99999999999999999999", "0"},
        {"9007199254740992.5", "9007199254740992"}, {"0.1", "0.1"}, {"-1e-7", "-1e-07"},
        {"-0.30000000000000004", "-0.30000000000000004"}, {"1e22", "10000000000000000000000"},
        {"-9007199254740993", "-9007199254740993"},
    };
    /* clang-format on */
    struct sample s;

    for (size_t i = 0; i < COUNT(pairs); i++) {
        read_id(&s, pairs[i][0]);
        ck_assert_msg(slice_is(s.message.id.text, pairs[i][1]), "%s is %.*s, not %s", pairs[i][0],
                      (int)s.message.id.text.len, s.message.id.text.data, pairs[i][1]);
    }
}

TEST(long_integers_are_written_out_up_to_the_limit)
{
    char digits[256];
    struct sample s;

    read_id(&s, "1e127");
    digits[0] = '1';
    ck_assert(slice_is(s.message.id.text, (repeated(digits + 1, '0', 127, ""), digits)));
    read_id(&s, "-1e127");
    ck_assert_uint_eq(s.message.id.text.len, 129);
    read_id(&s, digits);
    ck_assert_int_eq(s.problem, MESSAGE_OK);
    ck_assert(slice_is(s.message.id.text, digits));
    read_id(&s, "1e128");
    ck_assert(slice_is(s.message.id.text, "1e128"));

    repeated(digits, '9', 128, "");
    read_id(&s, digits);
    ck_assert(slice_is(s.message.id.text, digits));
    read_id(&s, "-1.7976931348623157e308");
    ck_assert(slice_is(s.message.id.text, "-17976931348623157e292"));
}

static void assert_id_problem(const char *id, enum message_problem problem)
{
    struct sample s;

    read_id(&s, id);
    ck_assert_msg(s.problem == problem, "%s: %s", id, message_problem_text(s.problem));
    if (problem != MESSAGE_OK)
        ck_assert_int_eq(s.message.id.type, ID_NONE);
}

TEST(ids_have_a_limit)
{
    char id[1024] = "\"";

    repeated(id + 1, 'x', 128, "\"");
    assert_id_problem(id, MESSAGE_OK);
    repeated(id + 1, 'x', 129, "\"");
    assert_id_problem(id, MESSAGE_ID_LENGTH);
    repeated(id + 1, 'x', 127, "\\n\"");
    assert_id_problem(id, MESSAGE_OK);
    repeated(id + 1, 'x', 128, "\\n\"");
    assert_id_problem(id, MESSAGE_ID_LENGTH);
    repeated(id + 1, 'x', 126, "\\u00e9\"");
    assert_id_problem(id, MESSAGE_OK);
    repeated(id + 1, 'x', 127, "\\u00e9\"");
    assert_id_problem(id, MESSAGE_ID_LENGTH);
    assert_id_problem(repeated(id, '1', 128, ""), MESSAGE_OK);
    assert_id_problem(repeated(id, '1', 129, ""), MESSAGE_ID_LENGTH);
    assert_id_problem(repeated(id, '1', 126, ".0"), MESSAGE_OK);
    assert_id_problem(repeated(id, '1', 127, ".0"), MESSAGE_ID_LENGTH);
    id[0] = '-';
    repeated(id + 1, '1', 127, "");
    assert_id_problem(id, MESSAGE_OK);
    repeated(id + 1, '1', 128, "");
    assert_id_problem(id, MESSAGE_ID_LENGTH);
}

TEST(ids_of_other_types_are_a_problem)
{
    static const char *const ids[] = {"true", "false", "{}", "[]", "[1]", "{\"id\":1}"};

    for (size_t i = 0; i < COUNT(ids); i++)
        assert_id_problem(ids[i], MESSAGE_ID_TYPE);
}

/* A worker could answer Infinity, which is not JSON. */
TEST(numbers_beyond_all_doubles_are_a_problem)
{
    static const char *const ids[] = {"1e400",
                                      "-1e400",
                                      "1e309",
                                      "1.7976931348623159e308",
                                      "1e99999999999999999999",
                                      "0.1e999999999999999999"};
    char id[256];

    for (size_t i = 0; i < COUNT(ids); i++)
        assert_id_problem(ids[i], MESSAGE_ID_RANGE);
    assert_id_problem(repeated(id, '9', 124, "e300"), MESSAGE_ID_RANGE);
    assert_id_problem("1.7976931348623158e308", MESSAGE_OK);
    assert_id_problem("0e400", MESSAGE_OK);
}

/* sessionId and pool have the same rules. */
TEST_ROWS(sessions_and_pools_have_types_and_limits, 2)
{
    static const char *const keys[] = {"sessionId", "pool"};
    static const char *const wrong[] = {"1", "null", "true", "[]", "{}", "-1.5", "[\"s\"]"};
    enum message_problem type = row == 0 ? MESSAGE_SESSION_TYPE : MESSAGE_POOL_TYPE;
    enum message_problem length = row == 0 ? MESSAGE_SESSION_LENGTH : MESSAGE_POOL_LENGTH;
    char text[1024], value[512];
    struct sample s;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        snprintf(text, sizeof text, "{\"%s\":%s,\"id\":5,\"result\":1}", keys[row], wrong[i]);
        read_sample(&s, text);
        ck_assert_int_eq(s.problem, type);
        ck_assert(slice_is(s.message.id.text, "5"));
        ck_assert(s.message.has_result);
        ck_assert_ptr_null(s.message.session_id.data);
        ck_assert_ptr_null(s.message.pool.data);
    }
    for (size_t len = 250; len < 260; len++) {
        snprintf(text, sizeof text, "{\"id\":5,\"%s\":\"%s\"}", keys[row],
                 repeated(value, 'x', len, ""));
        read_sample(&s, text);
        ck_assert_int_eq(s.problem, len <= 256 ? MESSAGE_OK : length);
        snprintf(text, sizeof text, "{\"id\":5,\"%s\":\"%s\"}", keys[row],
                 repeated(value, 'x', len - 3, "\\u20ac"));
        read_sample(&s, text);
        ck_assert_int_eq(s.problem, len <= 256 ? MESSAGE_OK : length);
        ck_assert(slice_is(s.message.id.text, "5"));
    }
}

TEST(the_first_problem_is_the_one)
{
    struct sample s;

    read_sample(&s, "{\"pool\":1,\"sessionId\":2,\"id\":[]}");
    ck_assert_int_eq(s.problem, MESSAGE_ID_TYPE);
    read_sample(&s, "{\"pool\":1,\"sessionId\":2,\"id\":3}");
    ck_assert_int_eq(s.problem, MESSAGE_SESSION_TYPE);
    read_sample(&s, "{\"pool\":1,\"sessionId\":\"2\",\"id\":3}");
    ck_assert_int_eq(s.problem, MESSAGE_POOL_TYPE);
}

TEST(problems_have_different_texts)
{
    for (int i = MESSAGE_OK; i <= MESSAGE_POOL_LENGTH; i++) {
        ck_assert_str_ne(message_problem_text((enum message_problem)i), "");
        for (int j = MESSAGE_OK; j < i; j++)
            ck_assert_str_ne(message_problem_text((enum message_problem)i),
                             message_problem_text((enum message_problem)j));
    }
    ck_assert_str_eq(message_problem_text(MESSAGE_ID_TYPE), "id must be a string or a number");
}

static struct message_id id_of(enum id_type type, const char *text)
{
    struct message_id id = {type, slice_of(text, strlen(text))};

    return id;
}

TEST_ROWS(error_replies_are_json, 5)
{
    static const struct {
        enum id_type type;
        const char *id;
        int code;
        const char *text, *line;
    } replies[] = {
        {ID_NONE, "", JSONRPC_PARSE_ERROR, "not valid JSON",
         "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":"
         "\"not valid JSON\"}}\n"},
        {ID_NUMBER, "17", JSONRPC_SERVER_ERROR, "",
         "{\"jsonrpc\":\"2.0\",\"id\":17,\"error\":{\"code\":-32000,\"message\":\"\"}}\n"},
        {ID_STRING, "17", JSONRPC_INVALID_PARAMS, "no pool \"\\\"",
         "{\"jsonrpc\":\"2.0\",\"id\":\"17\",\"error\":{\"code\":-32602,\"message\":"
         "\"no pool \\\"\\\\\\\"\"}}\n"},
        {ID_STRING, "\"\n\x01\xC3\xA9\xED\xA0\x80", JSONRPC_INVALID_REQUEST, "a\xFF\tb",
         "{\"jsonrpc\":\"2.0\",\"id\":\"\\\"\\n\\u0001\xC3\xA9\\ud800\",\"error\":{\"code\":-32600,"
         "\"message\":\"a\\ufffd\\tb\"}}\n"},
        {ID_STRING, "", 1, "x",
         "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"error\":{\"code\":1,\"message\":\"x\"}}\n"},
    };

    struct message_id id = id_of(replies[row].type, replies[row].id);
    size_t expected = strlen(replies[row].line);
    for (size_t size = 0; size <= expected + 1; size++) {
        char *line = malloc(size + 1);
        size_t len;
        ck_assert_ptr_nonnull(line);
        line[size] = '#';
        len = message_write_error(line, size, id, replies[row].code, replies[row].text);
        ck_assert_int_eq(line[size], '#');
        ck_assert_uint_eq(len, size < expected ? 0 : expected);
        ck_assert_mem_eq(line, replies[row].line, len);
        free(line);
    }
}

/* The id comes back as the value that was asked with, and the line is one that is accepted. */
TEST(error_replies_have_the_id_of_the_request)
{
    struct sample request, reply;
    char line[MESSAGE_ERROR_MAX];

    for (size_t i = 0; i < COUNT(same_ids); i++) {
        size_t len;
        read_id(&request, same_ids[i][0]);
        len = message_write_error(line, sizeof line, request.message.id, -1, "no");
        ck_assert_uint_gt(len, 0);
        line[len - 1] = '\0';
        read_sample(&reply, line);
        ck_assert_int_eq(reply.problem, MESSAGE_OK);
        ck_assert(reply.message.has_error);
        ck_assert_msg(message_id_equal(request.message.id, reply.message.id), "%s", same_ids[i][0]);
    }
}

TEST(the_longest_error_reply_has_room)
{
    char line[MESSAGE_ERROR_MAX], id[MESSAGE_ID_TEXT_MAX], text[301];
    struct message_id longest = {ID_STRING, {id, sizeof id}};

    memset(id, 1, sizeof id);
    memset(text, 1, 300);
    text[300] = '\0';
    ck_assert_uint_gt(message_write_error(line, sizeof line, longest, -2147483647 - 1, text), 2700);
}

/* The text in the last of the bytes that come before a daemon ends a connection. */
static const struct {
    const char *bytes, *text;
} refusals[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-1,\"message\":\"no\"}}\n", "no"},
    {"{}\n{\"id\":null,\"error\":{\"code\":-1,\"message\":\"a \\\"b\\\"\"}}", "a \\\"b\\\""},
    {"{\"id\":1,\"error\":{\"code\":-1,\"message\":\"no\"}}\n", NULL},
    {"{\"id\":null,\"error\":{\"code\":-1,\"message\":\"no\"}}\n{}\n", NULL},
    {"{\"id\":null,\"error\":{\"code\":-1,\"message\":\"n", NULL},
    {"{\"id\":null,\"error\":{\"code\":-1}}\n", NULL},
    {"\n", NULL},
    {"", NULL},
};

TEST_ROWS(refusals_have_a_text, COUNT(refusals))
{
    const char *bytes = refusals[row].bytes, *text = refusals[row].text;
    struct slice found = message_refusal_text(slice_of(bytes, strlen(bytes)));

    ck_assert_int_eq(found.data != NULL, text != NULL);
    ck_assert(text == NULL || slice_is(found, text));
}
