/* What a connection sends: lines, bodies in its framing, or bytes that its owner frames. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_SEND_H
#define STDIO_BUS_TRANSPORT_CONNECTION_SEND_H

#include "base/splice.h"
#include "transport/connection_output.h"

/* Queue a line, its newline included, a line of which edits replace parts (at least one edit), or a
 * body, in the framing of `to`; the queue is written at the end of the round. In a body that
 * becomes a line, spaces take the place of newlines, which JSON has between its tokens only.
 * `from`: the connection whose current frame the bytes are. A large frame moves with its buffer,
 * and its bytes are dead after STDIO_BUS_OK. NULL: the bytes are copied. Where the output is closed
 * or shut, the bytes are lost, as if on the way. STDIO_BUS_ERR if out of memory, and then nothing
 * was queued. */
int connection_send_line(struct connection *to, struct connection *from, struct slice line);
int connection_send_edited(struct connection *to, struct connection *from, struct slice line,
                           const struct splice_edit *edits, unsigned count);
int connection_send_body(struct connection *to, struct connection *from, struct slice body,
                         const struct splice_edit *edits, unsigned count);

/* What surrounds a body whose owner frames it. The bytes are copied. */
struct connection_parts {
    struct slice before, after;
    bool one_line; /* spaces take the place of newlines in the body */
};

/* The same for a body between other bytes, in no framing: all of it is queued, or nothing. `body`
 * may be less than the current frame, but begins where that does: a line without its newline. */
int connection_send_parts(struct connection *to, struct connection *from,
                          const struct connection_parts *parts, struct slice body,
                          const struct splice_edit *edits, unsigned count);

/* The same for bytes as they are, in no framing. */
int connection_send_bytes(struct connection *to, struct slice bytes);

#endif
