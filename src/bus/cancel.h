/* Requests that are given up: their client leaves, or their time is over. */
#ifndef STDIO_BUS_BUS_CANCEL_H
#define STDIO_BUS_BUS_CANCEL_H

#include "bus/state.h"

/* The client leaves: its requests are cancelled where the worker continues, in the words of the
 * pool's protocol. */
void cancel_requests_of(struct stdio_bus *bus, struct peer *client);

/* The client's input has ended: a request that subscribes, and so would stay open, is given up. */
void cancel_subscriptions_of(struct stdio_bus *bus, struct peer *client);

/* Starts bus->requests for the first deadline of a request, if there is one. */
void cancel_plan(struct stdio_bus *bus);

/* timer_fn of bus->requests: requests whose time is over get an error and are cancelled, and ids
 * that were abandoned for too long are free. */
void cancel_expired(void *user_data);

/* The time that the client had for its requests is over: each gets an error, and is cancelled. */
void cancel_time_over(struct stdio_bus *bus, struct peer *client);

#endif
