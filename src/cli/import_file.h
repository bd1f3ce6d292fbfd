/* The file of an MCP client, for stdio_bus --import. */
#ifndef STDIO_BUS_CLI_IMPORT_FILE_H
#define STDIO_BUS_CLI_IMPORT_FILE_H

#include "cli/import.h"

/* import_read from a file: TOML if its name ends in ".toml", else JSON, which may have comments and
 * commas before closing brackets.
 * STDIO_BUS_EINVAL after an error was printed to stderr; one is that there is no server for the
 * daemon, and then there are notes. */
int import_file(struct import *import, const char *path);

#endif
