/* Foreign text on its way to a terminal: whatever it is, and whichever function prints it, no byte
 * that a terminal obeys comes out, what is printed is UTF-8, and all other characters are there. */
#include "build_config.h"

#include "base/terminal.h"

#include "base/error.h"
#include "base/log_line.h"
#include "cli/ctl_columns.h"
#include "cli/ctl_table.h"

#include "common.h"
#include "reference_json.h"

/* --- what a terminal obeys, read in another way than the program does --- */

/* The length of the character that the bytes begin with, by table 3-7 of the Unicode Standard; 0:
 * there is none. */
static size_t well_formed(const unsigned char *at, size_t len)
{
    static const struct {
        unsigned char low[4], high[4];
        size_t len;
    } rows[] = {
        {{0x00}, {0x7f}, 1},
        {{0xc2, 0x80}, {0xdf, 0xbf}, 2},
        {{0xe0, 0xa0, 0x80}, {0xe0, 0xbf, 0xbf}, 3},
        {{0xe1, 0x80, 0x80}, {0xec, 0xbf, 0xbf}, 3},
        {{0xed, 0x80, 0x80}, {0xed, 0x9f, 0xbf}, 3},
        {{0xee, 0x80, 0x80}, {0xef, 0xbf, 0xbf}, 3},
        {{0xf0, 0x90, 0x80, 0x80}, {0xf0, 0xbf, 0xbf, 0xbf}, 4},
        {{0xf1, 0x80, 0x80, 0x80}, {0xf3, 0xbf, 0xbf, 0xbf}, 4},
        {{0xf4, 0x80, 0x80, 0x80}, {0xf4, 0x8f, 0xbf, 0xbf}, 4},
    };

    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        size_t i = 0;

        while (i < rows[row].len && i < len && at[i] >= rows[row].low[i] &&
               at[i] <= rows[row].high[i])
            i++;
        if (i == rows[row].len)
            return i;
    }
    return 0;
}

/* In UTF-8, as the terminal gets them: each character by its first byte or bytes. */
static bool is_control(const unsigned char *at, size_t len)
{
    if (len == 1)
        return at[0] < ' ' || at[0] == 0x7f;
    if (at[0] == 0xc2 && len == 2)
        return at[1] <= 0x9f;
    if (at[0] == 0xd8 && len == 2)
        return at[1] == 0x9c;
    if (at[0] == 0xe2 && at[1] == 0x80)
        return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae);
    if (at[0] == 0xe2 && at[1] == 0x81)
        return at[2] >= 0xa6 && at[2] <= 0xaf;
    return at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xb9 && at[2] <= 0xbb;
}

/* No control character but newlines, and those only if the text may have them. */
static void expect_harmless(const char *text, size_t len, bool has_lines)
{
    const unsigned char *at = (const unsigned char *)text;

    for (size_t i = 0, taken; i < len; i += taken) {
        taken = well_formed(at + i, len - i);
        EXPECT(taken > 0, "byte %zu, %02x, is not UTF-8", i, at[i]);
        EXPECT(!is_control(at + i, taken) || (has_lines && at[i] == '\n'),
               "a control character at %zu: %02x", i, at[i]);
    }
}

/* --- what is promised --- */

/* What was printed to a stream in memory. */
struct printed {
    FILE *to;
    char *text;
    size_t len;
};

static FILE *begin(struct printed *printed)
{
    printed->to = open_memstream(&printed->text, &printed->len);
    EXPECT(printed->to != NULL, "no memory");
    return printed->to;
}

static void end(struct printed *printed)
{
    EXPECT(fclose(printed->to) == 0, "no memory");
}

/* The printed text is the given one, but for escapes in place of what a terminal obeys. */
static void expect_same(const struct printed *printed, const char *text, size_t len,
                        enum terminal_form form)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t out = 0;

    for (size_t i = 0, taken; i < len; i += taken) {
        size_t good = well_formed(at + i, len - i);

        taken = good > 0 ? good : 1;
        if (good > 0 && (text[i] == '\n' || !is_control(at + i, good))) {
            EXPECT(printed->len - out >= good && memcmp(printed->text + out, text + i, good) == 0,
                   "a character was changed, at %zu", i);
            out += good;
        } else if (form == TERMINAL_JSON && at[i] < ' ') {
            EXPECT(out < printed->len && printed->text[out] == ' ', "no blank for %zu", i);
            out++;
        } else {
            EXPECT(printed->len - out > 3 && printed->text[out] == '\\', "no escape for %zu", i);
            out += printed->text[out + 1] == 'u' ? 6 : 4;
        }
    }
    EXPECT(out == printed->len, "%zu bytes more", printed->len - out);
}

static void check_lines(const char *text, size_t len, enum terminal_form form)
{
    struct printed once, twice;

    EXPECT(terminal_lines(begin(&once), form, slice_of(text, len)) == STDIO_BUS_OK, "no output");
    end(&once);
    expect_harmless(once.text, once.len, true);
    expect_same(&once, text, len, form);
    if (form == TERMINAL_JSON && reference_document(text, len, 100))
        EXPECT(reference_document(once.text, once.len, 100), "JSON is none any more");
    terminal_lines(begin(&twice), form, slice_of(once.text, once.len));
    end(&twice);
    EXPECT(twice.len == once.len && memcmp(twice.text, once.text, once.len) == 0,
           "what is harmless was changed");
    free(once.text);
    free(twice.text);
}

/* `text` ends with a NUL. */
static void check_line(const char *text)
{
    struct printed printed;

    EXPECT(terminal_line(begin(&printed), "stdio_bus: %s", text) == STDIO_BUS_OK, "no output");
    end(&printed);
    EXPECT(printed.len > 0 && printed.text[printed.len - 1] == '\n', "no newline");
    expect_harmless(printed.text, printed.len - 1, false);
    free(printed.text);
}

static void check_text(const char *text, size_t len, size_t size)
{
    char *to = malloc(size);

    EXPECT(to != NULL, "no memory");
    EXPECT(strlen(terminal_text(to, size, slice_of(text, len))) < size, "too long");
    expect_harmless(to, strlen(to), false);
    free(to);
}

static void check_log(const char *text)
{
    char context[256] = "pool=";
    struct log_line line;

    log_quote(context + 5, sizeof context - 5, text);
    for (int format = LOG_TEXT; format <= LOG_SYSLOG; format++) {
        size_t newline = format == LOG_SYSLOG ? 0 : 1;

        log_line_make(&line, (enum log_format)format, LOG_LEVEL_INFO, context, text);
        expect_harmless(line.bytes + 1, line.len - 1 - newline, false);
    }
}

static void expect_narrow(const char *text, size_t len)
{
    size_t columns = 0;

    for (size_t i = 0; i < len; i++) {
        columns = text[i] == '\n' ? 0 : columns + (((unsigned char)text[i] & 0xc0) != 0x80);
        EXPECT(columns <= 80, "too wide");
    }
}

/* A reply of a control socket, as a table. */
static void check_table(const char *text, size_t len)
{
    struct document document;
    struct document_error error;
    struct json_text to = {.data = NULL};
    const struct json_value *list;

    if (document_read(&document, slice_of(text, len), &error) != STDIO_BUS_OK)
        return;
    list = document.root->type == JSON_OBJECT ? document_member(document.root, "clients") : NULL;
    if (list != NULL && list->type == JSON_ARRAY) {
        ctl_table_add_list(&to, list, ctl_client_columns, 80);
        expect_harmless(to.data, to.len, true);
        expect_narrow(to.data, to.len);
    }
    json_text_free(&to);
    document_free(&document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size), *line = malloc(size + 1);

    EXPECT(line != NULL, "no memory");
    memcpy(line, text, size);
    line[size] = '\0';
    check_lines(text, size, TERMINAL_TEXT);
    check_lines(text, size, TERMINAL_JSON);
    check_line(line);
    for (size_t room = 1; room < 24; room++)
        check_text(text, size, room);
    check_text(text, size, 6 * size + 1);
    check_log(line);
    check_table(text, size);
    free(line);
    free(text);
    return 0;
}
