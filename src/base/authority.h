/* HOST[:PORT], as in URLs and in HTTP's Host. */
#ifndef STDIO_BUS_BASE_AUTHORITY_H
#define STDIO_BUS_BASE_AUTHORITY_H

#include <stdbool.h>

#include "base/slice.h"

/* *host keeps the brackets of an IPv6 address, and is set even where the port is malformed; *port
 * has data NULL where there is none. False: the address does not end, or the port has other bytes
 * than digits. */
bool authority_split(struct slice text, struct slice *host, struct slice *port);

#endif
