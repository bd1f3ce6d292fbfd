/* stdio_bus --import: the configuration of an MCP client becomes one of the daemon. */
#ifndef STDIO_BUS_CLI_IMPORT_H
#define STDIO_BUS_CLI_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "json/document.h"

struct import {
    char *config;   /* the configuration of the daemon */
    char *notes;    /* for the user: what was left out, and what to write into the client */
    size_t servers; /* the pools of the configuration */
};

/* Reads the servers of client_servers_each. The notes are in the notation of the file, JSON or
 * TOML. STDIO_BUS_EINVAL: there is no object of servers; STDIO_BUS_ERR: out of memory. import_free
 * in any case. */
int import_read(struct import *import, const struct json_value *root, bool is_toml);

void import_free(struct import *import);

#endif
