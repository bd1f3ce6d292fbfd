/* Processes and their memory: of Linux's /proc, elsewhere as ps(1) knows them. */
#ifndef STDIO_BUS_SHARE_USAGE_H
#define STDIO_BUS_SHARE_USAGE_H

#include <stddef.h>

struct usage {
    struct usage_process {
        long pid, group, kib;
    } * at;
    size_t count, capacity; /* 0: not known */
};

/* Reads /proc or, where that tells nothing, asks ps. STDIO_BUS_ERR with errno set when the first
 * cannot be read, the other not be started, or out of memory: to be freed all the same. */
int usage_read(struct usage *usage);

void usage_free(struct usage *usage);

/* Resident memory in KiB of a process; of a process group, whose processes are added to *count. 0
 * where it is not known. */
long usage_of_process(const struct usage *usage, long pid);
long usage_of_group(const struct usage *usage, long group, size_t *count);

#endif
