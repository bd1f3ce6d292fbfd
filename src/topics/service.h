/* The RMP topic bus as a service of the bus. */
#ifndef STDIO_BUS_TOPICS_SERVICE_H
#define STDIO_BUS_TOPICS_SERVICE_H

#include "bus/service.h"

extern const struct service rmp_service;

#endif
