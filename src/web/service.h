/* HTTP listeners as a service of the bus. */
#ifndef STDIO_BUS_WEB_SERVICE_H
#define STDIO_BUS_WEB_SERVICE_H

#include "bus/service.h"

extern const struct service http_service;

#endif
