#include "build_config.h"

#include "json/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/utf8.h"

#define FORMATTED_MAX 128

static bool reserve(struct json_text *text, size_t more)
{
    char *data;

    if (text->failed)
        return false;
    data = array_grow(text->data, &text->capacity, text->len + more + 1, 1);
    if (data == NULL)
        text->failed = true;
    else
        text->data = data;
    return data != NULL;
}

void json_text_add(struct json_text *text, struct slice json)
{
    if (json.len == 0 || !reserve(text, json.len))
        return;
    memcpy(text->data + text->len, json.data, json.len);
    text->len += json.len;
}

void json_text_splice(struct json_text *text, struct slice json, const struct splice_edit *edits,
                      unsigned count)
{
    size_t len = splice_len(json.len, edits, count);

    if (len == 0 || !reserve(text, len))
        return;
    splice_write(text->data + text->len, json.data, 0, json.len, edits, count);
    text->len += len;
}

void json_text_literal(struct json_text *text, const char *json)
{
    json_text_add(text, slice_of_text(json));
}

void json_text_format(struct json_text *text, const char *format, ...)
{
    char formatted[FORMATTED_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(formatted, sizeof formatted, format, arguments);
    va_end(arguments);
    json_text_literal(text, formatted);
}

/* The bytes from p on that stand in a JSON string as they are. */
static size_t plain_run(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *at = p;

    while (at < end) {
        if (*at >= 0x80) {
            const unsigned char *after = utf8_skip(at, end);

            if (after == at)
                break;
            at = after;
        } else if (*at < 0x20 || *at == '"' || *at == '\\') {
            break;
        } else {
            at++;
        }
    }
    return (size_t)(at - p);
}

static void add_escaped(struct json_text *text, unsigned char c)
{
    if (c == '"' || c == '\\')
        json_text_format(text, "\\%c", c);
    else if (c == '\n')
        json_text_literal(text, "\\n");
    else
        json_text_format(text, "\\u%04x", c < 0x80 ? (unsigned)c : 0xfffdU);
}

void json_text_string(struct json_text *text, struct slice string)
{
    const unsigned char *p = (const unsigned char *)string.data, *end = p + string.len;

    json_text_literal(text, "\"");
    while (p < end) {
        size_t run = plain_run(p, end);

        json_text_add(text, slice_of((const char *)p, run));
        p += run;
        if (p < end)
            add_escaped(text, *p++);
    }
    json_text_literal(text, "\"");
}

void json_text_free(struct json_text *text)
{
    free(text->data);
    *text = (struct json_text){.data = NULL};
}

/* The comma, unless it is the first one; and the key. */
static void begin_member(struct json_text *text, const char *key)
{
    char last = '[';

    if (text->len > 0)
        last = text->data[text->len - 1];
    if (last != '{' && last != '[' && last != ':')
        json_text_literal(text, ",");
    if (key == NULL)
        return;
    json_text_string(text, slice_of_text(key));
    json_text_literal(text, ":");
}

void row_slice(struct json_text *text, const char *key, struct slice string)
{
    begin_member(text, key);
    if (string.data == NULL)
        json_text_literal(text, "null");
    else
        json_text_string(text, string);
}

void row_string(struct json_text *text, const char *key, const char *string)
{
    row_slice(text, key, slice_of(string, string != NULL ? strlen(string) : 0));
}

void row_number(struct json_text *text, const char *key, int64_t number)
{
    begin_member(text, key);
    json_text_format(text, "%" PRId64, number);
}

void row_boolean(struct json_text *text, const char *key, bool boolean)
{
    begin_member(text, key);
    json_text_literal(text, boolean ? "true" : "false");
}

void row_begin(struct json_text *text, const char *key, char bracket)
{
    begin_member(text, key);
    json_text_add(text, slice_of(&bracket, 1));
}

void row_end(struct json_text *text, char bracket)
{
    json_text_add(text, slice_of(&bracket, 1));
}
