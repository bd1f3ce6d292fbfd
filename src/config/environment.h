/* The environment of a pool's workers: the keys "env" and "clear_env". */
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

#endif
