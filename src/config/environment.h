/* The environment and the working directory of a pool's workers: "env", "clear_env" and "cwd". */
#ifndef STDIO_BUS_CONFIG_ENVIRONMENT_H
#define STDIO_BUS_CONFIG_ENVIRONMENT_H

#include "config/report.h"

/* The rules of "env", whose values may name variables of our own environment. */
void environment_check(struct config_report *report, const struct json_value *env);

/* What the workers of a pool get: our own environment, without what was meant for us alone
 * (NOTIFY_SOCKET and its like) and, with clear_env, without the rest; and what env sets. The rules
 * were kept. One piece of memory, to be freed with free; NULL when there is none. */
char **environment_build(const struct json_value *pool);

/* The value of a variable, or NULL. */
const char *environment_get(char *const *envp, const char *name);

#endif
