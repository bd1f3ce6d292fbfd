/* A client of the RMP socket, in both dialects. It knows nothing of the daemon's code. */
#ifndef TESTS_HARNESS_RMP_H
#define TESTS_HARNESS_RMP_H

#include <stdint.h>

#include "client.h"
#include "daemon.h"

/* Starts a daemon that has the RMP socket alone. `keys` are further members of "rmp", each with a
 * comma before it; `members`: the same at the top. */
struct daemon *rmp_start(const char *keys, const char *members);

/* A message to be published, or in the dialect of frames a control frame. All zero: of schema 3003,
 * created now, with a time to live of 30 s. */
struct rmp_sent {
    const char *topic;
    const char *op, *key, *value; /* a control frame: {"op":op, key:value} */
    const char *replay;           /* a member of it: "true", or another text as a string */
    const char *type;             /* of the body; NULL: that of the schema */
    unsigned schema;
    uint64_t created_ms, ttl_ms, trace, msg_id;
    bool no_ttl;      /* it is 0 */
    bool ack;         /* meta.ack */
    size_t filler;    /* bytes more in the payload */
    struct span body; /* of a frame that came, instead of all that makes a body; len 0: none */
};

/* Appends the frame with its prefix. */
void rmp_frame(struct text *to, const struct rmp_sent *sent);

/* Sends the frame; sends the command Publish with the body of that frame, but for its meta. */
void rmp_send(struct client *client, const struct rmp_sent *sent);
void client_publish(struct client *client, unsigned id, const struct rmp_sent *sent);

#define RMP_SEND(client, ...) rmp_send((client), &(struct rmp_sent){__VA_ARGS__})
#define RMP_PUBLISH(client, id, ...) client_publish((client), (id), &(struct rmp_sent){__VA_ARGS__})

/* Sends a command (printf). */
void rmp_command(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Hello, Subscribe, with their answers; in the dialect of frames, if `frames`. */
void rmp_hello(struct client *client, bool frames, const char *kind);
void rmp_subscribe(struct client *client, bool frames, const char *topic, unsigned sub_id);

/* What has come: a JSON text, or a frame. */
struct rmp_got {
    struct span payload; /* without the prefix; lives until the next call with this client */
    bool is_frame;       /* then the others are set: */
    unsigned schema;
    uint64_t created_ms, ttl_ms, trace, msg_id;
    struct span body;
};

struct rmp_got rmp_next(struct client *client);

/* The next one must be this text (printf); this frame, with its prefix. */
void rmp_expect(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rmp_expect_frame(struct client *client, const struct text *frame);

/* The next one must be a Message of the JSON dialect, for this subscription, with this msg_id. */
void rmp_expect_message(struct client *client, unsigned sub_id, uint64_t msg_id);

/* The next one must be a frame of this schema, whose body contains this word. */
struct rmp_got rmp_expect_word(struct client *client, unsigned schema, const char *word);

#define RMP_OK_SCHEMA 4
#define RMP_ERROR_SCHEMA 10
#define RMP_DROP_SCHEMA 3007
#define RMP_METRICS_SCHEMA 3001

/* Milliseconds of the calendar. */
uint64_t rmp_now_ms(void);

#endif
