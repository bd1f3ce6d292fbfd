/* The JSON dialect of the RMP socket (rmp/command.h, rmp/reply.h). */
#ifndef STDIO_BUS_TOPICS_COMMANDS_H
#define STDIO_BUS_TOPICS_COMMANDS_H

#include "topics/client.h"

/* Carries out the command in a whole frame. */
enum rmp_next rmp_commands_take(struct rmp_client *client, struct slice wire);

/* A publication that has waited has ended. */
void rmp_commands_answer(struct rmp_client *client, const struct rmp_asked *asked,
                         const struct rmp_result *result);

/* Sends a message to the subscriber, unless out of memory. */
enum rmp_taken rmp_commands_deliver(struct rmp_client *client, uint64_t sub_id,
                                    const struct rmp_publication *publication);

#endif
