/* stdio_bus --import: the configuration of an MCP client becomes one of the daemon. */
#ifndef STDIO_BUS_CLI_IMPORT_H
#define STDIO_BUS_CLI_IMPORT_H

#include <stddef.h>

#include "json/document.h"

struct import {
    char *config;   /* the configuration of the daemon */
    char *notes;    /* for the user: what was left out, and what to write into the client */
    size_t servers; /* the pools of the configuration */
};

/* Reads the servers of "mcpServers" (Claude, Cursor and most others), "servers" or "mcp.servers"
 * (VS Code), "context_servers" (Zed) or "mcp" (opencode), and of "projects.*.mcpServers" (Claude
 * Code). STDIO_BUS_EINVAL: there is no such object; STDIO_BUS_ERR:
 * memory is out. import_free in any case. */
int import_read(struct import *import, const struct json_value *root);

void import_free(struct import *import);

/* The same from a file, which may have comments and commas before closing brackets.
 * STDIO_BUS_EINVAL after an error was printed to stderr; one is that there is no server for the
 * daemon, and then there are notes. */
int import_file(struct import *import, const char *path);

#endif
