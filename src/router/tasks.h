/* The tasks of MCP 2025-11-25, in pools where clients share processes: which client each is of. A
 * task begins with the answer to a client's request. Its owner may ask for the result long after
 * the task has ended, so the entry stays until the client leaves, the process ends, or the client
 * has too many. Two workers may use one task id. */
#ifndef STDIO_BUS_ROUTER_TASKS_H
#define STDIO_BUS_ROUTER_TASKS_H

#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "base/slice.h"
#include "router/pending.h"

struct task {
    struct peer *worker;
    struct peer *owner;            /* the client whose request began it */
    struct request_extras *extras; /* tokens for which its progress is reported; NULL: it has
                                    * ended, or the request had none */
    struct list_node in_worker;    /* worker->tasks */
    struct list_node in_owner;     /* owner->tasks, oldest first */
    uint64_t hash;
    size_t id_len;
    char id[];
};

struct tasks {
    struct hash_table table;
    struct siphash_key key;
    size_t max;
    struct pending *pending; /* of the requests that begin tasks */
};

void tasks_init(struct tasks *tasks, const struct siphash_key *key, size_t max,
                struct pending *pending);

/* Forgets every task. */
void tasks_free(struct tasks *tasks);

/* The task of this id at the worker, or NULL. */
struct task *tasks_find(const struct tasks *tasks, const struct peer *worker, struct slice id);

/* Adds a task that is not there yet. NULL if out of memory. */
struct task *tasks_add(struct tasks *tasks, struct slice id, struct peer *worker,
                       struct peer *owner);

/* The worker may report progress of the task for these tokens, of which `value` is what the worker
 * knows. They are copied. STDIO_BUS_ERR if out of memory. */
int task_keep_tokens(struct tasks *tasks, struct task *task,
                     const struct extras_token tokens[EXTRAS_TOKENS]);

/* The task has ended: its tokens are over. */
void task_end(struct tasks *tasks, struct task *task);

/* The same for all tasks of a worker, whose numbers begin again. */
void tasks_end_all(struct tasks *tasks, struct peer *worker);

void task_remove(struct tasks *tasks, struct task *task);

#endif
