#include "build_config.h"

#include "router/subject.h"

#include <string.h>

#include "router/rewrite.h"
#include "json/string.h"

static const struct method {
    const char *name;
    enum subject subject;
    enum param_field field;
    enum session_use use;
} methods[] = {
    {"notifications/progress", ABOUT_PROGRESS, PARAM_PROGRESS_TOKEN, SESSION_USED},
    {"notifications/cancelled", ABOUT_CANCELLED, PARAM_REQUEST_ID, SESSION_USED},
    {"$/progress", ABOUT_PROGRESS, PARAM_TOKEN, SESSION_USED},
    {"$/cancelRequest", ABOUT_REQUEST, PARAM_ID, SESSION_USED},
    {"$/cancel_request", ABOUT_REQUEST, PARAM_REQUEST_ID, SESSION_USED},
    {"window/workDoneProgress/cancel", ABOUT_OWN_TOKEN, PARAM_TOKEN, SESSION_USED},
    {"session/load", ABOUT_NOTHING, PARAM_SESSION, SESSION_LOADED},
    {"session/resume", ABOUT_NOTHING, PARAM_SESSION, SESSION_LOADED},
    {"session/fork", ABOUT_NOTHING, PARAM_SESSION, SESSION_COPIED},
};

/* Most methods differ from these in their first byte. The backslash begins an escape. */
static bool may_begin_method(char c)
{
    return c == 'n' || c == '$' || c == 'w' || c == 's' || c == '\\';
}

/* NULL: no such method. */
static const struct method *method_named(struct slice raw)
{
    char decoded[sizeof "window/workDoneProgress/cancel"];
    size_t i;

    if (raw.len == 0 || !may_begin_method(raw.data[0]))
        return NULL;
    if (memchr(raw.data, '\\', raw.len) != NULL)
        raw = slice_of(decoded, json_string_decode(decoded, sizeof decoded, raw));
    for (i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (slice_equal(raw, slice_of(methods[i].name, strlen(methods[i].name))))
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

void subject_read(struct decision *decision)
{
    const struct group *pool = decision->pool;
    const struct message *message = decision->message;
    const struct method *method = NULL;
    bool from_client = decision->from->pool == NULL;

    decision->nested_id.data = NULL;
    decision->use = SESSION_USED;
    if (message->method.data != NULL)
        method = method_named(message->method);
    if (method == NULL && !pool->mode.session_in_params &&
        !((decision->asks || from_client) && pool->reads_tokens &&
          param_fields_may_have_token(message->bytes)))
        return;
    param_fields_find(&decision->fields, message->bytes, hint_of(message->fields));
    if (pool->mode.session_in_params)
        read_session(decision);
    if (method == NULL || !param_fields_has(&decision->fields, method->field))
        return;
    decision->use = method->use;
    if (method->subject == ABOUT_NOTHING)
        return;
    decision->subject = method->subject;
    decision->subject_field = &decision->fields.at[method->field];
    if (message_read_id(&decision->subject_id, message->bytes, decision->subject_field,
                        &decision->scratch) != MESSAGE_OK)
        decision->subject_id.text = slice_of("", 0); /* its type is ID_NONE: no id equals it */
}

bool subject_decide(struct decision *decision, struct pending *own, struct pending *other)
{
    bool rewrites = decision->pool->mode.rewrite_ids, stale = false;
    struct request *request;
    struct peer *to = NULL;

    if (decision->asks)
        return false;
    if (decision->subject == ABOUT_PROGRESS) {
        request = rewrite_progress(decision, other, &stale);
        if (request != NULL)
            to = request->asker;
        else if (rewrites && other == &decision->router->from_workers)
            stale = true; /* each token that a client was given is known */
    } else {
        request = rewrite_own_request(decision, own);
        if (request != NULL)
            to = request->answerer;
        else
            stale = rewrites && decision->subject != ABOUT_OWN_TOKEN;
    }
    if (request == NULL && !stale)
        return false;
    if (to == NULL || to->availability != PEER_READY) {
        decision_discard(decision, ACTION_DROP, "it names a request that is over");
    } else if (to->full) {
        decision_hold(decision, &to->waiting);
    } else {
        if (own == &decision->router->from_clients && !rewrite_notification(decision, to))
            return true;
        if (decision->subject == ABOUT_CANCELLED)
            decision->cancelled = request;
        decision_forward(decision, to);
    }
    return true;
}
