#include "build_config.h"

#include "router/subject.h"

#include <string.h>

#include "router/abilities.h"
#include "router/affinity.h"
#include "router/fresh.h"
#include "router/record.h"
#include "router/rewrite.h"
#include "json/string.h"

#define NO_FIELD ((enum param_field)PARAM_FIELDS_COUNT)

/* Without its field a message is not what its method says. */
static const struct method {
    const char *name;
    enum subject subject;
    enum param_field field;
    enum request_kind kind;
} methods[] = {
    {"notifications/progress", ABOUT_PROGRESS, PARAM_PROGRESS_TOKEN, REQUEST_ORDINARY},
    {"notifications/cancelled", ABOUT_CANCELLED, PARAM_REQUEST_ID, REQUEST_ORDINARY},
    {"notifications/message", ABOUT_LOGS, NO_FIELD, REQUEST_ORDINARY},
    {"$/progress", ABOUT_PROGRESS, PARAM_TOKEN, REQUEST_ORDINARY},
    {"$/cancelRequest", ABOUT_REQUEST, PARAM_ID, REQUEST_ORDINARY},
    {"$/cancel_request", ABOUT_REQUEST, PARAM_REQUEST_ID, REQUEST_ORDINARY},
    {"window/workDoneProgress/cancel", ABOUT_OWN_TOKEN, PARAM_TOKEN, REQUEST_ORDINARY},
    {"session/load", ABOUT_NOTHING, PARAM_SESSION, REQUEST_LOADS},
    {"session/resume", ABOUT_NOTHING, PARAM_SESSION, REQUEST_LOADS},
    {"session/fork", ABOUT_NOTHING, PARAM_SESSION, REQUEST_COPIES},
    {"session/prompt", ABOUT_NOTHING, PARAM_SESSION, REQUEST_PROMPTS},
    {"server/discover", ABOUT_NOTHING, NO_FIELD, REQUEST_PROBES},
    {"initialize", ABOUT_NOTHING, NO_FIELD, REQUEST_INITIALIZES},
    {"logging/setLevel", ABOUT_NOTHING, NO_FIELD, REQUEST_SETS_LEVEL},
    {"notifications/initialized", ABOUT_NOTHING, NO_FIELD, REQUEST_CONFIRMS},
    {"notifications/roots/list_changed", ABOUT_NOTHING, NO_FIELD, REQUEST_TELLS_ROOTS},
    {"resources/subscribe", ABOUT_NOTHING, PARAM_URI, REQUEST_WATCHES},
    {"resources/unsubscribe", ABOUT_NOTHING, PARAM_URI, REQUEST_UNWATCHES},
    {"notifications/resources/updated", ABOUT_RESOURCE, PARAM_URI, REQUEST_ORDINARY},
    {"subscriptions/listen", ABOUT_NOTHING, NO_FIELD, REQUEST_SUBSCRIBES},
    {"notifications/tasks/status", ABOUT_TASK, PARAM_TASK, REQUEST_ORDINARY},
    {"tasks/get", ABOUT_TASK, PARAM_TASK, REQUEST_ORDINARY},
    {"tasks/cancel", ABOUT_TASK, PARAM_TASK, REQUEST_ORDINARY},
    {"tasks/result", ABOUT_TASK, PARAM_TASK, REQUEST_FETCHES},
    {"exit", ABOUT_NOTHING, NO_FIELD, REQUEST_EXITS},
    {"elicitation/create", ABOUT_CAUSE, PARAM_REQUEST_ID, REQUEST_ORDINARY},
};

/* Most methods differ from these in their first bytes. The backslash begins an escape. */
static bool may_begin_method(struct slice raw)
{
    char c = raw.data[0], second = '\\';

    if (raw.len > 1)
        second = raw.data[1];
    return c == 'n' || c == '$' || c == 'w' || c == 's' || c == 'i' || c == 'l' || c == 'r' ||
           c == '\\' || (c == 't' && (second == 'a' || second == '\\')) ||
           (c == 'e' && (second == 'l' || second == 'x' || second == '\\'));
}

/* NULL: no such method. */
static const struct method *method_named(struct slice raw)
{
    char decoded[sizeof "notifications/roots/list_changed"];
    size_t i;

    if (raw.len == 0 || !may_begin_method(raw))
        return NULL;
    if (memchr(raw.data, '\\', raw.len) != NULL)
        raw = slice_of(decoded, json_string_decode(decoded, sizeof decoded, raw));
    for (i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (slice_is(raw, methods[i].name))
            return &methods[i];
    }
    return NULL;
}

static size_t end_of(const struct scan_field *field)
{
    return field->offset + field->len + (field->type == SCAN_STRING ? 1 : 0);
}

/* Most messages have their params after these. */
static size_t hint_of(const struct scan_fields *fields)
{
    size_t id = end_of(&fields->id), method = end_of(&fields->method);

    return id > method ? id : method;
}

static void read_session(struct decision *decision)
{
    if (!param_fields_string(&decision->fields, PARAM_SESSION, decision->message->bytes,
                             decision->scratch.session_id, sizeof decision->scratch.session_id,
                             &decision->nested_id))
        decision->nested_id.data = NULL;
    decision->session_id = decision->nested_id;
}

/* Whether the params of a message without one of these methods matter. */
static bool may_have_fields(const struct decision *decision, bool from_client)
{
    const struct group *pool = decision->pool;
    struct slice bytes = decision->message->bytes;

    if (pool->mode.session_in_params)
        return true;
    if (pool->mixes_clients) /* a worker's; a client's message comes to the other era first */
        return !decision->asks;
    if (!from_client && pool->reads_tasks)
        return param_fields_may_have_token(bytes);
    if (from_client && pool->other_era != NULL && param_fields_may_have_version(bytes))
        return true;
    return (decision->asks || from_client) && (pool->reads_tokens || pool->other_era != NULL) &&
           param_fields_may_have_token(bytes);
}

static void set_subject(struct decision *decision, enum subject subject, enum param_field field)
{
    decision->subject = subject;
    if (field == NO_FIELD)
        return;
    decision->subject_field = &decision->fields.at[field];
    if (message_read_id(&decision->subject_id, decision->message->bytes, decision->subject_field,
                        &decision->scratch) != MESSAGE_OK)
        decision->subject_id.text = slice_of("", 0); /* its type is ID_NONE: no id equals it */
}

/* With tools that run as tasks, and their questions and notifications. */
static void read_task(struct decision *decision, bool from_client)
{
    if (from_client && decision->asks && decision->kind == REQUEST_ORDINARY &&
        param_fields_has(&decision->fields, PARAM_NEW_TASK))
        decision->kind = REQUEST_MAKES_TASK;
    if ((decision->subject == ABOUT_NOTHING || decision->subject > ABOUT_TASK) &&
        param_fields_has(&decision->fields, PARAM_RELATED_TASK))
        set_subject(decision, ABOUT_TASK, PARAM_RELATED_TASK);
}

static void read_method(struct decision *decision, const struct method *method)
{
    if (method->field != NO_FIELD && !param_fields_has(&decision->fields, method->field))
        return;
    if (method->kind == REQUEST_EXITS) {
        decision->from->said_exit = decision->pool->mode.protocol == PROTOCOL_LSP &&
                                    !decision->asks;
        return;
    }
    if ((method->subject == ABOUT_LOGS || method->subject == ABOUT_RESOURCE) &&
        !decision->pool->mixes_clients) {
        /* Some clients of the process get it. */
        if (decision->pool->one_handshake && decision->from->pool != NULL)
            decision->subject = method->subject == ABOUT_LOGS ? ABOUT_LEVEL : ABOUT_RESOURCE;
        return;
    }
    /* A worker asks for a task of a client's. */
    if (method->subject == ABOUT_TASK &&
        (!decision->pool->reads_tasks || (decision->asks && decision->from->pool != NULL)))
        return;
    if (method->subject == ABOUT_CAUSE &&
        !(decision->asks && decision->from->pool != NULL && decision->pool->mode.session_in_params))
        return;
    decision->kind = method->kind;
    if (method->kind == REQUEST_INITIALIZES && decision->asks && decision->from->pool == NULL)
        client_program_read(decision->from->program, sizeof decision->from->program,
                            decision->message);
    if (method->subject != ABOUT_NOTHING)
        set_subject(decision, method->subject, method->field);
}

void subject_read(struct decision *decision)
{
    const struct message *message = decision->message;
    const struct method *method = NULL;
    bool from_client = decision->from->pool == NULL;

    decision->nested_id.data = decision->named.data = NULL;
    decision->kind = REQUEST_ORDINARY;
    decision->related = NULL;
    if (message->method.data != NULL)
        method = method_named(message->method);
    if (method == NULL && !may_have_fields(decision, from_client))
        return;
    param_fields_find(&decision->fields, message->bytes, hint_of(message->fields));
    if (decision->pool->mode.session_in_params)
        read_session(decision);
    if (method != NULL)
        read_method(decision, method);
    if (decision->pool->reads_tasks)
        read_task(decision, from_client);
    if (!from_client && decision->pool->mixes_clients && !decision->asks &&
        param_fields_has(&decision->fields, PARAM_SUBSCRIPTION))
        set_subject(decision, ABOUT_SUBSCRIPTION, PARAM_SUBSCRIPTION);
}

/* --- the peer at the other end --- */

/* The worker's client with this number, or NULL. */
static struct peer *client_numbered(const struct peer *worker, uint64_t number)
{
    const struct list_node *node;

    for (node = worker->bindings.head.next; node != &worker->bindings.head; node = node->next) {
        struct peer *client = list_entry(node, struct binding, in_worker)->client;

        if (client->number == number)
            return client;
    }
    return NULL;
}

/* The only client whose requests at the worker may have caused its log messages. One that was given
 * up may still run. NULL: there is none, or more than one, or it has left. */
static struct peer *client_of_logs(const struct peer *worker)
{
    const struct list_node *first = worker->logging.head.next, *node;
    uint64_t number;

    if (list_empty(&worker->logging))
        return NULL;
    number = list_entry(first, struct request_extras, logging)->logs_for;
    for (node = first->next; node != &worker->logging.head; node = node->next) {
        if (list_entry(node, struct request_extras, logging)->logs_for != number)
            return NULL;
    }
    return client_numbered(worker, number);
}

/* A request of the sender's, or a listen request that a server of MCP ends. */
static struct request *find_own(struct decision *decision, struct pending *own,
                                struct pending *other, struct peer **to)
{
    struct request *request = rewrite_own_request(decision, own);

    if (request != NULL) {
        *to = request->answerer;
    } else if (decision->subject == ABOUT_CANCELLED && decision->from->pool != NULL &&
               decision->pool->mixes_clients) {
        request = rewrite_subscription(decision, other);
        *to = request != NULL ? request->asker : NULL;
    }
    return request;
}

/* Finds the request and its other end; without them *to is NULL. False: the message is about none
 * that can be known. */
static bool find_subject(struct decision *decision, struct pending *own, struct pending *other,
                         struct request **request, struct peer **to)
{
    bool rewrites = decision->pool->mode.rewrite_ids, stale = false;

    *request = NULL;
    *to = NULL;
    switch (decision->subject) {
    case ABOUT_LOGS:
        *to = client_of_logs(decision->from);
        return true;
    case ABOUT_SUBSCRIPTION:
        if (decision->from->pool != NULL)
            fresh_note(decision);
        decision->related = *request = rewrite_subscription(decision, other);
        *to = *request != NULL ? (*request)->asker : NULL;
        return true;
    case ABOUT_PROGRESS:
        /* Each token that a client was given is known. */
        return rewrite_progress(decision, other, to, &stale) || stale ||
               (rewrites && other == &decision->router->from_workers);
    default:
        *request = find_own(decision, own, other, to);
        return *request != NULL || (rewrites && decision->subject != ABOUT_OWN_TOKEN);
    }
}

bool subject_decide(struct decision *decision, struct pending *own, struct pending *other)
{
    struct request *request;
    struct peer *to;

    if (decision->asks || decision->subject >= ABOUT_TASK ||
        !find_subject(decision, own, other, &request, &to))
        return false;
    if (to == NULL || !peer_serves(to)) {
        decision_discard(decision, ACTION_DROP,
                         decision->subject == ABOUT_LOGS
                             ? "no client, or more than one, may have caused it"
                             : "it names a request that is over");
    } else if (to->full) {
        decision_hold_turns(decision, &to->waiting, HELD_FOR_QUEUE);
    } else {
        if (own == &decision->router->from_clients && !record_notification(decision, to))
            return true;
        if (decision->subject == ABOUT_CANCELLED)
            decision->cancelled = request;
        decision_forward(decision, to);
    }
    return true;
}
