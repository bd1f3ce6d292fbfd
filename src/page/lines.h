/* The lines to paste into clients, for each pool that a listener has at a path. */
#ifndef STDIO_BUS_PAGE_LINES_H
#define STDIO_BUS_PAGE_LINES_H

#include "bus/listeners.h"
#include "json/text.h"

/* Adds `pattern` for each pool, where @u is its URL, @n a name for it, and what is between @[ and
 * @] is left out unless the listener asks for a token. `host`: as in the request. */
void lines_add(struct json_text *to, const struct bus_listener *listener, struct slice host,
               struct slice pattern);

#endif
