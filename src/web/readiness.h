/* Whether the daemon is ready to serve: the answer of /readyz. */
#ifndef STDIO_BUS_WEB_READINESS_H
#define STDIO_BUS_WEB_READINESS_H

#include "bus/state.h"

/* Whether the daemon neither starts nor stops, and each pool has a worker that takes messages or is
 * started for a client. If not, `text` (of `size` bytes, one line) says why. */
bool readiness_is_ready(const struct stdio_bus *bus, char *text, size_t size);

#endif
