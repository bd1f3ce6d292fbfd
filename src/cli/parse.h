/* The command line of stdio_bus(1), read and checked. */
#ifndef STDIO_BUS_CLI_PARSE_H
#define STDIO_BUS_CLI_PARSE_H

#include <stddef.h>

#include "cli/options.h"

/* Reads the command line: "--name value" and "--name=value", no abbreviations, up to "--" and a
 * command. argv ends with a NULL. An option given twice, or two modes, is an error. `sockets`: the
 * options that name sockets of services, up to a NULL; borrowed.
 * STDIO_BUS_EINVAL with a line of explanation in `problem`. */
int options_parse(struct options *options, int argc, char *const argv[], const char *const *sockets,
                  char *problem, size_t problem_size);

#endif
