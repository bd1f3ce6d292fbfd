/* A client of the RMP socket, and what both dialects do with it. Which dialect a frame is in, its
 * first byte tells (rmp/framing.h): the client may use both. */
#ifndef STDIO_BUS_TOPICS_CLIENT_H
#define STDIO_BUS_TOPICS_CLIENT_H

#include "bus/visitor.h"
#include "rmp/framing.h"
#include "topics/hub.h"
#include "transport/connection.h"

/* A publication that has to be answered. */
struct rmp_asked {
    bool is_command;          /* in the JSON dialect: */
    uint64_t id;              /* of the command */
    bool wants_ack;           /* a frame: not only after an error */
    struct rmp_header header; /* of the message */
};

struct rmp_client {
    struct visitor visitor;
    struct connection connection;
    struct rmp_reader reader;
    struct rmp_peer peer;
    struct rmp_hub *hub;
    struct list_node ready; /* hub->ready */
    struct rmp_asked asked; /* the publication that waits, if one does */
    bool is_done;           /* the current frame was published, and is offered once more */
    bool has_joined;        /* the broker */
    bool is_closing;        /* once it has got what waits for it in the broker */
    bool lacks_answer;      /* out of memory: it is closed, rather than wait in vain */
    char context[VISITOR_CONTEXT_MAX];
};

/* What becomes of a client after a frame. */
enum rmp_next {
    RMP_NEXT_FRAME,
    RMP_NEXT_WAIT, /* its publication waits: nothing is read until that has ended */
    RMP_NEXT_CLOSE /* the frame cannot be read */
};

/* Sends an answer: bytes that are a whole frame, prefix included. */
void rmp_client_send(struct rmp_client *client, struct slice frame);

/* The user of a client's messages (rmp/peer.h). */
uint32_t rmp_client_user(const struct origin *origin);

/* The client says its kind. Returns the one it has from now on: who may be more than an agent is
 * configured. */
enum rmp_kind rmp_client_set_kind(struct rmp_client *client, enum rmp_kind kind);

/* Publishes. True: it has ended, with *result. False: client->asked is answered later. */
bool rmp_client_publish(struct rmp_client *client, const struct rmp_publication *publication,
                        const struct rmp_asked *asked, struct rmp_result *result);

#endif
