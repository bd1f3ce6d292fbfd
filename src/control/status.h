/* The state of the daemon as a whole, for the control socket. */
#ifndef STDIO_BUS_CONTROL_STATUS_H
#define STDIO_BUS_CONTROL_STATUS_H

#include "control/control.h"

void control_write_status(struct stdio_bus *bus, struct json_text *to);

#endif
