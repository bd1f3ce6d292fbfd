#include "build_config.h"

#include "federation/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bus/origins.h"
#include "config/setup.h"
#include "federation/calls.h"
#include "federation/exports.h"
#include "federation/links.h"
#include "federation/links_archive.h"
#include "federation/node_metrics.h"
#include "federation/places.h"
#include "federation/presence.h"
#include "federation/remotes.h"
#include "monitor/metrics.h"
#include "router/router_archive.h"
#include "transport/origin.h"
#include "json/text.h"

static bool is_wanted(const struct bus_options *options)
{
    return options->config->nats.enabled;
}

static void *create(struct stdio_bus *bus)
{
    struct nats_hub *hub = calloc(1, sizeof *hub);
    struct origin origin;

    if (hub == NULL)
        return NULL;
    hub->bus = hub->broker.bus = bus;
    hub->config = bus->options.config->nats;
    hub->setup = bus->options.setup;
    setup_hold(hub->setup);
    list_init(&hub->exports);
    list_init(&hub->calls);
    list_init(&hub->broker.watchers);
    hub->broker.config = &hub->config;
    hub->broker.random = siphash_random_key();
    hub->broker.fd = -1;
    places_create(hub);
    hub->broker.state = BROKER_CLOSED;
    memset(&origin, 0, sizeof origin);
    origin_of_token(&origin, "nats", "nats");
    hub->broker.origin = origins_get(bus, &origin);
    if (hub->broker.origin != NULL && nats_links_create(hub) == STDIO_BUS_OK)
        return hub;
    origins_release(hub->broker.origin);
    setup_release(hub->setup);
    free(hub);
    return NULL;
}

/* --- operations --- */

static void start(void *state)
{
    struct nats_hub *hub = state;

    exports_renew(hub);
    places_renew(hub);
    presence_start(hub);
    nats_links_start(hub);
    broker_start(&hub->broker);
}

static void detach(void *state)
{
    struct nats_hub *hub = state;

    exports_end(hub);
    places_end(hub);
    presence_end(hub);
    nats_calls_end(hub);
    nats_links_end(hub, "the daemon ends");
    broker_flush(&hub->broker);
    broker_stop(&hub->broker);
    origins_release(hub->broker.origin);
}

static void destroy(void *state)
{
    struct nats_hub *hub = state;

    nats_links_destroy(hub);
    setup_release(hub->setup);
    free(hub);
}

static void act(void *state)
{
    nats_calls_act(state);
    nats_links_act(state);
}

static void stop_input(void *state)
{
    struct nats_hub *hub = state;

    exports_end(hub);
    places_end(hub);
    presence_end(hub);
    hub->bus->services_noted = true;
}

/* Answers that are due have been published. */
static void before_close(void *state)
{
    struct nats_hub *hub = state;

    nats_calls_act(hub);
    broker_flush(&hub->broker);
}

static void each_holder(void *state, pool_holder_fn *fn, void *user_data)
{
    struct nats_hub *hub = state;
    struct list_node *node, *following;

    list_each(&hub->calls, node, following) {
        struct peer *peer = &list_entry(node, struct nats_call, link)->endpoint.peer;

        fn(user_data, (struct pool_holder){&peer->opened, peer, true});
    }
}

static const struct metric metrics[] = {
    {"stdio_bus_nats_connected", "Whether a NATS server is connected.", .always = true,
     METRIC_AT(struct nats_metrics, connected)},
    {"stdio_bus_nats_connections_total", "Connections to NATS servers, ever.", .always = true,
     METRIC_AT(struct nats_metrics, connections)},
    {"stdio_bus_nats_requests_total", "Messages that came over NATS for a pool.", .always = true,
     METRIC_AT(struct nats_metrics, requests)},
    {"stdio_bus_nats_in_flight", "Messages of these that are not done with.", .always = true,
     METRIC_AT(struct nats_metrics, in_flight)},
    {"stdio_bus_nats_lost_total", "Answers for which there was no room.", .always = true,
     METRIC_AT(struct nats_metrics, lost)},
    {"stdio_bus_nats_links", "Links to pools of other nodes, and of other nodes to pools here.",
     .always = true, METRIC_AT(struct nats_metrics, links)},
    {"stdio_bus_nats_nodes", "Other nodes to which there are links.", .always = true,
     METRIC_AT(struct nats_metrics, nodes)},
    {"stdio_bus_nats_links_opened_total", "Links that other nodes have accepted.", .always = true,
     METRIC_AT(struct nats_metrics, counters.opened)},
    {"stdio_bus_nats_links_declined_total", "Times that another node has declined a link.",
     .always = true, METRIC_AT(struct nats_metrics, counters.declined)},
    {"stdio_bus_nats_links_broken_total", "Links that have ended with their node.", .always = true,
     METRIC_AT(struct nats_metrics, counters.broken)},
    {"stdio_bus_nats_sessions", "Sessions for which this node answers to others.", .always = true,
     METRIC_AT(struct nats_metrics, claims)},
    {"stdio_bus_nats_sessions_asked_total", "Times that other nodes were asked for a session.",
     .always = true, METRIC_AT(struct nats_metrics, places.asked)},
    {"stdio_bus_nats_sessions_yielded_total",
     "Sessions that have begun on another node at the same time, and stay there.", .always = true,
     METRIC_AT(struct nats_metrics, places.yielded)},
    {"stdio_bus_nats_node_links", .write = node_metrics_write},
    {.name = NULL},
};

static const void *measure(void *state)
{
    struct nats_hub *hub = state;
    const struct broker_counters *counters = &hub->broker.counters;

    hub->metrics = (struct nats_metrics){counters->connected,
                                         counters->connections,
                                         hub->requests,
                                         hub->call_count,
                                         counters->lost,
                                         hub->links.count,
                                         list_count(&hub->links.nodes),
                                         hub->links.counters,
                                         hub->tallies,
                                         hub->tally_count,
                                         hub->places.counters,
                                         hub->places.here_count};
    node_metrics_measure(hub);
    if (!list_empty(&hub->links.nodes))
        presence_ask(hub); /* the next metrics have the round trips */
    return &hub->metrics;
}

static void describe(const void *state, struct json_text *to)
{
    const struct nats_hub *hub = state;
    bool is_ready = hub->broker.state == BROKER_READY;

    row_string(to, "nats_server", is_ready ? hub->broker.servers[hub->broker.at].name : NULL);
}

static void list_nodes(void *state, struct json_text *to, size_t limit)
{
    presence_list(state, to, limit);
}

/* Other pools may be exported. */
static void limit(void *state, const struct limits *limits)
{
    (void)limits;
    exports_renew(state);
    places_renew(state);
}

static void archive_calls(void *state, struct router_archive *archive)
{
    nats_calls_archive(archive, state);
}

/* The connection is not saved: the next program opens one of its own. */
static void archive_rest(void *state, struct router_archive *archive)
{
    struct nats_hub *hub = state;

    ARCHIVE_INTEGER(archive->archive, hub->requests);
    ARCHIVE_INTEGER(archive->archive, hub->broker.counters.connections);
    ARCHIVE_INTEGER(archive->archive, hub->broker.counters.lost);
    nats_links_archive(archive->archive, hub);
    remotes_archive_passages(archive->archive, hub);
    if (archive_loads(archive->archive))
        start(hub);
}

static const struct dialer *dialer(void *state, const struct pool_config *config)
{
    return remotes_dialer(state, config);
}

static void overflow(void *state, struct pool *pool, size_t count)
{
    remotes_overflow(state, pool, count);
}

const struct service nats_service = {
    .is_wanted = is_wanted,
    .create = create,
    .start = start,
    .detach = detach,
    .destroy = destroy,
    .act = act,
    .stop_input = stop_input,
    .before_close = before_close,
    .each_holder = each_holder,
    .metrics = metrics,
    .measure = measure,
    .describe = describe,
    .list_nodes = list_nodes,
    .limit = limit,
    .archive_sessions = ARCHIVE_OP(archive_calls),
    .archive = ARCHIVE_OP(archive_rest),
    .dialer = dialer,
    .overflow = overflow,
};
