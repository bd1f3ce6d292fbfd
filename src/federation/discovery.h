/* How the tools of NATS see the pools: each export is a service, which answers $SRV.PING, .INFO and
 * .STATS (the service convention of NATS, ADR-32). */
#ifndef STDIO_BUS_FEDERATION_DISCOVERY_H
#define STDIO_BUS_FEDERATION_DISCOVERY_H

#include "federation/hub.h"

/* Begins to answer for the export. STDIO_BUS_ERR if out of memory: then it does not. */
int discovery_add(struct nats_export *export);

/* Ends that. Idempotent. */
void discovery_remove(struct nats_export *export);

#endif
