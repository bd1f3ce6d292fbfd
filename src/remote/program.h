/* The program on stdin and stdout, as the receiver of messages. */
#ifndef STDIO_BUS_REMOTE_PROGRAM_H
#define STDIO_BUS_REMOTE_PROGRAM_H

#include "remote/state.h"
#include "json/message.h"

/* Queue a message of the server, which is whole and valid, and an error for a request of the
 * program. What memory has no room for is lost, and logged. */
void program_send(struct remote *remote, struct slice bytes);
void program_send_error(struct remote *remote, struct message_id id, int code, const char *text);

/* Queues the error of the server as the answer to the request with this id. */
void program_send_refusal(struct remote *remote, const struct message *error, struct message_id id);

#endif
