/* A worker in an archive: its process, which stays, and its restarts. */
#ifndef STDIO_BUS_PROCESS_WORKER_ARCHIVE_H
#define STDIO_BUS_PROCESS_WORKER_ARCHIVE_H

#include "base/archive.h"
#include "process/worker.h"

/* Saves the worker, or loads it into one that has no process yet. `handler`: what reads its output,
 * for a worker that is loaded. Its peer is left out. */
void worker_archive(struct archive *archive, struct worker *worker,
                    const struct stream_handler *handler);

#endif
