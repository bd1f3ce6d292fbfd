#include "build_config.h"

#include "router/task_messages.h"

#include "base/error.h"
#include "router/rewrite.h"
#include "router/shares.h"

/* --- answers --- */

/* The progress of the task is reported for the tokens of the request. They stay numbers of it: of
 * those that would come again before the worker has used all of them again, none is kept. */
static int keep_tokens(struct tasks *tasks, struct task *task, const struct request *request)
{
    struct extras_token tokens[EXTRAS_TOKENS];
    char text[EXTRAS_TOKENS][NUMBERS_TOKEN_MAX];
    bool any = false;
    uint32_t i;

    if (task->extras != NULL || (request->rewritten && request->number > task->worker->last_number))
        return STDIO_BUS_OK;
    for (i = 0; i < EXTRAS_TOKENS; i++) {
        tokens[i] = request->extras->tokens[i];
        if (tokens[i].raw.data == NULL)
            continue;
        any = true;
        if (request->rewritten) {
            tokens[i].value = numbers_token(text[i], request->number, i);
            tokens[i].hash = pending_hash(tasks->pending, tokens[i].value);
        }
    }
    return any ? task_keep_tokens(tasks, task, tokens) : STDIO_BUS_OK;
}

/* A new task of the asker's, in place of the asker's oldest one if there are too many. */
static struct task *add_task(struct decision *decision, struct slice id, struct peer *owner)
{
    struct tasks *tasks = &decision->router->tasks;

    if (!shares_left_of_tasks(decision->router, owner))
        task_remove(tasks, list_entry(owner->tasks.head.next, struct task, in_owner));
    return tasks_add(tasks, id, decision->from, owner);
}

bool task_messages_begin(struct decision *decision, struct request *request)
{
    struct tasks *tasks = &decision->router->tasks;
    const struct scan_field *field = &decision->fields.at[RESULT_TASK];
    struct message_id id;
    struct task *task;

    param_fields_find(&decision->fields, decision->message->bytes, 0);
    if (!param_fields_has(&decision->fields, RESULT_TASK) || field->type != SCAN_STRING ||
        message_read_id(&id, decision->message->bytes, field, &decision->scratch) != MESSAGE_OK)
        return true;
    task = tasks_find(tasks, decision->from, id.text);
    if (task == NULL)
        task = add_task(decision, id.text, request->asker);
    if (task == NULL)
        return false;
    if (task->owner != request->asker) {
        decision_fail(decision, request, "the worker named a task of another client");
        return false;
    }
    return keep_tokens(tasks, task, request) == STDIO_BUS_OK;
}

void task_messages_fetched(const struct decision *decision, const struct request *request)
{
    struct tasks *tasks = &decision->router->tasks;
    struct task *task = tasks_find(tasks, decision->from, request->extras->names);

    if (task != NULL)
        task_end(tasks, task);
}

/* --- requests and notifications --- */

static struct task *find_named(const struct decision *decision, const struct peer *worker)
{
    if (decision->subject_id.type != ID_STRING)
        return NULL;
    return tasks_find(&decision->router->tasks, worker, decision->subject_id.text);
}

/* Clients have tasks too, for questions of workers. The router does not know these: a notification
 * about one, or a request on its behalf, names no task that is known. */
bool task_messages_kept_back(struct decision *decision, const struct peer *worker)
{
    const struct group *pool = worker->pool;
    bool may_be_own = !decision->asks ||
                      decision->subject_field == &decision->fields.at[PARAM_RELATED_TASK];
    const struct task *task;

    if (!pool->reads_tasks || pool->mode.clients == CLIENTS_EXCLUSIVE)
        return false;
    task = find_named(decision, worker);
    if (task != NULL ? task->owner == decision->from : may_be_own)
        return false;
    if (decision->asks)
        decision_refuse(decision, JSONRPC_INVALID_PARAMS, "unknown task");
    else
        decision_discard(decision, ACTION_DROP, "it names a task of another client");
    return true;
}

struct peer *task_messages_owner(struct decision *decision)
{
    const struct task *task = find_named(decision, decision->from);

    if (task != NULL)
        return task->owner;
    if (decision->asks)
        decision_refuse(decision, JSONRPC_SERVER_ERROR, "unroutable: no such task");
    else
        decision_discard(decision, ACTION_DROP, "it names a task that is not known");
    return NULL;
}

static bool is_final(struct slice status)
{
    return slice_is(status, "completed") || slice_is(status, "failed") ||
           slice_is(status, "cancelled");
}

void task_messages_status(const struct decision *decision)
{
    struct task *task = find_named(decision, decision->from);
    char buffer[sizeof "cancelled"];
    struct slice status;

    if (task != NULL && decision->subject_field == &decision->fields.at[PARAM_TASK] &&
        param_fields_string(&decision->fields, PARAM_STATUS, decision->message->bytes, buffer,
                            sizeof buffer, &status) &&
        is_final(status))
        task_end(&decision->router->tasks, task);
}
