/* The commands of stdio_bus_rmp(1) that talk to a daemon. Each returns the exit status, after a
 * line on stderr unless it is EXIT_DONE. */
#ifndef STDIO_BUS_CLI_RMP_COMMANDS_H
#define STDIO_BUS_CLI_RMP_COMMANDS_H

#include "cli/rmp_options.h"

/* `path`: of the socket. submit with --local has none. */
int rmp_pub(const struct rmp_options *options, const char *path);
int rmp_sub(const struct rmp_options *options, const char *path);
int rmp_trace(const struct rmp_options *options, const char *path);
int rmp_submit(const struct rmp_options *options, const char *path);

/* What they report of a daemon that is not there, with errno set, or that has ended the connection.
 * `hint`: what else could be done; or "". Both return EXIT_RMP_NO_DAEMON. */

#endif
