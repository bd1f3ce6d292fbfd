/* The control socket as a service of the bus, which reports events and measures for it. */
#ifndef STDIO_BUS_CONTROL_SERVICE_H
#define STDIO_BUS_CONTROL_SERVICE_H

#include "bus/service.h"

extern const struct service control_service;

#endif
