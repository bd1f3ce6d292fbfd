#include "build_config.h"

#include "web/service.h"

#include "bus/clients.h"
#include "bus/deliver.h"
#include "monitor/metrics.h"
#include "router/router_archive.h"
#include "web/clients.h"
#include "web/sessions.h"
#include "web/websocket.h"

static void *create_hub(struct stdio_bus *bus)
{
    return http_hub_create(bus);
}

static void destroy_hub(void *state)
{
    http_hub_free(state);
}

static void act_on_notes(void *state)
{
    http_hub_run(state);
}

static void stop_input(void *state)
{
    http_sessions_stop_input(state);
}

static void before_close(void *state)
{
    http_sessions_close(state);
}

static struct endpoint *newest(const void *state, const struct peer_origin *origin,
                               const struct group *pool)
{
    return http_sessions_newest(state, origin, pool);
}

static void yield(void *state)
{
    yield_processes(state);
}

/* A session has its connections beside it in the list. */
static struct client_report report_session(const struct http_session *session)
{
    const struct stdio_bus *bus = session->hub->bus;
    const struct endpoint *endpoint = &session->endpoint;
    const struct peer *peer = &endpoint->peer;

    return (struct client_report){
        .number = session->number,
        .kind = "session",
        .program = peer->program,
        .peer = session->origin.text,
        .pool = session->pool != NULL ? session->pool->id : slice_of(NULL, 0),
        .since_ms = stdio_bus_event_loop_now_ms(bus->loop) - endpoint->since_ms,
        .requests = list_count(&peer->asked),
        .sessions = list_count(&peer->sessions),
        .traffic = session->traffic,
        .hold = {endpoint->held_since_ms != 0, deliver_held_ms(endpoint), peer->held_for},
    };
}

static void each_report(const void *state, client_report_fn *fn, void *user_data)
{
    const struct http_hub *hub = state;
    struct list_node *node, *following;

    list_each(&hub->sessions, node, following) {
        const struct client_report report =
            report_session(list_entry(node, struct http_session, link));

        fn(user_data, &report);
    }
}

static bool disconnect(void *state, int64_t number, const char *by)
{
    struct http_hub *hub = state;
    struct list_node *node, *following;

    list_each(&hub->sessions, node, following) {
        struct http_session *session = list_entry(node, struct http_session, link);

        if (session->number != number)
            continue;
        log_info(hub->bus->log, session->endpoint.context, "disconnection, asked for by %s", by);
        http_sessions_end(session, "disconnected by the operator");
        return true;
    }
    return false;
}

static bool uses_listener(const void *state, const struct bus_listener *listener)
{
    return http_sessions_use(state, listener);
}

static void end_revoked(void *state, const struct bus_listener *listener)
{
    http_sessions_end_revoked(state, listener);
}

/* A path names the pool of a request, or of a session. */
static void each_holder(void *state, pool_holder_fn *fn, void *user_data)
{
    struct http_hub *hub = state;
    struct list_node *node, *following;

    list_each(&hub->bus->clients.list, node, following) {
        struct client *client = client_at(node);
        struct peer *peer = &client->stream.endpoint.peer;

        if (client->http != NULL)
            fn(user_data, (struct pool_holder){&client->http->pool, peer, false});
    }
    list_each(&hub->sessions, node, following) {
        struct http_session *session = list_entry(node, struct http_session, link);
        struct peer *peer = &session->endpoint.peer;

        fn(user_data, (struct pool_holder){&peer->opened, peer, true});
        fn(user_data, (struct pool_holder){&session->pool, peer, false});
    }
}

static const struct metric metrics[] = {
    {"stdio_bus_http_sessions", "Sessions of MCP over HTTP.", .always = true,
     METRIC_AT(struct http_metrics, sessions)},
    {"stdio_bus_http_sessions_total", "Sessions of MCP over HTTP, ever.", .always = true,
     METRIC_AT(struct http_metrics, begun)},
    {.name = NULL},
};

static const void *measure(void *state)
{
    struct http_hub *hub = state;

    hub->metrics = (struct http_metrics){hub->session_count, hub->bus->counters.http_sessions};
    return &hub->metrics;
}

static void archive_sessions(void *state, struct router_archive *archive)
{
    http_sessions_archive(archive, state);
}

static void archive_client(void *state, struct router_archive *archive, struct client *client)
{
    struct http_hub *hub = state;
    bool is_websocket = client->websocket != NULL;

    archive_flag(archive->archive, &is_websocket);
    if (!archive_ok(archive->archive))
        return;
    if (is_websocket)
        http_websocket_archive(archive->archive, client);
    else
        http_clients_archive(archive, hub, client);
}

static void archive_waiting(void *state, struct router_archive *archive)
{
    http_sessions_archive_held(archive->archive, state);
}

static void limit(void *state, const struct limits *limits)
{
    struct http_hub *hub = state;
    struct list_node *node, *following;

    event_memory_bound(&hub->events, limits->max_resume_total);
    list_each(&hub->sessions, node, following)
        router_limit_client(&hub->bus->router,
                            &list_entry(node, struct http_session, link)->endpoint.peer);
}

const struct service http_service = {
    .create = create_hub,
    .destroy = destroy_hub,
    .listener = &http_listener,
    .act = act_on_notes,
    .stop_input = stop_input,
    .before_close = before_close,
    .newest = newest,
    .yield = yield,
    .each_report = each_report,
    .disconnect = disconnect,
    .each_holder = each_holder,
    .uses_listener = uses_listener,
    .end_revoked = end_revoked,
    .metrics = metrics,
    .measure = measure,
    .limit = limit,
    .archive_sessions = ARCHIVE_OP(archive_sessions),
    .archive_client = ARCHIVE_OP(archive_client),
    .archive_waiting = ARCHIVE_OP(archive_waiting),
};
