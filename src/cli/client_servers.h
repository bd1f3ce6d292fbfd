/* The servers in the configuration of an MCP client. */
#ifndef STDIO_BUS_CLI_CLIENT_SERVERS_H
#define STDIO_BUS_CLI_CLIENT_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

#include "json/document.h"

enum client_server_kind {
    SERVER_IS_STARTED,   /* by a command */
    SERVER_IS_STDIO_BUS, /* the command is this program */
    SERVER_IS_NO_OBJECT,
    SERVER_HAS_URL, /* and is not started */
    SERVER_IS_DISABLED,
    SERVER_HAS_NO_COMMAND
};

/* A server. Its parts are wherever its client has them; NULL: there is none. */
struct client_server {
    const struct json_value *value; /* the key is the server's name */
    const char *project;            /* the directory in which its client starts it; "": any */
    enum client_server_kind kind;
    const struct json_value *command, *first_arg, *env, *cwd;
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
