/* The metrics of a bus, read from where they are counted. */
#ifndef STDIO_BUS_BUS_METRICS_H
#define STDIO_BUS_BUS_METRICS_H

#include "bus/state.h"
#include "json/text.h"

/* Adds the text of Prometheus' format. The bus has a control socket, which makes it measure. */
void metrics_of_bus(struct stdio_bus *bus, struct json_text *to);

#endif
