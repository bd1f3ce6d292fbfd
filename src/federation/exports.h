/* The pools that other machines reach: those with "export". */
#ifndef STDIO_BUS_FEDERATION_EXPORTS_H
#define STDIO_BUS_FEDERATION_EXPORTS_H

#include "federation/hub.h"

/* Subscribes what the configuration exports now, and nothing else. */
void exports_renew(struct nats_hub *hub);

/* Takes no request any more. */
void exports_end(struct nats_hub *hub);

#endif
