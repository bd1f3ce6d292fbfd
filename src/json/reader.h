/* A reader of JSON texts that are whole: the caller takes one token or value after the other, and
 * knows what must come. Exactly RFC 8259, in valid UTF-8; nothing is copied. */
#ifndef STDIO_BUS_JSON_READER_H
#define STDIO_BUS_JSON_READER_H

#include <stdbool.h>

#include "base/slice.h"

#define JSON_READER_MAX_DEPTH 128 /* of objects and arrays in a value that is skipped */

/* What is left of the text. After a function has returned false it is undefined. */
struct json_reader {
    const char *p, *end;
};

/* The next byte that is no white space, or 0 at the end of the text. */
static inline char json_peek(struct json_reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
        r->p++;
    if (r->p == r->end)
        return '\0';
    return *r->p;
}

/* Takes that byte if it is `c`, which is a bracket, a comma or a colon. */
static inline bool json_take(struct json_reader *r, char c)
{
    bool is_there = json_peek(r) == c;

    r->p += is_there;
    return is_there;
}

/* Takes a string. *raw is what stands between the quotes; `escaped`: it has escapes, for
 * json_string_decode. */
bool json_take_string(struct json_reader *r, struct slice *raw, bool *escaped);

/* Takes a string. *text is decoded: it points into the JSON text or, if there were escapes, to
 * `room`. False, too, if escapes are decoded to more than `size` bytes. */
bool json_take_text(struct json_reader *r, struct slice *text, char *room, size_t size);

/* Takes a value of any type, without a look at it. False, too, if it is too deep. */
bool json_skip_value(struct json_reader *r);

#endif
