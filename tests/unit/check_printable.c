#include "build_config.h"

#include "base/terminal.h"

#include "suite.h"

static const struct {
    const char *text, *cleaned;
} texts[] = {
    {"", ""},
    {"plain text", "plain text"},
    {"caf\xc3\xa9 \xe6\x96\x87 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe6\x96\x87 \xf0\x9f\x98\x80"},
    {"\x1b[31mred\x1b[0m", "red"},
    {"\x1b[38;5;1mx\x1b[", "x"},
    {"\x1b]0;title\x07y", " ]0;title y"},
    {"a\tb\rc\x7f", "a b c "},
    {"\xff\xc3(", "?"
                  "?("},
    {"\xc2\x9b"
     "31m",
     "?31m"}, /* CSI as one C1 control */
    {"a\xe2\x80\xae"
     "b\xe2\x81\xa6"
     "c\xe2\x80\x8f"
     "d",
     "a?b?c?d"},                                                       /* U+202E, 2066, 200F */
    {"\xd8\x9c\xe2\x80\x93\xe2\x82\xac", "?\xe2\x80\x93\xe2\x82\xac"}, /* U+061C; a dash, a euro */
    {"\xed\xa0\x80", "?"
                     "?"
                     "?"}, /* a surrogate */
    {"\xe2\x80", "?"
                 "?"},
};

TEST_ROWS(text_is_printable, COUNT(texts))
{
    char text[64];
    size_t len;

    snprintf(text, sizeof text, "%s", texts[row].text);
    len = printable_clean(text);
    ck_assert_str_eq(text, texts[row].cleaned);
    ck_assert_uint_eq(len, strlen(text));
}
