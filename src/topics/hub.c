#include "build_config.h"

#include "topics/hub.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/siphash.h"

/* One read of a publisher fills a large buffer for each subscriber of the topic. Were they freed, a
 * third of the time of a hundred subscribers would go into new pages. */
#define BUFFERS_MORE_BYTES ((size_t)8 << 20)

/* Peers and users that come one after the other may make each a few times as much
 * (rmp/memory.h). */
static size_t subscription_bytes(const struct limits *limits)
{
    return limits->max_memory / 16;
}

static size_t key_bytes(const struct limits *limits)
{
    return limits->max_memory / 8;
}

struct rmp_hub *rmp_hub_create(struct stdio_bus *bus, timer_fn *due,
                               const struct visitor_kind *clients)
{
    const struct config *config = bus->options.config;
    const struct rmp_broker_options options = {
        .key = siphash_random_key(),
        .max_ttl_ms = config->rmp.max_ttl_ms,
        .metrics_interval_ms = config->rmp.metrics_interval_ms,
        .queue_bytes = config->limits.max_output_queue,
        .copies_bytes = config->limits.max_memory,
        .subscription_bytes = subscription_bytes(&config->limits),
        .key_bytes = key_bytes(&config->limits),
        .memory = &bus->transport.kept,
    };
    struct rmp_hub *hub = calloc(1, sizeof *hub);

    if (hub == NULL)
        return NULL;
    hub->bus = bus;
    bus->transport.pool.more = BUFFERS_MORE_BYTES;
    hub->rules = (struct rmp_rules){&config->rmp.schemas, config->rmp.max_body};
    hub->due_ms = RMP_NO_DEADLINE;
    list_init(&hub->ready);
    timer_init(&hub->due, due, hub);
    timer_init(&hub->retry, due, hub);
    hub->broker = rmp_broker_create(&options);
    if (hub->broker != NULL)
        hub->bridge = rmp_bridge_create(bus, hub->broker, &hub->rules);
    if (hub->bridge != NULL) {
        hub->runs = rmp_bridge_runs(hub->bridge);
        visitors_init(&hub->clients, bus, clients);
        return hub;
    }
    rmp_broker_free(hub->broker);
    free(hub);
    return NULL;
}

static void forget_text(struct rmp_hub *hub)
{
    buffer_give(&hub->bus->transport.pool, hub->text);
    hub->text = NULL;
    hub->text_number = 0;
}

void rmp_hub_detach(struct rmp_hub *hub)
{
    stdio_bus_event_loop_stop_timer(hub->bus->loop, &hub->due);
    stdio_bus_event_loop_stop_timer(hub->bus->loop, &hub->retry);
    forget_text(hub);
    rmp_bridge_destroy(hub->bridge);
    hub->bridge = NULL;
}

void rmp_hub_destroy(struct rmp_hub *hub)
{
    rmp_bridge_destroy(hub->bridge);
    rmp_broker_free(hub->broker);
    free(hub);
}

void rmp_hub_bound(struct rmp_hub *hub, const struct limits *limits)
{
    rmp_broker_bound(hub->broker, subscription_bytes(limits), key_bytes(limits));
}

struct rmp_time rmp_hub_time(struct rmp_hub *hub)
{
    uint64_t now_ms = (uint64_t)stdio_bus_event_loop_now_ms(hub->bus->loop);

    if (now_ms != hub->time.now_ms)
        hub->time = (struct rmp_time){.epoch_ms = clock_epoch_ms(), .now_ms = now_ms};
    return hub->time;
}

static void report_lost(struct rmp_hub *hub)
{
    uint64_t lost = rmp_broker_counters(hub->broker)->no_memory;

    if (lost == hub->lost)
        return;
    log_warn(hub->bus->log, "rmp", "out of memory: deliveries and subscriptions lost: %" PRIu64,
             lost - hub->lost);
    hub->lost = lost;
}

void rmp_hub_plan(struct rmp_hub *hub)
{
    struct stdio_bus_event_loop *loop = hub->bus->loop;
    uint64_t due_ms = rmp_broker_deadline(hub->broker), now_ms;

    report_lost(hub);
    if (hub->text != NULL && hub->text->capacity > BUFFER_LARGE)
        forget_text(hub);
    if (due_ms == hub->due_ms)
        return;
    hub->due_ms = due_ms;
    if (due_ms == RMP_NO_DEADLINE) {
        stdio_bus_event_loop_stop_timer(loop, &hub->due);
        return;
    }
    now_ms = rmp_hub_time(hub).now_ms;
    stdio_bus_event_loop_start_timer(loop, &hub->due,
                                     due_ms > now_ms ? (int64_t)(due_ms - now_ms) : 0);
}
