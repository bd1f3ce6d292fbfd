#include "build_config.h"

#include "router/tasks.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void tasks_init(struct tasks *tasks, const struct siphash_key *key, size_t max,
                struct pending *pending)
{
    memset(tasks, 0, sizeof *tasks);
    tasks->key = *key;
    tasks->max = max;
    tasks->pending = pending;
}

void tasks_free(struct tasks *tasks)
{
    size_t i;

    for (i = 0; i < tasks->table.capacity; i++) {
        struct task *task = tasks->table.slots[i].item;

        if (task != NULL)
            extras_free(task->extras);
        free(task);
    }
    hash_table_free(&tasks->table);
}

struct task_key {
    const struct peer *worker;
    struct slice id;
};

static bool task_equal(const void *item, const void *key)
{
    const struct task *task = item;
    const struct task_key *wanted = key;

    return task->worker == wanted->worker &&
           slice_equal(slice_of(task->id, task->id_len), wanted->id);
}

static uint64_t hash_of(const struct tasks *tasks, const struct peer *worker, struct slice id)
{
    return siphash(&tasks->key, id.data, id.len) ^ worker->number;
}

struct task *tasks_find(const struct tasks *tasks, const struct peer *worker, struct slice id)
{
    struct task_key key = {worker, id};

    return hash_table_find(&tasks->table, hash_of(tasks, worker, id), task_equal, &key);
}

static void count_owned(struct peer *owner, int change)
{
    owner->held[PEER_TASKS] += (size_t)change;
    if (owner->origin != NULL)
        owner->origin->held[PEER_TASKS] += (size_t)change;
}

struct task *tasks_add(struct tasks *tasks, struct slice id, struct peer *worker,
                       struct peer *owner)
{
    struct task *task = calloc(1, sizeof *task + id.len);

    if (task == NULL)
        return NULL;
    if (id.len > 0)
        memcpy(task->id, id.data, id.len);
    task->id_len = id.len;
    task->hash = hash_of(tasks, worker, id);
    if (hash_table_insert(&tasks->table, task->hash, task) != STDIO_BUS_OK) {
        free(task);
        return NULL;
    }
    task->worker = worker;
    task->owner = owner;
    list_append(&worker->tasks, &task->in_worker);
    list_append(&owner->tasks, &task->in_owner);
    count_owned(owner, 1);
    return task;
}

int task_keep_tokens(struct tasks *tasks, struct task *task,
                     const struct extras_token tokens[EXTRAS_TOKENS])
{
    struct pending *pending = tasks->pending;
    struct request_extras *extras = extras_new(&pending->free_extras, tokens, slice_of(NULL, 0));

    if (extras == NULL)
        return STDIO_BUS_ERR;
    if (extras_link(extras, &pending->by_token, NULL, task->worker) != STDIO_BUS_OK) {
        extras_recycle(&pending->free_extras, extras);
        return STDIO_BUS_ERR;
    }
    extras->task = task;
    task->extras = extras;
    return STDIO_BUS_OK;
}

void task_end(struct tasks *tasks, struct task *task)
{
    if (task->extras != NULL)
        extras_recycle(&tasks->pending->free_extras, task->extras);
    task->extras = NULL;
}

void tasks_end_all(struct tasks *tasks, struct peer *worker)
{
    struct list_node *node, *following;

    list_each(&worker->tasks, node, following)
        task_end(tasks, list_entry(node, struct task, in_worker));
}

void task_remove(struct tasks *tasks, struct task *task)
{
    task_end(tasks, task);
    hash_table_remove(&tasks->table, task->hash, task);
    list_remove(&task->in_worker);
    list_remove(&task->in_owner);
    count_owned(task->owner, -1);
    free(task);
}
