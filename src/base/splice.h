/* A run of bytes with parts of it replaced. */
#ifndef STDIO_BUS_BASE_SPLICE_H
#define STDIO_BUS_BASE_SPLICE_H

#include "base/slice.h"

/* A part, and what takes its place. Several of them stand in the order of their offsets and do not
 * overlap. */
struct splice_edit {
    size_t offset, len;
    struct slice text;
};

static inline size_t splice_len(size_t len, const struct splice_edit *edits, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++)
        len += edits[i].text.len - edits[i].len;
    return len;
}

/* Writes what becomes of the bytes from `start` to `end`, between which all edits are. */
static inline void splice_write(char *to, const char *bytes, size_t start, size_t end,
                                const struct splice_edit *edits, unsigned count)
{
    const struct splice_edit *edit;

    for (edit = edits; edit < edits + count; edit++) {
        memcpy(to, bytes + start, edit->offset - start);
        to += edit->offset - start;
        if (edit->text.len > 0)
            memcpy(to, edit->text.data, edit->text.len);
        to += edit->text.len;
        start = edit->offset + edit->len;
    }
    memcpy(to, bytes + start, end - start);
}

#endif
