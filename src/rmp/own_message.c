#include "build_config.h"

#include "rmp/own_message.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "rmp/message.h"
#include "rmp/schemas.h"

#define TTL_MS 5000

/* meta.topic as in any frame: a client with many subscriptions sees which one it is for. */
static void put_body(struct msgpack_writer *writer, const struct rmp_own_message *own)
{
    const struct rmp_schemas registry = {.added = NULL};

    msgpack_put_map(writer, 3);
    msgpack_put_text(writer, "type");
    msgpack_put_text(writer, rmp_schemas_find(&registry, own->schema_id)->type);
    msgpack_put_text(writer, "payload");
    own->put_payload(writer, own->argument);
    msgpack_put_text(writer, "meta");
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "topic");
    msgpack_put_text(writer, own->topic);
}

int rmp_own_message_add(struct rmp_broker *broker, const struct rmp_own_message *own,
                        struct rmp_time time)
{
    struct msgpack_writer writer = {.to = NULL};
    struct rmp_message *message;
    struct rmp_header *header;

    put_body(&writer, own);
    message = rmp_message_create(slice_of(own->topic, strlen(own->topic)),
                                 RMP_BODY_OFFSET + writer.len, &broker->copies_bytes);
    if (message == NULL) {
        broker->counters.no_memory++;
        return STDIO_BUS_ERR;
    }
    header = &message->publication.header;
    *header = (struct rmp_header){.schema_id = own->schema_id,
                                  .body_len = (uint32_t)writer.len,
                                  .created_at_ms = time.epoch_ms,
                                  .ttl_ms = TTL_MS,
                                  .trace_id = own->trace_id,
                                  .msg_id = ++broker->own_msg_id};
    rmp_header_write_prefixed(rmp_message_frame(message), header);
    writer = (struct msgpack_writer){.to = rmp_message_frame(message) + RMP_BODY_OFFSET,
                                     .size = writer.len};
    put_body(&writer, own);
    ASSERT(msgpack_fits(&writer) && writer.len == header->body_len);
    message->expires_at_ms = time.epoch_ms + TTL_MS;
    list_append(&broker->own, &message->in_own);
    return STDIO_BUS_OK;
}
