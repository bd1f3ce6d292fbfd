/* The program under test: its start, its end, and its resources. Its workers are processes of their
 * own and are not counted. Linux only: /proc. */
#ifndef TESTS_BENCH_SUBJECT_H
#define TESTS_BENCH_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct subject {
    pid_t pid;
    int in, out; /* its stdin and stdout; -1: not used */
};

/* Starts argv, found in PATH; with pipes as stdin and stdout or, without `stdio`, with /dev/null
 * and this program's stderr. It dies with this program. With `one_cpu` all processes share the last
 * processor. A failure ends this program. */
void subject_start(struct subject *subject, char **argv, bool stdio, bool one_cpu);

/* Waits until it has executed this many workers and sleeps; before, a bus may serve with fewer.
 * Ends this program after ten seconds. */
void subject_wait_workers(const struct subject *subject, unsigned workers);

/* Waits until it sleeps: all its work is done. */
void subject_settle(const struct subject *subject);

/* Its processor time so far, user and system, in nanoseconds. Exact while it sleeps. */
uint64_t subject_cpu_ns(const struct subject *subject);

/* The number of its voluntary sleeps. */
uint64_t subject_sleeps(const struct subject *subject);

/* The peak of its resident memory in KiB. */
uint64_t subject_peak_kib(const struct subject *subject);

/* Its resident memory in bytes: all of it, and the anonymous part. */
void subject_memory(const struct subject *subject, uint64_t *resident, uint64_t *anonymous);

/* Ends it: closes its stdin, or sends SIGTERM. False, with a line on stderr: it did not exit with
 * status 0 within five seconds. */
bool subject_stop(struct subject *subject);

#endif
