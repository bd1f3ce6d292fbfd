/* The daemon under test, and its vital signs. */
#ifndef TESTS_CHAOS_SUBJECT_H
#define TESTS_CHAOS_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct chaos;

struct subject {
    pid_t pid;  /* 0: it has ended */
    int status; /* of waitpid, once it has */
    char dir[64];
    unsigned programs; /* how often a reload has changed that of the workers */
    char config_path[96], log_path[96], socket_path[96], journal_path[96], board_path[96];
    uint16_t port;      /* TCP */
    uint16_t http_port; /* for HOSTILE_UNFETCHED */
    int log;            /* its log, for reading */
    char log_tail[256]; /* the start of an incomplete line */
    size_t log_tail_len;
    unsigned long long orphans; /* processes that outlived their worker, reaped by this program */
};

/* Makes the directory with its files and starts the daemon. False, with a message: not done. */
bool subject_start(struct chaos *chaos);

/* Lets the daemon reload its configuration now and then, if that is wanted: the same one, a faulty
 * one, or one with another program for the workers. */
void subject_reload(struct chaos *chaos);

/* The configuration that was written last is loaded, if there are reloads. */
void subject_reload_last(struct chaos *chaos);

/* A new connection, or -1. */
int subject_connect(const struct chaos *chaos);

/* The same for a hostile client, which may still be on its way when this returns. */
int subject_connect_hostile(const struct chaos *chaos, unsigned kind);

/* The daemon's memory in KiB; -1: not measured. */
long subject_read_rss(const struct chaos *chaos);

/* Checks the new lines of the log for forbidden words. */
void subject_read_log(struct chaos *chaos);

/* Reaps the children of this program. True while the daemon is alive. */
bool subject_reap(struct chaos *chaos);

/* The resources at rest: recorded at the start, compared later with `clients` connections. */
void subject_take_baseline(struct chaos *chaos);
void subject_check_baseline(struct chaos *chaos, unsigned clients);

/* Checks that the daemon sleeps for a second without traffic. */
void subject_check_idle(struct chaos *chaos);

/* Sends SIGTERM and checks the end of the daemon. */
void subject_stop(struct chaos *chaos);

/* Removes the directory, unless there were violations. */
void subject_clean_up(struct chaos *chaos);

#endif
