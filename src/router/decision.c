#include "build_config.h"

#include "router/decision.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/error.h"
#include "router/handshake.h"
#include "router/outcomes.h"
#include "router/shares.h"
#include "router/waiting.h"

#define CLOSING "the daemon is shutting down"
#define ANSWER_MS 60000 /* clients wait about as long for the answer to initialize */

void decision_begin(struct decision *decision, struct router *router, struct peer *from,
                    const struct message *message)
{
    bool is_response = message->has_result || message->has_error;

    ASSERT(!peer_held(from));
    decision->action = ACTION_NO_MEMORY;
    decision->to = NULL;
    decision->recorded = decision->answered = decision->cancelled = NULL;
    decision->former_owner = NULL;
    decision->hold_ms = 0;
    decision->edit_count = 0;
    decision->router = router;
    decision->from = from;
    decision->message = message;
    decision->id_hash = 0;
    decision->is_reply = is_response && message->method.data == NULL;
    decision->pool = from->pool;
    decision->session_id = message->session_id;
    decision->subject = ABOUT_NOTHING;
    decision->fields.present = 0;
    /* The answer of a worker whose ids are rewritten is found by its number. */
    if (message->id.type != ID_NONE &&
        (from->pool == NULL || !is_response || !from->pool->mode.rewrite_ids))
        decision->id_hash = pending_hash(&router->from_clients, message->id);
}

void decision_end_hold(struct decision *decision)
{
    struct peer *from = decision->from;

    if (from->reserved != NULL)
        waiting_id_free(decision->router, from->reserved);
    if (decision->action != ACTION_HOLD) {
        shares_end_claim(from);
        from->hold_expired = from->was_held = false;
        from->hold_until_ms = 0;
    }
}

void decision_note_answer(const struct decision *decision)
{
    enum request_outcome outcome = OUTCOME_RESULT;

    if (decision->answered == NULL)
        return;
    if (decision->action == ACTION_FAIL)
        outcome = OUTCOME_LOST;
    else if (decision->message->has_error)
        outcome = OUTCOME_ERROR;
    outcomes_note(decision->router, decision->answered, outcome);
}

void decision_delivered(struct decision *decision)
{
    struct router *router = decision->router;

    ASSERT(decision->action == ACTION_FORWARD || decision->action == ACTION_FAIL);
    if (decision->answered != NULL) {
        router->answered_last |= decision->to->input_ended;
        waiting_id_free(router, decision->answered);
    } else if (decision->cancelled != NULL && decision->cancelled->state == REQUEST_ACTIVE) {
        waiting_abandon(router, decision->cancelled, OUTCOME_CANCELLED);
    }
}

void decision_failed(struct decision *decision)
{
    if (decision->recorded != NULL)
        waiting_id_free(decision->router, decision->recorded);
    decision->recorded = NULL;
}

void decision_replace(struct decision *decision, const struct scan_field *field, struct slice text)
{
    size_t quote = field->type == SCAN_STRING ? 1 : 0, offset = field->offset - quote;
    struct splice_edit *edit = &decision->edits[decision->edit_count++];

    for (; edit > decision->edits && edit[-1].offset > offset; edit--)
        *edit = edit[-1];
    *edit = (struct splice_edit){offset, field->len + 2 * quote, text};
}

void decision_refuse(struct decision *decision, int code, const char *format, ...)
{
    va_list args;

    decision->action = ACTION_REFUSE;
    decision->code = code;
    va_start(args, format);
    vsnprintf(decision->text, sizeof decision->text, format, args);
    va_end(args);
}

void decision_refuse_unserved(struct decision *decision, const struct group *group)
{
    decision_refuse(decision, JSONRPC_SERVER_ERROR,
                    group->removed ? "its pool was removed from the configuration"
                                   : "no worker left to serve this request: each has failed (see "
                                     "the daemon's log)");
}

void decision_fail(struct decision *decision, struct request *request, const char *format, ...)
{
    va_list args;

    waiting_subscribed(decision->router, request, SUBSCRIPTION_REFUSED);
    decision->action = ACTION_FAIL;
    decision->to = request->asker;
    decision->answered = request;
    decision->code = JSONRPC_SERVER_ERROR;
    va_start(args, format);
    vsnprintf(decision->text, sizeof decision->text, format, args);
    va_end(args);
}

void decision_fail_cut(struct decision *decision, struct request *request)
{
    decision_fail(decision, request, "the answer is longer than max_message (%zu bytes)",
                  decision->router->limits->max_message);
}

void decision_refuse_exited(struct decision *decision, const struct group *group)
{
    bool failing = group->failure.count > 0;

    decision_refuse(decision, JSONRPC_SERVER_ERROR, "%s",
                    failing ? "" : "worker exited before answering");
    decision->failure = &group->failure;
}

void decision_refuse_cut(struct decision *decision)
{
    decision_refuse(decision, JSONRPC_INVALID_REQUEST,
                    "the message is longer than max_message (%zu bytes)",
                    decision->router->limits->max_message);
}

void decision_discard(struct decision *decision, enum action action, const char *text)
{
    decision->action = action;
    snprintf(decision->text, sizeof decision->text, "%s", text);
}

/* False: the message was refused instead. */
static bool begin_hold(struct decision *decision, enum peer_hold held_for)
{
    const char *closing = decision->router->closing ? CLOSING : decision->from->closing;

    if (closing != NULL && decision->from->pool == NULL) {
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "%s", closing);
        return false;
    }
    decision->action = ACTION_HOLD;
    decision->from->held_for = held_for;
    if (!decision->from->was_held)
        decision->from->hold_failures = 0;
    decision->from->was_held = true;
    return true;
}

void decision_hold(struct decision *decision, struct list *list, enum peer_hold held_for)
{
    if (begin_hold(decision, held_for))
        list_append(list, &decision->from->hold);
}

void decision_hold_turns(struct decision *decision, struct turns *turns, enum peer_hold held_for)
{
    if (begin_hold(decision, held_for))
        turns_add(turns, decision->from);
}

void decision_hold_for_id(struct decision *decision, struct request *busy, struct group *group)
{
    struct peer *from = decision->from;

    if (decision->router->closing) { /* clients are not read any more: a worker's waits in vain */
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "%s", CLOSING);
        return;
    }
    from->hold_hash = decision->id_hash;
    from->hold_group = group;
    if (group != NULL && roaming_add(&decision->router->roaming, from) != STDIO_BUS_OK)
        return;
    decision_hold_turns(decision, &busy->waiters, HELD_FOR_ID);
    if (decision->action == ACTION_HOLD)
        decision->hold_ms = (int64_t)decision->router->limits->backpressure_timeout_sec * 1000;
    else
        roaming_leave(&decision->router->roaming, from);
}

void decision_hold_for_answer(struct decision *decision, struct list *waiting)
{
    decision_hold(decision, waiting, HELD_FOR_ANSWER);
    if (decision->action == ACTION_HOLD)
        decision->hold_ms = ANSWER_MS;
}

void decision_answer(struct decision *decision, struct slice line, struct splice_edit id)
{
    const struct message *message = decision->message;

    id.text = param_fields_raw(message->bytes, &message->fields->id);
    decision->edits[0] = id;
    decision->edit_count = 1;
    decision->stored = line;
    decision->action = ACTION_ANSWER;
}

bool decision_read_named(struct decision *decision, enum param_field field, size_t max)
{
    if (param_fields_string(&decision->fields, field, decision->message->bytes,
                            decision->named_text, max, &decision->named))
        return true;
    decision->named.data = NULL;
    return false;
}

bool decision_refused_request(struct decision *decision, const struct pending *pending)
{
    if (pending_by_asker(pending, decision->from, decision->message->id, decision->id_hash) !=
        NULL) {
        decision_refuse(decision, JSONRPC_INVALID_REQUEST,
                        "id is already in use by a request of yours that is still in flight");
    } else if (pending->active_count >= pending->max &&
               !shares_left_of_requests(decision->router, pending, decision->from)) {
        decision_refuse(decision, JSONRPC_SERVER_ERROR,
                        "too many pending requests (max_pending_requests %zu)", pending->max);
    } else if (decision->from->held[PEER_REQUESTS] >= decision->from->max_requests) {
        decision->router->limited_requests++;
        decision_refuse(decision, JSONRPC_SERVER_ERROR,
                        "too many requests of this client are in flight "
                        "(max_requests_per_client %zu)",
                        decision->from->max_requests);
    } else if (decision->from->hold_expired) {
        decision_refuse(decision, JSONRPC_SERVER_ERROR,
                        "id is still in use by another request that is in flight");
    } else {
        return false;
    }
    return true;
}

bool decision_id_free(const struct decision *decision, const struct pending *pending,
                      const struct peer *answerer, struct request **busy)
{
    *busy = pending_by_answerer(pending, answerer, decision->message->id, decision->id_hash);
    return *busy == NULL || *busy == decision->from->reserved;
}
