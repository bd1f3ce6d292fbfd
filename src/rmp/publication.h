/* A publication: one message on one topic, as its publisher has handed it in. */
#ifndef STDIO_BUS_RMP_PUBLICATION_H
#define STDIO_BUS_RMP_PUBLICATION_H

#include <stdint.h>

#include "base/slice.h"
#include "rmp/header.h"

/* The two clocks of a call. Neither is read by src/rmp. */
struct rmp_time {
    uint64_t epoch_ms; /* of the calendar: created_at_ms and expiry are measured by it */
    uint64_t now_ms;   /* monotonic: every delay is measured by it */
};

/* Borrowed: it lives until the call that it is given to returns. */
struct rmp_publication {
    struct rmp_header header;
    struct slice topic;
    struct slice frame; /* prefix, header and body, as they are sent in the dialect of frames */
    uint32_t user;      /* of the publisher, set by the broker (rmp/peer.h) */
    uint64_t number;    /* of this publication, set by the broker; unlike that of any other. What a
                         * subscriber made of the one before (its text as JSON) is still good as
                         * long as the number is the same. The publisher leaves it 0. */
};

static inline struct slice rmp_publication_body(const struct rmp_publication *publication)
{
    return slice_of(publication->frame.data + RMP_BODY_OFFSET,
                    publication->frame.len - RMP_BODY_OFFSET);
}

#endif
