/* Servers that keep a state for one client, such as the page of a browser: clients that share a
 * process of theirs meet in it. The server's own word says so, or the names of its tools. Nothing
 * is decided by it; the log and --list say it. */
#ifndef STDIO_BUS_SHARE_ONE_CLIENT_H
#define STDIO_BUS_SHARE_ONE_CLIENT_H

#include <stdint.h>

#include "router/remembered.h"

struct stdio_bus;

/* What is seen in the answers of a server. Static. */
struct one_client_sign {
    const char *tool;  /* NULL: the server says so itself */
    const char *state; /* "a browser" */
};

struct one_client {
    const struct one_client_sign *sign; /* NULL: none was seen */
    uint64_t edition;                   /* of what was looked at */
};

/* Looks at what the bus remembers, if that is another edition than the last time, and logs a sign
 * that is new. */
void one_client_look(struct one_client *one_client, const struct stdio_bus *bus);

/* The sign in what is remembered: "x-mux" in the answer to initialize, which the names of tools
 * never contradict, or the first tool with a name of the table. NULL: there is none, or memory is
 * out and *failed is set. */
const struct one_client_sign *one_client_find(const struct remembered *remembered, bool *failed);

/* The same about one tool. */
const struct one_client_sign *one_client_tool(struct slice name);

#endif
