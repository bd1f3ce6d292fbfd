/* The metrics of a bus, read from where they are counted. */
#ifndef STDIO_BUS_BUS_METRICS_H
#define STDIO_BUS_BUS_METRICS_H

#include "bus/metrics_text.h"
#include "bus/state.h"
#include "endpoint/endpoint.h"

/* Adds the text of Prometheus' format. The bus measures (control/control.h). */
void metrics_of_bus(struct stdio_bus *bus, struct json_text *to);

/* Adds the time that the endpoint has been held for. */
void metrics_add_hold(struct metrics *metrics, const struct endpoint *endpoint);

#endif
