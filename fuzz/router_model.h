/* The model that the router is compared with: chapter 6 of the specification and the decisions
 * about equal ids, limits and holding, for a handful of workers and clients. As plain as possible:
 * arrays, searched from end to end. */
#ifndef STDIO_BUS_FUZZ_ROUTER_MODEL_H
#define STDIO_BUS_FUZZ_ROUTER_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "router/decision.h"

/* Workers come first; 0 and 1 are pool 0, 2 is pool 1. */
#define MODEL_WORKERS 3
#define MODEL_CLIENTS 6
#define MODEL_ACTORS (MODEL_WORKERS + MODEL_CLIENTS)
#define MODEL_IDS 5
#define MODEL_NUMBERS 2 /* the first ids; the others are strings */
#define MODEL_SESSIONS 4
#define MODEL_POOLS 2
#define MODEL_LIMIT_MAX 8 /* of requests and sessions */
#define MODEL_REQUESTS_MAX (4 * (2 * MODEL_LIMIT_MAX + MODEL_ACTORS))

#define NOBODY (-1) /* NONE, as an id, a session, a pool */

struct model_message {
    int id, session;
    int pool; /* MODEL_POOLS: one that does not exist */
    bool has_method, has_result;
};

struct model_actor {
    bool here; /* a client that is connected, a worker that has a process */
    enum peer_availability availability;
    bool full, input_ended;
    bool expired;         /* it has been held too long for an id */
    int kept_at, kept_id; /* the id kept free for it, and where; NOBODY: none */
};

/* In the order of asking. */
struct model_request {
    int asker; /* NOBODY: it is gone; the id stays taken until the answer came */
    int answerer, id;
    unsigned abandoned; /* grows with each */
};

struct model_session {
    int owner, worker; /* NOBODY: there is no such session */
};

struct model {
    size_t max_pending, max_sessions;
    struct model_actor actors[MODEL_ACTORS];
    struct model_request requests[MODEL_REQUESTS_MAX];
    size_t request_count;
    struct model_session sessions[MODEL_SESSIONS];
    size_t turns[MODEL_POOLS + 1]; /* the worker that is next; last: of all workers */
    unsigned abandonments;
};

struct prediction {
    enum action action;
    int to;   /* FORWARD */
    int code; /* REFUSE */
    bool asks;
    int answered; /* FORWARD or DISCARD: the place of the request that it ends, or NOBODY */
    bool new_session;
    int waits_at;      /* HOLD: for this peer; NOBODY: for any worker of a group */
    bool waits_for_id; /* HOLD: until the id is free there, too */
    int took_turn;     /* the group whose turn has moved on past `to`, or NOBODY */
};

static inline bool model_is_worker(int actor)
{
    return actor < MODEL_WORKERS;
}

void model_init(struct model *model, size_t max_pending, size_t max_sessions);

/* The decision that the router has to make. */
struct prediction model_predict(const struct model *model, int from,
                                const struct model_message *message);

/* True while the reason of a hold, as predicted then, lasts. */
bool model_still_waits(const struct model *model, int from, const struct model_message *message,
                       const struct prediction *hold);

/* The turn that a message took is over, whether it was forwarded or not. */
void model_took_turn(struct model *model, const struct prediction *prediction);

/* A message was forwarded (`queued`), or could not be queued. */
void model_forwarded(struct model *model, int from, const struct model_message *message,
                     const struct prediction *prediction, bool queued);

/* A request was ended by an answer. */
void model_end_request(struct model *model, int place);

/* The first request with this id (NOBODY: any) that the actor has to answer, or NOBODY. */
int model_find_to_answer(const struct model *model, int answerer, int id);

size_t model_count_sessions(const struct model *model);

/* Requests asked by clients (or by workers) and not abandoned (or abandoned). */
size_t model_count_requests(const struct model *model, bool of_clients, bool abandoned);

/* The actor answers no more: takes the requests that it had to answer out of the model, and copies
 * the active ones, which must be reported, to `reported` (room for all). Returns how many. */
size_t model_stop_answering(struct model *model, int actor, struct model_request *reported);

/* The actor asks no more: its sessions end, its requests are abandoned. */
void model_stop_asking(struct model *model, int actor);

#endif
