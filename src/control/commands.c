#include "build_config.h"

#include "control/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/reports.h"
#include "bus/service.h"
#include "control/request.h"
#include "monitor/lists.h"
#include "monitor/metrics.h"
#include "monitor/status.h"
#include "process/pool.h"
#include "router/waiting.h"
#include "supervisor/workers.h"
#include "json/message.h"
#include "json/text.h"

/* A request that is carried out: it writes its result, or fails. */
struct command {
    struct control_client *client;
    struct stdio_bus *bus;
    const struct control_request *request;
    struct json_text result;
    int code;
    const char *problem; /* NULL: it has not failed */
    bool waits;          /* the reply comes later */
};

typedef void command_fn(struct command *command);

static void fail(struct command *command, int code, const char *problem)
{
    command->code = code;
    command->problem = problem;
}

static void done(struct command *command, const char *key, size_t count)
{
    row_begin(&command->result, NULL, '{');
    row_number(&command->result, key, (int64_t)count);
    row_end(&command->result, '}');
}

/* --- what there is --- */

static void run_status(struct command *command)
{
    status_write(command->bus, &command->result);
}

static void run_pools(struct command *command)
{
    lists_pools(command->bus, &command->result, command->request->limit);
}

static void run_workers(struct command *command)
{
    lists_workers(command->bus, &command->result, command->request->limit);
}

static void run_clients(struct command *command)
{
    lists_clients(command->bus, &command->result, command->request->limit);
}

static void run_sessions(struct command *command)
{
    lists_sessions(command->bus, &command->result, command->request->limit);
}

static void run_requests(struct command *command)
{
    lists_requests(command->bus, &command->result, command->request->limit);
}

/* What the page shows; it is for programs that show it elsewhere. */
static void run_figures(struct command *command)
{
    bool known = false;

    each_service(command->bus, at, figures) {
        struct slice figures = at.service->figures(at.state);

        known = true;
        json_text_add(&command->result, figures);
        if (figures.data == NULL)
            fail(command, CONTROL_NO_MEMORY, "out of memory");
    }
    if (!known)
        fail(command, JSONRPC_SERVER_ERROR, "this daemon was built without that");
}

static void run_nodes(struct command *command)
{
    bool known = false;

    each_service(command->bus, at, list_nodes) {
        at.service->list_nodes(at.state, &command->result, command->request->limit);
        known = true;
    }
    if (!known)
        fail(command, JSONRPC_SERVER_ERROR, "this daemon has no \"nats\"");
}

static void run_metrics(struct command *command)
{
    struct json_text text = {.data = NULL};

    metrics_of_bus(command->bus, &text);
    row_slice(&command->result, NULL, slice_of(text.failed ? NULL : text.data, text.len));
    if (text.failed)
        fail(command, CONTROL_NO_MEMORY, "out of memory");
    json_text_free(&text);
}

static void run_events(struct command *command)
{
    struct control_client *client = command->client;

    client->control->watcher_count += !client->watches;
    client->watches = true;
    done(command, "watchers", client->control->watcher_count);
}

/* --- workers --- */

/* NULL: the worker's process is to end, or was started. */
static const char *restart(struct stdio_bus *bus, struct worker *worker)
{
    bool is_planned = timer_started(&worker->deadline);

    switch (worker->state) {
    case WORKER_STARTING:
    case WORKER_RUNNING:
        worker->restart_asked = true;
        worker_handle(worker, WORKER_RETIRE);
        return NULL;
    case WORKER_STOPPING:
        return "the worker is ending already";
    case WORKER_STOPPED:
        if (!is_planned)
            return "the worker does not run: it is started when a client needs it";
        break;
    case WORKER_FAILED:
        worker_revive(worker);
        break;
    }
    stdio_bus_event_loop_stop_timer(bus->loop, &worker->deadline);
    worker_handle(worker, WORKER_DEADLINE);
    return NULL;
}

static void run_restart(struct command *command)
{
    struct stdio_bus *bus = command->bus;
    struct worker *worker = workers_numbered(bus, command->request->worker);

    if (worker == NULL) {
        fail(command, JSONRPC_INVALID_PARAMS, "no such worker");
        return;
    }
    if (bus->phase >= BUS_PHASE_DRAINING) {
        fail(command, JSONRPC_SERVER_ERROR, "the daemon is shutting down");
        return;
    }
    log_info(bus->log, worker->stream.endpoint.context, "restart, asked for by %s",
             command->client->context);
    command->problem = restart(bus, worker);
    command->code = JSONRPC_SERVER_ERROR;
    done(command, "worker", worker->number);
}

static void set_drained(struct command *command, struct worker *worker, bool drained)
{
    struct stdio_bus *bus = command->bus;
    struct endpoint *endpoint = &worker->stream.endpoint;

    if (endpoint->peer.drained == drained || endpoint->peer.is_passage ||
        worker->renewal == RENEWAL_LEAVES)
        return;
    log_info(bus->log, endpoint->context, "%s, asked for by %s",
             drained ? "drained" : "no longer drained", command->client->context);
    waiting_set_drained(&bus->router, &endpoint->peer, drained);
    reports_send(bus, drained ? "drained" : "resumed", endpoint->context, worker->pool_id, NULL);
}

/* Without a pool: of all pools. Returns how many workers it has; 0: there is no such pool. */
static size_t set_pool_drained(struct command *command, bool drained)
{
    const struct slice id = command->request->pool;
    struct list_node *pool, *next_pool, *node, *following;
    size_t count = 0;

    list_each(&command->bus->pools, pool, next_pool) {
        const struct pool *candidate = list_entry(pool, struct pool, link);

        if (id.data != NULL && !slice_equal(candidate->group.id, id))
            continue;
        list_each(&candidate->workers, node, following) {
            set_drained(command, list_entry(node, struct worker, link), drained);
            count++;
        }
    }
    return count;
}

static void drain_or_resume(struct command *command, bool drained)
{
    const struct control_request *request = command->request;
    struct worker *worker = workers_numbered(command->bus, request->worker);
    size_t count = 1;

    if (worker != NULL)
        set_drained(command, worker, drained);
    else if (request->worker == 0 && (request->pool.data != NULL || !drained))
        count = set_pool_drained(command, drained);
    else
        count = 0;
    if (count == 0)
        fail(command, JSONRPC_INVALID_PARAMS, "no such worker or pool");
    done(command, "workers", count);
}

static void run_drain(struct command *command)
{
    drain_or_resume(command, true);
}

static void run_resume(struct command *command)
{
    drain_or_resume(command, false);
}

/* --- clients, the log --- */

static struct client *find_client(const struct stdio_bus *bus, int64_t number)
{
    struct list_node *node, *following;

    list_each(&bus->clients.list, node, following) {
        struct client *client = client_at(node);

        if (client->visitor.number == number)
            return client;
    }
    return NULL;
}

/* Whether the number is that of a client of a service, which ends now. */
static bool end_session(struct command *command)
{
    const int64_t number = command->request->client;

    each_service(command->bus, at, disconnect) {
        if (at.service->disconnect(at.state, number, command->client->context)) {
            done(command, "client", (size_t)number);
            return true;
        }
    }
    return false;
}

/* Orderly, the first time. */
static void run_disconnect(struct command *command)
{
    static const struct message_id no_id;
    struct client *client = find_client(command->bus, command->request->client);
    struct endpoint *endpoint;

    if (client == NULL && end_session(command))
        return;
    if (client == NULL || client->on_stdio) {
        fail(command, JSONRPC_INVALID_PARAMS,
             client == NULL ? "no such client" : "the client on stdin stays");
        return;
    }
    endpoint = &client->stream.endpoint;
    log_info(command->bus->log, endpoint->context, "disconnection, asked for by %s",
             command->client->context);
    done(command, "client", client->visitor.number);
    if (client->stream.connection.output_state != OUTPUT_OPEN) {
        clients_remove(client, "disconnected by the operator");
        return;
    }
    deliver_error(endpoint, no_id, JSONRPC_SERVER_ERROR, "disconnected by the operator");
    endpoint->ops->close(endpoint);
}

static void run_log(struct command *command)
{
    const struct slice name = command->request->level;
    char text[8];

    snprintf(text, sizeof text, "%.*s", (int)name.len, name.data != NULL ? name.data : "");
    if (!log_level_from_name(text, &command->bus->log->level)) {
        fail(command, JSONRPC_INVALID_PARAMS, "level must be debug, info, warn or error");
        return;
    }
    row_begin(&command->result, NULL, '{');
    row_string(&command->result, "level", text);
    row_end(&command->result, '}');
}

/* The reply is to the request whose reload it was: nothing of it is left to be awaited but workers
 * that end when they are free. */
static void run_reload(struct command *command)
{
    struct stdio_bus *bus = command->bus;
    const char *problem = services_run(bus, "reload", command->client->context);

    if (problem != NULL)
        fail(command, JSONRPC_SERVER_ERROR, problem);
    else
        done(command, "pools", bus->options.config->pool_count);
}

/* The reply comes when the upgrade is over, from the next program or from this one. */
static void run_upgrade(struct command *command)
{
    struct control_client *client = command->client;
    struct slice id = command->request->id;

    if (client->awaits_upgrade || id.len >= sizeof client->upgrade_id) {
        fail(command, JSONRPC_INVALID_REQUEST,
             client->awaits_upgrade ? "an upgrade is under way" : "the id is too long");
        return;
    }
    log_info(command->bus->log, "", "upgrade, asked for by %s", client->context);
    fail(command, JSONRPC_SERVER_ERROR, services_run(command->bus, "upgrade", client->context));
    if (command->problem != NULL)
        return;
    client->awaits_upgrade = command->waits = true;
    if (id.len > 0)
        memcpy(client->upgrade_id, id.data, id.len);
    client->upgrade_id[id.len] = '\0';
}

/* --- all of them --- */

static command_fn *const command_fns[CONTROL_METHODS] = {
    [CONTROL_STATUS] = run_status,     [CONTROL_POOLS] = run_pools,
    [CONTROL_WORKERS] = run_workers,   [CONTROL_CLIENTS] = run_clients,
    [CONTROL_SESSIONS] = run_sessions, [CONTROL_REQUESTS] = run_requests,
    [CONTROL_NODES] = run_nodes,       [CONTROL_FIGURES] = run_figures,
    [CONTROL_METRICS] = run_metrics,   [CONTROL_EVENTS] = run_events,
    [CONTROL_RESTART] = run_restart,   [CONTROL_DRAIN] = run_drain,
    [CONTROL_RESUME] = run_resume,     [CONTROL_DISCONNECT] = run_disconnect,
    [CONTROL_LOG] = run_log,           [CONTROL_RELOAD] = run_reload,
    [CONTROL_UPGRADE] = run_upgrade,
};

static void reply(struct command *command, struct slice id)
{
    struct json_text line = {.failed = command->result.failed};

    if (command->code == CONTROL_NO_MEMORY)
        log_warn(command->bus->log, command->client->context, "a request has failed: %s",
                 strerror(ENOMEM));
    if (command->problem != NULL)
        control_write_error(&line, id, command->code, command->problem);
    else
        control_write_result(&line, id, json_text_slice(&command->result));
    control_send(command->client, &line);
    json_text_free(&line);
}

void control_commands_run(struct control_client *client, struct slice line)
{
    struct control_request request;
    struct command command = {.client = client, .bus = client->control->bus, .request = &request};

    command.code = control_request_read(&request, line, &client->scanner.fields, &command.problem);
    if (command.problem == NULL) {
        bus_read_clock(command.bus);
        command_fns[request.method](&command);
    }
    if (command.problem != NULL || (request.id.data != NULL && !command.waits))
        reply(&command, request.id);
    json_text_free(&command.result);
    control_request_free(&request);
}
