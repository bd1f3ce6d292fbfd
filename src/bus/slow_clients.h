/* Clients that do not read while other clients wait behind them.
 *
 * A worker is paused while its message cannot go to a full client (spec 7.3.1), and then serves no
 * other client. Within any minute that may take slow_client_timeout_sec in all, whichever clients
 * cause it. Once that time is used up, each client that does not read and that others wait for is
 * disconnected at once, so a client that reconnects gains nothing; see the origins below. A client
 * that no other client waits for has backpressure_timeout_sec.
 *
 * A shutdown waits for clients to read what is left for them. One that takes nothing for
 * slow_client_timeout_sec is disconnected, so that it does not use up drain_timeout_sec. */
#ifndef STDIO_BUS_BUS_SLOW_CLIENTS_H
#define STDIO_BUS_BUS_SLOW_CLIENTS_H

#include "bus/state.h"
#include "endpoint/endpoint.h"

/* timer_fn of bus->slow_clients.check, which bus_watch_slow_clients starts. */
void slow_clients_check(void *user_data);

/* --- their origins --- */

/* Origins of clients that were disconnected because they did not read while others waited.
 *
 * Such a client would come back at once and take the workers' time again. For a minute new
 * connections of its origin begin to be served one after the other, slowly; those of other origins
 * do not wait. */

void slow_origins_init(struct stdio_bus *bus);

/* A client of this origin was disconnected. */
void slow_origins_note(struct stdio_bus *bus, const struct origin *origin);

/* Whether a client of this origin was disconnected in the last minute. */
bool slow_origins_has(struct stdio_bus *bus, const struct origin *origin);

/* A new client of this origin, which was admitted: holds it until its turn. */
void slow_origins_arrived(struct endpoint *client, const struct origin *origin);

#endif
