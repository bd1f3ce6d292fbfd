/* The pending request table (spec 6.2, 6.3.1): who asked what of whom. The same table serves both
 * directions: clients asking workers, and workers asking clients.
 *
 * An id is in flight at most once per answerer, so an answer finds its asker by (answerer, id);
 * and at most once per asker, so a duplicate is seen by (asker, id). */
#ifndef STDIO_BUS_ROUTER_REQUESTS_H
#define STDIO_BUS_ROUTER_REQUESTS_H

#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "format/message.h"
#include "router/details.h"
#include "router/peer.h"

enum request_state {
    REQUEST_ACTIVE,    /* the asker waits for the answer */
    REQUEST_ABANDONED, /* the asker is gone; the id stays taken until its late answer was dropped,
                        * so that nobody else can get it */
    REQUEST_RESERVED   /* not in flight: kept free for the held peer that is next */
};

#define REQUEST_TEXT_INLINE 40

struct request {
    struct requests *table;
    enum request_state state;
    struct peer *asker;    /* RESERVED: whom it is kept for; ABANDONED: NULL */
    struct peer *answerer;
    /* The id on either side. Both point at the same text where ids pass unchanged. */
    struct message_id asker_id, answerer_id;
    uint64_t asker_hash, answerer_hash, id_hash;
    struct list_node in_asker;    /* asker->asked; ABANDONED: table->abandoned; in the free list */
    struct list_node in_answerer; /* answerer->answering */
    struct list waiters;          /* peers held until this id is free at the answerer */
    struct request_details *details; /* NULL: none, as always in a plain pool */
    bool rewritten;       /* the answerer knows it by a number of ours: */
    uint32_t number;      /* even, so that the next one is free for a second token */
    char number_text[NUMBER_DIGITS];
    struct slice raw_id;  /* as the asker spelled it, with its quotes */
    char *long_text;              /* the id's text when it does not fit below */
    char text[REQUEST_TEXT_INLINE];
};

struct requests {
    struct hash_table by_answerer, by_asker;
    struct siphash_key key;
    size_t max;             /* of active and of abandoned ones, each */
    size_t active_count, abandoned_count;
    struct list abandoned;  /* oldest first */
    struct list free;       /* recycled */
    struct request_block *blocks;
    struct list free_details;
    struct details_block *details_blocks;
};

void requests_init(struct requests *requests, const struct siphash_key *key, size_t max);
void requests_free(struct requests *requests);

/* The hash of an id, to be handed to the functions below: computed once per message. */
uint64_t requests_hash(const struct requests *requests, struct message_id id);

/* The request with this id that `answerer` has to answer (any state), or NULL. */
struct request *requests_by_answerer(const struct requests *requests, const struct peer *answerer,
                                     struct message_id id, uint64_t id_hash);

/* The active request with this id that `asker` sent, or NULL. */
struct request *requests_by_asker(const struct requests *requests, const struct peer *asker,
                                  struct message_id id, uint64_t id_hash);

/* True when `answerer` has to answer a request (any state) whose id has this hash. */
bool requests_has_hash(const struct requests *requests, const struct peer *answerer,
                       uint64_t id_hash);

static inline bool requests_full(const struct requests *requests)
{
    return requests->active_count >= requests->max;
}

/* Records an active request; the id's text is copied. The caller knows that the id is free on both
 * sides. NULL when memory is out. */
struct request *requests_add(struct requests *requests, struct peer *asker, struct peer *answerer,
                             struct message_id id, uint64_t id_hash);

/* The same for a request that its answerer knows by its last number; `raw` is the id as it was
 * spelled. The hash is requests_number_hash or that of requests_number_id: for one answerer,
 * always the same. */
struct request *requests_add_rewritten(struct requests *requests, struct peer *asker,
                                       struct peer *answerer, struct message_id id,
                                       uint64_t id_hash, struct slice raw, uint64_t number_hash);

/* The id that a number is; `text` lives as long as it. */
struct message_id requests_number_id(char text[NUMBER_DIGITS], uint32_t number);

/* Numbers are ours, so nobody can choose them to collide. */
static inline uint64_t requests_number_hash(uint32_t number)
{
    return (number >> 1) * UINT64_C(0xd6e8feb86659fd93);
}

/* Makes a reserved request active for the peer that it was kept for. STDIO_BUS_ERR when memory is
 * out, and then it is reserved still. */
int request_activate(struct request *request);

/* Takes an active or abandoned request out of flight and keeps its id free for `next`. */
void request_reserve(struct request *request, struct peer *next);

/* The asker of an active request is gone. */
void request_abandon(struct request *request);

/* Forgets a request; its waiters must have been released. */
void request_remove(struct request *request);

#endif
