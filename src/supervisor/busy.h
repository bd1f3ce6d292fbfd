/* Whether a process may be ended without a loss. */
#ifndef STDIO_BUS_SUPERVISOR_BUSY_H
#define STDIO_BUS_SUPERVISOR_BUSY_H

#include <stdbool.h>

struct peer;

/* Whether it has something to answer, has asked something, or is held: its process would take that
 * with it. */
bool busy_with_anything(const struct peer *worker);

#endif
