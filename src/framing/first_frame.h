/* The first frame of a stream from an unknown sender. It is read in the framing state->inner, but
 * nothing wrong is skipped before the frame is whole: a page in a browser could otherwise hide a
 * frame within HTTP or TLS. Where the framing has lengths, an opening line may come in its place
 * (state->may_open, to be set after the reset). */
#ifndef STDIO_BUS_FRAMING_FIRST_FRAME_H
#define STDIO_BUS_FRAMING_FIRST_FRAME_H

#include <stdbool.h>

#include "base/slice.h"
#include "framing/frame.h"

/* Reports FRAME_MALFORMED in place of FRAME_REFUSED; HTTP and TLS are FRAME_FAULT_FOREIGN. After
 * FRAME_WHOLE the owner continues with state->inner. There is no give_up: a late first frame is
 * malformed too. */
extern const struct framing framing_first_frame;

/* The opening line of a connection, before its first message and in any framing:
 * {"token":"...","pool":"..."}. */

#define OPENING_MAX 8192 /* bytes, newline included */

/* What stands between the quotes, in the line, escapes as they are; data NULL: the key is left
 * out. */
struct opening {
    struct slice token, pool;
};

/* Whether the line, which may be any text, has at most OPENING_MAX bytes and is an object with one
 * of these keys or both, each once and without escapes, and no other. *opening is valid then if the
 * line is JSON. */
bool opening_read(struct opening *opening, struct slice line);

#endif
