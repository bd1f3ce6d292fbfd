/* The far ends of a bus that is being fuzzed, clients and workers, and a ledger of all that they
 * send. A message that an end reads must be in the ledger, sent by the other side, not delivered
 * before, in order, byte for byte; or be one of the error lines of doc/protocol.md about a request
 * of this end. An end that is framed by length gets one error line for each wrong frame it sent. */
#ifndef STDIO_BUS_FUZZ_BUS_ENDS_H
#define STDIO_BUS_FUZZ_BUS_ENDS_H

#include "base/limits.h"
#include "bus_frames.h"
#include "bus_world.h"
#include "config/pool_mode.h"
#include "json/message.h"

#define ENDS_CLIENTS_MAX 16
#define ENDS_MAX (WORLD_CHILDREN_MAX + ENDS_CLIENTS_MAX) /* end i is child i; then come clients */
#define ENDS_SENT_MAX 512
#define ENDS_SESSIONS 4
#define ENDS_LINE_MAX 80000
#define ENDS_BUSY_TIMEOUT_SEC 3
#define NOBODY (-1)

/* The pools' places in the configuration; q may have a mode. */
enum { POOL_P, POOL_Q };

enum kind { NOTIFICATION, REQUEST, ANSWER };

enum fate {
    OPEN, /* of a request: nothing has come back yet */
    ANSWERED,
    FAILED, /* its asker has read an error of the bus */
    EXCUSED /* its asker is gone */
};

struct sent {
    int from; /* end */
    enum kind kind;
    int answers; /* ANSWER: which request */
    int pool;    /* NOBODY: none is named, or a session decides */
    int session; /* NOBODY: none */
    char *line;
    size_t len;
    struct message_id id;
    char id_text[MESSAGE_ID_TEXT_MAX];
    uint64_t stream_end; /* where it ends, of all that its sender has to write */
    int delivered_to;    /* end; NOBODY: not yet */
    int next_owed;       /* REQUEST: the next one that its reader has to answer; NOBODY: none */
    bool answer_sent;
    enum fate fate;
};

struct bytes {
    char *data;
    size_t start, end, capacity;
};

struct end {
    bool there;        /* it was connected */
    int fd_in, fd_out; /* of a client; -1: closed. A worker's are its child's */
    bool half_closed;
    bool poisoned;            /* it sent malformed bytes: the bus may do anything */
    bool known;               /* its first frame was good: it may send wrong ones */
    bool farewell;            /* it has read the error that precedes the close */
    bool ended;               /* the bus has closed the connection */
    bool excused;             /* its process has exited */
    unsigned sessions;        /* a bit for each that it named */
    bool named_q;             /* a client: a worker of q may be bound to it */
    size_t wrong, complaints; /* of a client: frames that it sent, errors about them it has read */
    int client;               /* of an exclusive worker, by its messages; or NOBODY */
    struct bytes outgoing, incoming;
    uint64_t written;        /* bytes */
    int owed;                /* the first request read and not answered; NOBODY: none */
    int last_from[ENDS_MAX]; /* the last message read from each */
};

struct ends {
    const struct limits *limits;
    enum pool_clients q_clients;
    const struct framing *client_framing, *worker_framing[2]; /* by pool; NULL: lines */
    struct end ends[ENDS_MAX];
    int client_count;
    struct sent sent[ENDS_SENT_MAX];
    int sent_count, answer_count;
    size_t deserted;     /* requests whose asker is gone, at most */
    int64_t deserted_ms; /* the time of the first */
    bool patience_lost;  /* so much time has passed that time limits may be over */
    bool strict;         /* no error line is ever sent */
    bool traces;
};

/* A message to be sent, by choice. */
struct letter {
    enum kind kind;
    int answers;
    unsigned id; /* which of a few */
    int session, pool;
    size_t padding;
};

void ends_init(struct ends *ends, const struct limits *limits);
void ends_free(struct ends *ends);

static inline bool ends_is_worker(int end)
{
    return end < WORLD_CHILDREN_MAX;
}

/* Its framing; NULL: lines. */
static inline const struct framing *ends_framing(const struct ends *ends, int end)
{
    return ends_is_worker(end) ? ends->worker_framing[world.children[end].pool]
                               : ends->client_framing;
}

/* The next end after `end`, or ENDS_MAX. Begin with ENDS_NONE. */
#define ENDS_NONE (-1)
static inline int ends_next(const struct ends *ends, int end)
{
    end++;
    if (end >= world.child_count && end < WORLD_CHILDREN_MAX)
        end = WORLD_CHILDREN_MAX;
    return end < WORLD_CHILDREN_MAX + ends->client_count ? end : ENDS_MAX;
}

/* True when the end is there and has not been closed by either side. */
bool ends_lives(const struct ends *ends, int end);

/* A new client; its end's number. There must be room. */
int ends_connect(struct ends *ends, int fd_in, int fd_out);

/* Queues a letter, or any bytes, for the end to write. Malformed bytes are `poison`. False when the
 * ledger is full, or the end writes no more. */
bool ends_send(struct ends *ends, int from, const struct letter *letter);
bool ends_send_raw(struct ends *ends, int from, const void *bytes, size_t len, bool poison);

/* The same with a frame that is wrong, by choice, or too long; the end has a framing. */
#define ENDS_TOO_LONG 256
bool ends_send_wrong(struct ends *ends, int from, unsigned which);

/* Answers one of the requests that the end has read. False when there is none. */
bool ends_answer(struct ends *ends, int end, unsigned which, size_t padding);

/* Writes at most `max` bytes of the end's queue. Returns how many. */
size_t ends_write(struct ends *ends, int end, size_t max);

/* Reads at most `max` bytes and checks each line that is whole now. Returns how many. */
size_t ends_read(struct ends *ends, int end, size_t max);

/* A client closes its connection at once, or its sending side after the last message. */
void ends_vanish(struct ends *ends, int end);
void ends_half_close(struct ends *ends, int end);

/* The requests of the end need no answer any more. */
void ends_excuse(struct ends *ends, int end);

/* The same for all workers whose process has exited. */
void ends_excuse_dead(struct ends *ends);

/* A client that is not closed after its half-close or its farewell, or NOBODY. */
int ends_lingering(const struct ends *ends);

/* A client that has not read an error for each of its wrong frames, or NOBODY. */
int ends_uncomplained(const struct ends *ends);

/* An open request of an end that kept the protocol, or NOBODY. */
int ends_unsettled(const struct ends *ends);

#endif
