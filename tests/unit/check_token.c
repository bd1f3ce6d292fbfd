/* The token of TCP clients, and opening lines. tests/spec/security_token.c tests its file. */
#include "build_config.h"

#include <sys/stat.h>

#include "cli/connect.h"
#include "config/tokens.h"
#include "framing/first_frame.h"
#include "suite.h"

static struct token token_of(const char *text, size_t len)
{
    struct token token = {.len = len};

    memcpy(token.text, text, len);
    return token;
}

/* Compares an exact copy of the line, so that a sanitizer sees each byte too many. */
static bool matches(const struct token *token, const char *line, size_t len)
{
    char *copy = malloc(len + (len == 0));
    struct named_token named = {.text = (char *)token->text, .len = token->len};
    const struct tokens tokens = {.list = &named, .count = 1};
    struct opening opening;
    bool same;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, line, len);
    same = opening_read(&opening, slice_of(copy, len)) && opening.token.data != NULL &&
           tokens_find_escaped(&tokens, opening.token) != NULL;
    free(copy);
    return same;
}

static const struct {
    const char *token, *line;
    bool same;
} lines[] = {
    {"a", "{\"token\":\"a\"}\n", true},
    {"a", "{\"token\":\"a\"}", true},
    {"a", " {\t\"token\" : \"\\u0061\" } \r\n", true},
    {"a", "{\"token\":\"b\"}\n", false},
    {"a", "{\"token\":\"\"}\n", false},
    {"a", "{\"token\":\"aa\"}\n", false},
    {"ab", "{\"token\":\"abab\"}\n", false},
    {"ab", "{\"token\":\"a\"}\n", false},
    {"ab", "{\"token\":\"abc\"}\n", false},
    {"a", "{\"token\":\"a\",\"id\":1}\n", false},
    {"a", "{\"id\":1,\"token\":\"a\"}\n", false},
    {"a", "{\"token\":\"b\",\"token\":\"a\"}\n", false},
    {"a", "{\"\\u0074oken\":\"a\"}\n", false},
    {"a", "{\"Token\":\"a\"}\n", false},
    {"a", "{\"token\":[\"a\"]}\n", false},
    {"a", "{\"token\":{\"token\":\"a\"}}\n", false},
    {"1", "{\"token\":1}\n", false},
    {"a", "{}\n", false},
    {"a", "", false},
    {"\"\\/\b\t", "{\"token\":\"\\\"\\\\\\/\\b\\t\"}\n", true},
    {"\xC3\xA9", "{\"token\":\"\\u00E9\"}\n", true},
    {"\xF0\x9F\x98\x80", "{\"token\":\"\\ud83d\\ude00\"}\n", true},
    {"a", "{\"token\":\"a\\u0000\"}\n", false},
};

TEST_ROWS(lines_that_match, COUNT(lines))
{
    struct token token = token_of(lines[row].token, strlen(lines[row].token));

    ck_assert_int_eq(matches(&token, lines[row].line, strlen(lines[row].line)), lines[row].same);
}

/* Each line that begins as a good one does, up to its brace, is wrong. */
TEST(lines_that_are_cut)
{
    static const char line[] = "{\"token\":\"\\\"\\u00e9\\\\\"}";
    struct token token = token_of("\"\xC3\xA9\\", 4);
    size_t len;

    for (len = 0; len < sizeof line - 1; len++)
        ck_assert(!matches(&token, line, len));
    ck_assert(matches(&token, line, len));
}

/* The keys of other lines; a dash where there is none. */
static const struct {
    const char *line, *token, *pool;
} others[] = {
    {"{\"pool\":\"a\"}\n", "-", "a"},
    {"{\"pool\":\"\"}", "-", ""},
    {"{\"pool\":\"a\\\"\",\"token\":\"b\"}", "b", "a\\\""},
    {" { \"token\" : \"b\" , \"pool\" : \"a\" } ", "b", "a"},
    {"{\"pool\":\"a\",\"pool\":\"a\"}", NULL, NULL},
    {"{\"pool\":\"a\",}", NULL, NULL},
    {"{\"pool\":\"a\" \"token\":\"b\"}", NULL, NULL},
    {"{\"pool\":\"a\",\"id\":1}", NULL, NULL},
    {"{\"id\":1,\"pool\":\"a\"}", NULL, NULL},
    {"{\"pool\":\"a\"}{", NULL, NULL},
    {"{\"Pool\":\"a\"}", NULL, NULL},
    {"{\"pool\":1}", NULL, NULL},
    {"{\"pool\"}", NULL, NULL},
    {"\"pool\":\"a\"", NULL, NULL},
    {"[\"pool\"]", NULL, NULL},
};

static void expect_value(struct slice value, const char *expected)
{
    if (strcmp(expected, "-") == 0)
        ck_assert_ptr_null(value.data);
    else
        ck_assert(value.data != NULL && slice_equal(value, slice_of(expected, strlen(expected))));
}

TEST_ROWS(opening_lines, COUNT(others))
{
    struct opening opening;
    bool read = opening_read(&opening, slice_of(others[row].line, strlen(others[row].line)));

    ck_assert_int_eq(read, others[row].pool != NULL);
    if (!read)
        return;
    expect_value(opening.token, others[row].token);
    expect_value(opening.pool, others[row].pool);
}

TEST(opening_line_has_a_limit)
{
    static const char begin[] = "{\"pool\":\"a\"", end[] = "}\n";
    static char line[OPENING_MAX + 1];
    struct opening opening;

    memset(line, ' ', sizeof line);
    memcpy(line, begin, sizeof begin - 1);
    memcpy(line + sizeof line - 3, end, 2);
    ck_assert(opening_read(&opening, slice_of(line, OPENING_MAX)));
    memcpy(line + sizeof line - 3, " }\n", 3);
    ck_assert(!opening_read(&opening, slice_of(line, OPENING_MAX + 1)));
}

/* The line that is written is the one that matches, up to the longest token, all escaped. */
TEST(written_lines_match)
{
    static const char path[] = "/tmp/check_token", bytes[] = {'x', '"', '\\', '\x01', '\t'};
    static struct token token;
    static char line[OPENING_MAX], pool[257], reason[256];
    struct options options = {.token_file = path, .pool = pool};
    struct opening opening;
    size_t i, len;

    memset(pool, '\x01', sizeof pool - 1);
    for (i = 0; i < 3; i++) {
        FILE *file = fopen(path, "w");

        ck_assert_ptr_nonnull(file);
        memset(token.text, bytes[i], TOKEN_MAX);
        token.len = TOKEN_MAX;
        fwrite(token.text, 1, token.len, file);
        fclose(file);
        ck_assert_int_eq(chmod(path, 0600), 0);
        ck_assert_msg(connect_write_opening(&options, line, &len, reason, sizeof reason), "%s",
                      reason);
        ck_assert_int_eq(line[len - 1], '\n');
        ck_assert(matches(&token, line, len));
        ck_assert(opening_read(&opening, slice_of(line, len)));
        ck_assert_uint_eq(opening.pool.len, 256 * 6);
        token.len--;
        ck_assert(!matches(&token, line, len));
    }
    unlink(path);
    ck_assert(!connect_write_opening(&options, line, &len, reason, sizeof reason));
    options = (struct options){.pool = NULL};
    ck_assert(connect_write_opening(&options, line, &len, reason, sizeof reason));
    ck_assert_uint_eq(len, 0);
}

/* A token that is too long is no token, whatever its beginning. */
TEST(token_has_a_limit)
{
    static struct token token = {.len = TOKEN_MAX};
    static char line[OPENING_MAX];
    size_t len = (size_t)snprintf(line, sizeof line, "{\"token\":\"%01025d\"}\n", 0);

    memset(token.text, '0', TOKEN_MAX);
    ck_assert(!matches(&token, line, len));
}
