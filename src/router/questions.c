#include "build_config.h"

#include "router/questions.h"

#include "router/abilities.h"
#include "router/affinity.h"
#include "router/from_memory.h"
#include "json/string.h"

#define TEXT_MAX 32

static const struct question {
    const char *method;
    enum ability needs; /* of the client */
    enum ability other; /* needed instead if one of these params is there, and not null */
    const char *params[2];
    const char *value; /* if it is this string; NULL: of any value */
} questions[] = {
    {"sampling/createMessage", ABILITY_SAMPLING, ABILITY_TOOLS, {"tools", "toolChoice"}, NULL},
    {"elicitation/create", ABILITY_FORM, ABILITY_URL, {"mode", NULL}, "url"},
    {"roots/list", ABILITY_ROOTS, ABILITY_ROOTS, {NULL, NULL}, NULL},
};

static const char *const names[] = {
    [ABILITY_SAMPLING] = "sampling",     [ABILITY_TOOLS] = "sampling.tools",
    [ABILITY_FORM] = "elicitation.form", [ABILITY_URL] = "elicitation.url",
    [ABILITY_ROOTS] = "roots",
};

/* The raw text of a string, without its quotes. */
static bool is_text(struct slice raw, const char *text)
{
    char decoded[TEXT_MAX];

    return slice_is(slice_of(decoded, json_string_decode(decoded, sizeof decoded, raw)), text);
}

/* NULL: it is another method. */
static const struct question *question_of(const struct decision *decision)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        if (is_text(decision->message->method, questions[i].method))
            return &questions[i];
    }
    return NULL;
}

static bool is_value(struct slice found, const char *wanted)
{
    if (wanted == NULL)
        return found.data[0] != 'n';
    return found.data[0] == '"' && is_text(slice_of(found.data + 1, found.len - 2), wanted);
}

static enum ability needed(const struct question *question, struct slice message)
{
    struct slice params, found;

    if (question->params[0] == NULL || !param_fields_member(message, "params", &params))
        return question->needs;
    for (size_t i = 0; i < 2 && question->params[i] != NULL; i++) {
        if (param_fields_member(params, question->params[i], &found) &&
            is_value(found, question->value))
            return question->other;
    }
    return question->needs;
}

bool questions_refuse(struct decision *decision, const struct peer *client)
{
    const struct question *question = question_of(decision);
    const struct binding *binding = affinity_binding(client, decision->from);
    struct handshake *handshake = decision->from->handshake;
    enum ability needs;
    unsigned has;

    from_memory_note(decision);
    if (question == NULL || binding == NULL || handshake == NULL || decision->router->strict ||
        !ability_is_set(binding->abilities, ABILITY_KNOWN))
        return false;
    has = binding->abilities;
    needs = needed(question, decision->message->bytes);
    if (needs == ABILITY_ROOTS)
        handshake->lacks_roots = !ability_is_set(has, needs);
    if (ability_is_set(has, needs))
        return false;
    decision_refuse(decision,
                    ability_is_set(has, question->needs) || ability_is_set(has, question->other)
                        ? JSONRPC_INVALID_PARAMS
                        : JSONRPC_METHOD_NOT_FOUND,
                    "the client has not announced the capability %s", names[needs]);
    return true;
}

/* A request that was given up may still run, and ask. */
static bool may_have_cause(const struct peer *worker)
{
    const struct list_node *node;

    for (node = worker->answering.head.next; node != &worker->answering.head; node = node->next) {
        if (list_entry(node, struct request, in_answerer)->state == REQUEST_ACTIVE)
            return true;
    }
    return worker->given_up > 0;
}

/* Of two clients that have roots, or of two that have none, the one that is asked. */
static const struct binding *preferred(const struct binding *earlier, const struct binding *later,
                                       uint64_t teller)
{
    bool had = ability_is_set(earlier->abilities, ABILITY_ROOTS);

    if (had &&
        (earlier->client->number == teller || !ability_is_set(later->abilities, ABILITY_ROOTS)))
        return earlier;
    return later;
}

struct peer *questions_roots_client(const struct decision *decision)
{
    const struct peer *worker = decision->from;
    const struct question *question = question_of(decision);
    const struct binding *found = NULL;
    const struct list_node *node;

    if (question == NULL || question->needs != ABILITY_ROOTS || worker->handshake == NULL ||
        may_have_cause(worker))
        return NULL;
    for (node = worker->bindings.head.next; node != &worker->bindings.head; node = node->next) {
        const struct binding *binding = list_entry(node, struct binding, in_worker);

        if (ability_is_set(binding->abilities, ABILITY_KNOWN))
            found = found == NULL ? binding : preferred(found, binding, worker->handshake->teller);
    }
    return found != NULL ? found->client : NULL;
}
