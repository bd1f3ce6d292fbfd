/* The token of TCP clients: its line. Its file is tested by tests/spec/security_token.c. */
#include "build_config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/token.h"
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
    bool same;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, line, len);
    same = token_line_matches(token, slice_of(copy, len));
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

TEST_ROWS(lines_that_match, sizeof lines / sizeof lines[0])
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

/* The line that is written is the one that matches, up to the longest token, all escaped. */
TEST(written_lines_match)
{
    static struct token token;
    static char line[TOKEN_LINE_MAX], other[TOKEN_LINE_MAX];
    static const char bytes[] = {'x', '"', '\\', '\x01', '\t'};
    size_t i, len;

    for (i = 0; i < sizeof bytes; i++) {
        memset(token.text, bytes[i], TOKEN_MAX);
        for (token.len = 1; token.len <= TOKEN_MAX; token.len += 341) {
            len = token_write_line(line, &token);
            ck_assert_int_eq(line[len - 1], '\n');
            ck_assert(matches(&token, line, len));
            token.len--;
            ck_assert(!matches(&token, line, len));
            token.len++;
        }
    }
    len = (size_t)snprintf(other, sizeof other, "{\"token\":\"%01025d\"}\n", 0);
    token.len = TOKEN_MAX;
    memset(token.text, '0', TOKEN_MAX);
    ck_assert(!matches(&token, other, len));
}

int main(void)
{
    return harness_main("token");
}
