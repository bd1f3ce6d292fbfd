/* A host and a port, as in URLs, in the field Host and in addresses to listen on. */
#ifndef STDIO_BUS_BASE_AUTHORITY_H
#define STDIO_BUS_BASE_AUTHORITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Splits HOST, HOST:PORT, [IPV6] or [IPV6]:PORT; either may be empty. *host is without the
 * brackets; *port has data NULL where there is none. False: a bracket without its end, or something
 * but a port after it. */
bool authority_split(struct slice text, struct slice *host, struct slice *port);

/* Reads a number up to 65535 in digits. */
bool authority_read_port(struct slice text, uint16_t *port);

#endif
