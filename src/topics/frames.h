/* The dialect of RMP frames, in which a client also talks to the broker itself: frames of schema 9
 * whose payload is {"op":"hello","kind":K}, {"op":"subscribe","topic":T} or
 * {"op":"unsubscribe","topic":T}. Every other frame is published on the topic in its meta. The
 * answers are frames with the trace_id of the frame that they answer: schema 4 with
 * {"op":...,"ok":true}, or schema 10 with {"code":...,"message":...}. */
#ifndef STDIO_BUS_TOPICS_FRAMES_H
#define STDIO_BUS_TOPICS_FRAMES_H

#include "topics/client.h"

/* Carries out, or publishes, a whole frame. */
enum rmp_next rmp_frames_take(struct rmp_client *client, struct slice wire);

/* The frame that client->reader describes was refused. */
void rmp_frames_refuse(struct rmp_client *client);

/* A publication that has waited has ended. */
void rmp_frames_answer(struct rmp_client *client, const struct rmp_asked *asked,
                       const struct rmp_result *result);

/* Sends a message to the subscriber, unless out of memory. */
enum rmp_taken rmp_frames_deliver(struct rmp_client *client,
                                  const struct rmp_publication *publication);

#endif
