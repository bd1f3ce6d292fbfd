/* The messages in a text of the server: an object, or an array of them. */
#ifndef STDIO_BUS_REMOTE_MESSAGES_H
#define STDIO_BUS_REMOTE_MESSAGES_H

#include "json/message.h"

/* Calls fn(user, message) for each; the bytes of a message are its object. Returns NULL, or what is
 * wrong with the text after the messages so far: static. */
const char *messages_read(struct slice text, void (*fn)(void *user, const struct message *message),
                          void *user);

#endif
