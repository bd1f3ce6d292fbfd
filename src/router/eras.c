#include "build_config.h"

#include "router/eras.h"

#include "router/affinity.h"
#include "json/number.h"

#define STATELESS_CODES_LAST (-32020)
#define STATELESS_CODES_FIRST (-32022)

void eras_join(struct group *handshake, struct group *stateless)
{
    handshake->other_era = stateless;
    stateless->other_era = handshake;
    stateless->stateless = stateless->keeps_extras = true;
    stateless->mixes_clients = stateless->mode.clients != CLIENTS_EXCLUSIVE;
    stateless->support = ERA_UNKNOWN;
    stateless->reads_tasks = false;
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

bool eras_is_probe(const struct request *request)
{
    return request->extras != NULL && request->extras->kind == EXTRAS_PROBES;
}

static bool has_probe(const struct peer *client, const struct group *stateless)
{
    const struct list_node *node;

    for (node = client->asked.head.next; node != &client->asked.head; node = node->next) {
        const struct request *request = list_entry(node, struct request, in_asker);

        if (eras_is_probe(request) && request->answerer->pool == stateless)
            return true;
    }
    return false;
}

/* The client begins with the handshake after all. If its probe was not answered, the server may be
 * one that is silent; then the client does not keep the process, whose place it may need itself. */
static void turn_away(struct peer *client, struct group *stateless)
{
    struct peer *worker = affinity_worker(client, stateless);

    if (worker == NULL || stateless->support == ERA_SERVED)
        return;
    if (has_probe(client, stateless))
        eras_unanswered(stateless);
    affinity_remove(client, worker);
}

void eras_choose(struct decision *decision)
{
    struct group *handshake = decision->pool, *stateless = handshake->other_era;

    decision->from->stateless = is_stateless(decision);
    if (decision->from->stateless) {
        decision->pool = stateless;
        return;
    }
    if (decision->kind == REQUEST_INITIALIZES)
        turn_away(decision->from, stateless);
}

void eras_unanswered(struct group *stateless)
{
    if (stateless->support == ERA_UNKNOWN)
        stateless->support = ERA_REFUSED;
}

bool eras_refuse(struct decision *decision)
{
    if (decision->pool->support != ERA_REFUSED)
        return false;
    if (decision->kind == REQUEST_PROBES)
        decision_refuse(decision, JSONRPC_METHOD_NOT_FOUND, ERAS_NO_DISCOVER);
    else
        decision_refuse(decision, MCP_UNSUPPORTED_VERSION,
                        "the server serves no protocol version without initialize");
    return true;
}

/* --- which process --- */

bool eras_may_serve(const struct group *group, const struct peer *worker)
{
    return worker->pool == group || peer_is_fresh(worker);
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

struct peer *eras_least_busy(const struct group *group)
{
    struct peer *found = NULL, *fresh = NULL;
    size_t fewest = SIZE_MAX, own = 0, i;
    bool all_busy = true;

    for (i = 0; i < group->count; i++) {
        struct peer *worker = group->workers[i];

        own += worker->pool == group;
        if (worker->availability != PEER_READY || !eras_may_serve(group, worker))
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
static bool is_stateless_code(const struct decision *decision)
{
    const struct scan_field *field = &decision->fields.at[ERROR_CODE];
    struct decimal decimal;
    int64_t code;

    if (!param_fields_has(&decision->fields, ERROR_CODE) || field->type != SCAN_NUMBER)
        return false;
    decimal_read(&decimal, param_fields_raw(decision->message->bytes, field));
    return decimal_integer(&decimal, &code) && code >= STATELESS_CODES_FIRST &&
           code <= STATELESS_CODES_LAST;
}

/* Some client waits for more than the answer to a probe. */
static bool has_work(const struct peer *worker)
{
    const struct list_node *node;

    for (node = worker->answering.head.next; node != &worker->answering.head; node = node->next) {
        const struct request *request = list_entry(node, struct request, in_answerer);

        if (request->state == REQUEST_ACTIVE && !eras_is_probe(request))
            return true;
    }
    return false;
}

/* The processes that were tried with a probe alone have no clients any more: they may end. */
static void refuse_era(struct router *router, struct group *stateless)
{
    size_t i;

    stateless->support = ERA_REFUSED;
    for (i = 0; i < stateless->count; i++) {
        struct peer *worker = stateless->workers[i];

        if (worker->pool != stateless || has_work(worker))
            continue;
        affinity_clear_worker(worker);
        worker->client_left = true;
    }
    router->demand = true;
}

void eras_answered(struct decision *decision, const struct request *request)
{
    struct group *stateless = decision->pool;

    if (stateless->support == ERA_SERVED)
        return;
    if (decision->message->has_result)
        stateless->support = ERA_SERVED;
    else if (eras_is_probe(request)) {
        param_fields_find(&decision->fields, decision->message->bytes, 0);
        if (is_stateless_code(decision))
            stateless->support = ERA_SERVED;
        else
            refuse_era(decision->router, stateless);
    }
}

/* Nothing but probes can have made the process exit. */
static bool is_only_probed(const struct peer *worker)
{
    const struct list_node *node = worker->answering.head.next;

    for (; node != &worker->answering.head; node = node->next) {
        if (!eras_is_probe(list_entry(node, struct request, in_answerer)))
            return false;
    }
    return !list_empty(&worker->answering);
}

bool eras_worker_ended(struct router *router, struct peer *worker)
{
    struct group *stateless = worker->pool;
    bool excused;

    if (!stateless->stateless)
        return false;
    excused = stateless->support != ERA_SERVED;
    if (stateless->support == ERA_UNKNOWN && is_only_probed(worker))
        refuse_era(router, stateless);
    affinity_clear_worker(worker);
    worker->pool = stateless->other_era;
    return excused;
}
