/* Variables of the environment that a text names. */
#ifndef STDIO_BUS_CONFIG_VARIABLE_H
#define STDIO_BUS_CONFIG_VARIABLE_H

#include <stddef.h>

#include "base/slice.h"

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
