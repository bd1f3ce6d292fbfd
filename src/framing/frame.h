/* The seam between a byte stream and its frames: one table of functions per framing. No framing
 * knows another; connections bridge between them. */
#ifndef STDIO_BUS_FRAMING_FRAME_H
#define STDIO_BUS_FRAMING_FRAME_H

#include <stdint.h>

#include "base/slice.h"

enum frame_status {
    FRAME_MORE,      /* no whole frame yet; the input is kept */
    FRAME_WHOLE,     /* a body: the first frame->consumed bytes, in NDJSON with the newline */
    FRAME_SKIP,      /* frame->consumed bytes are no body (blank line, header) */
    FRAME_MALFORMED, /* frame->fault and problem; the stream ends, or give_up skips the frame */
    FRAME_WAIT,      /* as FRAME_MORE, from a framing that bounds its input by itself */
    FRAME_REFUSED,   /* frame->fault and problem; frame->consumed bytes, perhaps none, are done
                      * with; the rest of the frame will be skipped, and the stream continues */
    FRAME_REWRITE,   /* the body is in pieces: `rewrite` is due, and then next again */
    FRAME_NOTED      /* frame->consumed bytes, perhaps none, are done with: they, or bytes within
                      * the current frame, said what state->reader knows */
};

enum frame_fault {
    FRAME_FAULT_SYNTAX,   /* the head or the body cannot be read, or the frame is cut */
    FRAME_FAULT_TOO_LONG, /* the head or the body */
    FRAME_FAULT_TYPE,     /* the content has another type than the framing carries */
    FRAME_FAULT_FOREIGN   /* the stream is of another protocol: it gets no reply */
};

struct frame {
    size_t consumed;     /* the first bytes of the input */
    const char *problem; /* static text */
    enum frame_fault fault;
};

/* --- the body --- */

enum body_status {
    BODY_MORE,    /* good so far */
    BODY_WHOLE,   /* a line: frame->consumed bytes, its newline included */
    BODY_BLANK,   /* a line of white space: the same */
    BODY_INVALID, /* frame->problem; frame->consumed bytes are good */
    BODY_TRAILING /* BODY_INVALID because of what follows a whole body */
};

/* Judges the body of a frame while it arrives. `state` belongs to the owner of the stream. */
struct body_check {
    /* Ready for the first byte of a body. `sized`: a newline does not end it, only `end` does. */
    void (*reset)(void *state, bool sized);
    /* `input` is the body as far as it is here: the bytes of the earlier calls again (same content,
     * perhaps elsewhere in memory) and new ones. After WHOLE or BLANK the next call is for the next
     * line; after INVALID or TRAILING a reset is due. */
    enum body_status (*run)(void *state, struct slice input, struct frame *frame);
    /* A sized body ends after the bytes of the last call of run: WHOLE or INVALID. */
    enum body_status (*end)(void *state, struct frame *frame);
    /* The body is long: its owner will know (`cut`: that it is not whole). */
    void (*mark)(void *state, bool cut);
    /* The body is too long to be kept. `body` is the whole input of the last call of run, which
     * returned MORE: the bytes that still matter move to its front, and are the body so far from
     * now on. Returns how many these are. */
    size_t (*cut)(void *state, char *body, size_t len);
};

/* --- the framings --- */

/* Where a stream is within its current frame. The owner sets the members of the first group. */
struct framing_state {
    const struct body_check *check;
    void *check_state;
    size_t max_body; /* a longer body is refused or, where max_long is set, marked as long */
    size_t max_long; /* a longer one is cut; 0: none is long. At least max_body */
    bool wary;       /* what only HTTP has is malformed, at any time */
    const struct framing *inner; /* of framing_first_frame */
    bool may_open;               /* the same: the first frame may be an opening line */
    void *reader;                /* of a framing that has more state than this */

    bool begun;    /* part of a frame is here, and the rest is awaited */
    bool reported; /* that frame was refused already */
    bool cut;      /* it is longer than max_long: its owner keeps only what `cut` leaves */
    bool timed;    /* the owner's: the time of that frame runs; false again for the next one, and
                    * wherever the time begins again */
    uint32_t frame_ms; /* the time of the current part; 0: frame_timeout_sec */

    /* The framing's own. */
    bool looked_at_start; /* the first bytes are not another protocol's */
    bool has_length, wrong_type;
    bool leftover;       /* what comes may be the rest of a frame that was refused */
    unsigned char part;  /* of the frame, that the next byte belongs to */
    unsigned char line;  /* the part of a header line */
    uint32_t headers;    /* whole ones so far */
    uint32_t looked;     /* bytes of the head that were looked at */
    uint32_t line_start; /* offset of the current header line */
    uint32_t name_len;   /* of the header's name */
    uint64_t left;       /* bytes of the body, or of what is skipped of it */
};

#define FRAME_MAX_HEADER_BYTES 8192 /* of one frame's headers together */
#define FRAME_MAX_HEADERS 64
#define FRAME_PREFIX_MAX 48 /* bytes before a body that is sent */

struct framing {
    const char *name; /* as in the configuration */
    /* Ready for the first frame; the members that the owner sets stay. */
    void (*reset)(struct framing_state *state);
    /* Finds the next frame in `input`, which starts at the first byte not consumed yet. Continues
     * where the last call with FRAME_MORE or FRAME_WAIT stopped. */
    enum frame_status (*next)(struct framing_state *state, struct slice input, struct frame *frame);
    /* Abandons the current frame, of which the caller drops `dropped` bytes of input. The rest of
     * the frame will be skipped. NULL: a frame that is late is malformed. */
    void (*give_up)(struct framing_state *state, size_t dropped);
    /* Cuts the body of the current frame, which is too long to be kept. `input` is that of the last
     * call of next, which returned FRAME_MORE or FRAME_WAIT within a body. Returns how many bytes
     * are left at its front. The end of the frame is FRAME_WHOLE all the same, and its body is
     * marked as cut. */
    size_t (*cut)(struct framing_state *state, char *input, size_t len);
    /* After FRAME_REWRITE, with the same input: puts the pieces of the body together at its front,
     * as far as they are here. Returns how many bytes the input has now. NULL: bodies are in one
     * piece. */
    size_t (*rewrite)(struct framing_state *state, char *input, size_t len);
    /* Writes what precedes a body of this length; returns the length of that. NULL: a newline
     * follows the body instead. */
    size_t (*prefix)(char to[FRAME_PREFIX_MAX], size_t body_len);
};

/* One body per line (spec 4.2.1, 5.1; transport contract). */
extern const struct framing framing_ndjson;
/* Content-Length: N, other headers, an empty line, the body (ADR-010). */
extern const struct framing framing_content_length;
/* The length of the body in four bytes, most significant first, and the body. */
extern const struct framing framing_length;

#endif
