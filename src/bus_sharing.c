/* What pools with keys of their own (config/sharing.h) need beside what all pools do. */
#include "build_config.h"

#include "bus_internal.h"

#include "base/error.h"
#include "router/bindings.h"

static const struct sharing *sharing_of(const struct stdio_bus *bus, const struct peer *worker)
{
    return &bus->options.config->pools[worker->pool].sharing;
}

/* --- messages --- */

static void start_request_timer(struct stdio_bus *bus, int64_t deadline_ms)
{
    if (!timer_started(&bus->requests_timer) || deadline_ms < bus->requests_deadline_ms) {
        bus->requests_deadline_ms = deadline_ms;
        timers_start(stdio_bus_event_loop_timers(bus->loop), &bus->requests_timer, deadline_ms);
    }
}

/* With values replaced: in pools that rewrite ids. */
static enum connection_verdict forward_edited(struct stdio_bus *bus, struct endpoint *from,
                                              const struct message *message,
                                              const struct route *route)
{
    if (log_enabled(bus->log, LOG_LEVEL_DEBUG))
        bus_log_forwarding(bus, from, message, route);
    return bus_end_forward(bus, from, route,
                           connection_forward_edited(&endpoint_of_peer(route->to)->connection,
                                                     &from->connection, message->bytes,
                                                     route->edits, route->edit_count));
}

/* Sends a worker's message to all of its clients. When memory runs out in between, those who have
 * it already are left out the next time. */
static enum connection_verdict broadcast(struct stdio_bus *bus, struct endpoint *from,
                                         const struct message *message)
{
    struct list_node *node, *following;

    list_each(&from->peer.bindings, node, following) {
        struct binding *binding = list_entry(node, struct binding, in_worker);

        if (binding->order <= from->peer.broadcast)
            continue;
        if (connection_copy(&endpoint_of_peer(binding->client)->connection, &from->connection,
                            message->bytes) != STDIO_BUS_OK) {
            bus_starve(bus, from);
            return CONNECTION_HELD;
        }
        from->peer.broadcast = binding->order;
    }
    from->peer.broadcast = 0;
    return CONNECTION_NEXT;
}

static enum connection_verdict carry_out(struct stdio_bus *bus, struct endpoint *from,
                                         const struct message *message, const struct route *route)
{
    enum connection_verdict verdict;

    switch (route->action) {
    case ROUTE_FORWARD_EDITED:
        verdict = forward_edited(bus, from, message, route);
        break;
    case ROUTE_BROADCAST:
        return broadcast(bus, from, message);
    case ROUTE_HOLD_UNTIL:
        timers_start(stdio_bus_event_loop_timers(bus->loop), &from->hold, route->hold_until_ms);
        return CONNECTION_HELD;
    case ROUTE_DROP:
        bus_log_discarded(bus, LOG_LEVEL_DEBUG, from, message, route->text);
        return CONNECTION_NEXT;
    default:
        verdict = bus_carry_out(bus, from, message, route);
        break;
    }
    if (verdict == CONNECTION_NEXT && route->cancelled != NULL)
        router_cancelled(&bus->router, route);
    return verdict;
}

enum connection_verdict bus_sharing_client_message(struct client *client,
                                                   const struct message *message)
{
    struct stdio_bus *bus = client->bus;
    const struct connection *connection = &client->endpoint.connection;
    enum connection_verdict verdict;
    struct route route;

    bus->router.now_ms = stdio_bus_event_loop_now_ms(bus->loop);
    router_share_from_client(&bus->router, &client->endpoint.peer, message,
                             &connection->framing_state.scanner.fields, &route);
    verdict = carry_out(bus, &client->endpoint, message, &route);
    if (verdict == CONNECTION_NEXT && route.recorded != NULL && route.recorded->details != NULL &&
        list_linked(&route.recorded->details->timed))
        start_request_timer(bus, route.recorded->details->deadline_ms);
    return verdict;
}

enum connection_verdict bus_sharing_worker_message(struct worker *worker,
                                                   const struct message *message,
                                                   struct route *route)
{
    struct stdio_bus *bus = worker->bus;
    struct connection *connection = &worker->endpoint.connection;

    bus->router.now_ms = stdio_bus_event_loop_now_ms(bus->loop);
    router_share_from_worker(&bus->router, &worker->endpoint.peer, message,
                             &connection->framing_state.scanner.fields, route);
    return carry_out(bus, &worker->endpoint, message, route);
}

/* --- requests that are given up --- */

/* How a request is cancelled: what stands before and behind its id. */
static const struct {
    const char *before, *behind;
} cancels[] = {
    [PROTOCOL_MCP] = {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                      "\"params\":{\"requestId\":",
                      "}}\n"},
    [PROTOCOL_ACP] = {"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\","
                      "\"params\":{\"requestId\":",
                      "}}\n"},
    [PROTOCOL_LSP] = {"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":",
                      "}}\n"},
};

/* Tells the worker that nobody waits for its answer any more, in the words of its protocol. */
static void cancel(struct stdio_bus *bus, const struct request *request)
{
    enum sharing_protocol protocol = sharing_of(bus, request->answerer)->protocol;
    struct endpoint *to = endpoint_of_peer(request->answerer);
    char line[MESSAGE_ERROR_MAX];
    size_t len;

    if (protocol == PROTOCOL_UNKNOWN || bus->options.config->strict)
        return;
    len = message_write_around(line, sizeof line, cancels[protocol].before, request->answerer_id,
                               cancels[protocol].behind);
    if (connection_send(&to->connection, slice_of(line, len)) != STDIO_BUS_OK)
        log_error(bus->log, to->connection.context, "out of memory: a cancellation was lost");
}

void bus_cancel_requests_of(struct client *client)
{
    struct stdio_bus *bus = client->bus;
    struct list_node *node, *following;

    list_each(&client->endpoint.peer.asked, node, following) {
        const struct request *request = list_entry(node, struct request, in_asker);

        if (sharing_of(bus, request->answerer)->clients != CLIENTS_EXCLUSIVE)
            cancel(bus, request);
    }
}

/* Its client gets an error, in place of the answer. */
static void request_expired(void *user_data, struct request *request)
{
    struct stdio_bus *bus = user_data;
    struct endpoint *to = endpoint_of_peer(request->asker);

    log_warn(bus->log, to->connection.context, "its request timed out at %s",
             endpoint_of_peer(request->answerer)->connection.context);
    bus_send_error(bus, to, request->asker_id, JSONRPC_TIMED_OUT, "request timed out");
    cancel(bus, request);
}

void bus_expire_requests(void *user_data)
{
    struct stdio_bus *bus = user_data;
    int64_t next;

    bus->router.now_ms = stdio_bus_event_loop_now_ms(bus->loop);
    next = router_expire(&bus->router, request_expired, bus);
    if (next >= 0)
        start_request_timer(bus, next);
    bus_check_clients_done(bus);
}

/* --- processes of exclusive pools --- */

void bus_retire_workers_of(struct client *client)
{
    struct stdio_bus *bus = client->bus;
    struct list_node *node, *following;

    list_each(&client->endpoint.peer.bindings, node, following) {
        struct peer *peer = list_entry(node, struct binding, in_client)->worker;

        if (sharing_of(bus, peer)->clients == CLIENTS_EXCLUSIVE)
            worker_handle(list_entry(endpoint_of_peer(peer), struct worker, endpoint),
                          WORKER_RETIRE);
    }
}

/* Has a process, or will have one, and no client. */
static bool is_idle(const struct worker *worker)
{
    return (worker->state == WORKER_STARTING || worker->state == WORKER_RUNNING ||
            (worker->state == WORKER_STOPPED && timer_started(&worker->deadline))) &&
           list_empty(&worker->endpoint.peer.bindings);
}

static bool is_dormant(const struct worker *worker)
{
    return worker->state == WORKER_STOPPED && !timer_started(&worker->deadline) &&
           !worker->stopping;
}

/* How many processes the pool should have for clients to come. */
static size_t wanted_in(const struct router_group *group)
{
    size_t wanted = group->sharing.spare;
    const struct list_node *node;

    for (node = group->waiting.head.next; node != &group->waiting.head; node = node->next)
        wanted++;
    return wanted;
}

/* As many processes as clients wait for, and the spare ones. There are too many when clients leave
 * while they wait, or while their crashed process is to be started again. */
static void supply(struct stdio_bus *bus, size_t pool)
{
    size_t wanted = wanted_in(&bus->router.pools[pool]), i;

    for (i = 0; i < bus->worker_count; i++) {
        if (bus->workers[i].endpoint.peer.pool != pool || !is_idle(&bus->workers[i]))
            continue;
        if (wanted > 0)
            wanted--;
        else
            worker_handle(&bus->workers[i], WORKER_RETIRE);
    }
    for (i = 0; i < bus->worker_count && wanted > 0; i++) {
        if (bus->workers[i].endpoint.peer.pool == pool && is_dormant(&bus->workers[i])) {
            worker_handle(&bus->workers[i], WORKER_DEADLINE);
            wanted--;
        }
    }
}

void bus_supply_workers(struct stdio_bus *bus)
{
    size_t i;

    if (!bus->router.demand || !list_empty(&bus->router.released))
        return; /* who was released may be about to take one */
    bus->router.demand = false;
    if (bus->phase == BUS_PHASE_STARTING || bus->phase >= BUS_PHASE_DRAINING)
        return;
    for (i = 0; i < bus->router.pool_count; i++) {
        if (bus->router.pools[i].sharing.clients == CLIENTS_EXCLUSIVE)
            supply(bus, i);
    }
}
