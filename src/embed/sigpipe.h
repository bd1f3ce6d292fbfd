/* No SIGPIPE reaches the host: a pipe to a worker that has exited raises it, and its disposition is
 * the host's. */
#ifndef STDIO_BUS_EMBED_SIGPIPE_H
#define STDIO_BUS_EMBED_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

struct sigpipe {
    bool blocked;
    sigset_t mask; /* of the thread before */
};

/* Blocks SIGPIPE in this thread, unless the host ignores it or has it pending already. */
void sigpipe_block(struct sigpipe *sigpipe);

/* Takes one that came since, and puts the mask back. */
void sigpipe_restore(const struct sigpipe *sigpipe);

#endif
