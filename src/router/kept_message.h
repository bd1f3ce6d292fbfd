/* A copy of a message, as a line whatever the framing it came in. */
#ifndef STDIO_BUS_ROUTER_KEPT_MESSAGE_H
#define STDIO_BUS_ROUTER_KEPT_MESSAGE_H

#include "base/archive.h"
#include "base/slice.h"
#include "json/message.h"

struct kept_message {
    struct message_id id;
    struct slice line;     /* with its newline; data NULL: nothing is kept */
    struct splice_edit at; /* the id in it, to be replaced */
};

/* Copies a whole message in place of what was kept. STDIO_BUS_ERR if out of memory, and then
 * nothing is kept. */
int kept_message_copy(struct kept_message *kept, const struct message *message);

/* Copies what another one keeps, in the same way. */
int kept_message_repeat(struct kept_message *kept, const struct kept_message *other);

/* Saves what is kept, or loads it where nothing is. */
void kept_message_archive(struct kept_message *kept, struct archive *archive);

/* Keeps nothing any more. */
void kept_message_free(struct kept_message *kept);

#endif
