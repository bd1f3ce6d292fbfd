#include "build_config.h"

#include "json/document.h"

#include "suite.h"

/* Texts, and what is left of them. */
static const struct {
    const char *text, *left;
} texts[] = {
    {"{\"a\": 1}", "{\"a\": 1}"},
    {"", ""},
    {"{} // x", "{}     "},
    {"{} // x\n,", "{}     \n,"},
    {"/**/{/* a\n*/}", "    {    \n  }"},
    {"\xef\xbb\xbf{}", "   {}"},
    {"[1, 2,]", "[1, 2 ]"},
    {"{\"a\":[],\n/* x */ } ", "{\"a\":[] \n        } "},
    {"[1,,]", "[1,,]"}, /* no JSON, as these */
    {"[,]", "[,]"},
    {"{ /**/, }", "{     , }"},
    {"{\"a\":,}", "{\"a\":,}"},
    {",", ","},
    {"[1 , // ,\n ]", "[1       \n ]"},
    {"[\"a,]\", \"//\", \"/*\", \"\\\"//\"]", "[\"a,]\", \"//\", \"/*\", \"\\\"//\"]"},
    {"[\"\\\\\"/**/]", "[\"\\\\\"    ]"},
    {"/* never closed", "/* never closed"},
    {"/*/", "/*/"},
    {"/", "/"},
    {"//", "  "},
    {"{\"a", "{\"a"},
    {"\"a\n//\"", "\"a\n   "}, /* no JSON: a string ends in its line */
    {"\"\\", "\"\\"},
};

TEST_ROWS(comments_become_spaces, COUNT(texts))
{
    size_t len = strlen(texts[row].text);
    char *copy = malloc(len + (len == 0));

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, texts[row].text, len); /* without a NUL: a sanitizer sees each byte too many */
    comments_blank(copy, len);
    ck_assert_uint_eq(len, strlen(texts[row].left));
    ck_assert_msg(memcmp(copy, texts[row].left, len) == 0, "\"%.*s\"", (int)len, copy);
    free(copy);
}
