/* Messages that the broker itself publishes. */
#ifndef STDIO_BUS_RMP_OWN_MESSAGE_H
#define STDIO_BUS_RMP_OWN_MESSAGE_H

#include "rmp/msgpack.h"
#include "rmp/state.h"

struct rmp_own_message {
    const char *topic;
    uint16_t schema_id;
    struct rmp_id trace_id;
    /* Writes the payload, a map. Called twice: to count, and to write. */
    void (*put_payload)(struct msgpack_writer *writer, const void *argument);
    const void *argument;
};

/* Adds it to broker->own. STDIO_BUS_ERR if out of memory. */
int rmp_own_message_add(struct rmp_broker *broker, const struct rmp_own_message *own,
                        struct rmp_time time);

#endif
