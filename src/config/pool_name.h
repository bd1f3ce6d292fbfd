/* The id of a pool that is described by a command line alone: what its server is called. */
#ifndef STDIO_BUS_CONFIG_POOL_NAME_H
#define STDIO_BUS_CONFIG_POOL_NAME_H

#define POOL_ID_MAX 256 /* bytes of the id of any pool */

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
