/* Crashes of processes that clients have to themselves. When such a client leaves, another one can
 * have its place at once, so the delay of the restart is not enough against clients that come,
 * crash their process and go. The same delay, growing from crash to crash, is therefore its
 * origin's too: for so long no client of that user or address gets another process of the pool.
 * Clients of others do not wait. */
#ifndef STDIO_BUS_SUPERVISOR_CRASHES_H
#define STDIO_BUS_SUPERVISOR_CRASHES_H

#include "process/pool.h"

/* The output of the worker's process has ended: notes whose process that was, if it was a client's
 * and the daemon did not end it. */
void crashes_blame(struct worker *worker);

/* That was no failure. */
void crashes_excuse(struct worker *worker);

/* The same, or the worker is finished: the delay begins, unless one runs already. */
void crashes_note(struct worker *worker);

/* Ends all delays in the pool. */
void crashes_forget(struct pool *pool);

#endif
