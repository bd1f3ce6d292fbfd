#include "build_config.h"

#include "process/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "router/departure.h"
#include "router/eras.h"
#include "router/greeting.h"
#include "router/handshake.h"
#include "router/shares.h"

#define FAILURE_DELAY_MAX_MS 3000 /* while a client waits */

static void forget_answers(struct pool *pool)
{
    remembered_clear(&pool->remembered);
    fresh_clear(&pool->fresh);
}

/* There is a process, and its output has not ended. */
static bool may_answer(const struct worker *worker)
{
    return !worker_finished(worker) && !worker->output_ended;
}

void pool_forget(struct pool *pool)
{
    forget_answers(pool);
    eras_forget(&pool->group);
}

void pool_change_program(struct pool *pool)
{
    struct list_node *node, *following;

    pool_forget(pool);
    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);

        worker->stream.endpoint.peer.outdated |= may_answer(worker);
    }
}

/* Where clients share no handshake, nothing of one client's is given to another. */
static void set_memory(struct pool *pool, const struct pool_mode *mode)
{
    pool->group.remembered = mode->remembers && pool->group.one_handshake ? &pool->remembered
                                                                          : NULL;
    pool->stateless.fresh =
        pool->group.remembered != NULL && pool->stateless.mixes_clients ? &pool->fresh : NULL;
    if (pool->group.remembered == NULL)
        forget_answers(pool);
}

struct pool *pool_create(const struct pool_config *config, struct router *router)
{
    struct pool *pool = calloc(1, sizeof *pool);

    if (pool == NULL)
        return NULL;
    pool->config = config;
    list_init(&pool->workers);
    group_init(&pool->group, slice_of_text(config->id), &config->mode);
    remembered_init(&pool->remembered);
    fresh_init(&pool->fresh);
    router_add_pool(router, &pool->group);
    if (config->mode.stateless != CLIENTS_SHARED) {
        struct pool_mode mode = pool_mode_of_stateless(&config->mode);

        group_init(&pool->stateless, pool->group.id, &mode);
        eras_join(&pool->group, &pool->stateless);
        router_add_pool(router, &pool->stateless);
    }
    set_memory(pool, &config->mode);
    return pool;
}

static void set_program(struct worker *worker, const struct pool_config *config)
{
    worker->pool_id = config->id;
    worker->program.argv = config->argv;
    worker->program.file = config->url != NULL ? pool_url_program() : NULL;
    worker->program.name = config->url;
    worker->program.envp = config->envp;
    worker->program.cwd = config->cwd;
    worker->program.no_new_privs = config->no_new_privs;
    worker->program.no_core = config->no_core;
    worker->program.pipes_stderr = config->logs_stderr;
    if (config->mode.protocol != PROTOCOL_UNKNOWN)
        worker->options.max_long = worker->transport->limits->max_message;
}

/* The numbers of a mode, which may change while requests are in flight. */
static void set_numbers(struct pool_mode *mode, const struct pool_mode *wanted)
{
    mode->lazy = wanted->lazy;
    mode->remembers = wanted->remembers;
    mode->idle_stop_sec = wanted->idle_stop_sec;
    mode->spare = wanted->spare;
    mode->busy_timeout_sec = wanted->busy_timeout_sec;
    mode->request_timeout_sec = wanted->request_timeout_sec;
}

void pool_adopt(struct pool *pool, const struct pool_config *config, struct setup *setup)
{
    struct pool_mode stateless = pool_mode_of_stateless(&config->mode);
    struct setup *before = pool->setup;
    struct list_node *node, *following;

    pool->setup = setup_hold(setup);
    pool->config = config;
    pool->group.id = pool->stateless.id = slice_of_text(config->id);
    set_numbers(&pool->group.mode, &config->mode);
    set_numbers(&pool->stateless.mode, &stateless);
    set_memory(pool, &config->mode);
    list_each(&pool->workers, node, following)
        set_program(list_entry(node, struct worker, link), config);
    setup_release(before);
}

struct pool *pool_of(const struct worker *worker)
{
    return list_entry(eras_claimed(worker->stream.endpoint.peer.pool), struct pool, group);
}

static void free_worker(struct worker *worker)
{
    worker_destroy(worker);
    handshake_forget(&worker->stream.endpoint.peer);
    greeting_forget(&worker->stream.endpoint.peer);
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
    worker->transport = transport;
    worker->program.nofile = nofile;
    worker->options = (struct stream_options){
        .framing = config->framing,
        .skips_bad_lines = config->skip_bad_output,
        .splits_arrays = config->mode.protocol != PROTOCOL_UNKNOWN,
    };
    set_program(worker, config);
    worker->stream.endpoint.is_worker = true;
    if (worker_init(worker, transport, host) != STDIO_BUS_OK) {
        free(worker);
        return NULL;
    }
    list_append(&pool->workers, &worker->link);
    if (config->mode.lazy)
        worker->stream.endpoint.peer.rest = PEER_ASLEEP;
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
    group_free(&pool->stateless);
    forget_answers(pool);
    setup_release(pool->setup);
    free(pool->failure_data);
    free(pool);
}

size_t pool_starts(const struct pool *pool)
{
    const struct pool_mode *mode = &pool->group.mode;

    if (mode->lazy)
        return 0;
    if (mode->frugal)
        return 1;
    return mode->clients == CLIENTS_EXCLUSIVE && mode->spare < pool->group.count
               ? mode->spare
               : pool->group.count;
}

/* --- the supply of processes --- */

static const struct peer *peer_of(const struct worker *worker)
{
    return &worker->stream.endpoint.peer;
}

/* Has a process that no client has had, or will have one. */
static bool is_spare(const struct worker *worker)
{
    return (worker->state == WORKER_STARTING || worker->state == WORKER_RUNNING ||
            (worker->state == WORKER_STOPPED && timer_started(&worker->deadline))) &&
           peer_is_fresh(peer_of(worker)) && !peer_of(worker)->is_passage;
}

/* Has a process that several clients may share, and none of them is there. */
static bool is_deserted(const struct worker *worker)
{
    return worker->state == WORKER_RUNNING && list_empty(&peer_of(worker)->bindings) &&
           peer_of(worker)->client_left;
}

/* Stopped, with no start that is planned or ruled out. */
static bool may_start(const struct worker *worker)
{
    return worker->state == WORKER_STOPPED && !timer_started(&worker->deadline) &&
           worker->after_end != WORKER_STAYS_STOPPED;
}

static bool is_dormant(const struct worker *worker)
{
    return may_start(worker) && worker->renewal != RENEWAL_LEAVES &&
           list_empty(&peer_of(worker)->bindings) && !peer_of(worker)->is_passage;
}

static bool is_called(const struct worker *worker)
{
    return may_start(worker) && peer_of(worker)->rest == PEER_CALLED;
}

static bool is_awaited(const struct pool *pool)
{
    const struct group *stateless = pool->group.other_era;

    return !list_empty(&pool->group.waiting) ||
           (stateless != NULL && !list_empty(&stateless->waiting));
}

static size_t count_spare(const struct pool *pool)
{
    const struct list_node *node;
    size_t count = 0;

    for (node = pool->workers.head.next; node != &pool->workers.head; node = node->next)
        count += is_spare(list_entry(node, struct worker, link));
    return count;
}

/* Where clients share as few processes as can be: for each client that cannot share, and for each
 * era that is not served. One process is always ready, unless the pool rests. */
static size_t count_frugal(const struct pool *pool)
{
    const struct group *group = &pool->group, *stateless = group->other_era;
    const struct list_node *node;
    bool served = group_is_served(group), others_served = group_is_served(stateless);
    bool any = false;
    size_t wanted = 0;

    for (node = group->waiting.head.next; node != &group->waiting.head; node = node->next) {
        if (list_entry(node, struct peer, hold)->alone)
            wanted++;
        else
            any = true;
    }
    wanted += any && !served;
    wanted += !list_empty(&stateless->waiting) && !others_served;
    if (wanted > 0 || served || others_served || group->failure.count > 0)
        return wanted;
    return pool_mode_rests(&group->mode) ? count_spare(pool) : 1;
}

/* How many processes that no client has had there should be. */
static size_t count_wanted(const struct pool *pool)
{
    const struct group *stateless = pool->group.other_era;
    size_t wanted = pool->group.mode.spare + list_count(&pool->group.waiting);

    if (pool->halted)
        return count_spare(pool);
    if (pool->group.mode.frugal)
        return count_frugal(pool);
    if (pool->group.mode.clients != CLIENTS_EXCLUSIVE)
        return pool_mode_rests(&pool->group.mode) && !is_awaited(pool) ? count_spare(pool)
                                                                       : pool->group.count;
    if (stateless == NULL)
        return wanted;
    if (stateless->mode.clients == CLIENTS_EXCLUSIVE)
        return wanted + list_count(&stateless->waiting);
    return wanted + !list_empty(&stateless->waiting); /* they will share it */
}

/* A late answer could show that the server serves the era. */
static bool is_refused(const struct group *era, const struct peer *worker)
{
    return era->support == ERA_REFUSED && !worker->probed;
}

/* Of the processes that clients may share and that have none, one is kept for the next client. */
static void retire_deserted(struct pool *pool, size_t wanted)
{
    struct list_node *node, *following;
    size_t kept = 0;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);
        const struct group *era = peer_of(worker)->pool;

        if (!is_deserted(worker))
            continue;
        if (wanted > 0 && (!list_empty(&era->other_era->waiting) || !list_empty(&era->waiting))) {
            wanted--;
            worker_handle(worker, WORKER_RETIRE);
        } else if (era->stateless &&
                   (is_refused(era, peer_of(worker)) || (eras_economize(era) && kept++ > 0))) {
            worker_handle(worker, WORKER_RETIRE);
        }
    }
}

/* There are too many when clients leave while they wait, or while their crashed process is to be
 * started again. */
static void keep_spares(struct pool *pool, size_t *wanted, bool stopped)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);

        if (!is_spare(worker) || (worker->state == WORKER_STOPPED) != stopped)
            continue;
        if (*wanted > 0)
            --*wanted;
        else
            worker_handle(worker, WORKER_RETIRE);
    }
}

/* How long the restart after the last crash of the worker is delayed yet, also if the worker was
 * retired meanwhile. */
static int64_t delay_of(const struct worker *worker)
{
    int64_t delay = worker->restart.last_start_ms -
                    stdio_bus_event_loop_now_ms(worker->transport->loop);

    return delay > 0 ? delay : 0;
}

bool pool_is_failing(struct pool *pool)
{
    struct start_failure *failure = &pool->group.failure;
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        const struct worker *worker = list_entry(node, struct worker, link);

        if (worker->state == WORKER_RUNNING && worker->stream.connection.frames_in > 0 &&
            worker->failures_before == failure->total)
            failure->count = 0;
    }
    return failure->count > 0;
}

/* Clients share processes of which one answers, and it is of this configuration: those that are
 * missing beside it have crashed like others, and no client waits for them. */
static bool is_served(const struct pool *pool)
{
    const struct list_node *node;

    if (pool->group.mode.clients == CLIENTS_EXCLUSIVE || pool->group.mode.frugal ||
        is_awaited(pool))
        return false;
    for (node = pool->workers.head.next; node != &pool->workers.head; node = node->next) {
        const struct worker *worker = list_entry(node, struct worker, link);

        if (worker->state == WORKER_RUNNING && worker->renewal == RENEWAL_NONE &&
            worker->stream.connection.frames_in > 0 && !worker->stream.endpoint.peer.is_passage)
            return true;
    }
    return false;
}

/* How long a client waits yet for the next process of a pool that is failing. */
static int64_t delay_of_failure(const struct pool *pool, const struct worker *worker)
{
    const struct start_failure *failure = &pool->group.failure;
    int64_t delay = failure->count > 0 ? restart_delay(failure->count - 1) : 0;

    if (delay > FAILURE_DELAY_MAX_MS)
        delay = FAILURE_DELAY_MAX_MS;
    delay += failure->at_ms - stdio_bus_event_loop_now_ms(worker->transport->loop);
    return failure->count > 0 && delay > 0 ? delay : 0;
}

static void start_after(struct worker *worker, int64_t delay_ms)
{
    if (delay_ms > 0)
        worker_start_deadline(worker, delay_ms);
    else
        worker_handle(worker, WORKER_DEADLINE);
}

/* A shared process may have crashed for a client of the stateless era: those of the other one do
 * not wait for that. */
static void start_dormant(struct pool *pool, size_t *wanted, bool delayed)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);
        int64_t delay = delay_of(worker), early = delay_of_failure(pool, worker);

        if (*wanted == 0 || !is_dormant(worker) || (delay > 0) != delayed)
            continue;
        if (!list_empty(&pool->group.waiting))
            delay = early;
        start_after(worker, delay);
        --*wanted;
    }
}

/* Clients have come that cannot share what serves, and the restart of what ended early beside it is
 * as far away as after any crash: they wait no longer than for the next start of a failing pool. */
static void hasten_restart(struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);
        int64_t early = delay_of_failure(pool, worker);

        if (worker->state != WORKER_STOPPED || !timer_started(&worker->deadline) ||
            worker->answered || early >= delay_of(worker))
            continue;
        worker_start_deadline(worker, early);
        return;
    }
}

/* A message waits for the next process of a worker that is asleep. */
static void wake_called(struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);
        int64_t delay = delay_of(worker);

        if (!is_called(worker))
            continue;
        log_process(worker, LOG_LEVEL_INFO, "a message needs it: waking it (sleeps: %llu)",
                    (unsigned long long)worker->sleeps);
        start_after(worker, delay);
    }
}

static void hurry(struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker *worker = list_entry(node, struct worker, link);

        if (worker->state == WORKER_STOPPING &&
            (peer_of(worker)->rest == PEER_CALLED || shares_press(&pool->group, peer_of(worker))))
            worker_handle(worker, WORKER_HURRY);
    }
}

size_t pool_lacks(const struct pool *pool)
{
    const struct list_node *node;
    size_t coming = shares_coming(&pool->group), waiting = 0;

    for (node = pool->group.waiting.head.next; node != &pool->group.waiting.head; node = node->next)
        waiting += !list_entry(node, struct peer, hold)->is_link;
    return waiting > coming ? waiting - coming : 0;
}

bool pool_is_supplied(const struct pool *pool)
{
    return pool->group.mode.clients == CLIENTS_EXCLUSIVE || pool->group.other_era != NULL ||
           pool->group.one_handshake;
}

void pool_supply(struct pool *pool)
{
    size_t wanted, missing;
    bool failing;

    if (!pool_is_supplied(pool) || pool->fate == POOL_REMOVED)
        return;
    pool->halted = pool->halted && !is_awaited(pool);
    wake_called(pool);
    failing = pool_is_failing(pool) && !is_served(pool);
    missing = wanted = count_wanted(pool);
    keep_spares(pool, &wanted, false);
    if (failing && wanted > 0)
        wanted = missing == wanted && is_awaited(pool);
    keep_spares(pool, &wanted, true);
    start_dormant(pool, &wanted, false);
    start_dormant(pool, &wanted, true);
    if (failing && is_awaited(pool))
        hasten_restart(pool);
    hurry(pool);
    if (pool->group.other_era != NULL)
        retire_deserted(pool, wanted);
}
