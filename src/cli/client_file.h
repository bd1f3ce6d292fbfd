/* The configuration file of an MCP client. */
#ifndef STDIO_BUS_CLI_CLIENT_FILE_H
#define STDIO_BUS_CLI_CLIENT_FILE_H

#include <stdbool.h>

#include "cli/toml.h"
#include "config/diagnostics.h"

struct client_file {
    const struct json_value *root;
    bool is_toml;
    char *text;
    struct document document;
    struct toml toml;
};

/* Reads the file: TOML if its name ends in ".toml", else JSON, which may have comments and trailing
 * commas. STDIO_BUS_EINVAL: the text is neither; place and reason are in *error. STDIO_BUS_ERR: it
 * cannot be read, or there is no memory, which was reported. client_file_free in any case. */
int client_file_read(struct client_file *file, const char *path, struct diagnostics *diagnostics,
                     struct document_error *error);

void client_file_free(struct client_file *file);

#endif
