/* stdio_bus --connect --protocol: a client that joins a daemon again after its restart. */
#ifndef STDIO_BUS_CLI_REJOIN_H
#define STDIO_BUS_CLI_REJOIN_H

#include "cli/options.h"

/* Serves stdin and stdout until their client has finished. Returns the exit status, after the
 * reason was written to stderr. */
int rejoin_run(const struct options *options);

#endif
