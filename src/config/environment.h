/* The environment of a pool's workers (the keys "env" and "clear_env"), and the command that is
 * found in it. */
#ifndef STDIO_BUS_CONFIG_ENVIRONMENT_H
#define STDIO_BUS_CONFIG_ENVIRONMENT_H

#include "config/diagnostics.h"

/* Checks "env". Its values may name variables of the daemon's environment. */
void environment_check(struct diagnostics *diagnostics, const struct json_value *env);

/* The environment of a valid pool's workers: the daemon's, without the variables that are meant for
 * the daemon alone (NOTIFY_SOCKET and its like), or nothing of it with clear_env; and the variables
 * of "env". One piece of memory, to be freed with free; NULL when out of memory. */
char **environment_build(const struct json_value *pool);

/* The value of a variable, or NULL. */
const char *environment_get(char *const *envp, const char *name);

/* Looks for the file that execvp would run in this environment and in the directory `cwd` (NULL:
 * the daemon's; spec 9.3.3): `command` itself if it contains a slash, otherwise a file of that name
 * in the directories of PATH (not set: of the system's default). Returns 0 if there is an
 * executable regular file, otherwise the errno of the reason. A missing interpreter or a file that
 * is no program is found by exec alone. */
int environment_find(char *const *envp, const char *command, const char *cwd);

#endif
