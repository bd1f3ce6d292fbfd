#include "build_config.h"

#include "router/to_client.h"

#include "base/error.h"
#include "router/affinity.h"
#include "router/rewrite.h"
#include "router/shares.h"
#include "router/subject.h"
#include "router/waiting.h"

static struct slice session_key(const struct decision *decision, struct slice id,
                                char key[SESSIONS_KEY_MAX])
{
    if (decision->pool->mode.clients == CLIENTS_SHARED)
        return id;
    return sessions_scoped_key(key, decision->from, id);
}

/* --- answers (spec 6.3.1) --- */

/* A session that the answer names is the asker's (ACP session/new). */
static int start_session(struct decision *decision, struct peer *asker)
{
    struct sessions *sessions = &decision->router->sessions;
    const struct message *message = decision->message;
    char buffer[SESSIONS_KEY_MAX];
    struct slice id;

    if (!message->has_result)
        return STDIO_BUS_OK;
    param_fields_find(&decision->fields, message->bytes, 0);
    if (!param_fields_string(&decision->fields, PARAM_RESULT_SESSION, message->bytes,
                             decision->scratch.session_id, sizeof decision->scratch.session_id,
                             &id))
        return STDIO_BUS_OK;
    id = session_key(decision, id, buffer);
    if (sessions_find(sessions, id) != NULL || !shares_left_of_sessions(decision->router, asker))
        return STDIO_BUS_OK;
    return sessions_add(sessions, id, decision->from, asker) != NULL ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

static void answer(struct decision *decision)
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
    } else if (request->state == REQUEST_ABANDONED) {
        /* With a mode it may have been cancelled: nothing to warn of. */
        if (decision->pool->plain)
            decision_discard(decision, ACTION_DISCARD,
                             "response to a request of a client that is gone");
        else
            decision_discard(decision, ACTION_DROP, "response to a request that was given up");
        decision->from->given_up--;
        waiting_late_answer(router, request);
    } else if (request->asker->full) {
        decision_hold(decision, &request->asker->waiting);
    } else if (request->extras == NULL || !request->extras->names_session ||
               start_session(decision, request->asker) == STDIO_BUS_OK) {
        decision->answered = request;
        rewrite_edit_answer(decision, request);
        decision_forward(decision, request->asker);
    }
}

/* --- requests and notifications --- */

/* The client that the message can only be for: the worker's only one, or else the only one that
 * waits for an answer of it. A request that was given up may still run, and the message may belong
 * to it. */
static struct peer *only_client(const struct peer *worker)
{
    struct list_node *first = worker->bindings.head.next, *node, *following;
    struct peer *found = NULL;
    bool uncertain = worker->given_up > 0;

    if (list_empty(&worker->bindings))
        return NULL;
    if (first->next == &worker->bindings.head && !(uncertain && worker->client_left))
        return list_entry(first, struct binding, in_worker)->client;
    if (uncertain)
        return NULL;
    list_each(&worker->answering, node, following) {
        const struct request *request = list_entry(node, struct request, in_answerer);

        if (request->state != REQUEST_ACTIVE || request->asker == found)
            continue;
        if (found != NULL)
            return NULL;
        found = request->asker;
    }
    return found;
}

static void ask(struct decision *decision, struct peer *client)
{
    struct pending *pending = &decision->router->from_workers;
    struct request *busy;

    if (client->input_ended)
        decision_refuse(decision, JSONRPC_SERVER_ERROR,
                        "the client cannot answer: it has closed its input");
    else if (decision_refused_request(decision, pending))
        return;
    else if (!decision->pool->mode.rewrite_ids &&
             !decision_id_free(decision, pending, client, &busy))
        decision_hold_for_id(decision, busy, NULL);
    else if ((decision->recorded = rewrite_record(decision, pending, client)) != NULL)
        decision_forward(decision, client);
}

static void send_to(struct decision *decision, struct peer *client)
{
    if (client->full)
        decision_hold(decision, &client->waiting);
    else if (decision->asks)
        ask(decision, client);
    else
        decision_forward(decision, client);
}

/* To all clients of the worker; held until each of them takes it. */
static void broadcast(struct decision *decision)
{
    const struct list *bindings = &decision->from->bindings;
    struct list_node *node, *following;

    if (list_empty(bindings)) {
        decision_discard(decision, ACTION_DROP, "the worker has no client");
        return;
    }
    list_each(bindings, node, following) {
        struct peer *client = list_entry(node, struct binding, in_worker)->client;

        if (client->full) {
            decision_hold(decision, &client->waiting);
            return;
        }
    }
    decision->action = ACTION_BROADCAST;
}

/* Spec 6.3.2. A session that is not known yet may be one that a request in flight is about to
 * start; but if a client of the process has left, it may have been that client's. */
static void to_session(struct decision *decision)
{
    struct peer *worker = decision->from, *client = NULL;
    char buffer[SESSIONS_KEY_MAX];
    const struct session *session =
        sessions_find(&decision->router->sessions,
                      session_key(decision, decision->session_id, buffer));

    if (session != NULL)
        client = session->owner;
    else if (!worker->client_left)
        client = only_client(worker);
    if (client != NULL)
        send_to(decision, client);
    else
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "unroutable: no such session");
}

/* Spec 6.3.3. */
static void without_session(struct decision *decision)
{
    enum pool_clients clients = decision->pool->mode.clients;
    const struct request *about = NULL;
    struct peer *client;

    if (clients == CLIENTS_STICKY && !decision->asks) {
        broadcast(decision);
        return;
    }
    if (!decision->pool->plain && decision->asks)
        about = rewrite_question_for(decision);
    client = about != NULL ? about->asker : only_client(decision->from);
    if (client != NULL)
        send_to(decision, client);
    else if (clients == CLIENTS_EXCLUSIVE && !decision->asks)
        decision_discard(decision, ACTION_DROP, "the worker has no client");
    else
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "unroutable: %s",
                        clients == CLIENTS_SHARED ? "no sessionId to tell which client"
                                                  : "nothing tells which client");
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
    }
    if (decision->session_id.data != NULL && pool->mode.clients != CLIENTS_EXCLUSIVE)
        to_session(decision);
    else
        without_session(decision);
}

void to_client(struct decision *decision)
{
    const struct message *message = decision->message;
    struct peer *worker = decision->from;

    decision->asks = message->id.type != ID_NONE && message->method.data != NULL;
    if (message_is_response(message))
        answer(decision);
    else
        to_owner(decision);
    if (worker->was_held)
        decision_end_hold(decision);
    if (decision->action != ACTION_BROADCAST && decision->action != ACTION_HOLD)
        worker->broadcast = 0; /* the clients that had not got the message have left */
}
