/* stdio_bus --connect http://: a program that can only start an MCP server gets one that is at a
 * URL. stdin and stdout have the messages, one a line; the server speaks Streamable HTTP, of either
 * era of MCP. */
#ifndef STDIO_BUS_REMOTE_REMOTE_H
#define STDIO_BUS_REMOTE_REMOTE_H

#include "remote/program.h"

/* Serves stdin and stdout until the program has finished. */
enum remote_outcome remote_run(const struct remote_options *options);

#endif
