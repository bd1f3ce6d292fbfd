#include "build_config.h"

#include "router/to_worker.h"

#include "base/assert.h"
#include "base/error.h"
#include "router/affinity.h"
#include "router/bind.h"
#include "router/eras.h"
#include "router/fresh.h"
#include "router/from_memory.h"
#include "router/one_handshake.h"
#include "router/record.h"
#include "router/rewrite.h"
#include "router/shares.h"
#include "router/subject.h"
#include "router/task_messages.h"
#include "router/waiting.h"

static bool id_free_at(const struct decision *decision, const struct peer *worker,
                       struct request **busy)
{
    *busy = NULL;
    if (!decision->asks || worker->pool->mode.rewrite_ids)
        return true;
    *busy = pending_by_answerer(&decision->router->from_clients, worker, decision->message->id,
                                decision->id_hash);
    return *busy == NULL || *busy == decision->from->reserved;
}

static struct session *find_session(const struct decision *decision)
{
    if (decision->session_id.data == NULL)
        return NULL;
    return sessions_find_client(&decision->router->sessions, decision->from, decision->session_id);
}

/* False: the message would start a session too many, and was refused. */
static bool session_left(struct decision *decision)
{
    const struct sessions *sessions = &decision->router->sessions;

    if (shares_left_of_sessions(decision->router, decision->from))
        return true;
    decision_refuse(decision, JSONRPC_SERVER_ERROR, "too many sessions (max_sessions %zu)",
                    sessions->max);
    return false;
}

/* --- replies to what a worker asked --- */

/* False: no worker asked this. */
static bool reply(struct decision *decision, bool cut)
{
    struct request *request = pending_by_answerer(&decision->router->from_workers, decision->from,
                                                  decision->message->id, decision->id_hash);

    if (request == NULL || request->state == REQUEST_RESERVED)
        return false;
    if (request->state == REQUEST_ABANDONED) {
        decision_discard(decision, ACTION_DISCARD, "reply to a request of a worker that is gone");
        decision->from->given_up--;
        waiting_late_answer(decision->router, request);
    } else if (request->asker->full) {
        decision_hold_turns(decision, &request->asker->waiting, HELD_FOR_QUEUE);
    } else if (cut) {
        decision_fail_cut(decision, request);
    } else {
        decision->answered = request;
        rewrite_edit_answer(decision, request);
        decision_forward(decision, request->asker);
    }
    return true;
}

/* --- the worker that is next --- */

/* The worker where the id was kept free for the sender takes the message now. */
static bool reserved_takes(const struct decision *decision, const struct group *group)
{
    const struct peer *worker = decision->from->reserved->answerer;

    return worker->availability == PEER_READY && !worker->full && group_has(group, worker);
}

/* Takes turns (spec 6.1.1, 6.1.3: round-robin), and passes over workers that cannot take the
 * message now. NULL: none can, and the sender was held or refused. */
static struct peer *take_turn(struct decision *decision, struct group *group)
{
    struct request *first_busy = NULL; /* a worker would take it if this id were free there */
    bool may_come = false;             /* some worker will take messages again */
    size_t at = group->turn, i;

    if (decision->from->reserved != NULL && reserved_takes(decision, group))
        return decision->from->reserved->answerer;
    for (i = 0; i < group->count; i++, at++) {
        struct peer *worker;
        struct request *busy;

        if (at >= group->count)
            at = 0;
        worker = group->workers[at];
        if (worker->availability != PEER_FAILED)
            may_come = true;
        if (worker->availability != PEER_READY || worker->full)
            continue;
        if (id_free_at(decision, worker, &busy)) {
            group->turn = at + 1;
            return worker;
        }
        if (first_busy == NULL)
            first_busy = busy;
    }
    if (first_busy != NULL)
        decision_hold_for_id(decision, first_busy, group);
    else if (may_come)
        decision_hold_turns(decision, &group->senders, HELD_FOR_WORKER);
    else
        decision_refuse_unserved(decision, group);
    return NULL;
}

/* The worker of a removed pool gets what belongs to requests in flight. */
__attribute__((cold)) static bool takes_rest(struct decision *decision, struct peer *worker)
{
    if (from_memory_takes(decision, worker))
        return false;
    waiting_call(decision->router, worker);
    if (!peer_serves(worker))
        decision_hold(decision, &decision->router->waiting_for_worker, HELD_FOR_WORKER);
    else if (decision->asks)
        decision_refuse_unserved(decision, worker->pool);
    else
        return true;
    return false;
}

/* The worker to which the message is bound takes it now, or the sender is held. */
static bool is_ready(struct decision *decision, struct peer *worker)
{
    struct request *busy;

    if (worker->availability < PEER_DRAINING && !takes_rest(decision, worker))
        return false;
    if (worker->full)
        decision_hold_turns(decision, &worker->waiting, HELD_FOR_QUEUE);
    else if (!id_free_at(decision, worker, &busy))
        decision_hold_for_id(decision, busy, NULL);
    else
        return true;
    return false;
}

/* --- the decision --- */

/* Where ids are rewritten, a request that the message names and that is not the sender's may be
 * another client's. */
static bool is_kept_back(struct decision *decision, const struct peer *worker)
{
    if (decision->subject == ABOUT_TASK)
        return task_messages_kept_back(decision, worker);
    if (!worker->pool->mode.rewrite_ids)
        return false;
    if (decision->asks)
        decision_refuse(decision, JSONRPC_INVALID_REQUEST, "the method of a notification");
    else if (decision->subject != ABOUT_OWN_TOKEN || rewrite_may_be_number(decision, worker))
        decision_discard(decision, ACTION_DROP, "it names a request that is over");
    else
        return false;
    return true;
}

#define QUESTIONS_READ 64

/* Whether the worker waits for another client's reply to a question whose id is of another type:
 * libraries take "7" for 7, and null for 0. Of very many questions one is assumed to be such. */
static bool has_question_of_other_type(const struct decision *decision, const struct peer *worker)
{
    const struct list_node *node = worker->asked.head.next;
    int i;

    for (i = 0; i < QUESTIONS_READ && node != &worker->asked.head; i++, node = node->next) {
        const struct request *question = list_entry(node, struct request, in_asker);

        if (question->answerer != decision->from &&
            question->asker_id.type != decision->message->id.type)
            return true;
    }
    return node != &worker->asked.head;
}

/* A worker's question is answered by the client that was asked. A plain pool gets all other replies
 * as they are (spec 6.1, 4.3.3). */
static bool answers_for_another(struct decision *decision, const struct peer *worker)
{
    const struct pending *questions = &decision->router->from_workers;
    const struct message *message = decision->message;
    bool has_id = message->id.type != ID_NONE;

    if ((!has_id || pending_by_asker(questions, worker, message->id, decision->id_hash) == NULL) &&
        !has_question_of_other_type(decision, worker))
        return false;
    if (decision->asks)
        decision_refuse(decision, JSONRPC_INVALID_REQUEST, "a result or error in a request");
    else
        decision_discard(decision, ACTION_DISCARD, "reply to a question to another client");
    return true;
}

/* Enters the request into the pending table (spec 6.2). NULL if out of memory. */
static inline struct request *record(struct decision *decision, struct peer *worker)
{
    struct pending *pending = &decision->router->from_clients;
    struct new_request request UNINITIALIZED;

    decision->pool = worker->pool;
    if (!worker->pool->plain)
        return record_request(decision, pending, worker);
    request = (struct new_request){
        .id = decision->message->id,
        .id_hash = decision->id_hash,
        .raw = decision->message->id.text,
    };
    return pending_add(pending, decision->from, worker, &request);
}

/* What is no plain request. False: it was kept back. */
static bool may_pass(struct decision *decision, struct peer *worker)
{
    if (decision->subject != ABOUT_NOTHING && is_kept_back(decision, worker))
        return false;
    if ((decision->message->has_result || decision->message->has_error) &&
        answers_for_another(decision, worker))
        return false;
    if (worker->is_link &&
        (placement_says_left(decision->message) || placement_says_joined(decision->message))) {
        decision_discard(decision, ACTION_DISCARD, "a notification of daemons alone");
        return false;
    }
    return decision->asks || worker->pool->plain || record_notification(decision, worker);
}

/* A new session. Each worker of a sticky pool has session ids of its own, so that two may use one
 * id; so has a client with sessions of its own. */
static struct session *add_session(const struct decision *decision, struct peer *worker,
                                   struct slice id)
{
    struct sessions *sessions = &decision->router->sessions;
    struct peer *client = decision->from;
    bool of_worker = worker->pool->mode.clients != CLIENTS_SHARED;

    if (!of_worker && !client->own_sessions)
        return sessions_add(sessions, id, worker, client);
    return sessions_add_scoped(sessions, of_worker ? worker : client, id, worker, client);
}

/* Records what the message changes; session_id is that of a new session, if it starts one. */
__attribute__((always_inline)) static inline void
commit(struct decision *decision, struct peer *worker, struct slice session_id)
{
    bool plain_request = decision->asks && decision->subject == ABOUT_NOTHING &&
                         !decision->message->has_result && !decision->message->has_error;

    ASSERT(worker->pool != NULL);
    if (!plain_request && !may_pass(decision, worker))
        return;
    if (decision->asks) {
        decision->recorded = record(decision, worker);
        if (decision->recorded == NULL)
            return;
        decision->recorded->asked_ms = decision->router->now_ms;
    }
    if (session_id.data != NULL && add_session(decision, worker, session_id) == NULL) {
        decision_failed(decision);
        return;
    }
    decision->action = ACTION_FORWARD;
    decision->to = worker;
}

/* Sends the message to the place of its session, which is not known here; new_id as in commit.
 * False: any worker may have it. */
__attribute__((cold)) static bool place_takes(struct decision *decision, struct group *group,
                                              struct slice id, struct slice new_id)
{
    struct place place = {PLACE_ANY, NULL, NULL, NULL};

    if (decision->from->own_sessions)
        return false;
    if (decision->asks && decision_refused_request(decision, &decision->router->from_clients))
        return true;
    if (!group->placement->find(group->placement, group, id, &place))
        return true;
    if (place.kind == PLACE_WORKER && is_ready(decision, place.worker))
        commit(decision, place.worker, new_id);
    else if (place.kind == PLACE_LATER)
        decision_hold(decision, place.waiting, HELD_FOR_WORKER);
    else if (place.kind == PLACE_UNKNOWN)
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "%s", place.reason);
    return place.kind != PLACE_ANY;
}

/* NULL: there is no such pool. */
static void to_any(struct decision *decision, struct group *group, const struct session *session)
{
    struct slice new_id = session == NULL ? decision->session_id : slice_of(NULL, 0);
    struct peer *worker;

    if (decision->asks && decision_refused_request(decision, &decision->router->from_clients))
        return;
    if (new_id.data != NULL &&
        (!session_left(decision) || (group != NULL && group->placement != NULL &&
                                     place_takes(decision, group, new_id, new_id))))
        return;
    if (session != NULL) { /* spec 6.1.2 */
        worker = is_ready(decision, session->worker) ? session->worker : NULL;
    } else if (group != NULL) {
        worker = take_turn(decision, group);
    } else {
        decision_refuse(decision, JSONRPC_INVALID_PARAMS, "no such pool");
        return;
    }
    if (worker != NULL)
        commit(decision, worker, new_id);
}

static void to_bound(struct decision *decision, struct group *pool)
{
    struct router *router = decision->router;
    struct peer *worker = affinity_worker(decision->from, pool);
    struct slice new_id = {NULL, 0};
    bool of_handshake = pool->one_handshake && decision->kind >= REQUEST_INITIALIZES;

    if (worker == NULL)
        worker = bind_to_worker(decision, pool);
    if (worker != NULL && of_handshake && one_handshake_moves(decision, worker))
        worker = bind_to_worker(decision, pool);
    if (worker == NULL || (of_handshake && one_handshake_takes(decision, worker)) ||
        (decision->asks && decision_refused_request(decision, &router->from_clients)) ||
        !is_ready(decision, worker))
        return;
    if (decision->session_id.data != NULL && pool->mode.clients == CLIENTS_STICKY &&
        !pool->mode.session_in_params) {
        if (sessions_find_scoped(&router->sessions, worker, decision->session_id) == NULL)
            new_id = decision->session_id;
        if (new_id.data != NULL && !session_left(decision))
            return;
    }
    commit(decision, worker, new_id);
}

/* --- pools with a mode --- */

/* Reads what the message refers to. False: it was refused or discarded. A reply to no request could
 * be taken for the reply to another one, whose id is the same at the worker. */
static bool read_mode(struct decision *decision, struct group *group)
{
    if (decision->is_reply) {
        decision_discard(decision, ACTION_DISCARD, "reply to no pending request");
        return false;
    }
    if (decision->message->has_result || decision->message->has_error) {
        if (decision->asks)
            decision_refuse(decision, JSONRPC_INVALID_REQUEST, "a result or error in a request");
        else
            decision_discard(decision, ACTION_DISCARD, "a result or error in a notification");
        return false;
    }
    decision->pool = group;
    subject_read(decision);
    if (group->other_era == NULL)
        return true;
    eras_choose(decision);
    return !eras_refuse(decision) && (decision->pool->fresh == NULL || !fresh_takes(decision));
}

/* The pool that the message names. NULL: there is none of that name, or not for this client. */
__attribute__((cold)) static struct group *named_group(const struct decision *decision)
{
    struct group *opened = decision->from->opened;
    struct group *named = router_pool_named(decision->router, decision->message->pool);

    /* The client may keep a pool whose name another one has now. */
    if (opened != NULL && !opened->removed && slice_equal(opened->id, decision->message->pool))
        return opened;
    return decision->from->confined && named != opened ? NULL : named;
}

/* A client that names no pool, neither here nor in its opening line, means any shared pool or,
 * where there is none, the first pool. NULL: there is no such pool. */
static struct group *group_for(const struct decision *decision)
{
    if (decision->message->pool.data != NULL)
        return named_group(decision);
    return decision->from->opened != NULL ? decision->from->opened : decision->router->usual;
}

/* A known session decides worker and mode, whatever pool its client names. */
static void to_pool(struct decision *decision)
{
    struct router *router = decision->router;
    struct group *group = group_for(decision);
    bool plain = group == NULL || group->plain;
    const struct session *session = NULL;

    if (plain) {
        session = find_session(decision);
        if (session != NULL)
            group = session->worker->pool;
        if (session != NULL && decision->from->confined && group != decision->from->opened) {
            session = NULL;
            group = NULL;
        }
    }
    if (group != NULL && !group->plain) {
        if (!read_mode(decision, group))
            return;
        group = decision->pool;
        if ((plain || group->top_sessions) && decision->message->session_id.data != NULL)
            decision->session_id = decision->message->session_id;
        if (decision->subject != ABOUT_NOTHING &&
            subject_decide(decision, &router->from_clients, &router->from_workers))
            return;
        if (group->mode.clients != CLIENTS_SHARED) {
            to_bound(decision, group);
            return;
        }
        session = find_session(decision);
        /* A session that is named in params begins with an answer, not here. */
        if (session == NULL && decision->session_id.data == decision->nested_id.data) {
            decision->session_id.data = NULL;
            if (group->placement != NULL && decision->nested_id.data != NULL &&
                place_takes(decision, group, decision->nested_id, decision->session_id))
                return;
        }
    }
    to_any(decision, group, session);
}

void to_worker(struct decision *decision)
{
    bool has_id = decision->message->id.type != ID_NONE;

    decision->asks = has_id && !decision->is_reply;
    if (decision->asks && decision->from->full) /* no answer is begun that it would not read */
        decision_hold_turns(decision, &decision->from->waiting, HELD_FOR_QUEUE);
    else if (!decision->is_reply || !has_id || !reply(decision, false))
        to_pool(decision);
    if (decision->from->was_held)
        decision_end_hold(decision);
}

/* --- long messages --- */

/* The group that a message goes to. A reply goes where the question came from. */
static const struct group *destination(const struct decision *decision)
{
    const struct group *group = group_for(decision);
    const struct request *request = NULL;
    const struct session *session;

    if (decision->is_reply)
        request = pending_by_answerer(&decision->router->from_workers, decision->from,
                                      decision->message->id, decision->id_hash);
    if (request != NULL && request->state == REQUEST_ACTIVE)
        return request->asker->pool;
    session = group == NULL || group->plain ? find_session(decision) : NULL;
    return session != NULL ? session->worker->pool : group;
}

bool to_worker_takes_long(struct decision *decision)
{
    const struct group *group = destination(decision);

    if (group == NULL || group->takes_long)
        return true;
    if (decision->from->was_held)
        decision_end_hold(decision);
    return false;
}

void to_worker_cut(struct decision *decision)
{
    if (!decision->is_reply || decision->message->id.type == ID_NONE || !reply(decision, true))
        decision_refuse_cut(decision);
    if (decision->from->was_held)
        decision_end_hold(decision);
}
