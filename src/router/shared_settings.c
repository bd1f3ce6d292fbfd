#include "build_config.h"

#include "router/shared_settings.h"

#include "base/error.h"
#include "router/from_memory.h"
#include "router/shares.h"
#include "router/waiting.h"

static void answer_empty(struct decision *decision)
{
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n";
    const struct splice_edit id = {.offset = sizeof "{\"jsonrpc\":\"2.0\",\"id\":" - 1, .len = 1};

    decision_answer(decision, slice_of(line, sizeof line - 1), id);
}

/* --- levels of log messages --- */

enum log_rank shared_settings_level(const struct peer *worker, const struct binding *binding,
                                    enum log_rank rank)
{
    const struct handshake *handshake = worker->handshake;
    int other;

    for (other = RANK_DEBUG; handshake != NULL && other <= RANK_EMERGENCY; other++) {
        size_t own = binding != NULL && binding->rank == (enum log_rank)other;

        if (handshake->ranks[other] > own)
            return rank == RANK_NONE || other < (int)rank ? (enum log_rank)other : rank;
    }
    return rank;
}

bool shared_settings_set_level(struct decision *decision, struct peer *worker)
{
    struct binding *binding = affinity_binding(decision->from, worker);
    bool sleeps = from_memory_serves(worker);
    struct handshake *handshake;
    enum log_rank rank, wanted;

    if ((!sleeps && !peer_takes_bound(worker)) ||
        !decision_read_named(decision, PARAM_LEVEL, sizeof decision->named_text))
        return false;
    rank = handshake_rank(decision->named);
    wanted = shared_settings_level(worker, binding, rank);
    handshake = handshake_of(worker, &decision->router->handshakes);
    if (rank == RANK_NONE) {
        decision->named.data = NULL;
        return false;
    }
    if (handshake == NULL || decision_refused_request(decision, &decision->router->from_clients))
        return true;
    if (!sleeps && wanted == rank && (handshake->rank != wanted || !list_empty(&handshake->levels)))
        return false;
    affinity_set_rank(binding, rank);
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
    struct subscription *known;

    *decided = false;
    if (!peer_takes_bound(worker))
        return false;
    if (!read_uri(decision)) {
        *decided = decision->action == ACTION_REFUSE;
        return false;
    }
    *decided = true;
    handshake = handshake_of(worker, &decision->router->handshakes);
    if (handshake == NULL || decision_refused_request(decision, &decision->router->from_clients))
        return false;
    known = subscriptions_find(&handshake->subscriptions, decision->named);
    if (known == NULL || known->asked == NULL)
        return true;
    decision_hold_for_answer(decision, &known->waiting);
    return false;
}

bool shared_settings_watch(struct decision *decision, struct peer *worker)
{
    struct process_subscriptions *process;
    struct subscriber *subscriber;
    const struct subscription *known;
    bool decided;

    if (!may_change(decision, worker, &decided))
        return decided;
    process = &worker->handshake->subscriptions;
    subscriber = &affinity_binding(decision->from, worker)->subscriber;
    known = subscriptions_find(process, decision->named);
    if (known != NULL && subscriptions_held(subscriber, known) != NULL) {
        answer_empty(decision);
        return true;
    }
    if (subscriber->count >= SUBSCRIPTIONS_MAX)
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "too many subscriptions (%d for a client)",
                        SUBSCRIPTIONS_MAX);
    else if (!shares_left_of_subscriptions(decision->router, decision->from, decision->named.len))
        decision_refuse(decision, JSONRPC_SERVER_ERROR,
                        "too many subscriptions (%zu bytes, a sixteenth of max_memory)",
                        process->all->max_bytes);
    else if (known == NULL || list_empty(&known->holders))
        return false;
    else if (subscriptions_begin(process, subscriber, decision->named) == STDIO_BUS_OK)
        answer_empty(decision);
    return true;
}

/* Whether no client has it but the one of this holding, or none if that is NULL. */
static bool is_only(const struct subscription *subscription, const struct holding *holding)
{
    const struct list_node *head = &subscription->holders.head;

    return head->next == (holding != NULL ? &holding->in_subscription : head) &&
           head->prev == head->next;
}

/* The subscription of the last client ends as its message is forwarded, if the server knows it. */
bool shared_settings_unwatch(struct decision *decision, struct peer *worker)
{
    struct subscription *known;
    struct subscriber *subscriber;
    struct holding *holding;
    bool decided, is_last;

    if (!may_change(decision, worker, &decided))
        return decided;
    known = subscriptions_find(&worker->handshake->subscriptions, decision->named);
    if (known == NULL)
        return false;
    subscriber = &affinity_binding(decision->from, worker)->subscriber;
    holding = subscriptions_held(subscriber, known);
    is_last = known->sent && is_only(known, holding);
    if (holding != NULL)
        subscriptions_end(holding, is_last);
    else if (is_last)
        subscriptions_forget(known);
    if (is_last)
        return false;
    answer_empty(decision);
    return true;
}

/* --- answers --- */

void shared_settings_level_answered(const struct decision *decision, const struct request *request)
{
    const struct request_extras *extras = request->extras;
    struct handshake *handshake = decision->from->handshake;
    bool done = decision->message->has_result && !decision->message->has_error;
    struct binding *binding = NULL;

    if (handshake == NULL)
        return;
    if (request->asker != NULL)
        binding = affinity_binding(request->asker, decision->from);
    if (done && binding != NULL)
        affinity_set_rank(binding, handshake_rank(extras->names));
    if (done) {
        handshake->rank = handshake_rank(extras->names);
        handshake_note_errand(handshake);
    }
}

/* --- notifications --- */

void shared_settings_read_notice(struct decision *decision)
{
    struct handshake *handshake = decision->from->handshake;
    bool known = false;

    if (decision->subject == ABOUT_RESOURCE)
        known = decision_read_named(decision, PARAM_URI, SUBSCRIPTION_URI_MAX);
    else if (decision->subject == ABOUT_LEVEL)
        known = decision_read_named(decision, PARAM_LEVEL, sizeof decision->named_text);
    if (!known)
        decision->named = slice_of("", 0);
    if (decision->subject == ABOUT_RESOURCE && handshake != NULL)
        subscriptions_mark(&handshake->subscriptions, decision->named);
}

/* A client that has set no level gets every log message. Before the answer to initialize a client
 * is told nothing. */
bool shared_settings_wants(const struct decision *decision, const struct binding *binding)
{
    const struct handshake *handshake = decision->from->handshake;
    enum log_rank rank;

    if (binding->waits)
        return false;
    if (decision->subject == ABOUT_RESOURCE)
        return handshake != NULL &&
               subscriber_marked(&binding->subscriber, &handshake->subscriptions);
    if (decision->subject != ABOUT_LEVEL)
        return true;
    rank = handshake_rank(decision->named);
    return rank == RANK_NONE || binding->rank <= rank;
}
