#include "build_config.h"

#include "router/eras.h"

#include "router/affinity.h"
#include "router/remembered.h"
#include "router/waiting.h"

#define STATELESS_CODES_LAST (-32020)
#define STATELESS_CODES_FIRST (-32022)

void eras_join(struct group *handshake, struct group *stateless)
{
    handshake->other_era = stateless;
    stateless->other_era = handshake;
    stateless->stateless = stateless->keeps_extras = true;
    stateless->mixes_clients = stateless->mode.clients != CLIENTS_EXCLUSIVE;
    stateless->support = ERA_UNKNOWN;
    stateless->reads_tasks = stateless->one_handshake = false;
}

/* --- which era a message is of --- */

/* A notification need not name its era: it is of that of the client's last request. */
static bool is_stateless(const struct decision *decision)
{
    if (decision->kind == REQUEST_INITIALIZES)
        return false;
    if (param_fields_has(&decision->fields, PARAM_VERSION) || decision->kind == REQUEST_PROBES)
        return true;
    return !decision->asks && decision->from->stateless;
}

void eras_choose(struct decision *decision)
{
    decision->from->stateless = is_stateless(decision);
    if (decision->from->stateless)
        decision->pool = decision->pool->other_era;
}

bool eras_refuse(struct decision *decision)
{
    bool probes = decision->kind == REQUEST_PROBES;

    if (decision->pool->support != ERA_REFUSED) {
        if (!probes || param_fields_has(&decision->fields, PARAM_VERSION))
            return false;
        /* As its first message it would begin the other era for some servers. */
        decision_refuse(decision, JSONRPC_INVALID_PARAMS,
                        "server/discover without io.modelcontextprotocol/protocolVersion");
        return true;
    }
    if (probes)
        decision_refuse(decision, JSONRPC_METHOD_NOT_FOUND,
                        "the server does not know server/discover; it begins with initialize");
    else
        decision_refuse(decision, MCP_UNSUPPORTED_VERSION,
                        "the server serves no protocol version without initialize");
    return true;
}

/* --- which process --- */

bool eras_may_serve(const struct group *group, const struct peer *worker)
{
    return worker->pool == group || (peer_is_fresh(worker) && !worker->is_passage);
}

static bool is_busy(const struct peer *worker)
{
    const struct list_node *node;

    for (node = worker->answering.head.next; node != &worker->answering.head; node = node->next) {
        const struct request *request = list_entry(node, struct request, in_answerer);

        if (request->state == REQUEST_ACTIVE &&
            (request->extras == NULL || request->extras->kind != EXTRAS_SUBSCRIBES))
            return true;
    }
    return false;
}

/* The answer to its probe is all that the process waits for. */
static bool is_awaited(const struct peer *worker)
{
    return worker->probed && worker->pool->support == ERA_UNKNOWN;
}

struct peer *eras_least_busy(const struct group *group)
{
    struct peer *found = NULL, *fresh = NULL;
    size_t fewest = SIZE_MAX, own = 0, i;
    bool all_busy = true;

    for (i = 0; i < group->count; i++) {
        struct peer *worker = group->workers[i];

        own += worker->pool == group;
        if (!eras_may_serve(group, worker) ||
            (worker->availability != PEER_READY && !is_awaited(worker)))
            continue;
        if (worker->pool != group) {
            fresh = worker;
        } else {
            size_t clients = affinity_count(worker);

            all_busy = all_busy && is_busy(worker);
            if (clients < fewest) {
                found = worker;
                fewest = clients;
            }
        }
    }
    if (fresh != NULL && (found == NULL || (all_busy && own * 2 < group->count)))
        return fresh;
    return found;
}

/* --- what the server serves --- */

/* MCP: these codes are known to servers of the stateless era alone. */
static bool is_stateless_error(const struct message *answer)
{
    struct param_fields fields;
    int64_t code;

    param_fields_find(&fields, answer->bytes, 0);
    return param_fields_integer(&fields, ERROR_CODE, answer->bytes, &code) &&
           code >= STATELESS_CODES_FIRST && code <= STATELESS_CODES_LAST;
}

/* The process serves no client. Those that wait for it look elsewhere. */
static void give_up(struct router *router, struct peer *worker)
{
    affinity_clear_worker(worker);
    worker->client_left = true;
    waiting_release_senders(router, worker);
    router->demand = true;
}

static void refuse_era(struct router *router, struct group *stateless)
{
    size_t i;

    stateless->support = ERA_REFUSED;
    for (i = 0; i < stateless->count; i++) {
        if (stateless->workers[i]->pool == stateless)
            give_up(router, stateless->workers[i]);
    }
}

/* Only what the server has said: one that ends or is silent may do that for another reason. */
static void set_remembered(struct group *handshake, bool refuses)
{
    if (handshake->remembered != NULL)
        remembered_set_era(handshake->remembered, refuses);
}

void eras_forget(struct group *group)
{
    set_remembered(group, false);
    if (group->other_era != NULL && group->other_era->support == ERA_REFUSED)
        group->other_era->support = ERA_UNKNOWN;
}

void eras_recall(struct group *group)
{
    if (group->other_era != NULL && group->remembered != NULL &&
        group->remembered->refuses_stateless)
        group->other_era->support = ERA_REFUSED;
}

void eras_join_worker(struct group *group, struct peer *worker)
{
    if (worker->pool == group)
        return;
    worker->pool = group;
    if (group->support != ERA_UNKNOWN)
        return;
    worker->probed = true;
    worker->availability = PEER_ABSENT;
}

bool eras_probe_answered(struct router *router, struct peer *worker, const struct message *answer)
{
    struct group *stateless = worker->pool;

    worker->probed = false;
    worker->client_left = worker->client_left || list_empty(&worker->bindings);
    router->demand = true;
    if (stateless->support == ERA_SERVED)
        return true;
    if (!answer->has_result && !is_stateless_error(answer)) {
        set_remembered(stateless->other_era, true);
        refuse_era(router, stateless);
        return false;
    }
    set_remembered(stateless->other_era, false);
    stateless->support = ERA_SERVED;
    return true;
}

void eras_probe_expired(struct router *router, struct peer *worker)
{
    if (worker->pool->support == ERA_UNKNOWN)
        refuse_era(router, worker->pool);
    else
        give_up(router, worker);
}

bool eras_worker_ended(struct router *router, struct peer *worker)
{
    struct group *stateless = worker->pool;
    bool excused;

    if (!stateless->stateless)
        return false;
    excused = stateless->support != ERA_SERVED;
    /* Without a client the daemon may have ended it. */
    if (stateless->support == ERA_UNKNOWN && !list_empty(&worker->bindings) && !worker->is_link)
        refuse_era(router, stateless);
    affinity_clear_worker(worker);
    worker->probed = false;
    worker->pool = stateless->other_era;
    return excused;
}
