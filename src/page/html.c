#include "build_config.h"

#include "page/html.h"

#include <inttypes.h>

#define DAY_MS 86400000

void html_text(struct json_text *to, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            json_text_format(to, "&#%d;", c);
        else if ((unsigned char)c < ' ')
            json_text_literal(to, " ");
        else
            json_text_add(to, slice_of(&c, 1));
    }
}

/* One decimal place. */
static void put_tenths(struct json_text *to, int64_t tenths, const char *unit)
{
    json_text_format(to, "%" PRId64 ".%d%s", tenths / 10, (int)(tenths % 10), unit);
}

static void put_bytes(struct json_text *to, int64_t bytes)
{
    if (bytes < 1000)
        json_text_format(to, "%" PRId64 " B", bytes);
    else if (bytes < 1000000)
        put_tenths(to, bytes / 100, " kB");
    else
        put_tenths(to, bytes / 100000, " MB");
}

static void put_ms(struct json_text *to, int64_t ms)
{
    if (ms < 0)
        json_text_literal(to, "\xE2\x80\x93");
    else if (ms < 1000)
        json_text_format(to, "%" PRId64 " ms", ms);
    else if (ms < 60000)
        put_tenths(to, ms / 100, " s");
    else if (ms < 3600000)
        json_text_format(to, "%" PRId64 " min", ms / 60000);
    else
        put_tenths(to, ms / 360000, " h");
}

static void put_clock(struct json_text *to, int64_t epoch_ms)
{
    int seconds = (int)(epoch_ms % DAY_MS / 1000);

    json_text_format(to, "%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

static void put_number(struct json_text *to, enum html_kind kind, int64_t number)
{
    switch (kind) {
    case HTML_TENTHS:
        put_tenths(to, number, "");
        break;
    case HTML_BYTES:
        put_bytes(to, number);
        break;
    case HTML_MS:
        put_ms(to, number);
        break;
    case HTML_US:
        put_tenths(to, number / 100, " ms");
        break;
    case HTML_CLOCK:
        put_clock(to, number);
        break;
    default:
        json_text_format(to, "%" PRId64, number);
        break;
    }
}

/* Elements with blanks between them. */
static void put_words(struct json_text *to, const struct json_value *word)
{
    for (; word != NULL; word = word->next) {
        html_value(to, HTML_TEXT, word);
        json_text_literal(to, word->next != NULL ? " " : "");
    }
}

void html_value(struct json_text *to, enum html_kind kind, const struct json_value *value)
{
    int64_t number;

    if (value != NULL && value->type == JSON_STRING)
        html_text(to, value->text);
    else if (value != NULL && value->type == JSON_ARRAY)
        put_words(to, value->first);
    else if (value != NULL && document_integer(value, &number))
        put_number(to, kind, number);
    else
        json_text_literal(to, "\xE2\x80\x93");
}
