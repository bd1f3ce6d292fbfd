/* The page for browsers as a service of the bus. */
#ifndef STDIO_BUS_PAGE_SERVICE_H
#define STDIO_BUS_PAGE_SERVICE_H

#include "bus/service.h"

extern const struct service page_service;

#endif
