/* Processes that end before they have sent a message: a server that cannot start. Their clients are
 * told why, and their pool keeps no process ready before one has answered. Where one that several
 * clients share has, the others are restarted as after any crash. */
#ifndef STDIO_BUS_SUPERVISOR_EARLY_EXIT_H
#define STDIO_BUS_SUPERVISOR_EARLY_EXIT_H

#include "process/worker.h"

struct pool;
struct request;

/* The output of the process has ended: counts and logs it, if it was to continue and has sent
 * nothing; else the pool is well. */
void early_exit_note(struct worker *worker);

/* The client gets an error with what is known of the process that had its request, which has
 * ended. */
void early_exit_answer(const struct worker *worker, const struct request *request);

/* Saves or loads what is known of the pool. */
void early_exit_archive(struct archive *archive, struct pool *pool);

/* For struct worker_host. */
int64_t early_exit_delay(struct worker *worker);

#endif
