/* Just enough JSON for tests: finds the raw text of a member of a well-formed value. Keys are
 * compared as they stand, without decoding. A reader of its own, so that the tests do not trust
 * the code that they test. */
#ifndef TESTS_HARNESS_JSON_H
#define TESTS_HARNESS_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct span { /* bytes that belong to somebody else; data NULL: there is none */
    const char *data;
    size_t len;
};

struct json_cursor {
    const char *at, *end;
    bool object;
};

struct span span_of(const char *text);
bool span_is(struct span span, const char *text);
bool span_same(struct span a, struct span b);

/* Starts at the first member of an object, or the first element of an array. */
void json_open(struct json_cursor *cursor, struct span value);

/* The next member (its key without quotes) or element. Returns false behind the last one. */
bool json_next(struct json_cursor *cursor, struct span *key, struct span *value);

/* The raw value at a path like "result.fds.0"; data NULL when there is none. With duplicate keys
 * the last one counts. */
struct span json_get(struct span value, const char *path);

/* The value as an integer, or `fallback` when it is none. */
long json_long(struct span value, long fallback);

bool json_is_true(struct span value);

/* A string's characters without its quotes, nothing decoded; data NULL when it is no string. */
struct span json_text(struct span value);

#endif
