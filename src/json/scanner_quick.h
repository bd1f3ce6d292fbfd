/* The quick way of the scanner over whole tokens, and the steps that it shares with the state
 * machine of scanner.c. For these two files alone. */
#ifndef STDIO_BUS_JSON_SCANNER_QUICK_H
#define STDIO_BUS_JSON_SCANNER_QUICK_H

#include "json/byte_runs.h"
#include "json/number.h"
#include "json/scanner.h"

/* What the next byte has to be. */
enum state {
    BEFORE_OBJECT,
    FIRST_KEY, /* a key or the end of the object */
    KEY,
    COLON,
    FIRST_VALUE, /* a value or the end of the array */
    VALUE,
    AFTER_VALUE,
    STRING,
    STRING_ESCAPE, /* after the backslash */
    STRING_HEX,
    STRING_UTF8,
    LITERAL,
    NUMBER_MINUS,    /* a digit must come */
    NUMBER_ZERO,     /* no digit may come */
    NUMBER_INTEGER,  /* digits may come */
    NUMBER_POINT,    /* a digit must come */
    NUMBER_FRACTION, /* digits may come */
    NUMBER_E,        /* a sign or a digit must come */
    NUMBER_SIGN,     /* a digit must come */
    NUMBER_EXPONENT, /* digits may come */
    AFTER_OBJECT,
    AT_MESSAGE_END, /* the last three consume nothing */
    AT_BLANK_END,
    FAILED
};

/* The top-level keys with a field in struct scan_fields. */
enum key { KEY_OTHER, KEY_ID, KEY_SESSION_ID, KEY_METHOD, KEY_POOL };

struct input {
    position start, end;
    struct window plain, digits;
};

/* Here and in scanner.c, a function that takes a position and returns one consumes bytes from there
 * on (at least one), sets the state for the bytes that follow and returns their position. */

/* Consumes whole tokens as long as they are usual, valid and in sight. To be called in the states
 * FIRST_KEY and KEY, and in FIRST_VALUE and VALUE of an array. Returns p if there is no such
 * token. */
position scanner_quick(struct scanner *s, struct input *in, position p);

/* Notes the top-level key, or the value of a routing field, that started at the last token_start
 * and ends before p. */
void scanner_note_key(struct scanner *s, const struct input *in, position p);
void scanner_note_value(struct scanner *s, const struct input *in, position p, enum scan_type type);

static inline position fail(struct scanner *s, position p, enum scan_error error)
{
    s->error = error;
    s->state = FAILED;
    return p;
}

/* The white space of RFC 8259 without the newline and the carriage return. */
static inline position skip_space(const struct input *in, position p)
{
    /* Mostly there is none, which takes one comparison. */
    while (p < in->end && *p <= ' ' && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

static inline bool in_object(const struct scanner *s)
{
    return s->levels & 1;
}

/* A key or a value starts at p. Only the top level matters. */
static inline void token_start(struct scanner *s, const struct input *in, position p)
{
    if (s->depth == 1) {
        s->token_start = (size_t)(p - in->start);
        s->token_escaped = false;
    }
}

/* The key that started at the last token_start ends before p. */
static inline void key_end(struct scanner *s, const struct input *in, position p)
{
    if (s->depth == 1)
        scanner_note_key(s, in, p);
    s->state = COLON;
}

/* The value that started at the last token_start ends before p. */
static inline void value_end(struct scanner *s, const struct input *in, position p,
                             enum scan_type type)
{
    if (s->depth == 1 && s->key != KEY_OTHER)
        scanner_note_value(s, in, p, type);
    s->state = AFTER_VALUE;
}

static inline position open_level(struct scanner *s, position p)
{
    bool object = *p == '{';

    if (s->depth == STDIO_BUS_MAX_DEPTH)
        return fail(s, p, SCAN_ERROR_DEPTH);
    if (s->depth > 0 && s->depth % 64 == 0)
        s->outer_levels[s->depth / 64 - 1] = s->levels;
    s->levels = s->levels << 1 | object;
    s->depth++;
    s->state = object ? FIRST_KEY : FIRST_VALUE;
    return p + 1;
}

static inline position close_level(struct scanner *s, const struct input *in, position p)
{
    s->depth--;
    s->levels >>= 1;
    if (s->depth > 0 && s->depth % 64 == 0)
        s->levels = s->outer_levels[s->depth / 64 - 1];
    if (s->depth > 0)
        value_end(s, in, p + 1, SCAN_OTHER);
    else
        s->state = AFTER_OBJECT;
    return p + 1;
}

static inline bool closes_level(const struct scanner *s, position p)
{
    return *p == (in_object(s) ? '}' : ']');
}

#endif
