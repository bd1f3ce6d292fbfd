/* Whether a command can be run (spec 9.3.3). */
#ifndef STDIO_BUS_CONFIG_COMMAND_H
#define STDIO_BUS_CONFIG_COMMAND_H

/* Looks for the file that execvp would run in the directory `cwd` (NULL: ours): `command` itself
 * when it contains a slash, else one of that name in the directories of `path`, the value of PATH
 * (NULL: not set, so that the system's own is used). Returns 0 when there is an executable regular
 * file, or the errno that says why there is none. That an interpreter is missing, or that the file
 * is not a program, only exec can tell. */
int command_check(const char *command, const char *path, const char *cwd);

#endif
