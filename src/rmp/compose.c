#include "build_config.h"

#include "rmp/compose.h"

#include <stdlib.h>

#define META_ROOM 64 /* bytes of meta beside the topic */

static void put_meta(struct msgpack_writer *writer, const struct rmp_draft *draft)
{
    bool has_topic = draft->topic.len > 0, has_ended = draft->ended != NULL;

    if (!has_topic && !draft->ack && !has_ended)
        return;
    msgpack_put_map(writer, (uint32_t)has_topic + draft->ack + has_ended);
    if (has_topic) {
        msgpack_put_text(writer, "topic");
        msgpack_put_str(writer, draft->topic);
    }
    if (draft->ack) {
        msgpack_put_text(writer, "ack");
        msgpack_put_bool(writer, true);
    }
    if (has_ended) {
        msgpack_put_text(writer, "ended");
        msgpack_put_text(writer, draft->ended);
    }
}

char *rmp_compose(const struct rmp_draft *draft, size_t *len)
{
    size_t meta_room = draft->topic.len + META_ROOM, size;
    char *meta = malloc(meta_room), *frame = NULL;
    struct msgpack_writer writer = {.to = meta, .size = meta_room};
    struct rmp_envelope envelope = {.type = slice_of(draft->type, strlen(draft->type)),
                                    .payload = draft->payload};

    if (meta == NULL)
        return NULL;
    put_meta(&writer, draft);
    envelope.meta = slice_of(meta, writer.len);
    size = rmp_frame_write(NULL, 0, &draft->header, &envelope);
    frame = malloc(size);
    if (frame != NULL)
        *len = rmp_frame_write(frame, size, &draft->header, &envelope);
    free(meta);
    return frame;
}
