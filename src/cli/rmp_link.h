/* A connection to the socket of the topic bus, in the dialect of frames. It blocks. */
#ifndef STDIO_BUS_CLI_RMP_LINK_H
#define STDIO_BUS_CLI_RMP_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "rmp/frame.h"

/* A frame that was received; the slices live until more is read from the link. */
struct rmp_received {
    struct rmp_header header;
    struct slice wire;
    struct rmp_envelope envelope; /* if has_envelope */
    bool has_envelope;
};

struct rmp_link {
    int fd;
    const char *topic; /* of its last subscription; NULL: none */
    struct rmp_id id;  /* the trace_id of its own requests to the broker, and of their answers */
    char *in;
    size_t start, len, capacity;
};

/* Connects. False with errno set. */
bool rmp_link_open(struct rmp_link *link, const char *path);
void rmp_link_close(struct rmp_link *link);

/* Sends a frame with this payload and meta; body_len is filled in. False: the connection broke, or
 * out of memory. */
bool rmp_link_send(struct rmp_link *link, const struct rmp_header *header, const char *type,
                   struct slice topic, struct slice payload);

/* Reads what is there. False: the connection has ended. */
bool rmp_link_fill(struct rmp_link *link);

/* Takes the next frame of those that were read. False: none is whole. */
bool rmp_link_next(struct rmp_link *link, struct rmp_received *frame);

#define RMP_LINKS_MAX 1024

enum rmp_wait { RMP_WAIT_FRAME, RMP_WAIT_TIMEOUT, RMP_WAIT_ENDED };

/* Waits for a frame on any of the links, of which *which gets the index; until_ms -1: for ever. */
enum rmp_wait rmp_link_wait(struct rmp_link *links, size_t count, int64_t until_ms,
                            struct rmp_received *frame, size_t *which);

/* Asks for a subscription, to the kept events of a run too if `replay`. The answer has link->id;
 * messages may come before it. False: the topic is too long, or the connection broke. */
bool rmp_link_subscribe(struct rmp_link *link, const char *topic, bool replay);

/* The error that a frame reports, as "Code: message"; false: it reports none. */
bool rmp_link_error(const struct rmp_received *frame, char *text, size_t size);

/* A new id: a UUID of version 4. A new msg_id. */
struct rmp_id rmp_link_new_id(void);
uint64_t rmp_link_new_msg_id(void);

#endif
