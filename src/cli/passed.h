/* Sockets that the service manager has opened and passed on, as sd_listen_fds(3) has it: the
 * variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, and descriptors from 3 on; or, on macOS,
 * those of the key Sockets of launchd.plist(5), which are asked for by their names. */
#ifndef STDIO_BUS_CLI_PASSED_H
#define STDIO_BUS_CLI_PASSED_H

#include "base/log.h"
#include "config/listen.h"

#define PASSED_MAX 64
#define PASSED_USUAL "Listeners" /* the name in the examples of launchd */

struct passed_sockets {
    struct passed_socket {
        int fd;
        bool used;
        int error;                         /* errno, if its address cannot be read */
        char name[LISTEN_FD_NAME_MAX + 1]; /* "unknown" where there are no names */
    } sockets[PASSED_MAX];
    size_t count;
};

/* Reads the variables, if they are for this process, and removes them from the environment. */
void passed_read(struct passed_sockets *passed);

/* Gives its socket to each listener that names one, or whose address one of them has. launchd is
 * asked for the names of listeners, and for PASSED_USUAL. The others are closed, after a
 * warning. STDIO_BUS_EINVAL after the reason was logged. */
int passed_assign(struct passed_sockets *passed, struct listen_config *listens, size_t count,
                  struct log *log);

/* The same for the listeners of a reload, from the sockets that are in use: which of them were
 * closed since is the caller's to know. */
int passed_find(const struct passed_sockets *passed, struct listen_config *listens, size_t count,
                struct log *log);

/* After an upgrade: those that the listeners have from the daemon before. */
void passed_take(struct passed_sockets *passed, const struct listen_config *listens, size_t count);

#endif
