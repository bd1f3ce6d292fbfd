/* What the runs over HTTP and on the topic bus share: options, the daemon, its end, violations. */
#ifndef TESTS_CHAOS_RUN_H
#define TESTS_CHAOS_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dice.h"
#include "text.h"
#include "upgrades.h"

#define DRAIN_SEC 2 /* drain_timeout_sec */

struct run {
    const char *name; /* of the program */
    unsigned seconds;
    unsigned long long seed;
    const char *daemon;
    char *worker;
    struct dice dice;
    struct upgrades upgrades;
    char dir[64], config_path[96], log_path[96], socket_path[96];
    pid_t pid;  /* 0: the daemon has ended */
    int status; /* of waitpid, once it has */
    int64_t start_ms, next_kill_ms;
    unsigned long long violations, kills;
};

/* Reads the command line; `worker` is the path of the workers' program. Exits if it is wrong, or
 * there is no /proc. */
void run_begin(struct run *run, int argc, char *argv[], const char *worker);

void run_violation(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes the directory, with the paths in it. False, with a message: not done. */
bool run_make_dir(struct run *run);

/* Starts the daemon with this configuration and these arguments, up to a NULL, and waits until
 * listens(object). False, with a message: not done. */
bool run_start(struct run *run, const char *config, const char *const *arguments,
               bool (*listens)(void *object), void *object);

/* Connects to the Unix socket, or to the port at 127.0.0.1; 0: none. Returns -1 if that fails. */
int run_connect(const struct run *run, unsigned port);

bool run_alive(struct run *run);

/* Sends SIGTERM, checks the end of the daemon and its log, in which none of the two words may be,
 * and removes the files unless there were violations. */
void run_stop(struct run *run, const char *word, const char *other_word);

#endif
