/* The transport of 2024-11-05, HTTP+SSE: a GET opens a stream, whose first event names the endpoint
 * that takes messages by POST; all answers come on the stream. */
#ifndef STDIO_BUS_REMOTE_OLDER_H
#define STDIO_BUS_REMOTE_OLDER_H

#include <stdbool.h>

struct call;

/* The server has refused initialize: a GET shows whether it has the older transport alone. Then
 * remote->older is the call of its stream, and the message is sent to its endpoint; otherwise, or
 * when it does not answer in time, the call fails. False: the status of the refusal says something
 * else, or out of memory. */
bool older_try(struct call *call);

#endif
