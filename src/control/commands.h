/* The requests on the control socket, carried out. */
#ifndef STDIO_BUS_CONTROL_COMMANDS_H
#define STDIO_BUS_CONTROL_COMMANDS_H

#include "control/control.h"

/* Carries out the request in the line, which client->scanner has read, and replies. */
void control_commands_run(struct control_client *client, struct slice line);

#endif
