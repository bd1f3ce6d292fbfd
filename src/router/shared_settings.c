#include "build_config.h"

#include "router/shared_settings.h"

#include "base/error.h"
#include "router/waiting.h"

static void answer_empty(struct decision *decision)
{
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n";
    const struct splice_edit id = {.offset = sizeof "{\"jsonrpc\":\"2.0\",\"id\":" - 1, .len = 1};

    decision_answer(decision, slice_of(line, sizeof line - 1), id);
}

/* Whether a client waits for the answer of the worker to a request of this kind, with this name
 * unless that is NULL. */
static bool is_asked(const struct peer *worker, enum extras_kind kind, const struct slice *name)
{
    const struct list_node *node;

    for (node = worker->answering.head.next; node != &worker->answering.head; node = node->next) {
        const struct request *request = list_entry(node, struct request, in_answerer);

        if (request->state == REQUEST_ACTIVE && request->extras != NULL &&
            request->extras->kind == kind &&
            (name == NULL || slice_equal(request->extras->names, *name)))
            return true;
    }
    return false;
}

/* --- levels of log messages --- */

enum log_rank shared_settings_level(const struct peer *worker, const struct binding *binding,
                                    enum log_rank rank)
{
    const struct list_node *node;
    enum log_rank found = rank;

    for (node = worker->bindings.head.next; node != &worker->bindings.head; node = node->next) {
        const struct binding *other = list_entry(node, struct binding, in_worker);

        if (other != binding && other->rank != RANK_NONE &&
            (found == RANK_NONE || other->rank < found))
            found = other->rank;
    }
    return found;
}

bool shared_settings_set_level(struct decision *decision, struct peer *worker)
{
    struct binding *binding = affinity_binding(decision->from, worker);
    struct handshake *handshake;
    enum log_rank rank, wanted;

    if (!peer_takes_messages(worker) ||
        !decision_read_named(decision, PARAM_LEVEL, sizeof decision->named_text))
        return false;
    rank = handshake_rank(decision->named);
    wanted = shared_settings_level(worker, binding, rank);
    handshake = handshake_of(worker, &decision->router->errands);
    if (rank == RANK_NONE) {
        decision->named.data = NULL;
        return false;
    }
    if (handshake == NULL || decision_refused_request(decision, &decision->router->from_clients))
        return true;
    if (wanted == rank && (handshake->rank != wanted || is_asked(worker, EXTRAS_SETS_LEVEL, NULL)))
        return false;
    binding->rank = rank;
    if (handshake->rank != wanted)
        handshake_note_errand(handshake);
    answer_empty(decision);
    return true;
}

/* --- subscriptions --- */

/* False: it is no string, or was refused. */
static bool read_uri(struct decision *decision)
{
    if (decision_read_named(decision, PARAM_URI, SUBSCRIPTION_URI_MAX))
        return true;
    if (param_fields_has(&decision->fields, PARAM_URI) &&
        decision->fields.at[PARAM_URI].type == SCAN_STRING)
        decision_refuse(decision, JSONRPC_INVALID_PARAMS, "the URI is longer than %d bytes",
                        SUBSCRIPTION_URI_MAX);
    return false;
}

/* What must be so before anything is changed. False: *decided tells whether that was decided. */
static bool may_change(struct decision *decision, struct peer *worker, bool *decided)
{
    struct handshake *handshake;

    *decided = false;
    if (!peer_takes_messages(worker))
        return false;
    if (!read_uri(decision)) {
        *decided = decision->action == ACTION_REFUSE;
        return false;
    }
    *decided = true;
    handshake = handshake_of(worker, &decision->router->errands);
    if (handshake == NULL || decision_refused_request(decision, &decision->router->from_clients))
        return false;
    if (!is_asked(worker, EXTRAS_WATCHES, &decision->named))
        return true;
    decision_hold_for_answer(decision, &handshake->waiting);
    return false;
}

bool shared_settings_watch(struct decision *decision, struct peer *worker)
{
    struct subscriber *subscriber;
    const struct subscription *known;
    bool decided;

    if (!may_change(decision, worker, &decided))
        return decided;
    subscriber = &affinity_binding(decision->from, worker)->subscriber;
    known = subscriptions_find(&worker->handshake->subscriptions, decision->named);
    if (subscriptions_held(subscriber, decision->named) == NULL &&
        subscriber->count >= SUBSCRIPTIONS_MAX) {
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "too many subscriptions (%d for a client)",
                        SUBSCRIPTIONS_MAX);
    } else if (known == NULL || !known->sent || known->holders == 0) {
        return false;
    } else if (subscriptions_begin(&worker->handshake->subscriptions, subscriber,
                                   decision->named) == STDIO_BUS_OK) {
        answer_empty(decision);
    }
    return true;
}

/* The subscription of the last client ends as its message is forwarded. */
bool shared_settings_unwatch(struct decision *decision, struct peer *worker)
{
    struct subscription *known;
    struct subscriber *subscriber;
    struct holding *holding;
    bool decided;

    if (!may_change(decision, worker, &decided))
        return decided;
    known = subscriptions_find(&worker->handshake->subscriptions, decision->named);
    if (known == NULL)
        return false;
    subscriber = &affinity_binding(decision->from, worker)->subscriber;
    holding = subscriptions_held(subscriber, decision->named);
    if (holding != NULL)
        subscriptions_end(subscriber, holding);
    if (known->holders == 0) {
        subscriptions_remove(known);
        return false;
    }
    answer_empty(decision);
    return true;
}

/* --- answers --- */

bool shared_settings_answered(struct decision *decision, const struct request *request)
{
    const struct request_extras *extras = request->extras;
    struct handshake *handshake = decision->from->handshake;
    bool done = decision->message->has_result && !decision->message->has_error;
    struct binding *binding = NULL;

    if (handshake == NULL)
        return true;
    if (request->asker != NULL)
        binding = affinity_binding(request->asker, decision->from);
    if (extras->kind == EXTRAS_WATCHES) {
        if (done && binding != NULL &&
            subscriptions_begin(&handshake->subscriptions, &binding->subscriber, extras->names) !=
                STDIO_BUS_OK)
            return false;
        waiting_release_all(decision->router, &handshake->waiting);
    } else if (done) {
        handshake->rank = handshake_rank(extras->names);
        if (binding != NULL)
            binding->rank = handshake->rank;
        handshake_note_errand(handshake);
    }
    return true;
}

/* --- notifications --- */

void shared_settings_read_notice(struct decision *decision)
{
    bool known = false;

    if (decision->subject == ABOUT_RESOURCE)
        known = decision_read_named(decision, PARAM_URI, SUBSCRIPTION_URI_MAX);
    else if (decision->subject == ABOUT_LEVEL)
        known = decision_read_named(decision, PARAM_LEVEL, sizeof decision->named_text);
    if (!known)
        decision->named = slice_of("", 0);
}

/* A client that has set no level gets every log message. Before the answer to initialize a client
 * is told nothing. */
bool shared_settings_wants(const struct decision *decision, const struct binding *binding)
{
    enum log_rank rank;

    if (binding->waits)
        return false;
    if (decision->subject == ABOUT_RESOURCE)
        return subscriptions_cover(&binding->subscriber, decision->named);
    if (decision->subject != ABOUT_LEVEL)
        return true;
    rank = handshake_rank(decision->named);
    return rank == RANK_NONE || binding->rank <= rank;
}
