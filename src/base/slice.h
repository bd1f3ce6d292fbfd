/* A borrowed run of bytes, not NUL-terminated. The function that returns one documents how long it
 * lives. */
#ifndef STDIO_BUS_BASE_SLICE_H
#define STDIO_BUS_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/assert.h"

struct slice {
    const char *data;
    size_t len;
};

static inline struct slice slice_of(const char *data, size_t len)
{
    return (struct slice){.data = data, .len = len};
}

static inline struct slice slice_of_text(const char *text)
{
    return slice_of(text, strlen(text));
}

static inline struct slice slice_without_newline(struct slice line)
{
    if (line.len > 0 && line.data[line.len - 1] == '\n')
        line.len--;
    return line;
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool slice_is(struct slice slice, const char *text)
{
    return slice_equal(slice, slice_of_text(text));
}

static inline bool slice_is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Without the spaces and tabs around. */
static inline struct slice slice_trim(struct slice text)
{
    while (text.len > 0 && slice_is_blank(text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && slice_is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

/* A copy with a NUL after it, to be freed; of no bytes "". NULL: out of memory. */
char *slice_copy(struct slice slice);

/* --- A run of bytes with parts of it replaced. --- */

/* The `len` bytes at `offset` are replaced by `text`. Edits are in the order of their offsets and
 * do not overlap. */
struct splice_edit {
    size_t offset, len;
    struct slice text;
};

static inline size_t splice_len(size_t len, const struct splice_edit *edits, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        len += edits[i].text.len - edits[i].len;
    return len;
}

/* Writes the edited bytes from `start` to `end`; all edits are within. */
static inline void splice_write(char *to, const char *bytes, size_t start, size_t end,
                                const struct splice_edit *edits, unsigned count)
{
    for (const struct splice_edit *edit = edits; count > 0; edit++, count--) {
        ASSERT(start <= edit->offset && edit->offset + edit->len <= end);
        memcpy(to, bytes + start, edit->offset - start);
        to += edit->offset - start;
        if (edit->text.len > 0)
            memcpy(to, edit->text.data, edit->text.len);
        to += edit->text.len;
        start = edit->offset + edit->len;
    }
    memcpy(to, bytes + start, end - start);
}

/* Cuts off the text before the first separator, which is taken out, too; all of it without one.
 * Returns whether there is one. */
static inline bool slice_cut(struct slice *text, char separator, struct slice *before)
{
    const char *found = text->len > 0 ? memchr(text->data, separator, text->len) : NULL;
    size_t len = found != NULL ? (size_t)(found - text->data) : text->len;

    *before = slice_of(text->data, len);
    *text = found != NULL ? slice_of(found + 1, text->len - len - 1) : slice_of(NULL, 0);
    return found != NULL;
}

/* Writes both texts and the separator between them, for slice_cut. `to` has room for all. */
static inline struct slice slice_join(char *to, struct slice before, char separator,
                                      struct slice text)
{
    if (before.len > 0)
        memcpy(to, before.data, before.len);
    to[before.len] = separator;
    if (text.len > 0)
        memcpy(to + before.len + 1, text.data, text.len);
    return slice_of(to, before.len + 1 + text.len);
}

/* Each `byte` becomes a space. */
static inline void splice_blank(char *text, size_t len, char byte)
{
    char *end = text + len, *found;

    while (text < end && (found = memchr(text, byte, (size_t)(end - text))) != NULL) {
        *found = ' ';
        text = found + 1;
    }
}

#endif
