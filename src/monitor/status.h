/* The state of the daemon as a whole, for the control socket and the page. */
#ifndef STDIO_BUS_MONITOR_STATUS_H
#define STDIO_BUS_MONITOR_STATUS_H

#include "bus/state.h"
#include "json/text.h"

void status_write(struct stdio_bus *bus, struct json_text *to);

#endif
