/* A worker that obeys the orders in its requests, and at random misbehaves. Its arguments: JOURNAL
 * BOARD SEED POOL. */
#ifndef TESTS_CHAOS_CHAOS_WORKER_H
#define TESTS_CHAOS_CHAOS_WORKER_H

#include "dice.h"
#include "journal.h"
#include "text.h"
#include "wire.h"

#define WORKER_RECORDS_MAX 32 /* one write of them is atomic: below PIPE_BUF */
#define WORKER_QUESTIONS_MAX 12
#define WORKER_SESSIONS_MAX 8

struct task { /* a request without an answer */
    unsigned long long number;
    char key[WIRE_KEY_MAX];
    char raw_id[WIRE_KEY_MAX + 16];
    char session[WIRE_NAME_MAX];
    char token[WIRE_TOKEN_MAX];
    int64_t due_ms; /* INT64_MAX: once the board is calm */
    size_t size;
    bool twice;
    bool makes_session; /* the answer names it */
    bool hostile;       /* its client is */
};

struct question { /* without a reply; number 0: a free entry */
    unsigned long long number;
    char key[WIRE_KEY_MAX];
    char kind;
};

struct worker {
    unsigned long long origin;
    unsigned made_sessions;
    unsigned long long said; /* number of the last message sent */
    uint8_t pool;
    struct dice dice;
    const struct board *board;
    int journal;
    struct record records[WORKER_RECORDS_MAX];
    size_t record_count;
    int64_t now_ms, next_throw_ms;

    struct wire_input in;
    struct text out;
    size_t out_at, out_max; /* written so far; with more than out_max unwritten it does not read */
    bool in_closed, out_closed;

    struct task *tasks;
    size_t task_count, task_room;
    struct question questions[WORKER_QUESTIONS_MAX];
    char sessions[WORKER_SESSIONS_MAX][WIRE_NAME_MAX]; /* recent */
    unsigned session_count;

    int64_t stalled_until_ms;
    bool ignores_term, term_seen, leaving;
    bool shares_stdout;  /* with a child */
    uint32_t slow_ms;    /* from SIGTERM or end of input to exit */
    int64_t dying_at_ms; /* 0: not dying */
    int64_t leave_by_ms;
    int exit_status;
};

/* --- worker_io.c --- */

void worker_note(struct worker *worker, struct record record);
void worker_write_journal(struct worker *worker);
void worker_write(struct worker *worker);

/* Reads once and handles the complete lines. */
void worker_read(struct worker *worker);

/* Records a message in the journal, unless it is for a hostile client, and queues it; no effect
 * once stdout is closed. */
void worker_say(struct worker *worker, struct wire_header *header, size_t size);

/* --- worker_acts.c --- */

/* Executes the orders of a client's message. */
void worker_obey(struct worker *worker, const struct wire_header *header);

/* Records an error from the daemon; false if it is for no open question. */
bool worker_refused(struct worker *worker, const struct wire_error *error);

/* The daemon cancelled the request with this id. */
void worker_cancelled(struct worker *worker, const char *id);

void worker_answer_due(struct worker *worker);
/* May end the process, in a handshake. */
void worker_tire(struct worker *worker);

void worker_throw_dice(struct worker *worker);
void worker_leave(struct worker *worker, int status);

/* --- chaos_worker.c --- */

/* SIGTERM or the end of input: the worker will exit, unless it ignores both. */
void worker_begin_dying(struct worker *worker);

static inline bool worker_behaves(const struct worker *worker)
{
    return worker->board->calm != 0;
}

/* Its messages without a session reach its clients. */
static inline bool worker_is_bound(const struct worker *worker)
{
    return worker->board->mode.clients != CLIENTS_SHARED;
}

/* The time of the next answer; INT64_MAX: none. */
int64_t worker_next_due(const struct worker *worker);

#endif
