/* Reloads as a service of the bus: SIGHUP, and "reload" on the control socket. */
#ifndef STDIO_BUS_RELOAD_SERVICE_H
#define STDIO_BUS_RELOAD_SERVICE_H

#include "bus/service.h"

extern const struct service reload_service;

#endif
