#include "build_config.h"

#include "router/named_session.h"

#include "router/shares.h"

/* The key of the client's session of this id at the sender. */
static struct slice session_key(const struct decision *decision, const struct peer *client,
                                struct slice id, char key[SESSIONS_KEY_MAX])
{
    if (decision->pool->mode.clients == CLIENTS_SHARED)
        return sessions_client_key(key, client, id);
    return sessions_scoped_key(key, decision->from, id);
}

struct session *named_session(const struct decision *decision)
{
    const struct sessions *sessions = &decision->router->sessions;
    const struct peer *fallback = decision->pool->fallback;
    struct session *session = NULL;
    struct slice id = decision->session_id;

    if (decision->pool->mode.clients != CLIENTS_SHARED)
        return sessions_find_scoped(sessions, decision->from, id);
    if (fallback != NULL)
        session = sessions_find_client(sessions, fallback, id);
    return session != NULL ? session : sessions_find(sessions, id);
}

/* The session that a result names (ACP session/new). */
static bool read_named(struct decision *decision, struct slice *id)
{
    const struct message *message = decision->message;

    if (!message->has_result)
        return false;
    param_fields_find(&decision->fields, message->bytes, 0);
    return param_fields_string(&decision->fields, RESULT_SESSION, message->bytes,
                               decision->scratch.session_id, sizeof decision->scratch.session_id,
                               id);
}

struct peer *named_session_loader(const struct peer *worker, struct slice id)
{
    const struct list_node *node;

    for (node = worker->loading.head.prev; node != &worker->loading.head; node = node->prev) {
        const struct request_extras *extras = list_entry(node, struct request_extras, loading);

        if (slice_equal(extras->names, id))
            return extras->request->asker;
    }
    return NULL;
}

/* The asker's session of this id at the worker; it begins, if it is not known. NULL: the answer is
 * not for the asker. */
static struct session *start_session(struct decision *decision, struct request *request,
                                     struct slice id)
{
    struct sessions *sessions = &decision->router->sessions;
    char buffer[SESSIONS_KEY_MAX];
    struct slice key = session_key(decision, request->asker, id, buffer);
    struct session *session = sessions_find(sessions, key);

    if (session != NULL && session->owner == request->asker && session->worker == decision->from)
        return session;
    if (session != NULL)
        decision_fail(decision, request, "the worker named a session of another client");
    else if (!shares_left_of_sessions(decision->router, request->asker))
        decision_fail(decision, request, "too many sessions (max_sessions %zu)", sessions->max);
    else
        return sessions_add(sessions, key, decision->from, request->asker);
    return NULL;
}

/* The session that the request has loaded is the asker's from now on, whoever owned it. */
static bool take_session(struct decision *decision, struct request *request)
{
    struct slice id = request->extras->names;
    char buffer[SESSIONS_KEY_MAX];
    struct session *session = sessions_find(&decision->router->sessions,
                                            session_key(decision, request->asker, id, buffer));
    bool known = session != NULL && session->worker == decision->from;

    if (!decision->message->has_result || decision->message->has_error) {
        if (known)
            session->load_failed = true;
        return true;
    }
    if (!known) {
        session = start_session(decision, request, id);
    } else if (session->owner != request->asker) {
        decision->former_owner = session->owner;
        session_give(session, request->asker);
    }
    if (session != NULL)
        session->load_failed = false;
    return session != NULL;
}

/* ACP: a prompt's answer without a stop reason only accepts it (version 2). */
void named_session_prompted(struct decision *decision, const struct request *request)
{
    char buffer[SESSIONS_KEY_MAX];
    struct session *session =
        sessions_find(&decision->router->sessions,
                      session_key(decision, request->asker, request->extras->names, buffer));

    param_fields_find(&decision->fields, decision->message->bytes, 0);
    if (session != NULL && session->worker == decision->from && decision->message->has_result &&
        !param_fields_has(&decision->fields, RESULT_STOP))
        session->goes_on = true;
}

bool named_session_answered(struct decision *decision, struct request *request)
{
    const struct request_extras *extras = request->extras;
    struct session *session;
    struct slice id;

    if (list_linked(&extras->loading))
        return take_session(decision, request);
    if (!extras->names_session || !read_named(decision, &id))
        return true;
    session = start_session(decision, request, id);
    if (session == NULL)
        return false;
    /* To load it before it began was a guess. */
    if (named_session_loader(decision->from, id) != NULL)
        session->load_failed = true;
    return true;
}
