/* A connection: a pair of descriptors (the same one for a socket), the framing of its input, its
 * output queue, and flow control in both directions (spec 4.2, 5.1, 7.3).
 *
 * Everything queued in a round of the event loop is written once, by transport_flush. */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_H
#define STDIO_BUS_TRANSPORT_CONNECTION_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/splice.h"
#include "event/event_loop.h"
#include "format/framing.h"
#include "format/message.h"

/* What all connections of a bus share. */
struct transport {
    struct stdio_bus_event_loop *loop;
    struct log *log;
    const struct limits *limits;
    struct buffer_pool pool;
    struct list dirty; /* connections with output queued in this round */
};

enum connection_verdict {
    CONNECTION_NEXT, /* done with this message */
    CONNECTION_HELD  /* offer it again after connection_resume; nothing is read meanwhile */
};

enum connection_failure {
    CONNECTION_BROKEN,  /* a read or write failed, or the peer hung up */
    CONNECTION_STALLED, /* its queue stayed full for backpressure_timeout_sec (spec 7.3.1) */
    CONNECTION_LINGERED /* connection_linger has come to its end */
};

struct connection;

/* What a connection tells its owner. Any callback may close the connection. */
struct connection_handler {
    /* A whole message. `problem`: its routing fields cannot be extracted (spec 4.3.2). The message
     * lives until its bytes were forwarded or the call returns. */
    enum connection_verdict (*message)(struct connection *connection,
                                       const struct message *message,
                                       enum message_problem problem);
    /* The input cannot go on (spec 4.3.1, 5.3, 7.3.2): no more of it is looked at. `code` is the
     * JSON-RPC error that fits. Not told where bad lines are skipped. */
    void (*malformed)(struct connection *connection, int code, const char *problem);
    /* A frame was refused and is skipped, and the input goes on (ADR-010). CONNECTION_HELD: nothing
     * more of it is looked at until connection_resume. */
    enum connection_verdict (*refused)(struct connection *connection, int code,
                                       const char *problem);
    /* End of input, after its last message. `cut`: bytes of an unterminated line, dropped. */
    void (*ended)(struct connection *connection, size_t cut);
    /* The output queue exceeds max_output_queue, or is below half of it again. */
    void (*full)(struct connection *connection, bool full);
    /* The output queue has been written to its end. */
    void (*flushed)(struct connection *connection);
    /* `error`: errno's value for CONNECTION_BROKEN, 0 for a hang-up. */
    void (*failed)(struct connection *connection, enum connection_failure failure, int error);
    /* No memory to read into: the connection counts as held until connection_resume. */
    void (*starved)(struct connection *connection);
};

struct connection {
    struct transport *transport;
    const struct connection_handler *handler;
    const struct framing *framing; /* of both directions; before connection_open NULL: NDJSON */
    struct framing_state framing_state;
    int fd_in, fd_out;     /* -1: closed */
    bool lent_in, lent_out; /* the descriptor is not closed, and gets its flags back */
    int flags_in, flags_out;
    struct buffer *input;  /* bytes not yet consumed; NULL: none */
    size_t expected;       /* length of a recent message that was longer than a read; 0: none */
    struct frame offered;  /* the held message, body relative to input; consumed 0: none */
    struct queue output;
    struct list_node dirty;
    struct timer stall;
    struct timer frame_time; /* started while part of a frame is here and not held */
    bool open;
    bool reading;      /* interest in input is registered */
    bool writing;      /* interest in output is registered */
    bool held;
    bool resumed;      /* it has gone on after a hold; the owner's to clear */
    bool input_ended;  /* read() returned 0 */
    bool ended_told;
    bool deaf;         /* input is thrown away */
    bool lingering, shut;
    bool is_full;
    bool framed;       /* the framing is not NDJSON */
    bool takes_lines;  /* output is open, and in NDJSON */
    bool handed_over;  /* the message at hand went away with its buffer */
    bool skips_bad_lines; /* the owner's: instead of calling them malformed; lines only */
    unsigned long skipped; /* bad lines so far */
    char context[48];  /* for the log: "client=3" */
};

void transport_init(struct transport *transport, struct stdio_bus_event_loop *loop,
                    struct log *log, const struct limits *limits);
void transport_free(struct transport *transport);

/* Writes what was queued in this round, each connection once. */
void transport_flush(struct transport *transport);

/* Opens a connection, zeroed but for its framing, over two descriptors, which become non-blocking,
 * and starts reading. They belong to the connection then, unless `borrowed`: where it can, it then
 * opens descriptors of its own, and leaves the flags of these alone. STDIO_BUS_ERR with errno set,
 * and then they are the caller's still. */
int connection_open(struct connection *connection, struct transport *transport,
                    const struct connection_handler *handler, int fd_in, int fd_out,
                    bool borrowed);

/* Closes both descriptors, forgets what is queued or unread. Idempotent; a zeroed one is fine. */
void connection_close(struct connection *connection);

/* Closes the output descriptor alone (which is not the input's), so that the peer sees its end. */
void connection_close_output(struct connection *connection);

/* Queues a copy of the message, a line with its newline, in the framing of the connection.
 * STDIO_BUS_ERR when memory is out, and then nothing was queued. */
int connection_send(struct connection *to, struct slice line);

/* Queues the message that `from` is offering, in the framing of `to`; a large one moves with its
 * buffer. On success the message's slices are dead. Where a body becomes a line, spaces take the
 * place of its newlines, which a body can have between its tokens only. STDIO_BUS_ERR when memory
 * is out, and then nothing was queued. */
int connection_forward(struct connection *to, struct connection *from, struct slice bytes);

/* The same, and the message stays: for one that goes to several. */
int connection_copy(struct connection *to, struct connection *from, struct slice bytes);

/* As connection_forward, with parts of the message replaced. */
int connection_forward_edited(struct connection *to, struct connection *from, struct slice bytes,
                              const struct splice_edit *edits, unsigned count);

/* Tells that a line is skipped, or a message that the owner has no use for, and counts it. */
void connection_tell_skipped(struct connection *connection, struct slice line,
                             const char *problem);

/* Goes on after a CONNECTION_HELD. */
void connection_resume(struct connection *connection);

/* Starts the time of a full queue over, as if it had become full just now. */
void connection_renew_stall(struct connection *connection);

/* Throws all further input away, unread. */
void connection_stop_input(struct connection *connection);

/* Orderly end: input is thrown away from now on; what is queued is written, then the peer is told
 * that there is no more and given a moment to close, so that it can read our last words. Ends in
 * failed(CONNECTION_LINGERED), or another failure. */
void connection_linger(struct connection *connection);

#endif
