/* Origins of clients that were disconnected because they did not read while others waited.
 *
 * Such a client would come back at once and take the workers' time again. For a minute new
 * connections of its origin begin to be served one after the other, slowly; those of other origins
 * do not wait. */
#ifndef STDIO_BUS_BUS_SLOW_ORIGINS_H
#define STDIO_BUS_BUS_SLOW_ORIGINS_H

#include "bus/state.h"
#include "endpoint/endpoint.h"

void slow_origins_init(struct stdio_bus *bus);

/* A client of this origin was disconnected. */
void slow_origins_note(struct stdio_bus *bus, const struct origin *origin);

/* Whether a client of this origin was disconnected in the last minute. */
bool slow_origins_has(struct stdio_bus *bus, const struct origin *origin);

/* A new client of this origin, which was admitted: holds it until its turn. */
void slow_origins_arrived(struct endpoint *client, const struct origin *origin);

#endif
