/* What is counted for each name of a node: of all links to nodes of that name, and after they have
 * ended. There is a bound on names, so that a metric has one on its labels. */
#ifndef STDIO_BUS_FEDERATION_TALLIES_H
#define STDIO_BUS_FEDERATION_TALLIES_H

#include "federation/hub.h"

/* That of the name, "" being that of a node without one. Names beyond TALLIES_MAX share one. */
struct nats_tally *tallies_get(struct nats_hub *hub, const char *name);

/* The same, or NULL if nothing is counted for the name. */
const struct nats_tally *tallies_find(const struct nats_hub *hub, const char *name);

#endif
