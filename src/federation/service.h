/* Pools over NATS, a service. */
#ifndef STDIO_BUS_FEDERATION_SERVICE_H
#define STDIO_BUS_FEDERATION_SERVICE_H

#include "bus/service.h"

extern const struct service nats_service;

#endif
