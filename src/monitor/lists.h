/* Lists of what the bus has, as JSON: for the control socket and the page. */
#ifndef STDIO_BUS_MONITOR_LISTS_H
#define STDIO_BUS_MONITOR_LISTS_H

#include "bus/state.h"
#include "json/text.h"

/* Each writes an object with the list, of which at most `limit` elements, and their number. */
void lists_pools(struct stdio_bus *bus, struct json_text *to, size_t limit);
void lists_workers(struct stdio_bus *bus, struct json_text *to, size_t limit);
void lists_clients(struct stdio_bus *bus, struct json_text *to, size_t limit);
void lists_sessions(struct stdio_bus *bus, struct json_text *to, size_t limit);
void lists_requests(struct stdio_bus *bus, struct json_text *to, size_t limit);

#endif
