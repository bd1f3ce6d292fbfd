/* The environment of a pool's workers: the keys "env" and "clear_env". */
#ifndef STDIO_BUS_CONFIG_ENVIRONMENT_H
#define STDIO_BUS_CONFIG_ENVIRONMENT_H

#include <stddef.h>

#include "base/slice.h"
#include "config/diagnostics.h"

/* The variable that has the value of a field of "headers"; printf, from 1 on. */
#define ENVIRONMENT_FIELD "STDIO_BUS_HEADER_%zu"
#define ENVIRONMENT_FIELD_MAX 48

/* Checks "env". Its values may name variables of the daemon's environment. */
void environment_check(struct diagnostics *diagnostics, const struct json_value *env);

/* The environment of a valid pool's workers: the daemon's, without the variables that are meant for
 * the daemon alone (NOTIFY_SOCKET and its like), or nothing of it with clear_env; and the
 * variables of "env"; and the values of "headers". One piece of memory, to be freed with free;
 * NULL when out of memory. */
char **environment_build(const struct json_value *pool);

/* The value of a variable, or NULL. */
const char *environment_get(char *const *envp, const char *name);

/* --- variable --- */

/* Variables of the environment that a text names. */

#define VARIABLE_PROBLEM_MAX 128

enum variable_fault { VARIABLE_FOUND, VARIABLE_UNCLOSED, VARIABLE_NO_NAME, VARIABLE_UNSET };

/* Finds the value of the variable. VARIABLE_NO_NAME: the system may have it, but no text can name
 * it so. */
enum variable_fault variable_find(struct slice name, const char **value);

/* The same for "${NAME}", at which `at` points. Always sets *name. */
enum variable_fault variable_find_braced(const char *at, struct slice *name, const char **value);

/* Replaces "~/" at the beginning of a path and each $NAME or ${NAME}; a $ before anything else
 * stays. Returns the length of the whole result, of which at most `size - 1` bytes are written; or
 * -1 with the problem in words. */
int variable_expand_path(char *to, size_t size, const char *path,
                         char problem[VARIABLE_PROBLEM_MAX]);

#endif
