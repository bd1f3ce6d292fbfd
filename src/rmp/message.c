#include "build_config.h"

#include "rmp/message.h"

#include <stdlib.h>
#include <string.h>

static size_t size_of(const struct rmp_message *message)
{
    return rmp_message_size(message->publication.topic.len, message->publication.frame.len);
}

struct rmp_message *rmp_message_create(struct slice topic, size_t frame_len, size_t *account)
{
    struct rmp_message *message = malloc(rmp_message_size(topic.len, frame_len));

    if (message == NULL)
        return NULL;
    *message = (struct rmp_message){.account = account, .holders = 1};
    memcpy(message->bytes, topic.data, topic.len);
    message->publication.topic = slice_of(message->bytes, topic.len);
    message->publication.frame = slice_of(message->bytes + topic.len, frame_len);
    *account += size_of(message);
    return message;
}

struct rmp_message *rmp_message_copy(const struct rmp_publication *publication,
                                     uint64_t expires_at_ms, size_t *account)
{
    struct rmp_message *message = rmp_message_create(publication->topic, publication->frame.len,
                                                     account);

    if (message == NULL)
        return NULL;
    memcpy(rmp_message_frame(message), publication->frame.data, publication->frame.len);
    message->publication.header = publication->header;
    message->publication.user = publication->user;
    message->publication.number = publication->number;
    message->expires_at_ms = expires_at_ms;
    return message;
}

void rmp_message_release(struct rmp_message *message)
{
    if (message == NULL || --message->holders > 0)
        return;
    *message->account -= size_of(message);
    free(message);
}
