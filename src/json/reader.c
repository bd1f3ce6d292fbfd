#include "build_config.h"

#include "json/reader.h"

#include "base/utf8.h"
#include "json/number.h"
#include "json/string.h"

/* The end of the escape at the backslash p, or NULL. */
static const char *escape_end(const char *p, const char *end)
{
    if (end - p < 2)
        return NULL;
    if (p[1] != 'u')
        return p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) != NULL ? p + 2 : NULL;
    if (end - p < 6)
        return NULL;
    for (unsigned i = 2; i < 6; i++) {
        if (!is_hex_digit((unsigned char)p[i]))
            return NULL;
    }
    return p + 6;
}

bool json_take_string(struct json_reader *r, struct slice *raw, bool *escaped)
{
    const char *start, *p;
    size_t len;

    if (!json_take(r, '"'))
        return false;
    *escaped = false;
    for (p = start = r->p; p != NULL && p < r->end && *p != '"';) {
        if (*p == '\\') {
            *escaped = true;
            p = escape_end(p, r->end);
        } else if ((unsigned char)*p < 0x80) {
            p = (unsigned char)*p < 0x20 ? NULL : p + 1;
        } else {
            len = utf8_sequence((const unsigned char *)p, (const unsigned char *)r->end);
            p = len > 0 ? p + len : NULL;
        }
    }
    if (p == NULL || p == r->end)
        return false;
    *raw = slice_of(start, (size_t)(p - start));
    r->p = p + 1;
    return true;
}

bool json_take_text(struct json_reader *r, struct slice *text, char *room, size_t size)
{
    bool escaped;

    if (!json_take_string(r, text, &escaped))
        return false;
    if (escaped)
        *text = slice_of(room, json_string_decode(room, size, *text));
    return !escaped || text->len <= size;
}

static bool take_digits(struct json_reader *r)
{
    const char *start = r->p;

    while (r->p < r->end && is_digit(*r->p))
        r->p++;
    return r->p > start;
}

/* Takes a number that is ignored. */
static bool skip_number(struct json_reader *r)
{
    r->p += *r->p == '-';
    if (r->p < r->end && *r->p == '0')
        r->p++;
    else if (!take_digits(r))
        return false;
    if (r->p < r->end && *r->p == '.') {
        r->p++;
        if (!take_digits(r))
            return false;
    }
    if (r->p < r->end && (*r->p | 0x20) == 'e') {
        r->p++;
        r->p += r->p < r->end && (*r->p == '+' || *r->p == '-');
        return take_digits(r);
    }
    return true;
}

static bool skip_word(struct json_reader *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->p) < len || memcmp(r->p, word, len) != 0)
        return false;
    r->p += len;
    return true;
}

static bool skip_scalar(struct json_reader *r)
{
    struct slice raw;
    bool escaped;

    switch (json_peek(r)) {
    case '"':
        return json_take_string(r, &raw, &escaped);
    case 't':
        return skip_word(r, "true");
    case 'f':
        return skip_word(r, "false");
    case 'n':
        return skip_word(r, "null");
    case '\0':
        return false;
    default:
        return skip_number(r);
    }
}

static bool skip_key(struct json_reader *r)
{
    struct slice raw;
    bool escaped;

    return json_take_string(r, &raw, &escaped) && json_take(r, ':');
}

/* Takes the ends of containers, and what separates the next value from the last. False: it is
 * wrong, or there is no next value: *depth is 0 then. */
static bool skip_to_next(struct json_reader *r, const char *closers, unsigned *depth)
{
    while (*depth > 0) {
        if (json_take(r, ','))
            return closers[*depth - 1] == ']' || skip_key(r);
        if (!json_take(r, closers[*depth - 1]))
            return false;
        --*depth;
    }
    return false;
}

bool json_skip_value(struct json_reader *r)
{
    char closers[JSON_READER_MAX_DEPTH] UNINITIALIZED;
    unsigned depth = 0;

    for (;;) {
        char c = json_peek(r);

        if (c == '{' || c == '[') {
            if (depth == JSON_READER_MAX_DEPTH)
                return false;
            r->p++;
            closers[depth++] = c == '{' ? '}' : ']';
            if (json_peek(r) != closers[depth - 1]) {
                if (c == '{' && !skip_key(r))
                    return false;
                continue;
            }
        } else if (!skip_scalar(r)) {
            return false;
        }
        if (!skip_to_next(r, closers, &depth))
            return depth == 0;
    }
}
