/* The transport of 2024-11-05, HTTP+SSE, which is not served: a server that has no other is named
 * as such. */
#ifndef STDIO_BUS_REMOTE_OLDER_H
#define STDIO_BUS_REMOTE_OLDER_H

#include "remote/call.h"

/* The server has refused initialize: a GET shows whether it has the older transport alone. Then, or
 * when it does not answer in time, the call fails. False: the status of the refusal says something
 * else, or out of memory. */
bool older_try(struct call *call);

#endif
