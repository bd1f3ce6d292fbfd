#include "build_config.h"

#include "monitor/lists.h"

#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/service.h"
#include "monitor/rows.h"
#include "process/pool.h"
#include "router/affinity.h"
#include "supervisor/workers.h"
#include "json/text.h"

/* A list that is being written. */
struct writing {
    struct stdio_bus *bus;
    struct json_text *to;
    size_t limit, count;
};

static void begin(struct writing *writing, const char *name)
{
    row_begin(writing->to, NULL, '{');
    row_begin(writing->to, name, '[');
}

/* Whether one more element is written; each counts. */
static bool more(struct writing *writing)
{
    return writing->count++ < writing->limit;
}

static void finish(struct writing *writing)
{
    row_end(writing->to, ']');
    row_number(writing->to, "total", (int64_t)writing->count);
    row_end(writing->to, '}');
}

static struct hold_report hold_of(const struct endpoint *endpoint)
{
    return (struct hold_report){endpoint->held_since_ms != 0, deliver_held_ms(endpoint),
                                endpoint->peer.held_for};
}

/* --- pools and workers --- */

static struct worker_report report_worker(const struct worker *worker)
{
    const struct endpoint *endpoint = &worker->stream.endpoint;
    const struct peer *peer = &endpoint->peer;
    const struct stdio_bus *bus = endpoint->bus;
    bool runs = worker->state == WORKER_RUNNING;
    struct worker_report report = {
        .number = worker->number,
        .pool = worker->pool_id,
        .state = workers_state(worker),
        .drained = peer->drained,
        .leaving = worker->renewal == RENEWAL_LEAVES,
        .pid = worker->child.pid,
        .runs_ms = runs ? stdio_bus_event_loop_now_ms(bus->loop) - endpoint->since_ms : -1,
        .clients = list_count(&peer->bindings),
        .requests = workers_answering(peer),
        .sessions = list_count(&peer->sessions),
        .queue = worker->stream.connection.output.bytes,
        .starts = worker->starts,
        .restarts = worker->restarts,
        .sleeps = worker->sleeps,
        .traffic = worker->carried,
        .hold = hold_of(endpoint),
    };

    connection_add_traffic(&worker->stream.connection, &report.traffic);
    return report;
}

static void add_worker(struct pool_report *pool, const struct worker_report *worker)
{
    pool->drained += worker->drained;
    pool->connected += worker->clients;
    pool->requests += worker->requests;
    pool->sessions += worker->sessions;
    pool->queue += worker->queue;
    pool->starts += worker->starts;
    pool->restarts += worker->restarts;
    traffic_add(&pool->traffic, &worker->traffic);
}

/* A query may have a key. */
static struct slice url_of(const char *url)
{
    return url != NULL ? slice_of(url, strcspn(url, "?")) : slice_of(NULL, 0);
}

static struct pool_report report_pool(const struct pool *pool)
{
    const struct pool_mode *mode = &pool->group.mode;
    struct list_node *node, *following;
    struct pool_report report = {
        .id = pool->group.id,
        .url = url_of(pool->config->url),
        .protocol = pool_mode_protocol_name(mode->protocol),
        .clients = pool_mode_clients_words[mode->clients],
    };

    list_each(&pool->workers, node, following) {
        const struct worker *worker = list_entry(node, struct worker, link);
        struct worker_report of_worker = report_worker(worker);

        report.instances += worker->renewal != RENEWAL_LEAVES;
        report.running += worker->state == WORKER_RUNNING;
        report.failed += worker_failed(worker);
        add_worker(&report, &of_worker);
    }
    return report;
}

void lists_pools(struct stdio_bus *bus, struct json_text *to, size_t limit)
{
    struct writing writing = {.bus = bus, .to = to, .limit = limit};
    struct list_node *node, *following;

    begin(&writing, "pools");
    list_each(&bus->pools, node, following) {
        const struct pool *pool = list_entry(node, struct pool, link);
        struct pool_report report;

        /* A departing pool without workers is not listed. */
        if ((pool->fate != POOL_SERVES && list_empty(&pool->workers)) || !more(&writing))
            continue;
        report = report_pool(pool);
        rows_pool(to, &report);
    }
    finish(&writing);
}

static void list_workers_of(struct writing *writing, const struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        struct worker_report report;

        if (!more(writing))
            continue;
        report = report_worker(list_entry(node, struct worker, link));
        rows_worker(writing->to, &report);
    }
}

void lists_workers(struct stdio_bus *bus, struct json_text *to, size_t limit)
{
    struct writing writing = {.bus = bus, .to = to, .limit = limit};
    struct list_node *node, *following;

    begin(&writing, "workers");
    list_each(&bus->pools, node, following)
        list_workers_of(&writing, list_entry(node, struct pool, link));
    finish(&writing);
}

/* --- clients, sessions, requests --- */

static const char *kind_of(const struct client *client)
{
    if (client->websocket != NULL)
        return "websocket";
    return client->http != NULL ? "http" : "stream";
}

/* What a client says of itself is more than the name of its process, which may be one that passes
 * its messages on. That name is read once. */
static const char *program_of(struct client *client)
{
    const struct peer *peer = &client->stream.endpoint.peer;

    if (client->speaks_for != NULL && client->speaks_for->program[0] != '\0')
        return client->speaks_for->program;
    if (peer->program[0] != '\0')
        return peer->program;
    if (client->program[0] == '\0')
        origin_program(&client->visitor.origin, client->program, sizeof client->program);
    return client->program;
}

static struct client_report report_client(struct client *client)
{
    const struct endpoint *endpoint = &client->stream.endpoint;
    const struct peer *peer = &endpoint->peer;
    const struct stdio_bus *bus = endpoint->bus;
    struct client_report report = {
        .number = client->visitor.number,
        .kind = kind_of(client),
        .program = program_of(client),
        .peer = client->visitor.origin.text,
        .pool = peer->opened != NULL ? peer->opened->id : slice_of(NULL, 0),
        .since_ms = stdio_bus_event_loop_now_ms(bus->loop) - endpoint->since_ms,
        .requests = list_count(&peer->asked),
        .sessions = list_count(&peer->sessions),
        .queue = client->stream.connection.output.bytes,
        .hold = hold_of(endpoint),
    };

    connection_add_traffic(&client->stream.connection, &report.traffic);
    return report;
}

static void list_client(void *user_data, const struct client_report *report)
{
    struct writing *writing = user_data;

    if (more(writing))
        rows_client(writing->to, report);
}

void lists_clients(struct stdio_bus *bus, struct json_text *to, size_t limit)
{
    struct writing writing = {.bus = bus, .to = to, .limit = limit};
    struct list_node *node, *following;

    begin(&writing, "clients");
    list_each(&bus->clients.list, node, following) {
        struct client *client = client_at(node);
        struct client_report report;

        if (client->visitor.refused)
            continue;
        report = report_client(client);
        list_client(&writing, &report);
    }
    each_service(bus, at, each_report)
        at.service->each_report(at.state, list_client, &writing);
    finish(&writing);
}

static void list_sessions_of(struct writing *writing, const struct worker *worker)
{
    struct list_node *node, *following;

    list_each(&worker->stream.endpoint.peer.sessions, node, following) {
        const struct session *session = list_entry(node, struct session, in_worker);
        struct session_report report = {.id = session_id(session)};

        if (!more(writing))
            continue;
        report.worker = endpoint_of_peer(session->worker)->context;
        report.client = endpoint_of_peer(session->owner)->context;
        rows_session(writing->to, &report);
    }
}

/* What the worker has to answer, and what it asks. */
static void list_requests_of(struct writing *writing, const struct worker *worker)
{
    const struct peer *peer = &worker->stream.endpoint.peer;
    int64_t now_ms = stdio_bus_event_loop_now_ms(writing->bus->loop);
    struct list_node *node, *following;
    struct request_report report;

    list_each(&peer->answering, node, following) {
        const struct request *request = list_entry(node, struct request, in_answerer);

        if (request->state != REQUEST_ACTIVE || !more(writing))
            continue;
        report = (struct request_report){
            request->asker_id.text, endpoint_of_peer(request->asker)->context,
            worker->stream.endpoint.context, now_ms - request->asked_ms};
        rows_pending(writing->to, &report);
    }
    list_each(&peer->asked, node, following) {
        const struct request *request = list_entry(node, struct request, in_asker);

        if (!more(writing))
            continue;
        report = (struct request_report){request->asker_id.text, worker->stream.endpoint.context,
                                         endpoint_of_peer(request->answerer)->context,
                                         now_ms - request->asked_ms};
        rows_pending(writing->to, &report);
    }
}

/* Calls fn for each worker. */
static void each_worker(struct writing *writing,
                        void (*fn)(struct writing *writing, const struct worker *worker))
{
    struct list_node *pool, *next_pool, *node, *following;

    list_each(&writing->bus->pools, pool, next_pool) {
        list_each(&list_entry(pool, struct pool, link)->workers, node, following)
            fn(writing, list_entry(node, struct worker, link));
    }
}

void lists_sessions(struct stdio_bus *bus, struct json_text *to, size_t limit)
{
    struct writing writing = {.bus = bus, .to = to, .limit = limit};

    begin(&writing, "sessions");
    each_worker(&writing, list_sessions_of);
    finish(&writing);
}

void lists_requests(struct stdio_bus *bus, struct json_text *to, size_t limit)
{
    struct writing writing = {.bus = bus, .to = to, .limit = limit};

    begin(&writing, "requests");
    each_worker(&writing, list_requests_of);
    finish(&writing);
}
