#include "build_config.h"

#include "router/one_handshake.h"

#include "base/error.h"
#include "router/abilities.h"
#include "router/affinity.h"
#include "router/from_memory.h"
#include "router/handshake.h"
#include "router/shared_settings.h"
#include "router/waiting.h"

/* --- initialize --- */

void one_handshake_expire(struct router *router, struct handshake *handshake)
{
    struct list_node *node, *following;

    list_each(&handshake->waiting, node, following) {
        struct peer *client = list_entry(node, struct peer, hold);
        const struct binding *binding = affinity_binding(client, handshake->worker);

        if (binding != NULL && binding->waits)
            waiting_expire(router, client);
        else
            waiting_release(router, client);
    }
}

/* A missing version is one too: the server has an answer to that. */
static bool read_version(struct decision *decision)
{
    decision->named = slice_of("", 0);
    return !param_fields_has(&decision->fields, PARAM_PROTOCOL) ||
           decision_read_named(decision, PARAM_PROTOCOL, VERSION_NAME_MAX);
}

bool one_handshake_moves(struct decision *decision, struct peer *worker)
{
    const struct handshake *handshake = worker->handshake;
    const struct version *version;

    if (decision->kind != REQUEST_INITIALIZES || !decision->asks || handshake == NULL ||
        !handshake->answered || worker->alone || !read_version(decision))
        return false;
    version = versions_find(&handshake->versions, decision->named);
    if (version == NULL || version->state != VERSION_REFUSED)
        return false;
    decision->from->alone = true;
    waiting_give_up_subscriptions(decision->router, decision->from, worker);
    affinity_remove(decision->from, worker);
    return true;
}

/* False: it was refused. */
static bool is_acceptable(struct decision *decision, const struct peer *worker)
{
    if (decision->from->hold_expired && peer_serves(worker))
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "the worker has not answered initialize");
    else if (decision->from->hold_expired)
        decision_refuse_exited(decision, worker->pool);
    else if (decision->message->bytes.len > HANDSHAKE_PART_MAX)
        decision_refuse(decision, JSONRPC_INVALID_REQUEST, "initialize is longer than %d bytes",
                        HANDSHAKE_PART_MAX);
    else if (!read_version(decision))
        decision_refuse(decision, JSONRPC_INVALID_PARAMS,
                        "protocolVersion must be a string of at most %d bytes", VERSION_NAME_MAX);
    else
        return !decision_refused_request(decision, &decision->router->from_clients);
    return false;
}

/* The server is asked for one version at a time. False: out of memory. */
static bool ask(struct decision *decision, struct handshake *handshake)
{
    struct offer offer;
    bool kept;

    handshake_note_errand(handshake);
    if (versions_open(&handshake->versions) != NULL)
        return true;
    if (offer_make(&offer, decision->message) != STDIO_BUS_OK)
        return false;
    kept = handshake->answered ||
           handshake_begin(handshake, &offer.message, decision->named) == STDIO_BUS_OK;
    kept = kept && versions_add(&handshake->versions, decision->named, &offer.message) != NULL;
    offer_free(&offer);
    return kept;
}

/* The first version that a process refuses is an error for those that wait; a later client may be
 * luckier. */
static bool initialize(struct decision *decision, struct peer *worker)
{
    struct binding *binding = affinity_binding(decision->from, worker);
    struct handshake *handshake;
    const struct version *version;

    if (!is_acceptable(decision, worker)) {
        binding->waits = false;
        return true;
    }
    if (!peer_takes_bound(worker))
        return from_memory_initialize(decision, worker);
    handshake = handshake_of(worker, &decision->router->handshakes);
    if (handshake == NULL)
        return true;
    binding->abilities = abilities_read(decision->message);
    version = versions_find(&handshake->versions, decision->named);
    if (version == NULL ||
        (version->state == VERSION_REFUSED && !handshake->answered && !binding->waits)) {
        if (!ask(decision, handshake))
            return true;
    } else if (version->state >= VERSION_ANSWERED) {
        binding->waits = false;
        if (version->answer.line.data != NULL)
            decision_answer(decision, version->answer.line, version->answer.at);
        else
            decision_refuse(decision, JSONRPC_SERVER_ERROR,
                            "the answer to initialize cannot be kept: it is longer than %d bytes, "
                            "or no JSON",
                            VERSION_ANSWER_MAX);
        return true;
    }
    binding->waits = true;
    decision_hold_for_answer(decision, &handshake->waiting);
    return true;
}

/* The server has asked for roots where there were none: for the server, those of the next client
 * are a change. False: the client has none either. */
static bool brings_roots(struct decision *decision, struct peer *worker)
{
    static const char changed[] = "\"notifications/roots/list_changed\"";
    const struct binding *binding = affinity_binding(decision->from, worker);
    struct handshake *handshake = worker->handshake;

    if (!handshake->lacks_roots || !ability_is_set(binding->abilities, ABILITY_ROOTS))
        return false;
    decision_replace(decision, &decision->message->fields->method,
                     slice_of(changed, sizeof changed - 1));
    handshake->teller = decision->from->number;
    return true;
}

/* Notifications go on to a process that gets no requests any more. */
static bool takes_notifications(const struct peer *worker)
{
    return peer_serves(worker) && !worker->full;
}

/* notifications/initialized. The client that the server has heard it from may say it again. */
static bool confirm(struct decision *decision, struct peer *worker)
{
    struct handshake *handshake = worker->handshake;

    if (handshake == NULL || !handshake->answered || !takes_notifications(worker))
        return from_memory_keep(decision, worker);
    if (handshake->confirmer != 0 && handshake->confirmer != decision->from->number) {
        if (brings_roots(decision, worker))
            return false;
        decision_discard(decision, ACTION_DROP, "the server has got it from another client");
        return true;
    }
    if (handshake_keep(handshake, HANDSHAKE_INITIALIZED, decision->message) != STDIO_BUS_OK)
        return true;
    handshake->confirmer = decision->from->number;
    from_memory_compare(handshake);
    return false;
}

/* notifications/roots/list_changed */
static bool note_teller(struct decision *decision, struct peer *worker)
{
    if (worker->handshake != NULL && takes_notifications(worker))
        worker->handshake->teller = decision->from->number;
    return from_memory_keep(decision, worker);
}

bool one_handshake_takes(struct decision *decision, struct peer *worker)
{
    if (decision->kind == REQUEST_TELLS_ROOTS && !decision->asks)
        return note_teller(decision, worker);
    if (decision->kind == REQUEST_CONFIRMS)
        return !decision->asks && confirm(decision, worker);
    if (!decision->asks)
        return false;
    switch (decision->kind) {
    case REQUEST_INITIALIZES:
        return initialize(decision, worker);
    case REQUEST_SETS_LEVEL:
        return shared_settings_set_level(decision, worker);
    case REQUEST_WATCHES:
        return shared_settings_watch(decision, worker);
    case REQUEST_UNWATCHES:
        return shared_settings_unwatch(decision, worker);
    default:
        return false;
    }
}

/* --- answers --- */

/* False: out of memory. */
static bool settle(struct decision *decision, bool whole)
{
    struct handshake *handshake = decision->from->handshake;
    const struct message *answer = whole ? decision->message : NULL;
    struct version *version = handshake != NULL ? versions_open(&handshake->versions) : NULL;

    if (version == NULL || version->state != VERSION_ASKED)
        return true;
    if (whole && !handshake->answered && answer->bytes.len <= VERSION_ANSWER_MAX &&
        handshake_note_answer(handshake, answer) != STDIO_BUS_OK)
        return false;
    if (versions_settle(version, answer) != STDIO_BUS_OK)
        return false;
    from_memory_learn(handshake, version, answer);
    waiting_release_all(decision->router, &handshake->waiting);
    return true;
}

void one_handshake_own_answer(struct decision *decision, struct request *request, bool whole)
{
    if (request->extras->kind == EXTRAS_OWN_INITIALIZE && !settle(decision, whole))
        return;
    if (request->extras->kind == EXTRAS_OWN_LIST && decision->from->handshake != NULL)
        from_memory_list_answered(decision->from->handshake, request->number,
                                  whole ? decision->message : NULL);
    decision_discard(decision, ACTION_DROP, "it answers the daemon");
    waiting_late_answer(decision->router, request);
}

/* --- the end of the process --- */

static void forget_clients(struct peer *worker)
{
    struct list_node *node, *following;

    list_each(&worker->bindings, node, following) {
        struct binding *binding = list_entry(node, struct binding, in_worker);

        subscriptions_end_all(&binding->subscriber);
        affinity_set_rank(binding, RANK_NONE);
        binding->waits = false;
    }
}

/* No answer will come to the requests to subscribe either. */
static void release_subscribers(struct router *router, const struct handshake *handshake)
{
    const struct list *asked = &handshake->subscriptions.asked;
    const struct list_node *node;

    for (node = asked->head.next; node != &asked->head; node = node->next)
        waiting_release_all(router, &list_entry(node, struct subscription, node)->waiting);
}

/* An initialize may have been the end of the process: it is not repeated. */
void one_handshake_worker_ended(struct router *router, struct peer *worker)
{
    struct handshake *handshake = worker->handshake;
    bool deserted = list_empty(&worker->bindings);

    worker->alone = worker->alone && !deserted;
    if (handshake == NULL)
        return;
    one_handshake_expire(router, handshake);
    release_subscribers(router, handshake);
    if (deserted || (handshake->shared != NULL &&
                     (!handshake->answered || worker->pool->mode.on_exit != EXIT_REPLAYS))) {
        forget_clients(worker);
        handshake_forget(worker);
        return;
    }
    versions_forget(&handshake->versions, false);
    subscriptions_restart(&handshake->subscriptions);
    handshake->rank = RANK_NONE;
    handshake->lacks_roots = false;
    remembering_clear(&handshake->remembering);
}
