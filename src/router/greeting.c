#include "build_config.h"

#include "router/greeting.h"

#include "base/error.h"
#include "router/handshake.h"

/* The first version whose agents take one initialize. */
#define STRICT_VERSION 2

/* An initialize that the process has not answered. */
static struct request *find_unanswered(const struct peer *worker)
{
    struct list_node *node, *following;

    list_each(&worker->answering, node, following) {
        struct request *request = list_entry(node, struct request, in_answerer);

        if (request->extras != NULL && request->extras->kind == EXTRAS_GREETS)
            return request;
    }
    return NULL;
}

bool greeting_decide(struct decision *decision, struct peer *worker)
{
    struct request *first;

    if (worker->greeting.line.data == NULL) {
        first = worker->greets_each ? NULL : find_unanswered(worker);
        if (first != NULL)
            decision_hold_turns(decision, &first->waiters, HELD_FOR_ANSWER);
        return first != NULL;
    }
    decision_answer(decision, worker->greeting.line, worker->greeting.at);
    return true;
}

static bool is_strict(struct decision *decision)
{
    int64_t version;

    param_fields_find(&decision->fields, decision->message->bytes, 0);
    return param_fields_integer(&decision->fields, RESULT_VERSION, decision->message->bytes,
                                &version) &&
           version >= STRICT_VERSION;
}

int greeting_note(struct decision *decision, const struct request *request)
{
    const struct message *answer = decision->message;
    struct peer *worker = decision->from;

    if (request->extras == NULL || request->extras->kind != EXTRAS_GREETS ||
        worker->greeting.line.data != NULL || !answer->has_result || answer->has_error)
        return STDIO_BUS_OK;
    if (answer->bytes.len > GREETING_MAX || !is_strict(decision)) {
        worker->greets_each = true;
        return STDIO_BUS_OK;
    }
    return kept_message_copy(&worker->greeting, answer);
}

int greeting_answered(struct decision *decision, const struct request *request)
{
    if (request->extras->kind == EXTRAS_INITIALIZES)
        return handshake_note_answer(decision->from->handshake, decision->message);
    return greeting_note(decision, request);
}

void greeting_forget(struct peer *worker)
{
    kept_message_free(&worker->greeting);
    worker->greets_each = false;
}
