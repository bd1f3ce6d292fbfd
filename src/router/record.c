#include "build_config.h"

#include "router/record.h"

#include "base/error.h"
#include "router/affinity.h"
#include "router/deadlines.h"
#include "router/greeting.h"
#include "router/handshake.h"
#include "router/rewrite.h"

#define UNREADABLE_TOKEN "a progress token must be a string or a number of at most 128 bytes"

/* The request gets the answerer's next number that is not in use, in `text`. */
static inline void take_number(struct router *router, const struct pending *pending,
                               struct peer *answerer, struct new_request *request,
                               char text[PENDING_DIGITS])
{
    do {
        if (answerer->last_number == PENDING_NUMBER_LAST) {
            answerer->numbers_reused = true;
            if (pending == &router->from_clients)
                tasks_end_all(&router->tasks, answerer); /* they have some of the numbers */
            answerer->last_number = 0;
        }
        answerer->last_number += 2;
        request->number_id = pending_numbered(pending, text, answerer->last_number,
                                              &request->number_hash);
    } while ((answerer->numbers_reused || !pending->own_numbers) &&
             pending_by_answerer(pending, answerer, request->number_id, request->number_hash) !=
                 NULL);
    request->number = answerer->last_number;
}

bool record_renumbers(const struct decision *decision, const struct pending *pending,
                      const struct peer *answerer)
{
    const struct request *busy;

    if (decision->pool->mode.on_exit != EXIT_REPLAYS || pending == &decision->router->from_clients)
        return false;
    busy = pending_by_answerer(pending, answerer, decision->message->id, decision->id_hash);
    return busy != NULL && (busy->state == REQUEST_ABANDONED || busy->rewritten);
}

static struct request *record(struct decision *decision, struct pending *pending,
                              struct peer *answerer, bool keeps)
{
    const struct message *message = decision->message;
    const struct scan_field *field;
    char text[PENDING_DIGITS] UNINITIALIZED;
    struct new_request new_request UNINITIALIZED;
    struct request *request;

    new_request.id = message->id;
    new_request.id_hash = decision->id_hash;
    new_request.raw = message->id.text;
    new_request.number = 0;
    if (keeps)
        return pending_add(pending, decision->from, answerer, &new_request);
    field = &message->fields->id;
    new_request.raw = param_fields_raw(message->bytes, field);
    take_number(decision->router, pending, answerer, &new_request, text);
    request = pending_add(pending, decision->from, answerer, &new_request);
    if (request != NULL)
        decision_replace(decision, field, request->answerer_id.text);
    return request;
}

/* Where a request's tokens stand. */
#define NOWHERE ((enum param_field)PARAM_FIELDS_COUNT) /* no message has this field */
static const enum param_field token_places[][EXTRAS_TOKENS] = {
    {PARAM_WORK_TOKEN, PARAM_PARTIAL_TOKEN, NOWHERE},
    {PARAM_META_TOKEN, PARAM_PARTIAL_TOKEN, PARAM_WORK_TOKEN},
};

#define ANY_TOKEN (1u << PARAM_META_TOKEN | 1u << PARAM_WORK_TOKEN | 1u << PARAM_PARTIAL_TOKEN)

struct tokens {
    const enum param_field *places;
    struct extras_token at[EXTRAS_TOKENS];
    struct message_scratch scratch[EXTRAS_TOKENS];
};

/* A token is a string or a number; null is none. */
static bool read_token(struct tokens *tokens, unsigned i, const struct decision *decision)
{
    struct extras_token *token = &tokens->at[i];
    const struct scan_field *field = &decision->fields.at[tokens->places[i]];
    struct slice bytes = decision->message->bytes;

    token->raw.data = NULL;
    if (!param_fields_has(&decision->fields, tokens->places[i]))
        return true;
    if (message_read_id(&token->value, bytes, field, &tokens->scratch[i]) != MESSAGE_OK)
        return false;
    if (token->value.type != ID_NONE) {
        token->raw = param_fields_raw(bytes, field);
        token->hash = pending_hash(&decision->router->from_clients, token->value);
    }
    return true;
}

/* False: one could neither be replaced nor be found again. */
static bool read_tokens(struct tokens *tokens, const struct decision *decision)
{
    unsigned i;

    tokens->places = token_places[decision->fields.present >> PARAM_META_TOKEN & 1];
    for (i = 0; i < EXTRAS_TOKENS; i++) {
        if (!read_token(tokens, i, decision))
            return false;
    }
    return true;
}

static void edit_tokens(struct decision *decision, const struct tokens *tokens, uint32_t number)
{
    uint32_t i;

    for (i = 0; i < EXTRAS_TOKENS; i++) {
        if (tokens->at[i].raw.data != NULL)
            numbers_replace_token(decision, &decision->fields.at[tokens->places[i]], number, i);
    }
}

/* Whether the next process of a client will need its handshake. */
static bool keeps_handshake(const struct group *pool)
{
    return pool->mode.on_exit == EXIT_REPLAYS && pool->mode.clients == CLIENTS_EXCLUSIVE;
}

/* STDIO_BUS_ERR: out of memory. */
static int keep(const struct decision *decision, struct peer *worker, enum handshake_part part)
{
    struct handshake *handshake = handshake_of(worker, NULL);

    return handshake != NULL ? handshake_keep(handshake, part, decision->message) : STDIO_BUS_ERR;
}

bool record_notification(struct decision *decision, struct peer *worker)
{
    struct tokens tokens UNINITIALIZED;

    if (decision->kind == REQUEST_CONFIRMS && keeps_handshake(worker->pool))
        return keep(decision, worker, HANDSHAKE_INITIALIZED) == STDIO_BUS_OK;
    if ((decision->fields.present & ANY_TOKEN) == 0 || !worker->pool->reads_tokens)
        return true;
    if (!read_tokens(&tokens, decision)) {
        decision_discard(decision, ACTION_DISCARD, UNREADABLE_TOKEN);
        return false;
    }
    if (worker->pool->mode.rewrite_ids)
        edit_tokens(decision, &tokens, PENDING_NUMBER_OF_NONE);
    return true;
}

/* NULL: out of memory. An answerer names tokens as the asker does; NULL: by their numbers. */
static struct request_extras *make_extras(const struct decision *decision, struct pending *pending,
                                          const struct peer *answerer, const struct tokens *tokens,
                                          struct slice names)
{
    struct request_extras *extras = extras_new(&pending->free_extras, tokens->at, names);

    if (extras != NULL &&
        extras_link(extras, &pending->by_token, decision->from, answerer) != STDIO_BUS_OK) {
        extras_recycle(&pending->free_extras, extras);
        return NULL;
    }
    return extras;
}

/* What a client's request needs extras for, beside tokens. */
struct needs {
    bool names_session, loads, timed, logs, keeps;
    enum extras_kind kind;
};

/* Whether answers name sessions that begin. */
static bool learns(const struct group *pool)
{
    return pool->mode.session_in_params && pool->mode.clients != CLIENTS_EXCLUSIVE;
}

static enum extras_kind kind_of(const struct decision *decision)
{
    if (decision->pool->reads_tasks && decision->kind == REQUEST_MAKES_TASK)
        return EXTRAS_MAKES_TASK;
    if (decision->pool->reads_tasks && decision->kind == REQUEST_FETCHES)
        return EXTRAS_FETCHES;
    if (decision->kind == REQUEST_INITIALIZES && keeps_handshake(decision->pool))
        return EXTRAS_INITIALIZES;
    if (decision->kind == REQUEST_INITIALIZES && learns(decision->pool))
        return EXTRAS_GREETS;
    if (decision->kind >= REQUEST_SETS_LEVEL && decision->named.data != NULL)
        return decision->kind == REQUEST_WATCHES      ? EXTRAS_WATCHES
               : decision->kind == REQUEST_SETS_LEVEL ? EXTRAS_SETS_LEVEL
                                                      : EXTRAS_ORDINARY;
    if (decision->kind == REQUEST_PROMPTS && decision->nested_id.data != NULL)
        return EXTRAS_PROMPTS;
    if (decision->kind == REQUEST_SUBSCRIBES && decision->pool->stateless)
        return EXTRAS_SUBSCRIBES;
    if (decision->pool->fresh != NULL && decision->named.data != NULL)
        return EXTRAS_KEPT;
    return EXTRAS_ORDINARY;
}

static struct needs find_needs(const struct decision *decision)
{
    const struct group *pool = decision->pool;
    bool may_begin = learns(pool);
    bool names_one = decision->nested_id.data != NULL;
    enum extras_kind kind = kind_of(decision);

    return (struct needs){
        .names_session = may_begin && (!names_one || decision->kind == REQUEST_COPIES),
        .loads = may_begin && names_one && decision->kind == REQUEST_LOADS,
        .timed = pool->mode.request_timeout_sec > 0 && kind != EXTRAS_SUBSCRIBES,
        .logs = pool->stateless && param_fields_has(&decision->fields, PARAM_LOG_LEVEL),
        .keeps = keeps_handshake(pool) &&
                 (decision->kind == REQUEST_INITIALIZES || decision->kind == REQUEST_SETS_LEVEL),
        .kind = kind,
    };
}

static bool needs_any(const struct needs *needs)
{
    return needs->names_session || needs->loads || needs->timed || needs->logs || needs->keeps ||
           needs->kind != EXTRAS_ORDINARY;
}

/* The id for which the extras keep room. */
static struct slice id_named(const struct decision *decision, const struct needs *needs)
{
    if (needs->kind == EXTRAS_FETCHES)
        return decision->subject_id.text;
    if (needs->kind == EXTRAS_SETS_LEVEL || needs->kind == EXTRAS_WATCHES ||
        needs->kind == EXTRAS_KEPT)
        return decision->named;
    return needs->loads || needs->kind == EXTRAS_PROMPTS ? decision->nested_id : slice_of(NULL, 0);
}

/* STDIO_BUS_ERR: out of memory. */
static int watch(const struct decision *decision, struct peer *worker,
                 struct request_extras *extras)
{
    return subscriptions_ask(&worker->handshake->subscriptions,
                             &affinity_binding(decision->from, worker)->subscriber, extras->names,
                             &extras->watched);
}

/* The next process of the client would not know of it. */
static void note_watch(const struct decision *decision, const struct peer *worker)
{
    if (decision->kind == REQUEST_WATCHES && keeps_handshake(decision->pool) &&
        worker->handshake != NULL)
        worker->handshake->watches = true;
}

struct request *record_request(struct decision *decision, struct pending *pending,
                               struct peer *answerer)
{
    bool has_tokens = (decision->fields.present & ANY_TOKEN) != 0 && decision->pool->reads_tokens;
    bool keeps = !decision->pool->mode.rewrite_ids &&
                 !record_renumbers(decision, pending, answerer);
    struct needs needs = {0};
    struct request_extras *extras;
    struct request *request;
    struct tokens tokens UNINITIALIZED;

    /* What a worker asks has a kind only if its pool has a mode. */
    if (pending == &decision->router->from_clients &&
        (decision->pool->keeps_extras || decision->kind != REQUEST_ORDINARY)) {
        needs = find_needs(decision);
        note_watch(decision, answerer);
    }
    if (!has_tokens && !needs_any(&needs))
        return record(decision, pending, answerer, keeps);
    if (!read_tokens(&tokens, decision)) {
        decision_refuse(decision, JSONRPC_INVALID_PARAMS, UNREADABLE_TOKEN);
        return NULL;
    }
    if (needs.kind == EXTRAS_GREETS && greeting_decide(decision, answerer))
        return NULL;
    if (needs.keeps &&
        keep(decision, answerer,
             decision->kind == REQUEST_INITIALIZES ? HANDSHAKE_INITIALIZE : HANDSHAKE_SET_LEVEL) !=
            STDIO_BUS_OK)
        return NULL;
    extras = make_extras(decision, pending, keeps ? answerer : NULL, &tokens,
                         id_named(decision, &needs));
    if (extras == NULL)
        return NULL;
    if (needs.kind == EXTRAS_WATCHES && watch(decision, answerer, extras) != STDIO_BUS_OK) {
        extras_recycle(&pending->free_extras, extras);
        return NULL;
    }
    request = record(decision, pending, answerer, keeps);
    if (request == NULL) {
        extras_recycle(&pending->free_extras, extras);
        return NULL;
    }
    extras->names_session = needs.names_session;
    extras->kind = needs.kind;
    extras->request = request;
    request->extras = extras;
    if (needs.loads)
        list_append(&answerer->loading, &extras->loading);
    if (needs.kind == EXTRAS_SETS_LEVEL)
        list_append(&answerer->handshake->levels, &extras->shared);
    if (needs.logs) {
        extras->logs_for = decision->from->number;
        list_append(&answerer->logging, &extras->logging);
    }
    if (request->rewritten)
        edit_tokens(decision, &tokens, request->number);
    if (needs.timed)
        deadlines_start(decision->router, request);
    return request;
}

struct request *record_own(struct router *router, struct peer *worker, enum extras_kind kind)
{
    static const struct extras_token no_tokens[EXTRAS_TOKENS];
    struct pending *pending = &router->from_clients;
    struct request_extras *extras = extras_new(&pending->free_extras, no_tokens, slice_of(NULL, 0));
    struct new_request new_request = {0};
    char text[PENDING_DIGITS];
    struct request *request;

    if (extras == NULL)
        return NULL;
    take_number(router, pending, worker, &new_request, text);
    new_request.id = new_request.number_id;
    new_request.id_hash = new_request.number_hash;
    new_request.raw = new_request.number_id.text;
    request = pending_add(pending, &router->own, worker, &new_request);
    if (request == NULL) {
        extras_recycle(&pending->free_extras, extras);
        return NULL;
    }
    extras->kind = kind;
    extras->request = request;
    request->extras = extras;
    if (kind != EXTRAS_OWN) {
        request_await(request);
        return request;
    }
    request_abandon(request);
    list_append(&worker->handshake->own, &extras->shared);
    request->free_at_ms = router->now_ms + (int64_t)router->limits->abandoned_id_sec * 1000;
    router->abandoned = true;
    return request;
}
