/* stdio_bus --ping SOCKET: whether a daemon serves, by its control socket, for health checks. */
#ifndef STDIO_BUS_CLI_PING_H
#define STDIO_BUS_CLI_PING_H

#include "cli/options.h"

/* Returns EXIT_DONE, or another exit status after the reason was printed. */
int ping_run(const struct options *options);

#endif
