#include "build_config.h"

#include "router/rewrite.h"

#include "base/error.h"
#include "router/deadlines.h"

#define THIRD_TOKEN 2
#define UNREADABLE_TOKEN "a progress token must be a string or a number of at most 128 bytes"

/* --- writing --- */

/* Replaces the value of a field in the message that is forwarded. */
static void add_edit(struct decision *decision, const struct scan_field *field, struct slice text)
{
    size_t quote = field->type == SCAN_STRING ? 1 : 0, offset = field->offset - quote;
    struct splice_edit *edit = &decision->edits[decision->edit_count++];

    for (; edit > decision->edits && edit[-1].offset > offset; edit--)
        *edit = edit[-1];
    *edit = (struct splice_edit){offset, field->len + 2 * quote, text};
}

/* The value becomes a number of the daemon's. */
static void edit_number(struct decision *decision, const struct scan_field *field, uint32_t number)
{
    char *text = decision->numbers[decision->edit_count];

    add_edit(decision, field, pending_number_id(text, number).text);
}

/* A request has two numbers. Its third token is its first number as a string, "N#". */
static void edit_token(struct decision *decision, const struct scan_field *field, uint32_t number,
                       uint32_t which)
{
    char *text = decision->numbers[decision->edit_count];
    size_t len;

    if (which < THIRD_TOKEN) {
        edit_number(decision, field, number + which);
        return;
    }
    len = pending_number_id(text + 1, number).text.len;
    text[0] = '"';
    text[1 + len] = '#';
    text[2 + len] = '"';
    add_edit(decision, field, slice_of(text, len + 3));
}

/* --- requests --- */

/* The daemon chooses the numbers: a peer cannot make them collide. */
static inline uint64_t hash_of_number(uint32_t number)
{
    return (number >> 1) * UINT64_C(0xd6e8feb86659fd93);
}

/* A number as an id, in `text`, and its hash in this table. A worker whose ids are rewritten gets
 * numbers of the daemon's alone; a client may get others. */
static inline struct message_id id_of_number(const struct decision *decision,
                                             const struct pending *pending, uint32_t number,
                                             char text[PENDING_DIGITS], uint64_t *hash)
{
    struct message_id id;

    *hash = hash_of_number(number);
    id = pending_number_id(text, number);
    if (pending != &decision->router->from_clients)
        *hash = pending_hash(pending, id);
    return id;
}

static struct request *by_number(const struct decision *decision, const struct pending *pending,
                                 uint32_t number)
{
    char text[PENDING_DIGITS] UNINITIALIZED;
    uint64_t hash;
    struct message_id id = id_of_number(decision, pending, number, text, &hash);

    return pending_by_answerer(pending, decision->from, id, hash);
}

/* The request gets the answerer's next number that is not in use, in `text`. */
static inline void take_number(const struct decision *decision, const struct pending *pending,
                               struct peer *answerer, struct new_request *request,
                               char text[PENDING_DIGITS])
{
    bool may_be_used = pending != &decision->router->from_clients;

    do {
        if (answerer->last_number == PENDING_NUMBER_LAST) {
            answerer->numbers_reused = true;
            answerer->last_number = 0;
        }
        answerer->last_number += 2;
        request->number_id = id_of_number(decision, pending, answerer->last_number, text,
                                          &request->number_hash);
    } while ((answerer->numbers_reused || may_be_used) &&
             pending_by_answerer(pending, answerer, request->number_id, request->number_hash) !=
                 NULL);
    request->number = answerer->last_number;
}

static struct request *record(struct decision *decision, struct pending *pending,
                              struct peer *answerer)
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
    if (!decision->pool->mode.rewrite_ids)
        return pending_add(pending, decision->from, answerer, &new_request);
    field = &message->fields->id;
    new_request.raw = param_fields_raw(message->bytes, field);
    take_number(decision, pending, answerer, &new_request, text);
    request = pending_add(pending, decision->from, answerer, &new_request);
    if (request != NULL)
        add_edit(decision, field, request->answerer_id.text);
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
            edit_token(decision, &decision->fields.at[tokens->places[i]], number, i);
    }
}

bool rewrite_notification(struct decision *decision, struct peer *worker)
{
    struct tokens tokens UNINITIALIZED;

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

/* NULL: memory is out. Where ids are rewritten the answerer names tokens by their numbers. */
static struct request_extras *make_extras(const struct decision *decision, struct pending *pending,
                                          const struct peer *answerer, const struct tokens *tokens,
                                          struct slice loads)
{
    struct request_extras *extras = extras_new(&pending->free_extras, tokens->at, loads);

    if (extras != NULL &&
        extras_link(extras, &pending->by_token, decision->from,
                    decision->pool->mode.rewrite_ids ? NULL : answerer) != STDIO_BUS_OK) {
        extras_recycle(&pending->free_extras, extras);
        return NULL;
    }
    return extras;
}

struct request *rewrite_record(struct decision *decision, struct pending *pending,
                               struct peer *answerer)
{
    const struct pool_mode *mode = &decision->pool->mode;
    bool from_client = pending == &decision->router->from_clients;
    bool learns = from_client && mode->session_in_params && mode->clients != CLIENTS_EXCLUSIVE;
    bool names_session = learns &&
                         (decision->nested_id.data == NULL || decision->use == SESSION_COPIED);
    bool loads = learns && decision->nested_id.data != NULL && decision->use == SESSION_LOADED;
    bool timed = from_client && mode->request_timeout_sec > 0;
    struct request_extras *extras;
    struct request *request;
    struct tokens tokens UNINITIALIZED;

    if (((decision->fields.present & ANY_TOKEN) == 0 || !decision->pool->reads_tokens) &&
        !names_session && !loads && !timed)
        return record(decision, pending, answerer);
    if (!read_tokens(&tokens, decision)) {
        decision_refuse(decision, JSONRPC_INVALID_PARAMS, UNREADABLE_TOKEN);
        return NULL;
    }
    extras = make_extras(decision, pending, answerer, &tokens,
                         loads ? decision->nested_id : slice_of(NULL, 0));
    if (extras == NULL)
        return NULL;
    request = record(decision, pending, answerer);
    if (request == NULL) {
        extras_recycle(&pending->free_extras, extras);
        return NULL;
    }
    extras->names_session = names_session;
    extras->request = request;
    request->extras = extras;
    if (loads)
        list_append(&answerer->loading, &extras->loading);
    if (request->rewritten)
        edit_tokens(decision, &tokens, request->number);
    if (timed)
        deadlines_start(decision->router, request);
    return request;
}

/* The extras of a request with this token, as the sender knows it, or NULL. */
static struct request_extras *find_token(const struct decision *decision,
                                         const struct pending *pending, struct message_id token,
                                         uint32_t *which)
{
    return extras_find(&pending->by_token, decision->from, token, pending_hash(pending, token),
                       which);
}

static struct request *by_own_token(struct decision *decision, const struct pending *pending)
{
    uint32_t which;
    const struct request_extras *extras = find_token(decision, pending, decision->subject_id,
                                                     &which);
    struct request *request;

    if (extras == NULL)
        return NULL;
    request = extras->request;
    if (request->rewritten)
        edit_token(decision, decision->subject_field, request->number, which);
    return request;
}

struct request *rewrite_own_request(struct decision *decision, struct pending *pending)
{
    struct request *request;

    if (decision->subject == ABOUT_OWN_TOKEN)
        return by_own_token(decision, pending);
    request = pending_by_asker(pending, decision->from, decision->subject_id,
                               pending_hash(pending, decision->subject_id));
    if (request != NULL && request->rewritten)
        edit_number(decision, decision->subject_field, request->number);
    return request;
}

/* The number that a text is, or 0 when it can be none of the daemon's. */
static uint32_t number_in(struct slice text)
{
    uint64_t number = 0;
    size_t i;

    if (text.len > PENDING_DIGITS)
        return 0;
    for (i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    return number <= PENDING_NUMBER_OF_NONE + 1 ? (uint32_t)number : 0;
}

static uint32_t number_of(struct message_id id)
{
    return id.type == ID_NUMBER ? number_in(id.text) : 0;
}

/* The number of the request whose token this can be, or 0, and which one it would be. */
static uint32_t number_of_token(struct message_id token, uint32_t *which)
{
    struct slice text = token.text;
    uint32_t number;

    if (token.type == ID_STRING && text.len > 1 && text.data[text.len - 1] == '#') {
        number = number_in(slice_of(text.data, text.len - 1));
        *which = THIRD_TOKEN;
        return number % 2 == 0 ? number : 0;
    }
    number = number_of(token);
    *which = number & 1;
    return number & ~UINT32_C(1);
}

bool rewrite_may_be_number(const struct decision *decision, const struct peer *answerer)
{
    uint32_t which, number = number_of_token(decision->subject_id, &which);

    return decision->subject_id.type == ID_NONE ||
           (number > 0 && (number <= answerer->last_number || answerer->numbers_reused ||
                           number == PENDING_NUMBER_OF_NONE));
}

/* The request of which the sender was given this token, and which one it is. */
static struct request *with_token(const struct decision *decision, const struct pending *pending,
                                  struct message_id token, uint32_t *which)
{
    uint32_t number = number_of_token(token, which);
    struct request_extras *extras;
    struct request *request = NULL;

    if (number > 0)
        request = by_number(decision, pending, number);
    if (request == NULL || !request->rewritten) {
        extras = find_token(decision, pending, token, which);
        return extras != NULL ? extras->request : NULL;
    }
    if (request->extras == NULL || request->extras->tokens[*which].raw.data == NULL)
        return NULL;
    return request;
}

struct request *rewrite_progress(struct decision *decision, struct pending *pending, bool *stale)
{
    uint32_t which;
    struct request *request = with_token(decision, pending, decision->subject_id, &which);

    *stale = request == NULL && number_of_token(decision->subject_id, &which) > 0 &&
             rewrite_may_be_number(decision, decision->from);
    if (request == NULL)
        return NULL;
    if (request->rewritten)
        add_edit(decision, decision->subject_field, request->extras->tokens[which].raw);
    deadlines_renew(decision->router, request);
    return request;
}

struct request *rewrite_question_for(struct decision *decision)
{
    const struct scan_field *field = &decision->fields.at[PARAM_META_TOKEN];
    struct message_id token;
    uint32_t which;

    if (!param_fields_has(&decision->fields, PARAM_META_TOKEN) ||
        message_read_id(&token, decision->message->bytes, field, &decision->scratch) !=
            MESSAGE_OK ||
        token.type == ID_NONE || message_id_equal(token, decision->message->id))
        return NULL;
    return with_token(decision, &decision->router->from_clients, token, &which);
}

struct request *rewrite_find_answered(const struct decision *decision)
{
    uint32_t number = number_of(decision->message->id);

    if (number == 0)
        return NULL;
    return pending_by_answerer(&decision->router->from_clients, decision->from,
                               decision->message->id, hash_of_number(number));
}

void rewrite_edit_answer(struct decision *decision, const struct request *request)
{
    if (request->rewritten)
        add_edit(decision, &decision->message->fields->id, request->raw_id);
}
