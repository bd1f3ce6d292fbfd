#include "build_config.h"

#include "bus/notifier.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "process/pool.h"

#define STATUS_MS 1000 /* between two reports of numbers */
#define RETRY_MS 100   /* after one for which there was no room */
#define EXTEND_MS 5000 /* between two requests for more time to stop */
#define EXTEND_USEC "20000000"
#define TEXT_MAX 256

/* --- the texts --- */

static size_t running_workers(const struct stdio_bus *bus)
{
    struct list_node *node, *following, *inner, *next;
    size_t count = 0;

    list_each(&bus->pools, node, following) {
        list_each(&list_entry(node, struct pool, link)->workers, inner, next)
            count += list_entry(inner, struct worker, link)->state == WORKER_RUNNING;
    }
    return count;
}

static void write_text(const struct stdio_bus *bus, char text[TEXT_MAX])
{
    const struct notifier *notifier = &bus->notifier;
    bool serves = bus->phase == BUS_PHASE_SERVING || bus->phase == BUS_PHASE_ENDING;
    bool stops = bus->phase >= BUS_PHASE_DRAINING;
    size_t clients = bus->client_count, workers = running_workers(bus);

    (void)snprintf(text, TEXT_MAX, "%s%sSTATUS=%s: %zu client%s, %zu worker%s running\n",
                   serves && !notifier->ready ? "READY=1\n" : "",
                   stops && !notifier->stopping ? "STOPPING=1\nEXTEND_TIMEOUT_USEC=" EXTEND_USEC
                                                  "\n"
                                                : "",
                   serves  ? "serving"
                   : stops ? "stopping"
                           : "starting",
                   clients, clients == 1 ? "" : "s", workers, workers == 1 ? "" : "s");
}

/* --- sending --- */

static int send_text(struct stdio_bus *bus, const char *text)
{
    int status = notify_send(bus->options.notify, text);

    if (status == STDIO_BUS_ERR)
        log_warn(bus->log, "", "cannot report to the service manager: %s", strerror(errno));
    return status;
}

static void start_timer(struct stdio_bus *bus, struct timer *timer, int64_t delay_ms)
{
    stdio_bus_event_loop_start_timer(bus->loop, timer, delay_ms);
}

/* That the daemon reloads is a message of its own: READY=1 comes after it. */
static int report_reload(struct stdio_bus *bus)
{
    struct notifier *notifier = &bus->notifier;
    char text[TEXT_MAX];
    int status;

    if (notifier->reloading_us == 0)
        return STDIO_BUS_OK;
    (void)snprintf(text, TEXT_MAX, "RELOADING=1\nMONOTONIC_USEC=%lld\n",
                   (long long)notifier->reloading_us);
    status = send_text(bus, text);
    if (status == STDIO_BUS_OK)
        notifier->reloading_us = 0;
    return status;
}

/* What could not be reported is reported later: the manager waits for it. */
static void report(void *user_data)
{
    struct stdio_bus *bus = user_data;
    struct notifier *notifier = &bus->notifier;
    char text[TEXT_MAX];
    int status = report_reload(bus);

    write_text(bus, text);
    if (status == STDIO_BUS_OK)
        status = send_text(bus, text);
    if (status != STDIO_BUS_OK) {
        start_timer(bus, &notifier->status, status == STDIO_BUS_EAGAIN ? RETRY_MS : STATUS_MS);
        return;
    }
    stdio_bus_event_loop_stop_timer(bus->loop, &notifier->status);
    notifier->ready = bus->phase >= BUS_PHASE_SERVING;
    notifier->stopping = bus->phase >= BUS_PHASE_DRAINING;
}

/* A report that found no room is not repeated: half of the manager's patience is left. */
static void watchdog_due(void *user_data)
{
    struct stdio_bus *bus = user_data;

    (void)send_text(bus, "WATCHDOG=1\n");
    start_timer(bus, &bus->notifier.watchdog, bus->options.notify->watchdog_ms / 2);
}

static void extend_due(void *user_data)
{
    struct stdio_bus *bus = user_data;

    (void)send_text(bus, "EXTEND_TIMEOUT_USEC=" EXTEND_USEC "\n");
    start_timer(bus, &bus->notifier.extend, EXTEND_MS);
}

/* --- from start to stop --- */

void notifier_init(struct stdio_bus *bus)
{
    timer_init(&bus->notifier.status, report, bus);
    timer_init(&bus->notifier.watchdog, watchdog_due, bus);
    timer_init(&bus->notifier.extend, extend_due, bus);
}

void notifier_start(struct stdio_bus *bus)
{
    if (bus->options.notify == NULL)
        return;
    report(bus);
    if (bus->options.notify->watchdog_ms > 0)
        start_timer(bus, &bus->notifier.watchdog, bus->options.notify->watchdog_ms / 2);
}

void notifier_reloading(struct stdio_bus *bus)
{
    if (bus->options.notify == NULL || bus->phase < BUS_PHASE_SERVING ||
        bus->phase >= BUS_PHASE_DRAINING)
        return;
    bus->notifier.reloading_us = clock_now_us();
    bus->notifier.ready = false;
    (void)report_reload(bus);
}

void notifier_changed(struct stdio_bus *bus)
{
    if (bus->options.notify != NULL && !timer_started(&bus->notifier.status))
        start_timer(bus, &bus->notifier.status, STATUS_MS);
}

void notifier_phase(struct stdio_bus *bus)
{
    if (bus->options.notify == NULL)
        return;
    report(bus);
    if (bus->phase >= BUS_PHASE_DRAINING)
        start_timer(bus, &bus->notifier.extend, EXTEND_MS);
}

void notifier_stop(struct stdio_bus *bus)
{
    stdio_bus_event_loop_stop_timer(bus->loop, &bus->notifier.status);
    stdio_bus_event_loop_stop_timer(bus->loop, &bus->notifier.watchdog);
    stdio_bus_event_loop_stop_timer(bus->loop, &bus->notifier.extend);
}
