/* The clients of the control socket: from their connection to their disconnection. */
#ifndef STDIO_BUS_CONTROL_CLIENTS_H
#define STDIO_BUS_CONTROL_CLIENTS_H

#include "base/archive.h"
#include "control/control.h"

extern const struct visitor_kind control_clients_kind;

/* Saves the control with its clients, or loads them. */
void control_clients_archive(struct archive *archive, struct control *control);

#endif
