/* A configuration without a file: one pool, described by the command line of stdio_bus(1). */
#ifndef STDIO_BUS_CONFIG_COMMAND_LINE_H
#define STDIO_BUS_CONFIG_COMMAND_LINE_H

#include <stdbool.h>

#include "config/pool_config.h"
#include "json/document.h"

struct command_line {
    char *const *words;    /* the command and its arguments, up to a NULL; at least one */
    const char *protocol;  /* the keys of the pool, as written; NULL: left out, */
    const char *clients;   /* or set to suit the others */
    const char *instances; /* a number in decimal digits */
    const char *idle_stop; /* the same; the key idle_stop_sec */
    const char *framing;   /* of its workers */
    bool one_client;       /* on stdin and stdout: it gets all messages of the process */
};

/* The document that the configuration file of this pool would be. Its values have the line 0; its
 * strings are those of the command line. The pool's id is its pool_name. One piece of
 * memory, to be freed with free; NULL when out of memory. */
struct json_value *command_line_document(const struct command_line *line);

/* --- pool name --- */

/* The id of a pool that is described by a command line alone: what its server is called. */

/* The name of the program that the words run, up to a NULL; at least one. Where the first word only
 * starts another program, the name is that program's:
 *
 *     npx -y @scope/server-memory@1.2.3        server-memory
 *     uvx --from git+https://host/mcp-x.git x  x
 *     python3 -m mcp_server_time               mcp_server_time
 *     node /path/to/files/dist/index.js        files
 *     docker run -i --rm ghcr.io/name/x:1.2    x
 *
 * Otherwise, and where the arguments show no program, it is the base name of the first word. It is
 * written to `to`, cut to what fits. */
void pool_name(char to[POOL_ID_MAX + 1], char *const *words);

#endif
