/* A publication from its judgement to its end. */
#ifndef STDIO_BUS_RMP_PUBLISH_H
#define STDIO_BUS_RMP_PUBLISH_H

#include <stdbool.h>

#include "rmp/result.h"
#include "rmp/state.h"

struct rmp_publisher {
    struct rmp_peer *peer;
    uint64_t token; /* for ops->published */
};

/* As rmp_broker_publish, without what the broker publishes about it. */
bool rmp_publish(struct rmp_broker *broker, struct rmp_publisher publisher,
                 const struct rmp_publication *given, struct rmp_time time,
                 struct rmp_result *result);

/* Publishes broker->own: notices and snapshots that came up during a call are published at its
 * end. */
void rmp_publish_own(struct rmp_broker *broker, struct rmp_time time);

/* Sets the outcome and the members that it may need. */
void rmp_publish_result(struct rmp_result *result, enum rmp_outcome outcome,
                        const struct rmp_publication *publication);

/* RMP_RESULT_FORBIDDEN, with a static text. */
struct rmp_result rmp_result_forbidden(const char *reason);

#endif
