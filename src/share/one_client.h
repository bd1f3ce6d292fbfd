/* Servers that keep a state for one client, such as the page of a browser: clients that share a
 * process of theirs meet in it. The server's own word says so, or the names of its tools. The log
 * and --list say it; --clients auto alone decides by it. */
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
    bool is_known;                      /* there is none, if there is no sign */
    uint64_t edition;                   /* of what was looked at */
};

/* Looks at what the bus remembers, if that is another edition than the last time, and logs a sign
 * that is new. */
void one_client_look(struct one_client *one_client, const struct stdio_bus *bus);

/* Finds the sign in what is remembered: "x-mux" in the answer to initialize, which the names of
 * tools never contradict, or the first tool with a name of the table. It is known that there is
 * none once all tools are remembered, or that the server has none. False: out of memory. */
bool one_client_find(struct one_client *one_client, const struct remembered *remembered);

/* The same about one tool. */
const struct one_client_sign *one_client_tool(struct slice name);

#endif
