/* Foreign text on a terminal. */
#include "build_config.h"

#include "base/terminal.h"

#include "base/error.h"
#include "suite.h"

/* --- characters --- */

static const struct {
    const char *text, *shown, *json;
} texts[] = {
    {"plain ~ \"\\'", "plain ~ \"\\'", "plain ~ \"\\'"},
    {"\x1b]0;x\a", "\\x1b]0;x\\x07", " ]0;x "},
    {"\r\t\x7f", "\\x0d\\x09\\x7f", "  \\u007f"},
    {"\xc2\x9b"
     "31m",
     "\\u009b31m", "\\u009b31m"},
    {"\xc2\x80\xc2\x9f\xc2\xa0", "\\u0080\\u009f\xc2\xa0", "\\u0080\\u009f\xc2\xa0"},
    {"a\x9b"
     "b",
     "a\\x9bb", "a\\u009bb"},
    {"\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b\\u061c\xd8\x9d", "\xd8\x9b\\u061c\xd8\x9d"},
    {"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90", "\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90",
     "\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90"},
    {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf", "\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf",
     "\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf"},
    {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaf\xe2\x81\xb0",
     "\xe2\x81\xa5\\u2066\\u2069\\u206f\xe2\x81\xb0",
     "\xe2\x81\xa5\\u2066\\u2069\\u206f\xe2\x81\xb0"},
    {"\xef\xbf\xb9\xef\xbf\xbb\xef\xbf\xbc", "\\ufff9\\ufffb\xef\xbf\xbc",
     "\\ufff9\\ufffb\xef\xbf\xbc"},
    {"\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80", "\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80",
     "\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80"},
    {"\xc0\x9b\xed\xa0\x80", "\\xc0\\x9b\\xed\\xa0\\x80", "\\u00c0\\u009b\\u00ed\\u00a0\\u0080"},
    {"\xf4\x90\x80\x80\xe2\x80", "\\xf4\\x90\\x80\\x80\\xe2\\x80",
     "\\u00f4\\u0090\\u0080\\u0080\\u00e2\\u0080"},
};

/* What was printed to a stream in memory. */
struct printed {
    FILE *to;
    char *text;
    size_t len;
};

static void begin(struct printed *printed)
{
    printed->to = open_memstream(&printed->text, &printed->len);
    ck_assert_ptr_nonnull(printed->to);
}

static void expect(struct printed *printed, const char *text, size_t len)
{
    ck_assert_int_eq(fclose(printed->to), 0);
    ck_assert_msg(printed->len == len && memcmp(printed->text, text, len) == 0, "%s, not %s",
                  printed->text, text);
    free(printed->text);
}

TEST_ROWS(terminal_gets_no_control_character, COUNT(texts))
{
    char shown[128];
    struct printed printed;

    ck_assert_str_eq(terminal_text(shown, sizeof shown, slice_of_text(texts[row].text)),
                     texts[row].shown);
    begin(&printed);
    ck_assert_int_eq(terminal_line(printed.to, "%s", texts[row].text), STDIO_BUS_OK);
    ck_assert_int_eq(terminal_lines(printed.to, TERMINAL_JSON, slice_of_text(texts[row].text)),
                     STDIO_BUS_OK);
    snprintf(shown, sizeof shown, "%s\n%s", texts[row].shown, texts[row].json);
    expect(&printed, shown, strlen(shown));
}

TEST(terminal_line_is_one_line)
{
    struct printed printed;

    begin(&printed);
    terminal_line(printed.to, "a: %s", "b\nc: d\n");
    terminal_lines(printed.to, TERMINAL_TEXT, slice_of("e\n\0f\n\ng", 7));
    expect(&printed, "a: b\\x0ac: d\\x0a\ne\n\\x00f\n\ng",
           strlen("a: b\\x0ac: d\\x0a\ne\n\\x00f\n\ng"));
}

/* Longer than what needs no memory, with an escape at each place where a piece may end. */
TEST(terminal_lines_of_any_length)
{
    struct printed printed;
    char text[4096], shown[sizeof text + 8];

    for (size_t len = 400; len < sizeof text - 1; len += len < 1100 ? 1 : 997) {
        memset(text, 'x', len);
        text[len - 1] = '\x1b';
        text[len] = '\0';
        memset(shown, 'x', len);
        memcpy(shown + len - 1, "\\x1b\n", 6);
        begin(&printed);
        terminal_line(printed.to, "%s", text);
        expect(&printed, shown, len + 4);
    }
}

TEST(terminal_text_is_cut_between_characters)
{
    static const char text[] = "ab\xc3\xa9\x1b"
                               "cd";
    static const char *const cut[] = {
        "",
        "",
        ".",
        "..",
        "...",
        "a...",
        "ab...",
        "ab...",
        "ab\xc3\xa9...",
        "ab\xc3\xa9...",
        "ab\xc3\xa9...",
        "ab\xc3\xa9\\x1bcd",
    };
    char to[16];

    for (size_t size = 1; size < COUNT(cut); size++)
        ck_assert_str_eq(terminal_text(to, size, slice_of_text(text)), cut[size]);
    ck_assert_str_eq(terminal_text(to, sizeof to, slice_of(NULL, 0)), "");
    ck_assert_ptr_eq(terminal_text(to, 0, slice_of_text(text)), to);
    ck_assert_uint_eq(terminal_columns("ab\xc3\xa9\xe4\xbd\xa0"), 4);
}

TEST(terminal_reports_a_stream_that_takes_no_more)
{
    FILE *full = fopen("/dev/full", "w");

    if (full == NULL)
        return;
    setvbuf(full, NULL, _IONBF, 0);
    ck_assert_int_eq(terminal_line(full, "x"), STDIO_BUS_ERR);
    ck_assert_int_eq(terminal_lines(full, TERMINAL_TEXT, slice_of_text("x")), STDIO_BUS_ERR);
    ck_assert_int_eq(terminal_sequence(full, "\033[H"), STDIO_BUS_ERR);
}
