/* The daemon of a shared server: started in the background by its first client. */
#ifndef STDIO_BUS_SHARE_DAEMON_H
#define STDIO_BUS_SHARE_DAEMON_H

#include "base/log.h"
#include "config/config.h"

#define DAEMON_BASE_MAX 112 /* bytes of a name with a version */
#define DAEMON_FILE_MAX (DAEMON_BASE_MAX + 16)
#define DAEMON_SOCKET ".sock"
#define DAEMON_LOG ".log"

struct daemon {
    const struct config *config;
    const struct config *alone; /* the pool of clients that do not share; NULL: there is none */
    const char *identity;
    const char *directory;      /* the path of its working directory */
    const char *memory;         /* that of share/cache.h; NULL: nothing is remembered on disk */
    char base[DAEMON_BASE_MAX]; /* of the files in the working directory: socket and log */
    unsigned idle_exit_sec;
    char *const *watched; /* paths, absolute */
    size_t watched_count;
    enum log_level log_level;
};

/* Forks the daemon, and waits until it listens. Its working directory is this process's. False: it
 * does not listen; errno says why, or else is 0: then the daemon's log may. */
bool daemon_fork(const struct daemon *daemon);

#endif
