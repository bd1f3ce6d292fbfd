#include "build_config.h"

#include "bus/reload.h"

#include "base/error.h"
#include "bus/client_limits.h"
#include "bus/clients.h"
#include "bus/control.h"
#include "bus/descriptor_limit.h"
#include "bus/http_hub.h"
#include "bus/http_stream.h"
#include "bus/listeners.h"
#include "bus/notifier.h"
#include "bus/reload_listeners.h"
#include "bus/reload_pools.h"
#include "bus/rmp_hub.h"
#include "bus/workers.h"
#include "config/difference.h"
#include "config/setup.h"

#define NOT_LISTENING "a listener could not be opened: the log has the reason"

/* --- what does not change while the daemon runs --- */

static void warn_of_rest(const struct stdio_bus *bus, const struct config *config)
{
    const struct config *before = bus->options.config;

    if (difference_of_texts(before->control, config->control))
        log_warn(bus->log, "", "\"control\" takes effect at the next start");
    if (difference_of_rmp(&before->rmp, &config->rmp))
        log_warn(bus->log, "", "\"rmp\" takes effect at the next start");
}

/* --- limits --- */

static void limit_clients(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->clients, node, following) {
        struct peer *peer = &list_entry(node, struct client, link)->stream.endpoint.peer;

        if (peer->admitted)
            router_limit_client(&bus->router, peer);
    }
    if (bus->http == NULL)
        return;
    list_each(&bus->http->sessions, node, following)
        router_limit_client(&bus->router,
                            &list_entry(node, struct http_session, link)->endpoint.peer);
}

static void limit_restarts(struct worker *worker)
{
    const struct limits *limits = worker->transport->limits;

    if (restart_change(&worker->restart, limits->max_restarts, limits->restart_window_sec) !=
        STDIO_BUS_OK)
        log_warn(worker->transport->log, worker->stream.endpoint.context,
                 "out of memory: its restarts are counted as before");
}

static void take_limits(struct stdio_bus *bus, const struct limits *limits)
{
    router_set_limits(&bus->router, limits);
    bus->transport.limits = limits;
    limit_clients(bus);
    workers_each(bus, limit_restarts);
    client_limits_changed(bus);
    if (bus->http != NULL)
        event_memory_bound(&bus->http->events, limits->max_resume_total);
    rmp_hub_bound(bus->rmp, limits);
    descriptor_limit_raise(bus);
}

/* --- all of it --- */

/* The times of requests are measured from now on: those in flight have none yet. */
static void stamp_requests(struct worker *worker)
{
    struct peer *peer = &worker->stream.endpoint.peer;
    struct stdio_bus *bus = worker->stream.endpoint.bus;
    struct list_node *node, *following;

    list_each(&peer->answering, node, following)
        list_entry(node, struct request, in_answerer)->asked_ms = bus->router.now_ms;
    list_each(&peer->asked, node, following)
        list_entry(node, struct request, in_asker)->asked_ms = bus->router.now_ms;
}

/* NULL, or the reason why nothing has changed. */
static const char *prepare(struct stdio_bus *bus, struct setup *setup)
{
    struct control *made = NULL;

    if (bus->control == NULL && listen_any_metrics(setup->listens, setup->listen_count) &&
        (made = control_create(bus)) == NULL)
        return "out of memory";
    if (reload_pools_prepare(bus, setup) != STDIO_BUS_OK) {
        reload_pools_undo(bus);
        control_destroy(made);
        return "out of memory";
    }
    if (reload_listeners_prepare(bus, setup) != STDIO_BUS_OK) {
        reload_listeners_undo(bus);
        reload_pools_undo(bus);
        control_destroy(made);
        return NOT_LISTENING;
    }
    if (made != NULL) {
        bus->control = made;
        workers_each(bus, stamp_requests);
    }
    return NULL;
}

static void commit(struct stdio_bus *bus, struct setup *setup)
{
    struct setup *before = bus->options.setup;

    warn_of_rest(bus, &setup->config);
    bus->options.setup = setup;
    bus->options.config = &setup->config;
    bus->options.listens = setup->listens;
    bus->options.listen_count = setup->listen_count;
    bus->router.strict = setup->config.strict;
    take_limits(bus, &setup->config.limits);
    reload_pools_commit(bus, setup);
    reload_listeners_commit(bus, setup);
    setup_release(before);
    bus->end_noted = true; /* what departs may be gone already */
}

static const char *reload(struct stdio_bus *bus)
{
    struct bus_options *options = &bus->options;
    const char *problem = NULL;
    struct setup *setup;

    if (options->read_again == NULL)
        return "this daemon has no configuration file";
    if (bus->phase != BUS_PHASE_SERVING && bus->phase != BUS_PHASE_ENDING)
        return "the daemon does not serve";
    setup = options->read_again(options->read_again_data, &problem);
    if (setup == NULL)
        return problem;
    problem = prepare(bus, setup);
    if (problem == NULL)
        commit(bus, setup);
    else
        setup_release(setup);
    return problem;
}

void reload_note(struct stdio_bus *bus)
{
    bus->reload_waits = bus->phase == BUS_PHASE_STARTING;
    bus->reload_noted = bus->phase == BUS_PHASE_SERVING || bus->phase == BUS_PHASE_ENDING;
}

const char *reload_run(struct stdio_bus *bus, const char *by)
{
    const char *problem;

    bus->reload_noted = false;
    log_info(bus->log, "", "reloading the configuration, asked for by %s", by);
    notifier_reloading(bus);
    bus_read_clock(bus);
    problem = reload(bus);
    bus->counters.reloads[problem == NULL]++;
    if (problem == NULL)
        log_info(bus->log, "", "reloaded: %zu pool%s", bus->options.config->pool_count,
                 bus->options.config->pool_count == 1 ? "" : "s");
    else
        log_error(bus->log, "", "not reloaded, everything is as it was: %s", problem);
    control_report(bus, problem == NULL ? "reloaded" : "reload_failed", "configuration", NULL,
                   problem);
    notifier_phase(bus);
    return problem;
}
