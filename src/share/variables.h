/* The environment of a shared server: the variables that it gets, and those that tell one server
 * from another. */
#ifndef STDIO_BUS_SHARE_VARIABLES_H
#define STDIO_BUS_SHARE_VARIABLES_H

#include <stdbool.h>

/* The variables of `inherited` that a shared server gets, sorted: without `names` all but those of
 * the terminal, the window, the shell, the session and the editor; with `names` (separated by
 * commas) these, and the ones without which few programs run (PATH, HOME, LANG and the like).
 * One piece of memory, whose strings are those of `inherited`; NULL when memory is out. */
char **variables_select(char *const *inherited, const char *names);

/* Whether servers with other values of this variable, "NAME=value" of those selected, are others.
 * With `names` that are only these and HOME. */
bool variables_count(const char *entry, const char *names);

#endif
