/* What the workers of a chaos run tell the chaos program, behind the daemon's back: records of one
 * size through a fifo, each written before what it is about can be seen by anybody else. And what
 * the chaos program tells them: a board in shared memory. */
#ifndef TESTS_CHAOS_JOURNAL_H
#define TESTS_CHAOS_JOURNAL_H

#include <stdint.h>

#include "config/sharing.h"
#include "wire.h"

enum record_type {
    RECORD_HELLO,     /* a worker has started */
    RECORD_GOT,       /* it was sent a message: serial, hash, len, key, kind */
    RECORD_GOT_ERROR, /* the daemon's error for its question; `detail`: enum question_error */
    RECORD_CANCELLED, /* the daemon gives up a request: key; `detail`: 1 when we never answer it */
    RECORD_BAD,       /* it was sent something that nobody should have sent; `name`: what it is */
    RECORD_SAY,       /* it is about to send a message: serial, ref, hash, len, key, kind, name */
    RECORD_DOOM,      /* it is about to do what a worker should not; `detail`: the order's letter */
    RECORD_STALL,     /* it stops reading for `len` milliseconds */
    RECORD_TERM,      /* it caught SIGTERM */
    RECORD_EOF,       /* its stdin has ended */
    RECORD_EXIT       /* it exits now; `detail`: 1 when all that it had to say was written */
};

/* Why the daemon does not pass a question on; doc/protocol.md, "To a worker ...". */
enum question_error {
    QUESTION_DUPLICATE,
    QUESTION_UNROUTABLE,
    QUESTION_NO_SESSION,
    QUESTION_NOBODY,
    QUESTION_DISCONNECTED,
    QUESTION_INPUT_CLOSED,
    QUESTION_TOO_MANY,
    QUESTION_ID_BUSY,
    QUESTION_UNKNOWN_TEXT
};

struct record {
    uint64_t origin; /* of the worker: unique in the run */
    struct serial serial, ref;
    uint64_t hash, key; /* of the line, and of the id; of a cancellation the id that it names */
    uint32_t len, pid;
    uint8_t type, kind, detail, pool;
    char name[WIRE_NAME_MAX]; /* the session */
};

enum board_mode {
    BOARD_STORM, /* do what the orders and your own dice say */
    BOARD_BEHAVE /* answer all that is open, do no harm */
};

struct board {
    uint32_t mode;
    struct sharing sharing; /* of the pools; from the start on */
    uint32_t framing;       /* enum wire_framing, of the workers */
    uint32_t bridged;
};

#endif
