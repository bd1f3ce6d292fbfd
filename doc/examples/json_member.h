/* json_member.h: as much JSON as the example workers in C need.
 *
 * The daemon forwards valid JSON alone, one object a line, so nothing is checked here. Keys and
 * strings are compared as they are spelled. A worker with other input, or with escapes to decode,
 * takes a library for JSON. */
#ifndef JSON_MEMBER_H
#define JSON_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define JSON_SPACE " \t\r\n"

static inline const char *json_skip_space(const char *at)
{
    return at + strspn(at, JSON_SPACE);
}

/* Bytes of the string at `at`, its quotes included. */
static inline size_t json_string_length(const char *at)
{
    size_t len = 1;

    while (at[len] != '"' && at[len] != '\0')
        len += at[len] == '\\' && at[len + 1] != '\0' ? 2 : 1;
    return at[len] == '"' ? len + 1 : len;
}

/* Bytes of the value at `at`. */
static inline size_t json_length(const char *at)
{
    size_t len = 0, depth = 0;

    do {
        if (at[len] == '"') {
            len += json_string_length(at + len);
        } else if (at[len] == '{' || at[len] == '[') {
            depth++;
            len++;
        } else if (depth > 0 && (at[len] == '}' || at[len] == ']')) {
            depth--;
            len++;
        } else {
            len += strcspn(at + len, depth > 0 ? "{}[]\"" : JSON_SPACE ",}]");
        }
    } while (depth > 0 && at[len] != '\0');
    return len;
}

/* The value of a key, or NULL if `object` is NULL, is no object or has no such key. Of duplicate
 * keys the last one counts. The value is a part of the object's text. */
static inline const char *json_member(const char *object, const char *key)
{
    const char *at = object != NULL ? json_skip_space(object) : "", *found = NULL;

    if (*at != '{')
        return NULL;
    at = json_skip_space(at + 1);
    while (*at == '"') {
        size_t len = json_string_length(at);
        bool matches = len == strlen(key) + 2 && memcmp(at + 1, key, len - 2) == 0;

        at = json_skip_space(at + len);
        at = json_skip_space(*at == ':' ? at + 1 : at);
        if (matches)
            found = at;
        at = json_skip_space(at + json_length(at));
        at = json_skip_space(*at == ',' ? at + 1 : at);
    }
    return found;
}

static inline bool json_is_string(const char *value)
{
    return value != NULL && *value == '"';
}

/* Whether the value is this string. */
static inline bool json_is(const char *value, const char *text)
{
    return json_is_string(value) && json_length(value) == strlen(text) + 2 &&
           memcmp(value + 1, text, strlen(text)) == 0;
}

/* What JSON-RPC takes as an id, and MCP as a token: a string or a number. */
static inline bool json_is_id(const char *value)
{
    return value != NULL && *value != '\0' && strchr("\"-0123456789", *value) != NULL;
}

#endif
