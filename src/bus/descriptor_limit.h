/* The limit of open descriptors of the bus. */
#ifndef STDIO_BUS_BUS_DESCRIPTOR_LIMIT_H
#define STDIO_BUS_BUS_DESCRIPTOR_LIMIT_H

#include "bus/state.h"

/* Clients and workers together may need more descriptors than the usual soft limit: raises it as
 * far as the system lets it. */
void descriptor_limit_raise(struct stdio_bus *bus);

#endif
