/* A port: the endpoint by which the topic bus is a client of a pool. It has no descriptor. */
#ifndef STDIO_BUS_TOPICS_PORT_H
#define STDIO_BUS_TOPICS_PORT_H

#include "topics/calls.h"

/* Makes a zeroed port, whose bridge and pool are set, known to the router. */
void rmp_port_open(struct rmp_port *port);

/* Leaves the router; frees its calls unanswered. */
void rmp_port_close(struct rmp_port *port);

/* Starts the time of a call: without an answer until then it has failed. */
void rmp_port_start_deadline(struct rmp_call *call, int64_t delay_ms);

/* Offers lines to the router until it holds one. */
void rmp_port_offer(struct rmp_port *port);

/* The router is closing: the line that it holds is offered again. */
void rmp_port_refuse_held(struct rmp_port *port);

#endif
