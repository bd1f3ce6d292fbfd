#include "build_config.h"

#include "reload/reload.h"

#include <signal.h>
#include <stdlib.h>

#include "base/error.h"
#include "bus/client_limits.h"
#include "bus/clients.h"
#include "bus/listeners.h"
#include "bus/notifier.h"
#include "bus/reports.h"
#include "bus/service.h"
#include "config/config.h"
#include "config/setup.h"
#include "reload/listeners.h"
#include "reload/pools.h"
#include "reload/renewals.h"
#include "supervisor/bus.h"
#include "supervisor/workers.h"

#define NOT_LISTENING "a listener could not be opened: the log has the reason"

struct reload {
    struct stdio_bus *bus;
    bool noted; /* the configuration is to be read again */
    struct renewals renewals;
};

/* --- what does not change while the daemon runs --- */

static void warn_of_rest(const struct stdio_bus *bus, const struct config *config)
{
    const struct config *before = bus->options.config;

    if (key_texts_differ(before->control, config->control))
        log_warn(bus->log, "", "\"control\" takes effect at the next start");
    if (rmp_keys_differ(&before->rmp, &config->rmp))
        log_warn(bus->log, "", "\"rmp\" takes effect at the next start");
    if (nats_keys_differ(&before->nats, &config->nats))
        log_warn(bus->log, "", "\"nats\" takes effect at the next start");
}

/* --- limits --- */

static void limit_clients(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->clients.list, node, following) {
        struct peer *peer = &client_at(node)->stream.endpoint.peer;

        if (peer->admitted)
            router_limit_client(&bus->router, peer);
    }
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
    each_service(bus, at, limit)
        at.service->limit(at.state, limits);
    descriptor_limit_raise(bus);
}

/* --- all of it --- */

/* NULL, or the reason why nothing has changed. */
static const char *prepare(struct stdio_bus *bus, struct setup *setup)
{
    if (reload_pools_prepare(bus, setup) != STDIO_BUS_OK) {
        reload_pools_undo(bus);
        return "out of memory";
    }
    if (reload_listeners_prepare(bus, setup) != STDIO_BUS_OK) {
        reload_listeners_undo(bus);
        reload_pools_undo(bus);
        return NOT_LISTENING;
    }
    return NULL;
}

static void commit(struct renewals *renewals, struct setup *setup)
{
    struct stdio_bus *bus = renewals->bus;
    struct setup *before = bus->options.setup;

    warn_of_rest(bus, &setup->config);
    bus->options.setup = setup;
    bus->options.config = &setup->config;
    bus->options.listens = setup->listens;
    bus->options.listen_count = setup->listen_count;
    bus->router.strict = setup->config.strict;
    take_limits(bus, &setup->config.limits);
    reload_pools_commit(renewals, setup);
    reload_listeners_commit(renewals, setup);
    setup_release(before);
    bus->end_noted = true; /* what departs may be gone already */
}

static bool serves(const struct stdio_bus *bus)
{
    return bus->phase == BUS_PHASE_SERVING || bus->phase == BUS_PHASE_ENDING;
}

static const char *read_and_take(struct reload *reload)
{
    struct stdio_bus *bus = reload->bus;
    struct bus_options *options = &bus->options;
    const char *problem = NULL;
    struct setup *setup;

    if (options->read_again == NULL)
        return "this daemon has no configuration file";
    if (!serves(bus))
        return "the daemon does not serve";
    setup = options->read_again(options->read_again_data, &problem);
    if (setup == NULL)
        return problem;
    problem = prepare(bus, setup);
    if (problem == NULL)
        commit(&reload->renewals, setup);
    else
        setup_release(setup);
    return problem;
}

static const char *run_reload(void *state, const char *by)
{
    struct reload *reload = state;
    struct stdio_bus *bus = reload->bus;
    const char *problem;

    reload->noted = false;
    log_info(bus->log, "", "reloading the configuration, asked for by %s", by);
    notifier_reloading(bus);
    bus_read_clock(bus);
    problem = read_and_take(reload);
    bus->counters.reloads[problem == NULL]++;
    if (problem == NULL)
        log_info(bus->log, "", "reloaded: %zu pool%s", bus->options.config->pool_count,
                 bus->options.config->pool_count == 1 ? "" : "s");
    else
        log_error(bus->log, "", "not reloaded, everything is as it was: %s", problem);
    reports_send(bus, problem == NULL ? "reloaded" : "reload_failed", "configuration", NULL,
                 problem);
    notifier_phase(bus);
    return problem;
}

/* --- by a signal --- */

/* --- the service --- */

static void *create_reload(struct stdio_bus *bus)
{
    struct reload *reload = calloc(1, sizeof *reload);

    if (reload == NULL)
        return NULL;
    reload->bus = bus;
    renewals_init(&reload->renewals, bus);
    return reload;
}

static void detach_reload(void *state)
{
    struct reload *reload = state;

    renewals_stop(&reload->renewals);
}

/* A signal asks for a reload: at the end of this round, or of the first in which the bus serves. */
static void note_reload(void *state)
{
    struct reload *reload = state;

    if (reload->bus->phase >= BUS_PHASE_DRAINING)
        return;
    reload->noted = true;
    renewals_attend(&reload->renewals);
}

static void continue_reload(void *state)
{
    struct reload *reload = state;

    if (reload->noted && serves(reload->bus))
        (void)run_reload(reload, "SIGHUP");
    renewals_run(&reload->renewals, reload->noted);
}

static const char *find_unsaved(const void *state)
{
    const struct reload *reload = state;

    return reload->noted || renewals_any(&reload->renewals)
               ? "a reload has left workers or clients to wait for"
               : NULL;
}

const struct service reload_service = {
    .create = create_reload,
    .detach = detach_reload,
    .destroy = free,
    .signal = SIGHUP,
    .caught = note_reload,
    .after_reading = continue_reload,
    .command = "reload",
    .run = run_reload,
    .unsaved = find_unsaved,
};
