/* A worker that behaves as its requests' orders say, and now and then as its own dice want. Its
 * arguments: JOURNAL BOARD SEED POOL. */
#ifndef TESTS_CHAOS_CHAOS_WORKER_H
#define TESTS_CHAOS_CHAOS_WORKER_H

#include "dice.h"
#include "journal.h"
#include "text.h"
#include "wire.h"

#define WORKER_RECORDS_MAX 32 /* one write of them is atomic: below PIPE_BUF */
#define WORKER_QUESTIONS_MAX 12
#define WORKER_SESSIONS_MAX 8

struct task { /* a request that is not answered yet */
    uint64_t number;
    char key[WIRE_KEY_MAX];
    char raw_id[WIRE_KEY_MAX + 16];
    char session[WIRE_NAME_MAX];
    char token[WIRE_TOKEN_MAX];
    int64_t due_ms; /* INT64_MAX: not before we are told to behave */
    size_t size;
    bool twice;
    bool makes_session; /* which the answer tells */
};

struct question { /* that nobody has answered yet; number 0: none */
    uint64_t number;
    char key[WIRE_KEY_MAX];
    char kind;
};

struct worker {
    uint64_t origin;
    unsigned made_sessions;
    uint64_t said; /* number of our last message */
    uint8_t pool;
    struct dice dice;
    const struct board *board;
    int journal;
    struct record records[WORKER_RECORDS_MAX];
    size_t record_count;
    int64_t now_ms, next_throw_ms;

    struct text in, frame;
    struct text out;
    size_t out_at, out_max; /* written so far; more than the latter unwritten, and we do not read */
    bool in_closed, out_closed;

    struct task *tasks;
    size_t task_count, task_room;
    struct question questions[WORKER_QUESTIONS_MAX];
    char sessions[WORKER_SESSIONS_MAX][WIRE_NAME_MAX]; /* seen lately */
    unsigned session_count;

    int64_t stalled_until_ms;
    bool ignores_term, term_seen, leaving;
    bool shares_stdout; /* with a process that we left */
    uint32_t slow_ms;     /* how long dying takes */
    int64_t dying_at_ms;  /* 0: not dying */
    int64_t leave_by_ms;
    int exit_status;
};

/* --- worker_io.c --- */

void worker_note(struct worker *worker, struct record record);
void worker_write_journal(struct worker *worker);
void worker_write(struct worker *worker);

/* Reads once, and handles the lines that are complete. */
void worker_read(struct worker *worker);

/* Queues a message; tells the journal first. Nothing happens when stdout is closed. */
void worker_say(struct worker *worker, struct wire_header *header, size_t size);

/* --- worker_acts.c --- */

/* A line that a client sent. */
void worker_obey(struct worker *worker, const struct wire_header *header);

/* An error of the daemon's for one of our questions. False: for none of them. */
bool worker_refused(struct worker *worker, const struct wire_error *error);

/* The daemon says that nobody waits for our answer to the request with this id. */
void worker_cancelled(struct worker *worker, const char *id);

void worker_answer_due(struct worker *worker);
void worker_throw_dice(struct worker *worker);
void worker_leave(struct worker *worker, int status);

static inline bool worker_behaves(const struct worker *worker)
{
    return worker->board->mode == BOARD_BEHAVE;
}

/* What it says to nobody in particular reaches its clients. */
static inline bool worker_is_bound(const struct worker *worker)
{
    return worker->board->sharing.clients != CLIENTS_SHARED;
}

/* When the next answer is due, INT64_MAX for none. */
int64_t worker_next_due(const struct worker *worker);

#endif
