/* The seam between byte streams and messages: a table of functions for each framing, in a file of
 * its own. No table knows of another; connections bridge between them. */
#ifndef STDIO_BUS_FORMAT_FRAMING_H
#define STDIO_BUS_FORMAT_FRAMING_H

#include <stdint.h>

#include "base/slice.h"
#include "format/scanner.h"

enum frame_status {
    FRAME_MORE,      /* no whole message yet; the input is kept */
    FRAME_MESSAGE,   /* frame->body is a message; frame->consumed bytes are done with */
    FRAME_SKIP,      /* frame->consumed bytes carry no message (blank line, header) */
    FRAME_MALFORMED, /* the stream cannot go on; frame->problem says why */
    FRAME_WAIT,      /* as FRAME_MORE, from a framing that has limits of its own: state->begun says
                      * whether there is part of a frame */
    FRAME_REFUSED    /* a frame is wrong: frame->code and problem; frame->consumed bytes, perhaps
                      * none, are done with; the stream goes on */
};

struct frame {
    struct slice body;  /* what the input starts with: the JSON text, in NDJSON its newline too */
    size_t consumed;
    const char *problem; /* static text */
    int code;            /* the JSON-RPC error that fits */
};

#define FRAME_MAX_HEADER_BYTES 8192 /* of one frame's headers together */
#define FRAME_MAX_HEADERS 64

/* Where a connection is within its current message. A framing that announces lengths uses what
 * follows the scanner. */
struct framing_state {
    struct scanner scanner;
    size_t max_body; /* the owner's: the longest message; a longer body is refused and skipped */

    bool begun; /* part of a frame has come, and the rest is waited for */
    bool told;  /* what is wrong with that frame was told already */
    bool timed; /* the owner's: that frame's time runs; false again for the next one */

    /* The rest is theirs alone. */
    bool has_length, wrong_type;
    bool excused;          /* what comes may be the rest of a frame of which enough was said */
    unsigned char part;    /* of the frame, that the next byte belongs to */
    unsigned char line;    /* the part of a header */
    uint32_t headers;      /* whole ones so far */
    uint32_t looked;       /* bytes before the body that were looked at */
    uint32_t line_start;   /* of these, before the header that comes now */
    uint32_t name_len;     /* of its name, once that is known */
    uint64_t left;         /* bytes of the body, or of what is skipped of it */
};

/* Room for what stands before a body. */
#define FRAME_PREFIX_MAX 48

struct framing {
    const char *name; /* as in the configuration */
    void (*reset)(struct framing_state *state);
    /* Looks for the next message in `input`, which starts at the first byte not yet consumed. Goes
     * on where the last call with FRAME_MORE or FRAME_WAIT stopped. After FRAME_MESSAGE
     * state->scanner.fields are the message's and stay until the next call. After FRAME_MALFORMED
     * there is no next call without a reset. */
    enum frame_status (*next)(struct framing_state *state, struct slice input, struct frame *frame);
    /* Forgets the frame that has begun. The input, `dropped` bytes of that frame, is dropped by the
     * caller; what is still to come of it will be skipped. NULL: NDJSON. */
    void (*give_up)(struct framing_state *state, size_t dropped);
    /* Writes what stands before a body of this length; returns how long that is. NULL: NDJSON,
     * where a newline stands behind it instead. */
    size_t (*prefix)(char to[FRAME_PREFIX_MAX], size_t body_len);
};

/* One JSON object per line (spec 4.2.1, 5.1; transport contract). */
extern const struct framing framing_ndjson;

/* The rest of a line of which enough was seen: FRAME_SKIP for what is here of it, its newline
 * included, FRAME_MORE when nothing is. */
extern const struct framing framing_rest_of_line;

/* Content-Length: N, other headers, an empty line, the body (ADR-010). */
extern const struct framing framing_content_length;

/* The body's length in four bytes, the highest first, and the body. */
extern const struct framing framing_length;

/* The framing of this name, or NULL. */
const struct framing *framing_named(const char *name);

/* The names, as in a sentence: "ndjson, content-length or length". */
#define FRAMING_NAMES "ndjson, content-length or length"

#endif
