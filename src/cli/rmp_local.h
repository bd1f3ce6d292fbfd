/* A run without a daemon (RMP 9, --local): a bus of its own in a child process. Its RMP socket is
 * in a directory that only this user may enter, and that is removed with it; the other listeners of
 * the configuration are not opened. It stops when this program ends, however that ends, and when
 * the runner exits. */
#ifndef STDIO_BUS_CLI_RMP_LOCAL_H
#define STDIO_BUS_CLI_RMP_LOCAL_H

#include <sys/types.h>

#include "config/rmp_keys.h"

struct rmp_local {
    pid_t pid;                      /* 0: there is none */
    int life;                       /* its stdin, which it reads to its end */
    char directory[RMP_SOCKET_MAX]; /* of the socket alone */
    char path[RMP_SOCKET_MAX];      /* of the socket */
};

/* Starts a bus with the pools of this configuration file (NULL: the usual one), and waits until it
 * listens. One process of the runner pool is started. Returns EXIT_DONE, or another exit status
 * after the reason was printed; rmp_local_end is to be called in both cases. */
int rmp_local_start(struct rmp_local *local, const char *config_path);

/* Stops the bus in order and waits for its end. A zeroed one is fine. Returns EXIT_DONE;
 * EXIT_RMP_FAILED if it has stopped since the runner had exited; or the exit status of the daemon,
 * after the reason was logged on stderr. */
int rmp_local_end(struct rmp_local *local);

#endif
