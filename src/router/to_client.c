#include "build_config.h"

#include "router/to_client.h"

#include "base/error.h"
#include "router/affinity.h"
#include "router/fresh.h"
#include "router/from_memory.h"
#include "router/greeting.h"
#include "router/named_session.h"
#include "router/one_handshake.h"
#include "router/questions.h"
#include "router/record.h"
#include "router/rewrite.h"
#include "router/shared_settings.h"
#include "router/subject.h"
#include "router/task_messages.h"
#include "router/waiting.h"

/* --- answers (spec 6.3.1) --- */

/* What the answer to a request with extras says beyond its id. False: it is not for the asker, or
 * out of memory.
 * As a part of its caller it would cost every answer the protection of its stack. */
__attribute__((noinline)) static bool answer_extras(struct decision *decision,
                                                    struct request *request)
{
    const struct request_extras *extras = request->extras;

    if (extras->kind == EXTRAS_MAKES_TASK && !task_messages_begin(decision, request))
        return false;
    if (extras->kind == EXTRAS_FETCHES)
        task_messages_fetched(decision, request);
    else if (extras->kind == EXTRAS_PROMPTS)
        named_session_prompted(decision, request);
    else if (extras->kind == EXTRAS_SUBSCRIBES)
        rewrite_edit_subscription(decision, request);
    else if (extras->kind == EXTRAS_KEPT)
        fresh_answered(decision, extras->names);
    else if (greeting_answered(decision, request) != STDIO_BUS_OK)
        return false;
    if (extras->kind == EXTRAS_SETS_LEVEL)
        shared_settings_level_answered(decision, request);
    else if (extras->kind == EXTRAS_WATCHES)
        waiting_subscribed(decision->router, request,
                           decision->message->has_result && !decision->message->has_error
                               ? SUBSCRIPTION_DONE
                               : SUBSCRIPTION_REFUSED);
    return named_session_answered(decision, request);
}

/* The request that the message answers. NULL: nobody waits for the answer, and it was discarded. */
static inline struct request *answered(struct decision *decision, bool whole)
{
    struct router *router = decision->router;
    struct request *request = NULL;

    if (decision->pool->mode.rewrite_ids)
        request = rewrite_find_answered(decision);
    else if (decision->message->id.type != ID_NONE)
        request = pending_by_answerer(&router->from_clients, decision->from, decision->message->id,
                                      decision->id_hash);
    if (request == NULL || request->state == REQUEST_RESERVED) {
        decision_discard(decision, ACTION_DISCARD, "response to no pending request");
    } else if (request->state != REQUEST_ACTIVE && one_handshake_is_own(request)) {
        one_handshake_own_answer(decision, request, whole);
    } else if (request->state == REQUEST_ABANDONED) {
        /* With a mode it may have been cancelled: nothing to warn of. */
        if (decision->pool->plain)
            decision_discard(decision, ACTION_DISCARD,
                             "response to a request of a client that is gone");
        else
            decision_discard(decision, ACTION_DROP, "response to a request that was given up");
        if (request->extras != NULL && request->extras->kind == EXTRAS_SETS_LEVEL)
            shared_settings_level_answered(decision, request);
        (void)greeting_note(decision, request); /* the next client's may be taken instead */
        decision->from->given_up--;
        waiting_late_answer(router, request);
    } else {
        return request;
    }
    return NULL;
}

/* An answer that no request is waiting for: the host of the bus gets it all the same. */
__attribute__((cold, noinline)) static void unasked(struct decision *decision, struct peer *host)
{
    if (decision->action != ACTION_DISCARD || !decision->pool->plain)
        return;
    if (host->full)
        decision_hold_turns(decision, &host->waiting, HELD_FOR_QUEUE);
    else
        decision_forward(decision, host);
}

static void answer(struct decision *decision)
{
    struct request *request = answered(decision, true);

    if (request == NULL) {
        if (decision->router->host != NULL)
            unasked(decision, decision->router->host);
        return;
    }
    if (request->asker->full) {
        decision_hold_turns(decision, &request->asker->waiting, HELD_FOR_QUEUE);
    } else if (request->extras == NULL || answer_extras(decision, request)) {
        decision->answered = request;
        rewrite_edit_answer(decision, request);
        decision_forward(decision, request->asker);
    }
}

/* --- requests and notifications --- */

/* The only client that the worker has had: its messages can only be for that one. One that left may
 * have left a request that still runs. NULL: there is none, or more than one. */
static struct peer *sole_client(const struct peer *worker)
{
    struct list_node *first = worker->bindings.head.next;

    if (list_empty(&worker->bindings) || first->next != &worker->bindings.head ||
        (worker->client_left && worker->given_up > 0))
        return NULL;
    return list_entry(first, struct binding, in_worker)->client;
}

/* The only client that waits for an answer of a sticky worker. A request that was given up may
 * still run, and then there may be another one. In a shared pool: the topic bus, if it serves
 * that. Of many requests of one client, each is looked at once: worker->checked. */
static struct peer *waiting_client(struct peer *worker)
{
    const struct list_node *node = worker->checked;
    struct peer *found = node != NULL ? worker->checked_asker : NULL;
    bool all_active = true;

    if (list_empty(&worker->bindings) || worker->given_up > 0)
        return worker->pool->fallback;
    node = node != NULL ? node->next : worker->answering.head.next;
    for (; node != &worker->answering.head; node = node->next) {
        const struct request *request = list_entry(node, const struct request, in_answerer);

        all_active = all_active && request->state == REQUEST_ACTIVE;
        if (request->state != REQUEST_ACTIVE)
            continue;
        if (found != NULL && request->asker != found)
            return NULL;
        found = request->asker;
        if (all_active) {
            worker->checked = node;
            worker->checked_asker = found;
        }
    }
    return found;
}

static void ask(struct decision *decision, struct peer *client)
{
    struct pending *pending = &decision->router->from_workers;
    struct request *busy;

    if (client->input_ended || client->is_brief)
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "the client cannot answer: %s",
                        client->is_brief ? "it has sent a request by HTTP, and nothing more"
                                         : "it has closed its input");
    else if (decision_refused_request(decision, pending) ||
             (decision->pool->one_handshake && questions_refuse(decision, client)))
        return;
    else if (!decision->pool->mode.rewrite_ids && !record_renumbers(decision, pending, client) &&
             !decision_id_free(decision, pending, client, &busy))
        decision_hold_for_id(decision, busy, NULL);
    else if ((decision->recorded = record_request(decision, pending, client)) != NULL) {
        decision->recorded->asked_ms = decision->router->now_ms;
        decision_forward(decision, client);
    }
}

static void send_to(struct decision *decision, struct peer *client)
{
    if (client->full)
        decision_hold_turns(decision, &client->waiting, HELD_FOR_QUEUE);
    else if (decision->asks)
        ask(decision, client);
    else
        decision_forward(decision, client);
}

/* To all clients of the worker that want it; held until each of them takes it. */
static void broadcast(struct decision *decision)
{
    const struct list *bindings = &decision->from->bindings;
    bool shared = decision->pool->one_handshake, any = false;
    struct list_node *node, *following;

    if (shared)
        from_memory_note(decision);
    if (list_empty(bindings)) {
        decision_discard(decision, ACTION_DROP, "the worker has no client");
        return;
    }
    if (shared)
        shared_settings_read_notice(decision);
    list_each(bindings, node, following) {
        struct binding *binding = list_entry(node, struct binding, in_worker);

        binding->chosen = !shared || shared_settings_wants(decision, binding);
        if (binding->chosen && binding->client->full) {
            decision_hold_turns(decision, &binding->client->waiting, HELD_FOR_QUEUE);
            return;
        }
        any = any || binding->chosen;
    }
    if (any)
        decision->action = ACTION_BROADCAST;
    else
        decision_discard(decision, ACTION_DROP, "no client of the worker wants it");
}

/* A session that is not known yet may be one that a request in flight is about to start. That is a
 * guess, and no question is answered on a guess. */
static struct peer *client_of_new_session(const struct decision *decision)
{
    struct peer *client = sole_client(decision->from);

    return client != NULL || decision->asks ? client : waiting_client(decision->from);
}

/* Spec 6.3.2. If a client of the process has left, an unknown session may be that client's. */
static void to_session(struct decision *decision)
{
    struct peer *worker = decision->from, *client = NULL;
    const struct session *session = named_session(decision);

    /* A worker cannot reach the session of another process by using its id. */
    if (session != NULL && session->worker != worker && decision->pool->mode.session_in_params)
        session = NULL;
    /* To the client that loads it (ACP session/load) the worker repeats what was said before. */
    if (!decision->asks && (session == NULL || !session->load_failed))
        client = named_session_loader(worker, decision->session_id);
    if (client == NULL && session != NULL)
        client = session->owner;
    else if (client == NULL && !worker->client_left)
        client = client_of_new_session(decision);
    if (client != NULL)
        send_to(decision, client);
    else
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "unroutable: no such session");
}

/* Spec 6.3.3. */
static void without_session(struct decision *decision)
{
    enum pool_clients clients = decision->pool->mode.clients;
    struct peer *client = NULL;
    bool named;

    if (clients == CLIENTS_STICKY && !decision->asks) {
        if (decision->pool->stateless)
            decision_discard(decision, ACTION_DROP, "it names no subscription");
        else
            broadcast(decision);
        return;
    }
    named = !decision->pool->plain && decision->asks && rewrite_question_for(decision, &client);
    if (!named)
        client = sole_client(decision->from);
    if (!named && client == NULL)
        client = waiting_client(decision->from);
    if (!named && client == NULL && decision->pool->one_handshake && decision->asks)
        client = questions_roots_client(decision);
    if (client != NULL)
        send_to(decision, client);
    else if (clients == CLIENTS_EXCLUSIVE && !decision->asks)
        decision_discard(decision, ACTION_DROP, "the worker has no client");
    else
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "unroutable: %s",
                        clients == CLIENTS_SHARED ? "no sessionId to tell which client"
                                                  : "nothing tells which client");
}

/* To the client that owns the task. The only client of a process gets all messages. */
static void to_task(struct decision *decision)
{
    struct peer *client;

    if (decision->pool->mode.clients == CLIENTS_EXCLUSIVE) {
        without_session(decision);
    } else {
        client = task_messages_owner(decision);
        if (client != NULL)
            send_to(decision, client);
    }
    task_messages_status(decision);
}

/* To the client whose request the question serves. False: it names none that is known. */
static bool to_asker(struct decision *decision)
{
    struct peer *client;

    if (!rewrite_cause(decision, &client))
        return false;
    if (client != NULL)
        send_to(decision, client);
    else
        decision_refuse(decision, JSONRPC_SERVER_ERROR,
                        "unroutable: it names a request that is over");
    return true;
}

/* The host gets a request, too, that cannot be entered in the table: its reply finds the worker by
 * the session, or by an earlier request with the same id. */
__attribute__((noinline)) static void to_host(struct decision *decision, struct peer *host)
{
    send_to(decision, host);
    if (decision->action == ACTION_REFUSE)
        decision_forward(decision, host);
}

/* A request or a notification. */
static void to_owner(struct decision *decision)
{
    struct router *router = decision->router;
    const struct group *pool = decision->pool;

    if (!pool->plain) {
        subject_read(decision);
        if (decision->subject != ABOUT_NOTHING &&
            subject_decide(decision, &router->from_workers, &router->from_clients))
            return;
    } else if (router->host != NULL) {
        to_host(decision, router->host);
        return;
    }
    if (decision->subject == ABOUT_CAUSE && to_asker(decision))
        return;
    if (decision->subject == ABOUT_TASK)
        to_task(decision);
    else if (decision->session_id.data != NULL && pool->mode.clients != CLIENTS_EXCLUSIVE)
        to_session(decision);
    else
        without_session(decision);
}

/* After each decision. */
static inline void settle(struct decision *decision)
{
    struct peer *worker = decision->from;

    if (worker->was_held)
        decision_end_hold(decision);
    if (decision->action != ACTION_BROADCAST && decision->action != ACTION_HOLD)
        worker->broadcast = 0; /* the clients that had not got the message have left */
}

void to_client(struct decision *decision)
{
    const struct message *message = decision->message;

    decision->asks = message->id.type != ID_NONE && message->method.data != NULL;
    if (message_is_response(message))
        answer(decision);
    else
        to_owner(decision);
    settle(decision);
}

void to_client_cut(struct decision *decision)
{
    struct request *request;

    decision->asks = decision->message->id.type != ID_NONE &&
                     decision->message->method.data != NULL;
    if (!message_is_response(decision->message))
        decision_refuse_cut(decision);
    else if ((request = answered(decision, false)) != NULL && request->asker->full)
        decision_hold_turns(decision, &request->asker->waiting, HELD_FOR_QUEUE);
    else if (request != NULL)
        decision_fail_cut(decision, request);
    settle(decision);
}

void to_client_lost(struct decision *decision, const char *problem)
{
    struct request *request = answered(decision, false);

    if (request != NULL)
        decision_fail(decision, request, "the answer of the worker cannot be read: %s", problem);
}
