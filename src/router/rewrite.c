#include "build_config.h"

#include "router/rewrite.h"

#include "router/deadlines.h"

static struct request *by_number(const struct decision *decision, const struct pending *pending,
                                 uint32_t number)
{
    char text[PENDING_DIGITS] UNINITIALIZED;

    return pending_by_number(pending, decision->from, pending_number_id(text, number), number);
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
        numbers_replace_token(decision, decision->subject_field, request->number, which);
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
        numbers_replace_id(decision, decision->subject_field, request->number);
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
        *which = NUMBERS_THIRD_TOKEN;
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

/* The extras of the request or task of which the sender was given this token, and which one it is.
 * Of a task whose ids are rewritten the number is kept as a token. */
static struct request_extras *with_token(const struct decision *decision,
                                         const struct pending *pending, struct message_id token,
                                         uint32_t *which)
{
    uint32_t number = number_of_token(token, which);
    struct request *request = NULL;

    if (number > 0)
        request = by_number(decision, pending, number);
    if (request == NULL || !request->rewritten)
        return find_token(decision, pending, token, which);
    if (request->extras == NULL || request->extras->tokens[*which].raw.data == NULL)
        return NULL;
    return request->extras;
}

static struct peer *asker_of(const struct request_extras *extras)
{
    return extras->task != NULL ? extras->task->owner : extras->request->asker;
}

static bool is_rewritten(const struct request_extras *extras)
{
    return extras->task != NULL ? extras->task->worker->pool->mode.rewrite_ids
                                : extras->request->rewritten;
}

bool rewrite_progress(struct decision *decision, struct pending *pending, struct peer **to,
                      bool *stale)
{
    uint32_t which;
    const struct request_extras *extras = with_token(decision, pending, decision->subject_id,
                                                     &which);

    *stale = extras == NULL && decision->pool->mode.rewrite_ids &&
             number_of_token(decision->subject_id, &which) > 0 &&
             rewrite_may_be_number(decision, decision->from);
    if (extras == NULL)
        return false;
    *to = asker_of(extras);
    decision->related = extras->request;
    if (is_rewritten(extras))
        decision_replace(decision, decision->subject_field, extras->tokens[which].raw);
    if (extras->request != NULL)
        deadlines_renew(decision->router, extras->request);
    return true;
}

/* The request that the sender has to answer and that the subject names. NULL: none. */
static struct request *find_answering(const struct decision *decision,
                                      const struct pending *pending)
{
    struct message_id id = decision->subject_id;

    if (decision->pool->mode.rewrite_ids)
        return by_number(decision, pending, number_of(id));
    return pending_by_answerer(pending, decision->from, id, pending_hash(pending, id));
}

struct request *rewrite_subscription(struct decision *decision, struct pending *pending)
{
    struct request *request = find_answering(decision, pending);

    if (request == NULL || request->extras == NULL || request->extras->kind != EXTRAS_SUBSCRIBES)
        return NULL;
    if (request->rewritten)
        decision_replace(decision, decision->subject_field, request->raw_id);
    return request;
}

bool rewrite_question_for(struct decision *decision, struct peer **to)
{
    const struct request_extras *extras;
    const struct scan_field *field = &decision->fields.at[PARAM_META_TOKEN];
    struct message_id token;
    uint32_t which;

    if (!param_fields_has(&decision->fields, PARAM_META_TOKEN) ||
        message_read_id(&token, decision->message->bytes, field, &decision->scratch) !=
            MESSAGE_OK ||
        token.type == ID_NONE || message_id_equal(token, decision->message->id))
        return false;
    extras = with_token(decision, &decision->router->from_clients, token, &which);
    if (extras == NULL)
        return false;
    *to = asker_of(extras);
    decision->related = extras->request;
    return true;
}

bool rewrite_cause(struct decision *decision, struct peer **to)
{
    const struct request *request;

    *to = NULL;
    if (decision->subject_id.type == ID_NONE)
        return false;
    request = find_answering(decision, &decision->router->from_clients);
    if (request == NULL)
        return decision->pool->mode.rewrite_ids;
    if (request->state != REQUEST_ACTIVE)
        return true;
    *to = request->asker;
    decision->related = request;
    if (request->rewritten)
        decision_replace(decision, decision->subject_field, request->raw_id);
    return true;
}

struct request *rewrite_find_answered(const struct decision *decision)
{
    uint32_t number = number_of(decision->message->id);

    if (number == 0)
        return NULL;
    return pending_by_number(&decision->router->from_clients, decision->from, decision->message->id,
                             number);
}

void rewrite_edit_answer(struct decision *decision, const struct request *request)
{
    if (request->rewritten)
        decision_replace(decision, &decision->message->fields->id, request->raw_id);
}

void rewrite_edit_subscription(struct decision *decision, const struct request *request)
{
    if (!request->rewritten)
        return;
    param_fields_find(&decision->fields, decision->message->bytes, 0);
    if (param_fields_has(&decision->fields, RESULT_SUBSCRIPTION))
        decision_replace(decision, &decision->fields.at[RESULT_SUBSCRIPTION], request->raw_id);
}

/* --- numbers --- */

void numbers_replace_id(struct decision *decision, const struct scan_field *field, uint32_t number)
{
    char *text = decision->numbers[decision->edit_count];

    decision_replace(decision, field, pending_number_id(text, number).text);
}

struct message_id numbers_token(char text[NUMBERS_TOKEN_MAX], uint32_t number, uint32_t which)
{
    struct message_id token;

    if (which < NUMBERS_THIRD_TOKEN)
        return pending_number_id(text, number + which);
    token = pending_number_id(text, number);
    text[PENDING_DIGITS] = '#';
    token.text.len++;
    token.type = ID_STRING;
    return token;
}

void numbers_replace_token(struct decision *decision, const struct scan_field *field,
                           uint32_t number, uint32_t which)
{
    char *start = decision->numbers[decision->edit_count], *digits = start + 1;
    struct slice text;

    if (which < NUMBERS_THIRD_TOKEN) {
        numbers_replace_id(decision, field, number + which);
        return;
    }
    text = numbers_token(digits, number, which).text;
    start[PENDING_DIGITS + 1 - text.len] = '"';
    digits[PENDING_DIGITS + 1] = '"';
    decision_replace(decision, field, slice_of(text.data - 1, text.len + 2));
}
