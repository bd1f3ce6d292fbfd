/* The bytes of a link: both directions between two daemons, in numbered pieces, over a broker that
 * may lose, repeat or reorder them. No I/O, no clock.
 *
 * A position counts the bytes of one direction from its beginning; its end counts as one more. Each
 * message says how far the sender has received, and up to where it takes bytes. What is not
 * acknowledged is kept, and sent again from there on if the other end asks for that. */
#ifndef STDIO_BUS_NATS_LINK_STREAM_H
#define STDIO_BUS_NATS_LINK_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "base/slice.h"

#define LINK_WINDOW 262144u /* bytes of one direction that are on their way, or not taken yet */
#define LINK_HEAD_LEN 33
#define LINK_PIECE_MAX 65536u /* bytes of one message, without the head */

enum link_kind {
    LINK_OPEN = 'O',    /* a request to a pool; its text names the asking node */
    LINK_ACCEPT = 'Y',  /* its answer; the text names the serving node */
    LINK_DECLINE = 'N', /* the same: the text is the reason */
    LINK_DATA = 'D',
    LINK_END = 'E',    /* of one direction, at this position */
    LINK_ACK = 'A',    /* positions alone */
    LINK_RESUME = 'R', /* the same: send again what is not acknowledged. The text is the address of
                        * the sender */
    LINK_CLOSE = 'C',  /* of both directions, at once; the text is the reason */
    LINK_LIFE = 'L',   /* from node to node; the text is the id of the sender */
    LINK_GONE = 'B',   /* the same: the sender knows no link between both nodes */
    LINK_ASK = 'Q',    /* a request: which node has the session; its text is the address of the
                        * sender, and the session after a line feed */
    LINK_HAS = 'H',    /* its answer: the sender; DECLINE: it has another one of that hash */
    LINK_CLAIM = 'M',  /* the sender has the session since so many ms (position); text as in ASK */
    LINK_YIELD = 'V'   /* to a node that claims it, too: it gives it up; pool and session */
};

struct link_message {
    enum link_kind kind;
    uint64_t mark;     /* of the link, if the message has positions; otherwise 0 */
    uint64_t position; /* of the payload */
    uint64_t received; /* by the sender */
    uint64_t limit;    /* the sender takes bytes below this */
    struct slice payload;
};

/* What both ends of a link know of it is the sum of this for each of them. A server that sends a
 * message to another link, or with another length, changes the mark of the message. */
uint64_t link_mark(const char *id, uint64_t number);

/* False: it is none. The payload borrows from the bytes. */
bool link_message_read(struct link_message *message, struct slice bytes);

/* All of the message but its payload. */
void link_message_write(char to[LINK_HEAD_LEN], const struct link_message *message);

/* Bytes in order; an empty one has no memory. */
struct link_bytes {
    char *data;
    size_t start, len, size;
};

/* Zeroed: a new one, which sends nothing before the other end has said a limit. */
struct link_stream {
    struct link_bytes kept;    /* sent, from `acked` on, and to be sent */
    struct link_bytes pending; /* received, from `taken` on */
    uint64_t acked, sent, limit;
    uint64_t reached; /* by all that was sent, once or again; the end is one more */
    uint64_t received, taken;
    uint64_t said_received, said_limit; /* what the other end was told last */
    bool ends;                          /* no more bytes are added; that: */
    bool end_sent, end_acked;
    bool has_ended; /* the other end adds no more */
    bool asks;      /* for bytes that are missing: not again before some of them have come */
};

/* --- sending --- */

/* Where bytes can be put, and how many, at most `*len`; NULL if out of memory, or none is taken now
 * (*len is 0 then). */
char *link_stream_reserve(struct link_stream *stream, size_t *len);

/* The first `len` of them are to be sent. */
void link_stream_add(struct link_stream *stream, size_t len);

/* How many bytes may be added now. */
size_t link_stream_room(const struct link_stream *stream);

/* The next message with at most `max` bytes, whose payload lives until the next call. False: there
 * is none to be sent. */
bool link_stream_next(struct link_stream *stream, size_t max, struct link_message *message);

/* A message of the kind without bytes, that says how far both directions are. */
struct link_message link_stream_positions(struct link_stream *stream, enum link_kind kind);

/* No more bytes are added. */
static inline void link_stream_end(struct link_stream *stream)
{
    stream->ends = true;
}

/* What is not acknowledged is to be sent again. */
void link_stream_send_again(struct link_stream *stream);

/* Whether anything that was sent is not acknowledged. */
bool link_stream_is_unacked(const struct link_stream *stream);

/* --- receiving --- */

enum link_verdict {
    LINK_FINE,
    LINK_MISSING,    /* bytes before these have not come: to be asked for, once */
    LINK_IMPOSSIBLE, /* no such message can be from the other end */
    LINK_NO_MEMORY
};

/* Takes what a message says, of one that has positions. The bytes that are new are pending. */
enum link_verdict link_stream_take(struct link_stream *stream, const struct link_message *message);

static inline struct slice link_stream_pending(const struct link_stream *stream)
{
    const struct link_bytes *pending = &stream->pending;

    return pending->len == 0 ? slice_of(NULL, 0)
                             : slice_of(pending->data + pending->start, pending->len);
}

/* This number of pending bytes was taken by the owner. */
void link_stream_taken(struct link_stream *stream, size_t len);

/* Whether the other end should be told how far this one is: soon, because it may have to wait for
 * that; or at all. */
bool link_stream_owes(const struct link_stream *stream, bool soon);

/* Both directions are at their end: there is nothing more to send, nor to take. */
bool link_stream_is_over(const struct link_stream *stream);

/* Frees what is kept. */
void link_stream_free(struct link_stream *stream);

/* Saves it in an archive, or loads it into a zeroed one. */
void link_stream_archive(struct archive *archive, struct link_stream *stream);

#endif
