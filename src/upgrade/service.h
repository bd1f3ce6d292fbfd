/* Upgrades in place as a service of the bus: SIGUSR2, and "upgrade" on the control socket. */
#ifndef STDIO_BUS_UPGRADE_SERVICE_H
#define STDIO_BUS_UPGRADE_SERVICE_H

#include "bus/service.h"

extern const struct service upgrade_service;

#endif
