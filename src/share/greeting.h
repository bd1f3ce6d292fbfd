/* The first lines of a connection to a shared daemon: the client sends the identity of the server
 * that it wants, the daemon compares it with its own. Or the client asks what is shared here, or
 * for a stop or a restart of the server (supervisor/halt.h), or has what it has answered forgotten:
 * the reply is the status of before. */
#ifndef STDIO_BUS_SHARE_GREETING_H
#define STDIO_BUS_SHARE_GREETING_H

#include <stdint.h>

#include "bus/options.h"
#include "share/one_client.h"

#define GREETING_JOIN "{\"stdio_bus\":\"join\",\"identity\":\""
#define GREETING_JOIN_END "\"}"
#define GREETING_STATUS "{\"stdio_bus\":\"status\"}"
#define GREETING_STOP "{\"stdio_bus\":\"stop\"}"
#define GREETING_RESTART "{\"stdio_bus\":\"restart\"}"
#define GREETING_FORGET "{\"stdio_bus\":\"forget\"}"
#define GREETING_JOINED "{\"stdio_bus\":\"joined\"}"
#define GREETING_DIFFERS "{\"stdio_bus\":\"differs\",\"in\":\""
#define GREETING_DIFFERS_END "\"}"

struct greeting {
    struct greeter greeter; /* for the bus */
    const char *identity;   /* of the server that is shared */
    int64_t since_ms;
    char *reply;                  /* the last one */
    bool stops;                   /* the daemon, once what is in flight is answered */
    struct one_client one_client; /* kept by the daemon */
    /* Of --clients auto: the pool of clients that have a process each. NULL: there is none. */
    const char *alone;
};

/* The identity is borrowed until greeting_free. */
void greeting_init(struct greeting *greeting, const char *identity);

/* Between two rounds: stops the bus if it is time. */
void greeting_look(const struct greeting *greeting, struct stdio_bus *bus);

void greeting_free(struct greeting *greeting);

#endif
