/* The environment of a shared server: the variables that it gets, and those that tell one server
 * from another. */
#ifndef STDIO_BUS_SHARE_VARIABLES_H
#define STDIO_BUS_SHARE_VARIABLES_H

#include <stdbool.h>

enum variable_kind {
    VARIABLE_COUNTS,     /* a setting or a secret of the server: another value is another server */
    VARIABLE_OF_MACHINE, /* language, display, certificates: a client without it takes any value */
    VARIABLE_PASSED,     /* the server gets it, but its value does not count */
    VARIABLE_OF_HOST     /* of the host, terminal, shell, session or desktop: it is not passed */
};

/* The kind of "NAME=value". With `names` (separated by commas; NULL: none) only these and HOME
 * count, and of the others those are passed without which few programs run (PATH, LANG and the
 * like). */
enum variable_kind variable_kind_of(const char *entry, const char *names);

/* The variables of `inherited` that a shared server gets, sorted. One piece of memory, whose
 * strings are those of `inherited`; NULL if out of memory. */
char **variables_select(char *const *inherited, const char *names);

/* Takes directories out of PATH, in place, that hosts have put there for programs of their own. */
void variables_clean_path(char *const *variables);

#endif
