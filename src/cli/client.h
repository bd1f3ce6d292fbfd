/* stdio_bus --connect. */
#ifndef STDIO_BUS_CLI_CLIENT_H
#define STDIO_BUS_CLI_CLIENT_H

#include "cli/options.h"

/* Serves stdin and stdout: by a socket of a daemon, byte for byte or, with a protocol, joined again
 * after its restart; or by the URL of an MCP server. Returns the exit status, after the reason was
 * written to stderr. */
int client_run(const struct options *options);

#endif
