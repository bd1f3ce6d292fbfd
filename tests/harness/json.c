#include "build_config.h"

#include "json.h"

#include <stdlib.h>
#include <string.h>

struct span span_of(const char *text)
{
    struct span span = {text, strlen(text)};
    return span;
}

bool span_is(struct span span, const char *text)
{
    return span.data != NULL && span.len == strlen(text) && memcmp(span.data, text, span.len) == 0;
}

bool span_same(struct span a, struct span b)
{
    return a.data != NULL && b.data != NULL && a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* From the opening quote to the first byte after the closing one. */
static const char *skip_string(const char *p, const char *end)
{
    const char *quote = p, *escape; /* the next ones; a quote before p is passed */
    for (p++; p < end; p = escape + 2) {
        if (quote < p && (quote = memchr(p, '"', (size_t)(end - p))) == NULL)
            return end;
        escape = memchr(p, '\\', (size_t)(quote - p));
        if (escape == NULL)
            return quote + 1;
    }
    return end;
}

static const char *skip_scalar(const char *p, const char *end)
{
    while (p < end && *p != ',' && *p != '}' && *p != ']' && !is_space(*p))
        p++;
    return p;
}

static const char *skip_value(const char *p, const char *end)
{
    if (p == end || (*p != '{' && *p != '[' && *p != '"'))
        return skip_scalar(p, end);
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
        } else {
            if (*p == '{' || *p == '[')
                depth++;
            else if (*p == '}' || *p == ']')
                depth--;
            p++;
        }
        if (depth == 0)
            break;
    }
    return p;
}

void json_open(struct json_cursor *cursor, struct span value)
{
    cursor->at = value.data;
    cursor->end = value.data;
    cursor->object = false;
    if (value.data == NULL)
        return;
    cursor->end = value.data + value.len;
    cursor->at = skip_space(cursor->at, cursor->end);
    if (cursor->at < cursor->end && (*cursor->at == '{' || *cursor->at == '['))
        cursor->object = *cursor->at++ == '{';
    else
        cursor->at = cursor->end;
}

bool json_next(struct json_cursor *cursor, struct span *key, struct span *value)
{
    const char *end = cursor->end;
    const char *p = skip_space(cursor->at, end);
    if (p < end && *p == ',')
        p = skip_space(p + 1, end);
    if (p == end || *p == '}' || *p == ']')
        return false;
    key->data = NULL;
    key->len = 0;
    if (cursor->object) {
        const char *start = p + 1;
        p = skip_string(p, end);
        key->data = start;
        key->len = p > start ? (size_t)(p - start) - 1 : 0;
        p = skip_space(p, end);
        p = skip_space(p < end ? p + 1 : p, end);
    }
    value->data = p;
    p = skip_value(p, end);
    value->len = (size_t)(p - value->data);
    cursor->at = p;
    return true;
}

static struct span step_into(struct span value, const char *name, size_t len)
{
    struct span found = {NULL, 0}, key, member;
    struct json_cursor cursor;
    long index = 0;
    json_open(&cursor, value);
    while (json_next(&cursor, &key, &member)) {
        if (cursor.object ? key.len == len && memcmp(key.data, name, len) == 0
                          : index == strtol(name, NULL, 10))
            found = member;
        index++;
    }
    return found;
}

struct span json_get(struct span value, const char *path)
{
    for (;;) {
        size_t len = strcspn(path, ".");
        value = step_into(value, path, len);
        if (value.data == NULL || path[len] == '\0')
            return value;
        path += len + 1;
    }
}

long json_long(struct span value, long fallback)
{
    char digits[24];
    if (value.data == NULL || value.len == 0 || value.len >= sizeof digits)
        return fallback;
    memcpy(digits, value.data, value.len);
    digits[value.len] = '\0';
    char *end;
    long number = strtol(digits, &end, 10);
    return *end == '\0' ? number : fallback;
}

long json_number(struct span value, const char *path)
{
    return json_long(json_get(value, path), -1);
}

bool json_is_true(struct span value)
{
    return span_is(value, "true");
}

struct span json_text(struct span value)
{
    struct span none = {NULL, 0};
    if (value.data == NULL || value.len < 2 || value.data[0] != '"')
        return none;
    value.data++;
    value.len -= 2;
    return value;
}
