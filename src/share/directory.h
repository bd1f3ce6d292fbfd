/* The directory of the shared servers of this user: sockets, logs and a lock. */
#ifndef STDIO_BUS_SHARE_DIRECTORY_H
#define STDIO_BUS_SHARE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

#define DIRECTORY_MAX 4096 /* bytes of its path */
#define DIRECTORY_REASON_MAX 512

/* Finds the directory: stdio_bus in $XDG_RUNTIME_DIR (not set: in /run/user/UID, where that is this
 * user's), else in $XDG_CACHE_HOME, else ~/.cache/stdio_bus. STDIO_BUS_EINVAL with a line of
 * explanation in `reason`. */
int directory_find(char path[DIRECTORY_MAX], char reason[DIRECTORY_REASON_MAX]);

/* The value of a variable that names a directory, and the home of this user. NULL: there is none;
 * as the standard has it, a relative path is ignored. */
const char *directory_of_variable(const char *name);
const char *directory_home(void);

/* Opens a directory; if need be it is made first. STDIO_BUS_EINVAL, with `reason`, unless it is a
 * directory of this user that no other can open. STDIO_BUS_ENOTFOUND if it is not there and not to
 * be made. */
int directory_open(int *fd, const char *path, bool makes, char reason[DIRECTORY_REASON_MAX]);

/* Makes it the working directory, so that the paths of its sockets are short. Returns what
 * directory_open does. */
int directory_enter(const char *path, bool makes, char reason[DIRECTORY_REASON_MAX]);

/* Takes the lock of the working directory, for whoever starts a daemon. The system releases it when
 * the process ends. Returns a descriptor, to be closed, or -1 with `reason`. */
int directory_lock(char reason[DIRECTORY_REASON_MAX]);

/* --- The name of --share=NAME, which is part of the names of files. --- */

#define SHARE_NAME_MAX 64

/* NULL if the name can name files, or else what is wrong with it. */
const char *share_name_problem(const char *name);

#endif
