/* stdio_bus --connect. */
#ifndef STDIO_BUS_CLI_CLIENT_H
#define STDIO_BUS_CLI_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/options.h"
#include "cli/toml.h"
#include "config/diagnostics.h"
#include "json/document.h"

/* Serves stdin and stdout: by a socket of a daemon, byte for byte or, with a protocol, joined again
 * after its restart; or by the URL of an MCP server. Returns the exit status, after the reason was
 * written to stderr. */
int client_run(const struct options *options);

/* --- The configuration file of an MCP client. --- */

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

/* --- The servers in the configuration of an MCP client. --- */

enum client_server_kind {
    SERVER_IS_STARTED,   /* by a command */
    SERVER_IS_STDIO_BUS, /* the command is this program */
    SERVER_IS_NO_OBJECT,
    SERVER_HAS_URL, /* in place of a command */
    SERVER_IS_DISABLED,
    SERVER_HAS_NO_COMMAND
};

/* A server. Its parts are wherever its client has them; NULL: there is none. */
struct client_server {
    const struct json_value *value; /* the key is the server's name */
    const char *project;            /* the directory in which its client starts it; "": any */
    enum client_server_kind kind;
    const struct json_value *command, *first_arg, *env, *cwd, *url;
    bool in_one; /* the command and its arguments are one array, as opencode has them */
};

typedef void client_server_fn(void *user_data, const struct client_server *server);

/* Calls `visit` for each server of "mcpServers" (Claude, Cursor and most others), "servers" or
 * "mcp.servers" (VS Code), "context_servers" (Zed), "mcp_servers" (Codex) or "mcp" (opencode), and
 * of "projects.*.mcpServers" (Claude Code). False: there is no such object. */
bool client_servers_each(const struct json_value *root, client_server_fn *visit, void *user_data);

/* Whether the value is a string or number without a NUL. NULL is none. */
bool client_server_is_text(const struct json_value *value);

#endif
