/* The paths of Unix domain sockets. */
#ifndef STDIO_BUS_BASE_UNIX_PATH_H
#define STDIO_BUS_BASE_UNIX_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Bytes of a path with its NUL: 108 on Linux, 104 on macOS and the BSDs. A build for tests may
 * define less than the system has. */
#ifndef UNIX_PATH_SIZE
#define UNIX_PATH_SIZE (sizeof(((struct sockaddr_un *)NULL)->sun_path))
#endif
#define UNIX_PATH_MAX ((size_t)UNIX_PATH_SIZE - 1)

/* For the length of a path, a size_t, and UNIX_PATH_MAX. */
#define UNIX_PATH_PROBLEM                                                                          \
    "the path is %zu bytes long, a socket's may have %zu: choose a shorter one, such as "          \
    "~/NAME.sock"

/* A socket that is connected to the one at the path: blocking, close-on-exec. -1 with errno set;
 * ENAMETOOLONG: the path is longer than UNIX_PATH_MAX. */
int unix_path_connect(const char *path);

/* --- Directories that a path needs. --- */

/* Makes the directories above the last component of the path that are missing, with the mode 0700.
 * The path is as before when it returns. False with errno set. */
bool directories_make_above(char *path);

#endif
