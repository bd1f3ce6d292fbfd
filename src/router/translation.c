#include "build_config.h"

#include "router/translation.h"

#include "base/error.h"
#include "format/json_string.h"

/* --- reading --- */

static const struct method {
    const char *name;
    enum subject subject;
    enum reference reference;
} methods[] = {
    {"notifications/progress", ABOUT_PROGRESS, REFERENCE_PROGRESS_TOKEN},
    {"notifications/cancelled", ABOUT_CANCELLED, REFERENCE_REQUEST_ID},
    {"$/progress", ABOUT_PROGRESS, REFERENCE_TOKEN},
    {"$/cancelRequest", ABOUT_REQUEST, REFERENCE_ID},
    {"$/cancel_request", ABOUT_REQUEST, REFERENCE_REQUEST_ID},
    {"window/workDoneProgress/cancel", ABOUT_OWN_TOKEN, REFERENCE_TOKEN},
};

/* Most methods do not begin as one of these does. */
static bool may_refer(struct slice raw)
{
    return raw.len > 0 && (raw.data[0] == 'n' || raw.data[0] == '$' || raw.data[0] == 'w' ||
                           raw.data[0] == '\\');
}

/* NULL: none of those that refer to something. */
static const struct method *method_named(struct slice raw)
{
    char decoded[sizeof "window/workDoneProgress/cancel"];
    size_t i;

    if (!may_refer(raw))
        return NULL;
    if (memchr(raw.data, '\\', raw.len) != NULL)
        raw = slice_of(decoded, json_string_decode(decoded, sizeof decoded, raw));
    for (i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (slice_equal(raw, slice_of(methods[i].name, strlen(methods[i].name))))
            return &methods[i];
    }
    return NULL;
}

static void read_session(struct share *share)
{
    const struct message *message = share->offer.message;

    share->session_id = message->session_id;
    if (share->sharing->session_in_params &&
        !references_string(&share->references, REFERENCE_SESSION, message->bytes,
                           share->scratch.session_id, sizeof share->scratch.session_id,
                           &share->session_id))
        share->session_id.data = NULL;
}

static size_t end_of(const struct scan_field *field)
{
    return field->offset + field->len + (field->type == SCAN_STRING ? 1 : 0);
}

/* Most messages have their params behind these. */
static size_t hint_of(const struct scan_fields *fields)
{
    size_t id = end_of(&fields->id), method = end_of(&fields->method);

    return id > method ? id : method;
}

void translation_read(struct share *share, bool tokens)
{
    const struct message *message = share->offer.message;
    const struct method *method = NULL;

    share->subject = ABOUT_NOTHING;
    if (message->method.data != NULL)
        method = method_named(message->method);
    if (method == NULL && !share->sharing->session_in_params &&
        !(tokens && share->offer.asks && references_may_have_token(message->bytes))) {
        share->session_id = message->session_id;
        return;
    }
    references_find(&share->references, message->bytes, hint_of(share->fields));
    read_session(share);
    if (method == NULL || !references_has(&share->references, method->reference))
        return;
    share->subject = method->subject;
    share->subject_field = &share->references.at[method->reference];
    if (message_read_id(&share->subject_id, message->bytes, share->subject_field,
                        &share->scratch) != MESSAGE_OK)
        share->subject_id.text = slice_of("", 0); /* its type is ID_NONE: it is that of nothing */
}

/* --- writing --- */

/* Replaces the value of a field in the message that is forwarded. */
static inline void add_edit(const struct share *share, const struct scan_field *field,
                            struct slice text)
{
    struct route *route = share->offer.route;
    size_t quote = field->type == SCAN_STRING ? 1 : 0;
    struct splice_edit edit = {field->offset - quote, field->len + 2 * quote, text};
    unsigned at = route->edit_count++;

    for (; at > 0 && route->edits[at - 1].offset > edit.offset; at--)
        route->edits[at] = route->edits[at - 1];
    route->edits[at] = edit;
}

/* The value becomes a number of ours. */
static void edit_number(const struct share *share, const struct scan_field *field, uint32_t number)
{
    struct route *route = share->offer.route;
    char *text = route->numbers[route->edit_count];

    add_edit(share, field, requests_number_id(text, number).text);
}

/* --- requests --- */

/* Workers whose ids are rewritten see nothing else from us, but clients may. */
static uint64_t number_hash(const struct share *share, const struct requests *requests,
                            struct message_id id, uint32_t number)
{
    return requests == &share->offer.router->from_clients ? requests_number_hash(number)
                                                          : requests_hash(requests, id);
}

static struct request *by_number(const struct share *share, const struct requests *requests,
                                 const struct peer *answerer, uint32_t number)
{
    char text[NUMBER_DIGITS];
    struct message_id id = requests_number_id(text, number);

    return requests_by_answerer(requests, answerer, id, number_hash(share, requests, id, number));
}

/* The answerer's next number that is not in use; returns its hash. */
static uint64_t take_number(const struct share *share, const struct requests *requests,
                            struct peer *answerer)
{
    struct number *number = &answerer->last_id;
    bool all_ours = requests == &share->offer.router->from_clients;

    do
        number_next(number);
    while ((number->again || !all_ours) &&
           by_number(share, requests, answerer, number->value) != NULL);
    if (all_ours)
        return requests_number_hash(number->value);
    return requests_hash(requests, (struct message_id){ID_NUMBER, {number->digits, number->len}});
}

static int record_rewritten(const struct share *share, struct requests *requests,
                            struct peer *answerer)
{
    const struct message *message = share->offer.message;
    uint64_t hash = take_number(share, requests, answerer);
    struct request *request =
        requests_add_rewritten(requests, share->offer.from, answerer, message->id,
                               share->offer.id_hash,
                               references_raw(message->bytes, &share->fields->id), hash);

    if (request == NULL)
        return STDIO_BUS_ERR;
    add_edit(share, &share->fields->id, request->answerer_id.text);
    share->offer.route->recorded = request;
    return STDIO_BUS_OK;
}

static int record(const struct share *share, struct requests *requests, struct peer *answerer)
{
    return share->sharing->rewrite_ids ? record_rewritten(share, requests, answerer)
                                       : offer_record(&share->offer, requests, answerer);
}

/* Where a request's tokens stand. */
static const enum reference token_places[][DETAILS_TOKENS] = {
    {REFERENCE_WORK_TOKEN, REFERENCE_PARTIAL_TOKEN},
    {REFERENCE_META_TOKEN, REFERENCE_PARTIAL_TOKEN},
};

#define ANY_TOKEN                                                                                  \
    (1u << REFERENCE_META_TOKEN | 1u << REFERENCE_WORK_TOKEN | 1u << REFERENCE_PARTIAL_TOKEN)

/* One that is no string and no number is none. */
static void read_token(const struct share *share, enum reference place,
                       struct details_token *token, struct message_scratch *scratch)
{
    const struct scan_field *field = &share->references.at[place];
    struct slice bytes = share->offer.message->bytes;

    token->raw.data = NULL;
    if (references_has(&share->references, place) &&
        message_read_id(&token->value, bytes, field, scratch) == MESSAGE_OK &&
        token->value.type != ID_NONE)
        token->raw = references_raw(bytes, field);
}

/* NULL: memory is out. */
static struct request_details *make_details(const struct share *share, struct requests *requests,
                                            const enum reference *places)
{
    struct details_token tokens[DETAILS_TOKENS];
    struct message_scratch scratch[DETAILS_TOKENS];
    unsigned i;

    for (i = 0; i < DETAILS_TOKENS; i++)
        read_token(share, places[i], &tokens[i], &scratch[i]);
    return details_new(requests, tokens);
}

/* A number that is too long for a token becomes one of ours too, lest it is somebody else's; what
 * is reported to it is dropped. */
static void edit_tokens(const struct share *share, const struct request *request,
                        const enum reference *places)
{
    uint32_t i;

    for (i = 0; request->rewritten && i < DETAILS_TOKENS; i++) {
        const struct scan_field *field = &share->references.at[places[i]];

        if (request->details->tokens[i].raw.data != NULL ||
            (references_has(&share->references, places[i]) && field->type == SCAN_NUMBER))
            edit_number(share, field, request->number + i);
    }
}

static void start_time(struct share *share, struct request_details *details)
{
    struct router *router = share->offer.router;
    struct router_group *pool = &router->pools[details->request->answerer->pool];

    details->deadline_ms = router->now_ms + (int64_t)pool->sharing.request_timeout_sec * 1000;
    list_remove(&details->timed);
    list_append(&pool->timed, &details->timed);
}

int translation_record(struct share *share, struct requests *requests, struct peer *answerer)
{
    const struct sharing *sharing = share->sharing;
    bool from_client = requests == &share->offer.router->from_clients;
    bool learns = from_client && sharing->session_in_params &&
                  sharing->clients != CLIENTS_EXCLUSIVE && share->session_id.data == NULL;
    bool timed = from_client && sharing->request_timeout_sec > 0;
    const enum reference *places =
        token_places[references_has(&share->references, REFERENCE_META_TOKEN)];
    struct request_details *details;

    if ((share->references.present & ANY_TOKEN) == 0 && !learns && !timed)
        return record(share, requests, answerer);
    details = make_details(share, requests, places);
    if (details == NULL)
        return STDIO_BUS_ERR;
    if (record(share, requests, answerer) != STDIO_BUS_OK) {
        details_free(requests, details);
        return STDIO_BUS_ERR;
    }
    details->learns = learns;
    details->request = share->offer.route->recorded;
    details->request->details = details;
    edit_tokens(share, details->request, places);
    if (timed)
        start_time(share, details);
    return STDIO_BUS_OK;
}

/* Which of the request's tokens this is, or DETAILS_TOKENS. */
static uint32_t token_of(const struct request *request, struct message_id token)
{
    uint32_t i;

    if (request->details == NULL)
        return DETAILS_TOKENS;
    for (i = 0; i < DETAILS_TOKENS; i++) {
        if (request->details->tokens[i].raw.data != NULL &&
            message_id_equal(request->details->tokens[i].value, token))
            break;
    }
    return i;
}

static struct request *by_own_token(const struct share *share)
{
    struct list_node *node, *following;

    list_each(&share->offer.from->asked, node, following) {
        struct request *request = list_entry(node, struct request, in_asker);
        uint32_t which = token_of(request, share->subject_id);

        if (which == DETAILS_TOKENS)
            continue;
        if (request->rewritten)
            edit_number(share, share->subject_field, request->number + which);
        return request;
    }
    return NULL;
}

struct request *translation_own_request(struct share *share, struct requests *requests)
{
    struct request *request;

    if (share->subject == ABOUT_OWN_TOKEN)
        return by_own_token(share);
    request = requests_by_asker(requests, share->offer.from, share->subject_id,
                                requests_hash(requests, share->subject_id));
    if (request != NULL && request->rewritten)
        edit_number(share, share->subject_field, request->number);
    return request;
}

/* The number that an id is, or 0 when it can be none of ours. */
static uint32_t number_of(struct message_id id)
{
    uint64_t number = 0;
    size_t i;

    if (id.type != ID_NUMBER || id.text.len > NUMBER_DIGITS)
        return 0;
    for (i = 0; i < id.text.len; i++) {
        if (id.text.data[i] < '0' || id.text.data[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(id.text.data[i] - '0');
    }
    return number <= NUMBER_LAST + 1 ? (uint32_t)number : 0;
}

/* Of a request whose tokens passed unchanged. One that was given up may never be answered, and its
 * token is used anew. */
static struct request *by_token(const struct peer *answerer, struct message_id token)
{
    struct list_node *node, *following;
    struct request *given_up = NULL;

    list_each(&answerer->answering, node, following) {
        struct request *request = list_entry(node, struct request, in_answerer);

        if (request->rewritten || token_of(request, token) == DETAILS_TOKENS)
            continue;
        if (request->state == REQUEST_ACTIVE)
            return request;
        given_up = request;
    }
    return given_up;
}

bool translation_is_ours(const struct share *share, const struct peer *answerer)
{
    uint32_t number = number_of(share->subject_id);

    return share->subject_id.type == ID_NONE ||
           (number > 1 && (number <= answerer->last_id.value + 1 || answerer->last_id.again));
}

struct request *translation_progress(struct share *share, struct requests *requests, bool *stale)
{
    struct peer *from = share->offer.from;
    uint32_t number = number_of(share->subject_id);
    struct request *request = NULL;
    struct slice raw = {NULL, 0};

    if (number > 1)
        request = by_number(share, requests, from, number & ~UINT32_C(1));
    if (request != NULL && request->rewritten) {
        if (request->details != NULL)
            raw = request->details->tokens[number & 1].raw;
        *stale = raw.data == NULL;
        if (*stale)
            return NULL;
        add_edit(share, share->subject_field, raw);
    } else {
        request = by_token(from, share->subject_id);
        *stale = request == NULL && number > 1 && translation_is_ours(share, from);
    }
    if (request != NULL && list_linked(&request->details->timed))
        start_time(share, request->details);
    return request;
}

struct request *translation_answered(const struct share *share)
{
    uint32_t number = number_of(share->offer.message->id);

    if (number == 0)
        return NULL;
    return requests_by_answerer(&share->offer.router->from_clients, share->offer.from,
                                share->offer.message->id, requests_number_hash(number));
}

void translation_answer(struct share *share, const struct request *request)
{
    if (request->rewritten)
        add_edit(share, &share->fields->id, request->raw_id);
}
