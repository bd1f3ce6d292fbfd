/* The daemon under test, and its vital signs. */
#ifndef TESTS_CHAOS_SUBJECT_H
#define TESTS_CHAOS_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct chaos;

struct subject {
    pid_t pid;     /* 0: it has ended */
    int status;    /* of waitpid, once it has */
    char dir[64];
    char config_path[96], log_path[96], socket_path[96], journal_path[96], board_path[96];
    uint16_t port; /* TCP */
    int log;       /* where we read its log */
    char log_tail[256]; /* the start of a line that is not complete yet */
    size_t log_tail_len;
    uint64_t orphans; /* processes that outlived their worker and were reaped by us */
};

/* Makes the directory with all that is in it and starts the daemon. False: it says why. */
bool subject_start(struct chaos *chaos);

/* A new connection to it, or -1. */
int subject_connect(const struct chaos *chaos);

/* Reads what it has logged since the last time: certain words must not be there. */
void subject_read_log(struct chaos *chaos);

/* Reaps whoever is ours to reap. True while the daemon is alive. */
bool subject_reap(struct chaos *chaos);

/* The numbers that must come back: kept at the start, compared later. `clients` are connected. */
void subject_take_baseline(struct chaos *chaos);
void subject_check_baseline(struct chaos *chaos, unsigned clients);

/* Nothing happens for a second: then it must not do anything either. */
void subject_check_idle(struct chaos *chaos);

/* SIGTERM, then all the checks on how it ends. */
void subject_stop(struct chaos *chaos);

/* Removes the directory, unless there is something to be seen in it. */
void subject_clean_up(struct chaos *chaos);

#endif
