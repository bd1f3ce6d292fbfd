/* The seam between byte streams and messages. One file per framing; NDJSON is the first. */
#ifndef STDIO_BUS_FORMAT_FRAMING_H
#define STDIO_BUS_FORMAT_FRAMING_H

#include "base/slice.h"
#include "format/scanner.h"

enum frame_status {
    FRAME_MORE,     /* no whole message yet */
    FRAME_MESSAGE,  /* frame->body is a message; frame->consumed bytes are done with */
    FRAME_SKIP,     /* frame->consumed bytes carry no message (blank line) */
    FRAME_MALFORMED /* the stream cannot go on; frame->problem says why */
};

struct frame {
    struct slice body;  /* the JSON text and the newline behind it; points into the input */
    size_t consumed;
    const char *problem; /* static text */
};

/* Where a connection is within its current message. */
struct framing_state {
    struct scanner scanner;
};

struct framing {
    const char *name; /* as in the configuration */
    void (*reset)(struct framing_state *state);
    /* Looks for the next message in `input`, which starts at the first byte not yet consumed. Goes
     * on where the last call with FRAME_MORE stopped. After FRAME_MESSAGE state->scanner.fields are
     * the message's and stay until the next call. After FRAME_MALFORMED there is no next call
     * without a reset. */
    enum frame_status (*next)(struct framing_state *state, struct slice input, struct frame *frame);
};

/* One JSON object per line (spec 4.2.1, 5.1; transport contract). */
extern const struct framing framing_ndjson;

#endif
