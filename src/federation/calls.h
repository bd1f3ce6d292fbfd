/* A call: what came over NATS for a pool, a message or an array of them. It is a client of its own,
 * for that alone. */
#ifndef STDIO_BUS_FEDERATION_CALLS_H
#define STDIO_BUS_FEDERATION_CALLS_H

#include "base/archive.h"
#include "federation/hub.h"

struct router_archive;

struct nats_call {
    struct endpoint endpoint;
    struct nats_hub *hub;
    struct nats_export *export; /* by which it came; NULL: that has ended, or the program before */
    struct list_node link;      /* hub->calls */
    char *reply;                /* the subject of its answer; NULL: none is wanted */
    char *line;                 /* what came, while not all of it was taken; NULL: it was */
    size_t len;
    size_t taken;             /* bytes of an array before its current member */
    size_t owed;              /* requests that were not answered yet */
    struct json_text answers; /* of an array, joined: "[", and a comma after each */
    bool is_batch;            /* it is an array */
    bool offered;             /* the current message was offered before */
    bool paused;
    bool is_done; /* it ends at the end of the round */
    struct stdio_bus_event_deferred deferred;
};

/* message of struct nats_subscription, in a struct nats_export. */
void nats_call_came(struct nats_subscription *subscription, const struct nats_frame *frame);

/* Offers what was released, answers arrays, ends what is done. */
void nats_calls_act(struct nats_hub *hub);

/* The export is about to end: calls that came by it count for none. */
void nats_calls_forget(struct nats_export *export);

/* Ends all. */
void nats_calls_end(struct nats_hub *hub);

/* Saves the calls, or loads them. */
void nats_calls_archive(struct router_archive *archive, struct nats_hub *hub);

#endif
