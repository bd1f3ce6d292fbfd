#include "build_config.h"

#include "process/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "router/departure.h"
#include "router/shares.h"

struct pool *pool_create(const struct pool_config *config, struct router *router)
{
    struct pool *pool = calloc(1, sizeof *pool);

    if (pool == NULL)
        return NULL;
    pool->config = config;
    list_init(&pool->workers);
    group_init(&pool->group, slice_of(config->id, strlen(config->id)), &config->mode);
    router_add_pool(router, &pool->group);
    return pool;
}

static void free_worker(struct worker *worker)
{
    worker_destroy(worker);
    list_remove(&worker->link);
    free(worker);
}

struct worker *pool_add_worker(struct pool *pool, unsigned number, const struct rlimit *nofile,
                               struct router *router, struct transport *transport,
                               const struct worker_host *host, void *bus)
{
    const struct pool_config *config = pool->config;
    struct worker *worker = calloc(1, sizeof *worker);

    if (worker == NULL)
        return NULL;
    worker->stream.endpoint.bus = bus;
    worker->number = number;
    worker->pool_id = config->id;
    worker->program = (struct program){
        .argv = config->argv,
        .envp = config->envp,
        .cwd = config->cwd,
        .nofile = nofile,
        .no_new_privs = config->no_new_privs,
        .no_core = config->no_core,
    };
    worker->options = (struct stream_options){
        .framing = config->framing,
        .skips_bad_lines = config->skip_bad_output,
        .splits_arrays = config->mode.protocol != PROTOCOL_UNKNOWN,
    };
    worker->stream.endpoint.is_worker = true;
    if (worker_init(worker, transport, host) != STDIO_BUS_OK) {
        free(worker);
        return NULL;
    }
    list_append(&pool->workers, &worker->link);
    if (router_add_worker(router, &worker->stream.endpoint.peer, &pool->group) == STDIO_BUS_OK)
        return worker;
    free_worker(worker);
    return NULL;
}

void pool_remove_worker(struct worker *worker, struct router *router)
{
    departure_remove_worker(router, &worker->stream.endpoint.peer);
    free_worker(worker);
}

void pool_destroy(struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following)
        free_worker(list_entry(node, struct worker, link));
    group_free(&pool->group);
    free(pool);
}

size_t pool_starts(const struct pool *pool)
{
    const struct pool_mode *mode = &pool->group.mode;

    return mode->clients == CLIENTS_EXCLUSIVE && mode->spare < pool->group.count
               ? mode->spare
               : pool->group.count;
}

/* Has a process, or will have one, and no client. */
static bool is_idle(const struct worker *worker)
{
    return (worker->state == WORKER_STARTING || worker->state == WORKER_RUNNING ||
            (worker->state == WORKER_STOPPED && timer_started(&worker->deadline))) &&
           list_empty(&worker->stream.endpoint.peer.bindings);
}

static bool is_dormant(const struct worker *worker)
{
    return worker->state == WORKER_STOPPED && !timer_started(&worker->deadline) &&
           worker->after_end != WORKER_STAYS_STOPPED;
}

void pool_supply(struct pool *pool)
{
    size_t wanted = pool->group.mode.spare; /* processes without a client */
    bool presses;
    struct list_node *node, *following;

    if (pool->group.mode.clients != CLIENTS_EXCLUSIVE)
        return;
    presses = shares_press(&pool->group);
    list_each(&pool->group.waiting, node, following)
        wanted++;
    /* There are too many when clients leave while they wait, or while their crashed process is to
     * be started again. */
    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);

        if (!is_idle(worker))
            continue;
        if (wanted > 0)
            wanted--;
        else
            worker_handle(worker, WORKER_RETIRE);
    }
    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);

        if (wanted > 0 && is_dormant(worker)) {
            worker_handle(worker, WORKER_DEADLINE);
            wanted--;
        } else if (presses) {
            worker_handle(worker, WORKER_HURRY);
        }
    }
}
