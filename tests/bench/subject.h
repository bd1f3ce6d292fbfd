/* The program under test: started and ended, and what the system knows about it. Its workers are
 * processes of their own and are not counted. Linux only: /proc. */
#ifndef TESTS_BENCH_SUBJECT_H
#define TESTS_BENCH_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct subject {
    pid_t pid;
    int in, out; /* its stdin and stdout; -1 when it is not talked to that way */
};

/* Starts argv, found in PATH; over stdio, or with nothing on its stdin and its stdout going to our
 * stderr. It dies with us. With `one_cpu` it and its workers share the last processor with us. Ends
 * the program when that fails. */
void subject_start(struct subject *subject, char **argv, bool stdio, bool one_cpu);

/* Waits until it has executed this many workers and sleeps. Until then a bus may well serve, but
 * with fewer of them. Ends the program when that takes more than ten seconds. */
void subject_wait_workers(const struct subject *subject, unsigned workers);

/* Waits until it sleeps, having done all there is to do. */
void subject_settle(const struct subject *subject);

/* Time it has had on a processor so far, user and system, in nanoseconds. Exact while it sleeps. */
uint64_t subject_cpu_ns(const struct subject *subject);

/* How often it went to sleep of its own. */
uint64_t subject_sleeps(const struct subject *subject);

/* The most memory that was ever resident, in KiB. */
uint64_t subject_peak_kib(const struct subject *subject);

/* What is resident now, in bytes: all, and what is its alone and not of a file. */
void subject_memory(const struct subject *subject, uint64_t *resident, uint64_t *anonymous);

/* Ends it: its stdin is closed, or SIGTERM sent. Returns false, with a line on stderr, when it
 * did not exit by itself with status 0 within five seconds. */
bool subject_stop(struct subject *subject);

#endif
