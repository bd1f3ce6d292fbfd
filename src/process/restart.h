/* When a worker that exited may be restarted (spec 7.1.3). Reads no clock. */
#ifndef STDIO_BUS_PROCESS_RESTART_H
#define STDIO_BUS_PROCESS_RESTART_H

#include <stdint.h>

#define RESTART_DELAY_FIRST_MS 100
#define RESTART_DELAY_FACTOR 4
#define RESTART_DELAY_MAX_MS 30000

struct restart_policy {
    unsigned max; /* restarts allowed within the window */
    int64_t window_ms;
    int64_t *times; /* of the last `max` restarts: a ring */
    unsigned next;  /* index of the oldest */
    unsigned count;
    unsigned streak;       /* exits since the worker last ran for a whole window */
    int64_t last_start_ms; /* planned or past; 0: there was no restart */
};

/* STDIO_BUS_ERR if out of memory. */
int restart_init(struct restart_policy *policy, unsigned max_restarts, unsigned window_sec);

/* Other numbers: all restarts are forgotten. STDIO_BUS_ERR if out of memory, and then nothing has
 * changed. */
int restart_change(struct restart_policy *policy, unsigned max_restarts, unsigned window_sec);

/* Forgets how many restarts there were. The delay keeps growing. */
void restart_pardon(struct restart_policy *policy);

/* Forgets all restarts: the next exit counts as the first. */
void restart_forget(struct restart_policy *policy);

void restart_free(struct restart_policy *policy);

/* The delay after this number of exits in a row, in milliseconds. */
int64_t restart_delay(unsigned streak);

/* The worker exited unexpectedly: returns the delay in milliseconds before its restart, or -1 when
 * there have been `max` restarts within the window. The delay grows by RESTART_DELAY_FACTOR from
 * exit to exit, and starts again once the worker has run for a window, the delay not counted. */
int64_t restart_after_exit(struct restart_policy *policy, int64_t now_ms);

#endif
