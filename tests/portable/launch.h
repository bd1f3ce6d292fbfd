/* As much of <launch.h> of macOS as src/cli/passed.c uses. */
#ifndef STDIO_BUS_TESTS_LAUNCH_H
#define STDIO_BUS_TESTS_LAUNCH_H

#include <stddef.h>

/* 0, with descriptors in memory that the caller frees, or an errno: ENOENT, there is no socket of
 * that name; ESRCH, launchd has not started this process; EALREADY, they were given away. */
int launch_activate_socket(const char *name, int **fds, size_t *count);

#endif
