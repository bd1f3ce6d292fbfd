/* The state of a connection: a pair of descriptors (the same one for a socket), the framing of both
 * directions, the input not consumed yet, the output queue (spec 4.2, 5.1, 7.3). */
#ifndef STDIO_BUS_TRANSPORT_CONNECTION_STATE_H
#define STDIO_BUS_TRANSPORT_CONNECTION_STATE_H

#include <stdbool.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/queue.h"
#include "event/event_loop.h"
#include "framing/framing.h"

/* The memory of long messages in one direction (transport/memory.h). */
struct memory_share {
    size_t queued;        /* in queues */
    size_t reserved;      /* by holders */
    size_t growing;       /* of that by lines that may become longer than what they reserved */
    struct list holders;  /* connections that have a reservation */
    struct list outgrown; /* connections that wait for a larger one: before those of: */
    struct list waiting;  /* connections that wait for one, in the order in which they came */
    bool settled;         /* none of these gets one, unless there is more room than then: */
    size_t settled_queued, settled_half;
};

/* What the connections of one user or address have together. */
struct transport_origin {
    size_t reserved;
    size_t growing;           /* of that, as in memory_share */
    uint64_t turn;            /* of its last reservation */
    size_t waiting_count;     /* its connections that wait for one */
    uint64_t round;           /* of the event loop, in which it has: */
    size_t read;              /* bytes (transport/origin.h) */
    struct list readers;      /* its connections that wait to be read, the next one first */
    struct list_node reading; /* in transport->reading while there are any */
};

/* What all connections of a bus share. */
struct transport {
    struct stdio_bus_event_loop *loop;
    struct log *log;
    const struct limits *limits;
    struct buffer_pool pool;
    uint64_t memory_turns;
    size_t kept; /* bytes that tables of the router take from the clients' half of max_memory */
    size_t origin_count;           /* of all connections */
    uint64_t round;                /* of the event loop, counted */
    struct list reading;           /* struct transport_origin, the next one first */
    size_t reader_count;           /* connections that wait to be read */
    struct connection *in_turn;    /* the one whose turn it is now; NULL: none */
    struct list dirty;             /* connections with output queued in this round */
    size_t waiting_count;          /* connections that wait for memory */
    struct memory_share shares[2]; /* of what clients send, of what workers send */
    bool is_tight;                 /* most of max_memory is used: queues are full at less */
    bool is_awaited;               /* workers wait for the memory of long messages */
    writev_fn *writes;             /* in place of write and writev; NULL: those */
};

enum connection_failure {
    CONNECTION_BROKEN,  /* a read or write failed, or the peer hung up */
    CONNECTION_STALLED, /* the queue stayed full for backpressure_timeout_sec (spec 7.3.1) */
    CONNECTION_LINGERED /* connection_linger has come to its end */
};

/* What connections have carried. */
struct traffic {
    uint64_t bytes_in, bytes_out, frames_in, frames_out;
};

static inline void traffic_add(struct traffic *to, const struct traffic *more)
{
    to->bytes_in += more->bytes_in;
    to->bytes_out += more->bytes_out;
    to->frames_in += more->frames_in;
    to->frames_out += more->frames_out;
}

struct connection;

/* Reports to the owner of a connection. Any callback may close the connection. */
struct connection_handler {
    /* A whole frame; in NDJSON with its newline. If it was cut, what is left of it. The bytes live
     * until the frame moved to another connection or the call returns. Calls connection_pause to
     * get the same frame again after connection_resume. */
    void (*frame)(struct connection *connection, struct slice body);
    /* The input cannot continue (spec 4.3.1, 5.3, 7.3.2): the rest of it is thrown away. */
    void (*malformed)(struct connection *connection, enum frame_fault fault, const char *problem);
    /* In place of malformed, where bad lines are skipped. `line`: the whole of it, or its first
     * CONNECTION_SHOWN_BYTES or more; lives until the call returns. */
    void (*skipped)(struct connection *connection, struct slice line, const char *problem);
    /* A frame was refused and is skipped, and the input continues (ADR-010); after connection_pause
     * only after connection_resume. */
    void (*refused)(struct connection *connection, enum frame_fault fault, const char *problem);
    /* FRAME_NOTED; NULL where the framing has none. */
    void (*noted)(struct connection *connection);
    /* End of input, after its last frame. `cut`: bytes of an unterminated line, dropped. */
    void (*ended)(struct connection *connection, size_t cut);
    /* The output queue exceeds max_output_queue, or is below half of it again. */
    void (*full)(struct connection *connection, bool full);
    /* `error`: errno's value for CONNECTION_BROKEN, 0 for a hang-up. The owner closes. */
    void (*failed)(struct connection *connection, enum connection_failure failure, int error);
    /* No memory to read into: the input is paused. */
    void (*starved)(struct connection *connection);
};

#define CONNECTION_SHOWN_BYTES 160

/* With less room a read costs more than new room does. */
#define CONNECTION_ROOM_MIN ((size_t)16384)

/* A peer that reads late takes bytes so long after the last ones. The buffers of both systems may
 * take some, too, but not as many. */
#define CONNECTION_LATE_MS 20
#define CONNECTION_LATE_BYTES ((size_t)262144)

enum connection_input_state {
    INPUT_CLOSED,    /* the connection is not open */
    INPUT_OPEN,      /* frames are taken as they come */
    INPUT_PAUSED,    /* nothing is taken until connection_resume */
    INPUT_ENDED,     /* read to its end, and that was reported */
    INPUT_DEAF,      /* thrown away */
    INPUT_DEAF_ENDED /* thrown away, and read to its end */
};

enum connection_output_state {
    OUTPUT_CLOSED,
    OUTPUT_SHUT,      /* the peer was told that there is no more, and has a moment to close */
    OUTPUT_LINGERING, /* the last bytes are being written; from here on bytes are taken */
    OUTPUT_OPEN,
    OUTPUT_ENDING /* open until the queue is written */
};

/* A zeroed one is closed. The owner reads it and changes it through functions only. */
struct connection {
    struct transport *transport;
    const struct connection_handler *handler;
    const struct framing *framing;
    const struct framing *reader; /* of the input: framing_first_frame, or the same */
    const char *context;          /* for the log */
    struct framing_state framing_state;
    size_t max_long;         /* of framing_state, after connection_hand_over */
    int fd_in, fd_out;       /* -1: closed */
    int flags_in, flags_out; /* of a borrowed descriptor, which gets them back; else -1 */
    enum connection_input_state input_state;
    enum connection_output_state output_state;
    unsigned interest;       /* STDIO_BUS_EVENT_READ, _WRITE */
    bool watches_hangup;     /* of a paused socket: connection_watch_hangup */
    bool has_lines;          /* the framing is NDJSON */
    bool skips_bad_lines;    /* instead of reporting malformed; lines only */
    bool full;               /* more than max_output_queue, and not below half of it since */
    struct buffer *input;    /* bytes not consumed yet; NULL: none */
    size_t expected;         /* length of a recent frame that was longer than a read; 0: none */
    size_t at_hand;          /* length of the frame that the owner has, or gets again after a pause:
                           * the first bytes of the input; 0: none */
    bool same_socket;        /* the descriptors are two of one socket */
    bool of_worker;          /* the peer is a worker, otherwise a client */
    size_t reserved;         /* bytes for the message that is read; 0: none */
    size_t awaited;          /* it waits for this number; 0: it does not wait */
    int64_t awaited_ms;      /* since then */
    bool grows;              /* a line that may need a larger reservation */
    struct list_node memory; /* in a list of its memory_share */
    struct list_node read_turn;      /* in origin->readers: it is not watched for reading */
    struct transport_origin *origin; /* NULL: none, or a worker\'s */
    uint64_t timed_frames;           /* frames_in when the time of a line was started */
    struct queue output;
    /* While its queue is full, or others wait for memory: */
    int64_t jammed_ms; /* since when the descriptor takes less than the queue has; 0: it took all */
    int64_t took_ms;   /* when it last took anything, or jammed_ms */
    size_t late_bytes; /* bytes that it took CONNECTION_LATE_MS or more after the last ones */
    uint64_t bytes_in, bytes_out;   /* read, written */
    uint64_t frames_in, frames_out; /* taken by the owner, queued */
    struct list_node dirty;         /* in transport->dirty */
    uint64_t
        looked_out; /* bytes_out at the last connection_took_nothing, plus 1; 0: there was none */
    struct timer stall;      /* while full, lingering or shut */
    struct timer frame_time; /* while part of a frame is here that is not paused */
};

/* Whether the peer has shown that it reads, if slowly. */
static inline bool connection_reads_late(const struct connection *connection)
{
    return connection->late_bytes >= CONNECTION_LATE_BYTES;
}

static inline bool connection_is_open(const struct connection *connection)
{
    return connection->input_state != INPUT_CLOSED;
}

/* The pointers are borrowed until transport_free. */
void transport_init(struct transport *transport, struct stdio_bus_event_loop *loop, struct log *log,
                    const struct limits *limits);

static inline void transport_origin_init(struct transport_origin *origin)
{
    list_init(&origin->readers);
}

/* Frees the pool. No connection may be open. */
void transport_free(struct transport *transport);

/* How many bytes of output are too many. While memory is tight these are few, since all queues
 * together could take more than there is. */
static inline size_t connection_queue_max(const struct transport *transport)
{
    size_t max = transport->limits->max_output_queue;

    return transport->is_tight && max > BUFFER_LARGE ? BUFFER_LARGE : max;
}

/* After a write that took this number of bytes: notes since when the descriptor does not take all,
 * and whether the peer reads nevertheless. */
void connection_note_jam(struct connection *connection, size_t took, bool jammed);

/* Adds what the connection has carried. */
static inline void connection_add_traffic(const struct connection *connection, struct traffic *to)
{
    to->bytes_in += connection->bytes_in;
    to->bytes_out += connection->bytes_out;
    to->frames_in += connection->frames_in;
    to->frames_out += connection->frames_out;
}

/* Moves the counts there: those of the connection are 0. */
void connection_move_traffic(struct connection *connection, struct traffic *to);

/* Starts the time of the current frame again. */
void connection_start_frame_time(struct connection *connection, int64_t ms);

/* Closes a descriptor; a borrowed one gets its flags back instead. */
void connection_release_fd(struct connection *connection, int fd, int flags);

/* Changes the interest in events. Failing that, reports CONNECTION_BROKEN. */
void connection_watch(struct connection *connection, unsigned interest);

#endif
