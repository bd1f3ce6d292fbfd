/* The place of the RMP socket (rmp-v0 12). The first that is set counts: the path of the command
 * line, rmp.socket_path, rmp.sockets_dir. Without them: ~/.runloop/sock/rmp.sock, or
 * /run/runloop/rmp.sock where that directory cannot be used. */
#ifndef STDIO_BUS_CONFIG_RMP_SOCKET_H
#define STDIO_BUS_CONFIG_RMP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/unix_path.h"

#define RMP_SOCKET_NAME "/rmp.sock"
#define RMP_SOCKET_MAX ((size_t)UNIX_PATH_SIZE)
#define RMP_SOCKET_REASON_MAX 256

/* Replaces "~/" at the beginning of `path` and its $NAME or ${NAME}, and appends `name`.
 * STDIO_BUS_EINVAL with `reason`: a variable is not set, or no socket can have so long a path. */
int rmp_socket_expand(char to[RMP_SOCKET_MAX], const char *path, const char *name,
                      char reason[RMP_SOCKET_REASON_MAX]);

/* What is set; NULL: not. */
struct rmp_place {
    const char *given;       /* of the command line, taken as it is */
    const char *socket_path; /* of the configuration, with variables */
    const char *sockets_dir; /* the same */
};

/* The path to listen on. Missing directories are made, for this user alone. STDIO_BUS_EINVAL with
 * `reason`. */
int rmp_socket_make(char to[RMP_SOCKET_MAX], const struct rmp_place *place,
                    char reason[RMP_SOCKET_REASON_MAX]);

/* The path to connect to, by the same rule; nothing is made. Without a set path: the first of the
 * usual ones that is there, else the first of them. */
int rmp_socket_find(char to[RMP_SOCKET_MAX], const struct rmp_place *place,
                    char reason[RMP_SOCKET_REASON_MAX]);

#endif
