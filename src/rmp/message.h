/* A copy of a publication: made where one has to wait, shared by all subscriptions that it waits
 * for. */
#ifndef STDIO_BUS_RMP_MESSAGE_H
#define STDIO_BUS_RMP_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "rmp/peer.h"

struct rmp_message {
    struct list_node in_own; /* the broker's own messages that are to be published */
    size_t *account;         /* counts the bytes of all messages */
    unsigned holders;
    uint64_t expires_at_ms;
    struct rmp_publication publication; /* its slices are the bytes */
    char bytes[];                       /* topic and frame */
};

/* The bytes that such a message takes. */
static inline size_t rmp_message_size(size_t topic_len, size_t frame_len)
{
    return sizeof(struct rmp_message) + topic_len + frame_len;
}

/* A message with this topic, and room for a frame of that length in publication.frame, whose data
 * may be written until the message is shared. It has one holder. NULL if out of memory. */
struct rmp_message *rmp_message_create(struct slice topic, size_t frame_len, size_t *account);

/* A copy. */
struct rmp_message *rmp_message_copy(const struct rmp_publication *publication,
                                     uint64_t expires_at_ms, size_t *account);

static inline char *rmp_message_frame(struct rmp_message *message)
{
    return message->bytes + message->publication.topic.len;
}

static inline struct rmp_message *rmp_message_hold(struct rmp_message *message)
{
    message->holders++;
    return message;
}

/* One holder less; the last one frees it. NULL is allowed. */
void rmp_message_release(struct rmp_message *message);

#endif
