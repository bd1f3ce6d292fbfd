/* No SIGPIPE reaches the host: a pipe to a worker that has exited raises it, and its disposition is
 * the host's. */
#ifndef STDIO_BUS_EMBED_SIGPIPE_H
#define STDIO_BUS_EMBED_SIGPIPE_H

#include "base/log.h"

/* A writev_fn during which SIGPIPE is blocked in this thread. One that the write raises is taken;
 * one that was pending before stays. */
ssize_t sigpipe_writev(int fd, const struct iovec *pieces, int count);

#endif
