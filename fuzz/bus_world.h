/* The world around a bus that is being fuzzed: its clock, the readiness of its descriptors, and its
 * processes. Defines the functions of base/clock.h, process/process.h and the event backend; the
 * linker takes these instead of the library's. Time stands still until it is moved, readiness is
 * scripted, and no process is ever forked. */
#ifndef STDIO_BUS_FUZZ_BUS_WORLD_H
#define STDIO_BUS_FUZZ_BUS_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "common.h"

#define WORLD_CHILDREN_MAX 48
#define WORLD_PIPE_BYTES 4096 /* small: soon full when a worker does not read */

/* A process that was never forked: the far ends of its pipes, and its signals. */
struct fake_child {
    pid_t pid;
    int pool;                         /* the digit that its first argument is */
    int fd_stdin, fd_stdout, fd_exec; /* -1: closed */
    bool running;                     /* it has not exited */
    bool reaped;
    bool has_orphan; /* another process of its group lives on with its stdout */
    bool terminated; /* SIGTERM was sent */
};

/* The one global of the fuzzer: process_spawn and its like have nothing to be handed it in. */
extern struct world {
    struct tape *tape;
    bool honest; /* nothing is scripted: readiness is real, programs can be executed */
    int64_t now_ms;
    struct fake_child children[WORLD_CHILDREN_MAX];
    int child_count;
    int waited_ms; /* the timeout of the last wait */
    int ready;     /* events of the last wait */
} world;

void world_reset(struct tape *tape);

/* The program of a process that is starting runs now. */
void world_execute(struct fake_child *child);

/* The process exits; with `orphan` another one of its group keeps its stdout open. */
void world_exit(struct fake_child *child, bool orphan);

/* The orphan exits. */
void world_end_orphan(struct fake_child *child);

/* Closes all descriptors that are left. */
void world_close(void);

static inline void world_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

#endif
