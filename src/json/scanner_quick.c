#include "build_config.h"

#include "json/scanner_quick.h"

#include <string.h>

#include "json/string.h"

/* --- routing fields --- */

static enum key key_named(struct scanner *s, const char *name, size_t len)
{
    switch (len) {
    case 2:
        return memcmp(name, "id", 2) == 0 ? KEY_ID : KEY_OTHER;
    case 4:
        return memcmp(name, "pool", 4) == 0 ? KEY_POOL : KEY_OTHER;
    case 5:
        s->fields.has_error |= memcmp(name, "error", 5) == 0;
        return KEY_OTHER;
    case 6:
        s->fields.has_result |= memcmp(name, "result", 6) == 0;
        return memcmp(name, "method", 6) == 0 ? KEY_METHOD : KEY_OTHER;
    case 9:
        return memcmp(name, "sessionId", 9) == 0 ? KEY_SESSION_ID : KEY_OTHER;
    default:
        return KEY_OTHER;
    }
}

void scanner_note_key(struct scanner *s, const struct input *in, position p)
{
    const char *name = (const char *)in->start + s->token_start;
    size_t len = (size_t)(p - in->start) - s->token_start;
    char decoded[sizeof "sessionId"] UNINITIALIZED; /* a longer key is none of these */

    if (s->token_escaped) {
        len = json_string_decode(decoded, sizeof decoded, slice_of(name, len));
        name = decoded;
    }
    s->key = (unsigned char)key_named(s, name, len);
}

void scanner_note_value(struct scanner *s, const struct input *in, position p, enum scan_type type)
{
    struct scan_field *field = s->key == KEY_ID           ? &s->fields.id
                               : s->key == KEY_SESSION_ID ? &s->fields.session_id
                               : s->key == KEY_METHOD     ? &s->fields.method
                                                          : &s->fields.pool;

    field->offset = s->token_start;
    field->len = (size_t)(p - in->start) - s->token_start;
    field->type = type;
    field->escaped = s->token_escaped;
}

/* --- whole tokens --- */

/* A token is read here only where this number of bytes is left: "false" and the byte after it. */
#define QUICK_BYTES 6
#define QUICK_STRING_BYTES 128

/* These return the position after the token at p, where a byte is to read. For a token that is
 * unusual, wrong or not all in sight they return NULL, without any effect: the state machine reads
 * it. */

/* A key and its colon. */
static inline position quick_key(struct scanner *s, struct input *in, position p)
{
    uint64_t stops;
    position quote;

    if (*p != '"' || (stops = plain_stops(&in->plain, p + 1)) == 0)
        return NULL;
    quote = p + 1 + lowest_bit(stops);
    if (*quote != '"' || in->end - quote < QUICK_BYTES || quote[1] != ':')
        return NULL;
    token_start(s, in, p + 1);
    key_end(s, in, quote);
    s->state = VALUE;
    return skip_space(in, quote + 2);
}

/* A string that is long, unusual or not all in sight is read in part, up to the state STRING. */
static inline position quick_string(struct scanner *s, struct input *in, position p)
{
    position at = p + 1;

    token_start(s, in, at);
    while (at - p < QUICK_STRING_BYTES && in->end - at >= 2) {
        uint64_t stops = plain_stops(&in->plain, at);

        if (stops == 0) {
            at = in->plain.seen_end;
            continue;
        }
        at += lowest_bit(stops);
        if (*at == '"' && in->end - at >= 2) {
            value_end(s, in, at, SCAN_STRING);
            return at + 1;
        }
        if (*at != '\\' || in->end - at < 2 || !is_usual_escape(at[1]))
            break;
        s->token_escaped = true;
        at += 2;
    }
    s->in_key = false;
    s->state = STRING;
    return at;
}

/* *stops has the bits of the bytes that are no digits, *at is the lowest of them. Removes that bit
 * and sets *at to the next, which must be in sight and have a digit before it. */
static inline bool digits_follow(uint64_t *stops, unsigned *at)
{
    unsigned before = *at;

    *stops &= *stops - 1;
    if (*stops == 0)
        return false;
    *at = lowest_bit(*stops);
    return *at > before + 1;
}

static inline bool exponent_follows(position p, uint64_t *stops, unsigned *at)
{
    if ((*stops >> *at & 2) != 0) { /* no digit after the letter: a sign */
        ++*at;
        *stops &= *stops - 1;
        if (p[*at] != '+' && p[*at] != '-')
            return false;
    }
    return digits_follow(stops, at);
}

/* The byte that usually follows a number. */
static inline bool ends_number(unsigned char c)
{
    return c == ',' || (c | 0x20) == '}';
}

static inline position quick_number(struct scanner *s, struct input *in, position p)
{
    uint64_t stops = digit_stops(&in->digits, p);
    unsigned first = stops & 1, at; /* first digit: 1 after a minus sign */

    stops ^= first;
    if (stops == 0)
        return NULL;
    at = lowest_bit(stops);
    if (at == first || (p[first] == '0' && at > first + 1))
        return NULL;
    if (p[at] == '.' && !digits_follow(&stops, &at))
        return NULL;
    if (!ends_number(p[at])) {
        if ((p[at] | 0x20) != 'e' || !exponent_follows(p, &stops, &at) || !ends_number(p[at]))
            return NULL;
    }
    token_start(s, in, p);
    value_end(s, in, p + at, SCAN_NUMBER);
    return p + at;
}

static inline position quick_literal(struct scanner *s, const struct input *in, position p)
{
    size_t len = *p == 'f' ? 5 : 4;

    if (memcmp(p, "true", 4) != 0 && memcmp(p, "null", 4) != 0 && memcmp(p, "false", 5) != 0)
        return NULL;
    token_start(s, in, p);
    value_end(s, in, p + len, *p == 'n' ? SCAN_NULL : SCAN_OTHER);
    return p + len;
}

static inline position quick_scalar(struct scanner *s, struct input *in, position p)
{
    if (*p == '"')
        return quick_string(s, in, p);
    if (is_digit(*p) || *p == '-')
        return quick_number(s, in, p);
    return quick_literal(s, in, p);
}

/* Closes the levels that end at p. The top level stays open. */
static inline position quick_ends(struct scanner *s, const struct input *in, position p)
{
    while (closes_level(s, p) && s->depth > 1) {
        p = close_level(s, in, p);
        if (p == in->end)
            return p;
    }
    return p;
}

position scanner_quick(struct scanner *s, struct input *in, position p)
{
    bool object = in_object(s);

    while (in->end - p >= QUICK_BYTES) {
        position next;

        if (object) {
            next = quick_key(s, in, p);
            if (next == NULL)
                return p;
            p = next;
            if (in->end - p < QUICK_BYTES)
                return p;
        }
        if ((*p | 0x20) == '{') { /* or '[' */
            token_start(s, in, p);
            p = open_level(s, p);
            if (s->state == FAILED)
                return p;
            object = in_object(s);
            if (!closes_level(s, p))
                continue;
        } else {
            next = quick_scalar(s, in, p);
            if (next == NULL)
                return p;
            p = next;
            if (s->state == STRING)
                return p;
        }
        if (*p != ',') {
            p = quick_ends(s, in, p);
            if (p == in->end || *p != ',')
                return p;
            object = in_object(s);
        }
        s->state = object ? KEY : VALUE;
        p = skip_space(in, p + 1);
    }
    return p;
}
