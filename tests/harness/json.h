/* JSON for tests: finds the raw text of a member of a well-formed value. Keys are compared without
 * decoding. The tests do not use the parser that they test. */
#ifndef TESTS_HARNESS_JSON_H
#define TESTS_HARNESS_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct span { /* borrowed bytes; data NULL: there are none */
    const char *data;
    size_t len;
};

/* The arguments for "%.*s" that show the span's beginning in a message. */
#define SHOWN(span) (int)((span).len < 300 ? (span).len : 300), (span).data

struct json_cursor {
    const char *at, *end;
    bool object;
};

struct span span_of(const char *text);
bool span_is(struct span span, const char *text);
bool span_same(struct span a, struct span b);

/* Starts at the first member of an object, or the first element of an array. */
void json_open(struct json_cursor *cursor, struct span value);

/* The next member (its key without quotes) or element. Returns false after the last one. */
bool json_next(struct json_cursor *cursor, struct span *key, struct span *value);

/* The raw value at a path like "result.fds.0"; data NULL when there is none. Of duplicate keys the
 * last one counts. */
struct span json_get(struct span value, const char *path);

/* The value as an integer, or `fallback` when it is none. */
long json_long(struct span value, long fallback);

/* The integer at a path, or -1. */
long json_number(struct span value, const char *path);

bool json_is_true(struct span value);

/* A string's characters without quotes, not decoded; data NULL when it is no string. */
struct span json_text(struct span value);

#endif
