/* A run of bytes with parts of it replaced. */
#ifndef STDIO_BUS_BASE_SPLICE_H
#define STDIO_BUS_BASE_SPLICE_H

#include "base/assert.h"
#include "base/slice.h"

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
