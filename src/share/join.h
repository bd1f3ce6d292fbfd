/* Joining a shared daemon: connecting to its socket, and starting it first if need be. */
#ifndef STDIO_BUS_SHARE_JOIN_H
#define STDIO_BUS_SHARE_JOIN_H

#include "process/process.h"
#include "share/daemon.h"

#define JOIN_REASON_MAX 2048
#define JOIN_ROOM ((size_t)64) /* bytes of the line around an identity */

struct join {
    struct daemon daemon;
    const char *directory; /* its path */
    const char *name;      /* of --share=NAME; NULL: the identity names the daemon */
    struct log *log;       /* NULL: reasons are only kept */
    struct dialer dialer;  /* for a worker: join_open */
    char reason[JOIN_REASON_MAX];
};

/* The rest of *join is filled by the caller; name and identity live as long as it. */
void join_init(struct join *join);

/* Returns a connected, non-blocking socket, or -1 with a line of explanation in `reason`, which is
 * logged too. */
int join_open(struct join *join);

#endif
