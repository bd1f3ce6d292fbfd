#include "build_config.h"

#include "json/row.h"

#include <inttypes.h>

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
    json_text_string(text, slice_of(key, strlen(key)));
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
