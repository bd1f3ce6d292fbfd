/* The lists of the control socket. */
#ifndef STDIO_BUS_CONTROL_LISTS_H
#define STDIO_BUS_CONTROL_LISTS_H

#include "control/control.h"
#include "control/request.h"
#include "process/pool.h"

/* Each writes an object with the list, of which at most `limit` elements, and their number. */
void control_list_pools(struct stdio_bus *bus, struct json_text *to, size_t limit);
void control_list_workers(struct stdio_bus *bus, struct json_text *to, size_t limit);
void control_list_clients(struct stdio_bus *bus, struct json_text *to, size_t limit);
void control_list_sessions(struct stdio_bus *bus, struct json_text *to, size_t limit);
void control_list_requests(struct stdio_bus *bus, struct json_text *to, size_t limit);

#endif
