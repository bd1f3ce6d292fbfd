/* The command of a pool: the program that its workers run. */
#ifndef STDIO_BUS_CONFIG_COMMAND_H
#define STDIO_BUS_CONFIG_COMMAND_H

#include "config/diagnostics.h"

/* The PATH of what no shell starts, services and programs with windows: launchd's, or what systemd
 * and other managers agree on. */
#ifdef __APPLE__
#define COMMAND_SERVICE_PATH "/usr/bin:/bin:/usr/sbin:/sbin"
#else
#define COMMAND_SERVICE_PATH "/usr/local/bin:/usr/bin:/bin"
#endif

#define COMMAND_FILE_MAX 4096
#define COMMAND_LINE_MAX 256 /* of the first line of a script, as much as Linux reads */

/* Where a program is started. */
struct command_place {
    const char *path; /* the directories in which execvp looks */
    const char *cwd;  /* the working directory; NULL: this process's */
};

/* The file that execvp would run: the command itself if it contains a slash, otherwise a file of
 * that name in the directories of the path. 0 with the file in `at`, as this process sees it, or
 * the errno of the reason why there is none. */
int command_find(const char *command, const struct command_place *place, char at[COMMAND_FILE_MAX]);

/* The program in the first line of the script that is missing, also if env(1) is to find it, with
 * the errno of the reason in `error`; NULL: none is. It points into `line`. */
const char *command_missing_interpreter(const char *script, const struct command_place *place,
                                        char line[COMMAND_LINE_MAX], int *error);

/* Looks for the file that execvp would run in the environment and the directory of the workers
 * (spec 9.3.3): the command itself if it contains a slash, otherwise a file of that name in the
 * directories of PATH (not set: of the system's default). Reports an error unless there is an
 * executable regular file, and a warning if that is a script without its interpreter. All keys of
 * the pool that decide this are valid. A file that is no program is found by exec alone. */
void command_check(struct diagnostics *diagnostics, const struct json_value *pool);

#endif
