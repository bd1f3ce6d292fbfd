/* The command of a pool: the program that its workers run. */
#ifndef STDIO_BUS_CONFIG_COMMAND_H
#define STDIO_BUS_CONFIG_COMMAND_H

#include "config/diagnostics.h"

/* Looks for the file that execvp would run in the environment and the directory of the workers
 * (spec 9.3.3): the command itself if it contains a slash, otherwise a file of that name in the
 * directories of PATH (not set: of the system's default). Reports an error unless there is an
 * executable regular file, and a warning if that is a script without its interpreter. All keys of
 * the pool that decide this are valid. A file that is no program is found by exec alone. */
void command_check(struct diagnostics *diagnostics, const struct json_value *pool);

#endif
