/* The pending request table (spec 6.2, 6.3.1): for each request in flight its asker and its
 * answerer. The same kind of table serves both directions: clients asking workers, and workers
 * asking clients.
 *
 * An id is in flight at most once per answerer, so an answer finds its asker by (answerer, id);
 * and at most once per asker, so a duplicate is seen by (asker, id). */
#ifndef STDIO_BUS_ROUTER_PENDING_H
#define STDIO_BUS_ROUTER_PENDING_H

#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "router/extras.h"
#include "router/turns.h"
#include "json/message.h"

enum request_state {
    REQUEST_ACTIVE,    /* the asker waits for the answer */
    REQUEST_ABANDONED, /* no asker any more; the id stays taken until its late answer was dropped,
                        * so that the answer cannot reach another peer, or until its time is over */
    REQUEST_RESERVED,  /* not in flight: the id is kept free for the held peer that is next */
    REQUEST_AWAITED    /* the daemon itself needs the answer; it ends with the answerer */
};

#define REQUEST_TEXT_INLINE 40

#define PENDING_DIGITS 10
/* Any peer can read the numbers as integers. No request has the last one, nor the one after it. */
#define PENDING_NUMBER_LAST 2147483644u
#define PENDING_NUMBER_OF_NONE 2147483646u

struct request {
    struct pending *table;
    enum request_state state;
    struct peer *asker; /* RESERVED: the peer that it is kept for; NULL: ABANDONED, AWAITED */
    struct peer *answerer;
    /* The id on either side. Both point at the same text where ids pass unchanged. */
    struct message_id asker_id, answerer_id;
    uint64_t asker_hash, answerer_hash, id_hash;
    struct list_node in_asker;     /* asker->asked; ABANDONED: table->abandoned; AWAITED:
                                    * table->awaited; in the free list */
    struct list_node in_answerer;  /* answerer->answering */
    struct turns waiters;          /* peers held until this id is free at the answerer */
    int64_t asked_ms;              /* in a router that measures */
    int64_t free_at_ms;            /* ABANDONED: the id is free then, answered or not */
    struct request_extras *extras; /* NULL: none, as always in a plain pool */
    struct slice raw_id;           /* as the asker spelled it, with its quotes; rewritten alone */
    bool rewritten;                /* the answerer knows it by a number of the daemon's: */
    uint32_t number;               /* even, so that the next one is free for a second token */
    char number_text[PENDING_DIGITS];
    char *long_text; /* the id's text when it does not fit below */
    char text[REQUEST_TEXT_INLINE];
};

struct pending {
    struct hash_table by_answerer, by_asker;
    struct hash_table by_token; /* struct extras_link */
    struct siphash_key key;
    bool own_numbers; /* an answerer whose ids are rewritten gets numbers of the daemon's alone */
    size_t max;       /* of active and of abandoned ones, each */
    size_t active_count, abandoned_count;
    struct list abandoned; /* oldest first */
    struct list awaited;
    struct list free; /* recycled */
    struct list free_extras;
};

void pending_init(struct pending *pending, const struct siphash_key *key, size_t max);
void pending_free(struct pending *pending);

/* The hash of an id, to be handed to the functions below: computed once per message. */
uint64_t pending_hash(const struct pending *pending, struct message_id id);

/* The request with this id that `answerer` has to answer (any state), or NULL. */
struct request *pending_by_answerer(const struct pending *pending, const struct peer *answerer,
                                    struct message_id id, uint64_t id_hash);

/* The same for a number of the daemon's, of which `id` is the id. */
struct request *pending_by_number(const struct pending *pending, const struct peer *answerer,
                                  struct message_id id, uint32_t number);

/* The active request with this id that `asker` sent, or NULL. */
struct request *pending_by_asker(const struct pending *pending, const struct peer *asker,
                                 struct message_id id, uint64_t id_hash);

/* True when `answerer` has to answer a request (any state) whose id has this hash. */
bool pending_has_hash(const struct pending *pending, const struct peer *answerer, uint64_t id_hash);

/* A request to be recorded. */
struct new_request {
    struct message_id id;
    uint64_t id_hash;
    struct slice raw;            /* the id as it was spelled, or its text */
    uint32_t number;             /* the answerer knows it by this one: rewritten; 0: by `id` */
    struct message_id number_id; /* at the end of PENDING_DIGITS bytes */
    uint64_t number_hash;        /* for one answerer always by the same function */
};

/* Records an active request; the id's text is copied. An entry that was reserved for the asker is
 * used. The caller knows that the id is free on both sides. NULL if out of memory. */
struct request *pending_add(struct pending *pending, struct peer *asker, struct peer *answerer,
                            const struct new_request *new_request);

/* The id that a number is, at the end of `text`, which lives as long as it. */
struct message_id pending_number_id(char text[PENDING_DIGITS], uint32_t number);

/* The same as an id in flight in this table, with its hash. */
struct message_id pending_numbered(const struct pending *pending, char text[PENDING_DIGITS],
                                   uint32_t number, uint64_t *hash);

/* Makes a reserved request active for the peer that it was kept for. STDIO_BUS_ERR if out of
 * memory, and then it is still reserved. */
int request_activate(struct request *request);

/* Takes an active or abandoned request out of flight and keeps its id free for `next`. */
void request_reserve(struct request *request, struct peer *next);

/* The asker of an active request is gone. */
void request_abandon(struct request *request);

/* The daemon itself has asked what is active now, and needs the answer. */
void request_await(struct request *request);

/* Forgets a request; its waiters must have been released. */
void request_remove(struct request *request);

#endif
