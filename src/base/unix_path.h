/* The paths of Unix domain sockets. */
#ifndef STDIO_BUS_BASE_UNIX_PATH_H
#define STDIO_BUS_BASE_UNIX_PATH_H

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

#endif
