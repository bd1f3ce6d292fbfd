#include "build_config.h"

#include "base/terminal.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/array.h"
#include "base/error.h"
#include "base/utf8.h"

#define LINE_MAX_BYTES 1024 /* of a line that needs no memory */

/* --- characters --- */

/* What a terminal may not get beside the control characters of ASCII, in ascending order. */
static const struct {
    uint32_t first, last;
} obeyed[] = {
    {0x80, 0x9f},     /* C1: U+009B is ESC [ */
    {0x61c, 0x61c},   /* the Arabic letter mark */
    {0x200e, 0x200f}, /* marks of direction */
    {0x2028, 0x202e}, /* separators of lines and paragraphs; embeddings and overrides */
    {0x2066, 0x206f}, /* isolates, and format characters that are deprecated */
    {0xfff9, 0xfffb}, /* annotations */
};

static bool is_obeyed(uint32_t code)
{
    if (code < 0x80)
        return code < 0x20 || code == 0x7f;
    for (size_t i = 0; i < sizeof obeyed / sizeof obeyed[0]; i++) {
        if (code <= obeyed[i].last)
            return code >= obeyed[i].first;
    }
    return false;
}

size_t terminal_escape(char escape[TERMINAL_ESCAPE_MAX + 1], enum terminal_form form,
                       struct slice text)
{
    uint32_t code;
    size_t len = utf8_read(text, &code);

    escape[0] = '\0';
    if (len == 0)
        code = (unsigned char)text.data[0];
    if (len == 0 || is_obeyed(code))
        (void)snprintf(escape, TERMINAL_ESCAPE_MAX + 1,
                       form == TERMINAL_JSON || len > 1 ? "\\u%04x" : "\\x%02x", (unsigned)code);
    return len > 0 ? len : 1;
}

/* --- into memory --- */

const char *terminal_text(char *to, size_t size, struct slice text)
{
    size_t len = 0, fits = 0; /* fits: the bytes that stay when "..." has to follow */

    if (size == 0)
        return to;
    for (size_t at = 0, taken; at < text.len; at += taken) {
        struct slice rest = slice_of(text.data + at, text.len - at);
        char escape[TERMINAL_ESCAPE_MAX + 1];
        size_t need;

        taken = terminal_escape(escape, TERMINAL_TEXT, rest);
        need = escape[0] != '\0' ? strlen(escape) : taken;
        if (len + need > size - 1) {
            (void)snprintf(to + fits, size - fits, "...");
            return to;
        }
        memcpy(to + len, escape[0] != '\0' ? escape : rest.data, need);
        len += need;
        if (len + 3 <= size - 1)
            fits = len;
    }
    to[len] = '\0';
    return to;
}

size_t terminal_columns(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

void terminal_cut(char *text, size_t columns)
{
    static const char dots[] = "...";
    size_t kept = columns < sizeof dots ? columns : columns - (sizeof dots - 1);
    char *end = text;

    if (terminal_columns(text) <= columns)
        return;
    for (; kept > 0; kept--) {
        do
            end++;
        while (((unsigned char)*end & 0xc0) == 0x80);
    }
    if (columns < sizeof dots)
        *end = '\0';
    else
        memcpy(end, dots, sizeof dots);
}

size_t terminal_width(int fd)
{
    struct winsize size = {.ws_col = 0};

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : TERMINAL_WIDTH;
}

size_t terminal_height(int fd)
{
    struct winsize size = {.ws_row = 0};

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : TERMINAL_HEIGHT;
}

/* --- to a stream --- */

/* A text on its way, in pieces that end with a NUL. */
struct printing {
    FILE *to;
    char piece[512];
    size_t len;
    int status;
};

/* A function of its own for the fault sweep, in which it has a name. */
__attribute__((noinline)) static void print_piece(struct printing *printing)
{
    printing->piece[printing->len] = '\0';
    printing->len = 0;
    if (printing->status == STDIO_BUS_OK && fputs(printing->piece, printing->to) == EOF)
        printing->status = STDIO_BUS_ERR;
}

static void add_bytes(struct printing *printing, const char *bytes, size_t len)
{
    if (printing->len + len >= sizeof printing->piece)
        print_piece(printing);
    memcpy(printing->piece + printing->len, bytes, len);
    printing->len += len;
}

static void add_text(struct printing *printing, enum terminal_form form, struct slice text)
{
    char escape[TERMINAL_ESCAPE_MAX + 1];

    while (text.len > 0) {
        size_t taken = terminal_escape(escape, form, text);

        if (form == TERMINAL_JSON && (unsigned char)*text.data < 0x20)
            add_bytes(printing, " ", 1);
        else if (escape[0] != '\0')
            add_bytes(printing, escape, strlen(escape));
        else
            add_bytes(printing, text.data, taken);
        text = slice_of(text.data + taken, text.len - taken);
    }
}

int terminal_line(FILE *to, const char *format, ...)
{
    struct printing printing = {.to = to, .status = STDIO_BUS_OK};
    char shorter[LINE_MAX_BYTES], *longer = NULL;
    size_t capacity = 0;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(shorter, sizeof shorter, format, args);
    va_end(args);
    if (len < 0)
        shorter[0] = '\0';
    if (len >= (int)sizeof shorter)
        longer = array_grow(NULL, &capacity, (size_t)len + 1, 1);
    if (longer != NULL) {
        va_start(args, format);
        len = vsnprintf(longer, capacity, format, args);
        va_end(args);
    }
    add_text(&printing, TERMINAL_TEXT,
             longer != NULL ? slice_of(longer, (size_t)len) : slice_of_text(shorter));
    if (longer == NULL && len >= (int)sizeof shorter) /* out of memory: it is cut */
        add_bytes(&printing, "...", 3);
    add_bytes(&printing, "\n", 1);
    print_piece(&printing);
    free(longer);
    return printing.status;
}

int terminal_lines(FILE *to, enum terminal_form form, struct slice text)
{
    struct printing printing = {.to = to, .status = STDIO_BUS_OK};

    while (text.len > 0) {
        const char *newline = memchr(text.data, '\n', text.len);
        size_t len = newline != NULL ? (size_t)(newline - text.data) : text.len;

        add_text(&printing, form, slice_of(text.data, len));
        if (newline != NULL)
            add_bytes(&printing, newline, 1);
        len += newline != NULL;
        text = slice_of(text.data + len, text.len - len);
    }
    print_piece(&printing);
    return printing.status;
}

int terminal_sequence(FILE *to, const char *sequence)
{
    return fputs(sequence, to) == EOF ? STDIO_BUS_ERR : STDIO_BUS_OK;
}

#define ESCAPE 0x1b
#define CHARACTER_MAX 4 /* bytes, in UTF-8 */

static size_t read_character(const char *text, uint32_t *code)
{
    return utf8_read(slice_of(text, strnlen(text, CHARACTER_MAX)), code);
}

size_t printable_character_bytes(const char *text)
{
    uint32_t code;

    return read_character(text, &code);
}

/* The bytes of the control sequence of a terminal that the text begins with: colours and the like
 * (ECMA-48, 5.4). 0: it begins with none. */
static size_t sequence_bytes(const char *text)
{
    size_t len = 2;

    if ((unsigned char)text[0] != ESCAPE || text[1] != '[')
        return 0;
    while (text[len] >= 0x20 && text[len] <= 0x3f)
        len++;
    return text[len] >= 0x40 && text[len] <= 0x7e ? len + 1 : len;
}

/* Whether the character is a C1 control, or changes the direction of the text around it. */
static bool is_hidden(uint32_t code)
{
    return (code >= 0x80 && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Writes what stands for the character of `len` bytes. Returns how many bytes that are. */
static size_t write_character(char *to, const char *text, size_t len, uint32_t code)
{
    if (len == 0 || is_hidden(code)) {
        *to = '?';
        return 1;
    }
    if (code < 0x20 || code == 0x7f) {
        *to = ' ';
        return 1;
    }
    memmove(to, text, len);
    return len;
}

size_t printable_clean(char *text)
{
    const char *from = text;
    char *to = text;
    uint32_t code;
    size_t len;

    while (*from != '\0') {
        len = sequence_bytes(from);
        if (len == 0) {
            len = read_character(from, &code);
            to += write_character(to, from, len, code);
        }
        from += len > 0 ? len : 1;
    }
    *to = '\0';
    return (size_t)(to - text);
}
