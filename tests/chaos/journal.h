/* The way around the daemon. Workers report to the chaos program: records of one size through a
 * fifo, each written before the daemon can see its event. The chaos program instructs the workers:
 * a board in shared memory. */
#ifndef TESTS_CHAOS_JOURNAL_H
#define TESTS_CHAOS_JOURNAL_H

#include <stdint.h>

#include "config/pool_mode.h"
#include "wire.h"

enum record_type {
    RECORD_HELLO,     /* the worker has started; len: the number of its program */
    RECORD_GOT,       /* it received a message: serial, hash, len, key, kind */
    RECORD_HANDSHAKE, /* it received a message of MCP's handshake (handshake.h): detail, serial */
    RECORD_GOT_ERROR, /* the daemon refused its question; detail: enum question_error */
    RECORD_CANCELLED, /* the daemon cancelled a request: key; detail: 1 if it will get no answer */
    RECORD_BAD,       /* it received a line that is no message of the run; name: the reason */
    RECORD_SAY,       /* it will send a message: serial, ref, hash, len, key, kind, name */
    RECORD_DOOM,      /* it will misbehave; detail: the letter of the order */
    RECORD_STALL,     /* it stops reading for `len` milliseconds */
    RECORD_TERM,      /* it caught SIGTERM */
    RECORD_EOF,       /* its stdin has ended */
    RECORD_EXIT       /* it exits now; detail: 1 if all its output was written */
};

/* The daemon's reasons to refuse a question; doc/protocol.md, "To a worker ...". */
enum question_error {
    QUESTION_DUPLICATE,
    QUESTION_UNROUTABLE,
    QUESTION_NO_SESSION,
    QUESTION_NOBODY,
    QUESTION_DISCONNECTED,
    QUESTION_INPUT_CLOSED,
    QUESTION_TOO_MANY,
    QUESTION_ID_BUSY,
    QUESTION_SHUTDOWN,
    QUESTION_UNFETCHED,
    QUESTION_UNKNOWN_TEXT
};

struct record {
    unsigned long long origin; /* of the worker: unique in the run */
    struct serial serial, ref;
    uint64_t hash, key; /* of the line; of its id, or of the id that a cancellation names */
    uint32_t len, pid;
    uint8_t type, kind, detail, pool;
    char name[WIRE_NAME_MAX]; /* the session */
};

struct board {
    uint32_t calm;         /* workers answer all open requests and do no harm */
    uint32_t framing;      /* enum wire_framing, of the workers */
    uint32_t bridged;      /* wire_bridged */
    struct pool_mode mode; /* of the pools */
    bool stateless;        /* wire_stateless */
};

#endif
