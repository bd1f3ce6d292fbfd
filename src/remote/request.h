/* The messages of the program: each becomes a call. */
#ifndef STDIO_BUS_REMOTE_REQUEST_H
#define STDIO_BUS_REMOTE_REQUEST_H

#include "remote/call.h"

#define REQUESTS_MAX 100 /* in flight at once */

/* Sends a message of the program to the server, or answers it with an error. */
void request_take(struct remote *remote, const struct message *message);

/* Gives up the requests that are answered at their end only. */
void requests_stop_open(struct remote *remote);

#endif
