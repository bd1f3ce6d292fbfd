#include "build_config.h"

#include "text.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_room(struct text *text, size_t more)
{
    if (text->capacity - text->len < more + 1) {
        size_t capacity = (text->len + more + 1) * 2;
        char *data = realloc(text->data, capacity);
        if (data == NULL)
            abort();
        text->data = data;
        text->capacity = capacity;
    }
    return text->data + text->len;
}

void text_add(struct text *text, const void *bytes, size_t len)
{
    char *to = text_room(text, len);
    if (len > 0)
        memcpy(to, bytes, len);
    to[len] = '\0';
    text->len += len;
}

void text_fill(struct text *text, char byte, size_t count)
{
    char *to = text_room(text, count);
    memset(to, byte, count);
    to[count] = '\0';
    text->len += count;
}

void text_vprintf(struct text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int len = vsnprintf(NULL, 0, format, arguments);
    if (len < 0)
        abort();
    char *to = text_room(text, (size_t)len);
    vsnprintf(to, (size_t)len + 1, format, again);
    va_end(again);
    text->len += (size_t)len;
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(text, format, arguments);
    va_end(arguments);
}

void text_quote(struct text *text, size_t from)
{
    for (size_t i = from; i < text->len; i++) {
        if (text->data[i] == '\'')
            text->data[i] = '"';
    }
}

void text_replace(struct text *text, const char *from, const char *to)
{
    struct text out = {0};
    const char *rest = text->len > 0 ? text->data : "";
    const char *hit;
    while ((hit = strstr(rest, from)) != NULL) {
        text_add(&out, rest, (size_t)(hit - rest));
        text_add(&out, to, strlen(to));
        rest = hit + strlen(from);
    }
    text_add(&out, rest, strlen(rest));
    text_free(text);
    *text = out;
}

void text_hex(struct text *text, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++)
        text_printf(text, "%02x", at[i]);
}

bool text_matches(const char *text, const char *pattern)
{
    regex_t regex;
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) != 0)
        abort();
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

void text_free(struct text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}
