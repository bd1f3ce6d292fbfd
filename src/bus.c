#include "build_config.h"

#include "bus.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/siphash.h"
#include "bus_internal.h"

#define RELEASES_PER_ROUND 1024
#define SPAWN_DESCRIPTORS 6 /* three pipes */
#define KILL_WAIT_MS 1000 /* between SIGKILL and giving up on a process that the kernel holds */

static bool after_round(void *user_data)
{
    struct stdio_bus *bus = user_data;
    struct peer *peer;
    int count;

    for (count = 0; count < RELEASES_PER_ROUND; count++) {
        peer = router_next_released(&bus->router);
        if (peer == NULL)
            break;
        bus_resume(bus, peer);
    }
    bus_supply_workers(bus);
    transport_flush(&bus->transport);
    return !list_empty(&bus->router.released) || !list_empty(&bus->transport.dirty);
}

static void release_starved(void *user_data)
{
    struct stdio_bus *bus = user_data;
    struct list_node *node, *following;

    list_each(&bus->starved, node, following)
        router_release(&bus->router, list_entry(node, struct peer, hold));
}

static void stop_now(struct stdio_bus *bus)
{
    bus_reap_workers(bus); /* a SIGCHLD may have been lost */
    if (bus->phase == BUS_PHASE_STOPPED)
        return;
    if (bus->killed) {
        log_error(bus->log, "", "a worker does not go although it was killed; not waiting for it");
        bus->phase = BUS_PHASE_STOPPED;
        return;
    }
    bus->killed = true;
    bus_kill_workers(bus);
    bus_close_clients(bus, true);
    timers_start(stdio_bus_event_loop_timers(bus->loop), &bus->drain,
                 stdio_bus_event_loop_now_ms(bus->loop) + KILL_WAIT_MS);
    bus_check_stopped(bus);
}

static void drain_expired(void *user_data)
{
    struct stdio_bus *bus = user_data;

    if (bus->phase == BUS_PHASE_ENDING) {
        log_warn(bus->log, "", "requests are still unanswered after drain_timeout_sec");
        bus_begin_stop(bus, BUS_DONE);
    } else if (bus->phase != BUS_PHASE_STOPPED) {
        stop_now(bus);
    }
}

/* Whoever rotates the log has moved the file away. */
static void reopen_log(struct stdio_bus *bus)
{
    if (log_reopen(bus->log) != STDIO_BUS_OK)
        log_error(bus->log, "", "cannot open the log file anew: %s", strerror(errno));
}

static void caught_signal(void *user_data, int signo)
{
    struct stdio_bus *bus = user_data;

    if (signo == SIGCHLD) {
        bus_reap_workers(bus);
        return;
    }
    if (signo == SIGUSR1) {
        reopen_log(bus);
        return;
    }
    log_info(bus->log, "", "received %s", strsignal(signo));
    /* A hang-up comes twice, or right behind SIGTERM, when a session ends: nobody is impatient. */
    if (signo != SIGHUP || bus->phase < BUS_PHASE_DRAINING)
        bus_stop(bus);
}

struct stdio_bus *bus_create(const struct bus_options *options)
{
    struct stdio_bus *bus = calloc(1, sizeof *bus);
    struct siphash_key key = siphash_random_key();

    if (bus == NULL)
        goto fail_early;
    bus->options = *options;
    bus->log = options->log;
    list_init(&bus->clients);
    list_init(&bus->starved);
    timer_init(&bus->starved_retry, release_starved, bus);
    timer_init(&bus->drain, drain_expired, bus);
    timer_init(&bus->requests_timer, bus_expire_requests, bus);
    bus->has_nofile = getrlimit(RLIMIT_NOFILE, &bus->nofile) == 0;
    router_init(&bus->router, &options->config->limits, &key);
    bus->loop = stdio_bus_event_loop_create();
    if (bus->loop == NULL)
        goto fail;
    transport_init(&bus->transport, bus->loop, bus->log, &options->config->limits);
    stdio_bus_event_loop_set_after(bus->loop, after_round, bus);
    if (bus_create_workers(bus) != STDIO_BUS_OK)
        goto fail;
    return bus;

fail:
    log_error(bus->log, "", "cannot start: %s", strerror(errno));
    bus_destroy(bus);
    return NULL;
fail_early:
    log_error(options->log, "", "cannot start: out of memory");
    return NULL;
}

/* Clients and workers together may need more descriptors than the usual soft limit. */
static void raise_descriptor_limit(struct stdio_bus *bus)
{
    struct rlimit wanted;
    rlim_t need = 32 + 3 * (rlim_t)bus->worker_count;

    if (bus->options.mode != BUS_LISTEN_STDIO)
        need += (rlim_t)bus->options.config->limits.max_connections;
    if (!bus->has_nofile)
        return;
    wanted = bus->nofile;
    if (wanted.rlim_cur == RLIM_INFINITY || wanted.rlim_cur >= need)
        return;
    wanted.rlim_cur = need;
    if (wanted.rlim_max != RLIM_INFINITY && wanted.rlim_max < need)
        wanted.rlim_cur = wanted.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &wanted) < 0)
        log_warn(bus->log, "", "the limit of %llu open files cannot be raised to %llu: %s",
                 (unsigned long long)bus->nofile.rlim_cur, (unsigned long long)wanted.rlim_cur,
                 strerror(errno));
    else if (wanted.rlim_cur < need)
        log_warn(bus->log, "", "the limit of %llu open files may be too low: %llu may be needed",
                 (unsigned long long)wanted.rlim_cur, (unsigned long long)need);
}

/* Clients must not take the descriptors that the restart of a worker needs for a moment. */
static void reserve_descriptors(struct stdio_bus *bus)
{
    struct rlimit now;

    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur < (rlim_t)INT_MAX)
        listener_set_fd_max(&bus->listener, (int)now.rlim_cur - SPAWN_DESCRIPTORS - 1);
}

/* Before the workers, so that an address that cannot be had starts nothing. */
static int open_listener(struct stdio_bus *bus)
{
    const struct bus_options *options = &bus->options;

    switch (options->mode) {
    case BUS_LISTEN_UNIX:
        return listener_open_unix(&bus->listener, bus->loop, bus->log, options->unix_path,
                                  bus_accepted, bus);
    case BUS_LISTEN_TCP:
        return listener_open_tcp(&bus->listener, bus->loop, bus->log, options->tcp_host,
                                 options->tcp_port, bus_accepted, bus);
    case BUS_LISTEN_STDIO:
        break;
    }
    return STDIO_BUS_OK;
}

void bus_serve(struct stdio_bus *bus)
{
    bus->phase = BUS_PHASE_SERVING;
    bus_serve_workers(bus);
    bus->router.demand = bus->sharing;
    if (bus->options.mode == BUS_LISTEN_STDIO &&
        bus_add_client(bus, STDIN_FILENO, STDOUT_FILENO, true, "stdin and stdout") != STDIO_BUS_OK)
        bus_begin_stop(bus, BUS_SYSTEM_ERROR);
}

int bus_start(struct stdio_bus *bus)
{
    raise_descriptor_limit(bus);
    if (bus->options.handle_signals) {
        if (signals_open(&bus->signals, bus->loop, caught_signal, bus) != STDIO_BUS_OK) {
            log_error(bus->log, "", "cannot catch signals: %s", strerror(errno));
            return STDIO_BUS_ERR;
        }
        bus->has_signals = true;
    }
    if (open_listener(bus) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    reserve_descriptors(bus);
    if (bus_start_workers(bus) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (bus->starting_count == 0) /* exclusive pools without spare workers */
        bus_serve(bus);
    return STDIO_BUS_OK;
}

enum bus_outcome bus_step(struct stdio_bus *bus, int timeout_ms)
{
    if (bus->phase == BUS_PHASE_STOPPED)
        return bus->reason;
    if (stdio_bus_event_loop_run_once(bus->loop, timeout_ms) == STDIO_BUS_ERR) {
        log_error(bus->log, "", "cannot wait for events: %s", strerror(errno));
        bus->phase = BUS_PHASE_STOPPED;
        bus->reason = BUS_SYSTEM_ERROR;
    }
    return bus->phase == BUS_PHASE_STOPPED ? bus->reason : BUS_RUNNING;
}

void bus_begin_stop(struct stdio_bus *bus, enum bus_outcome reason)
{
    if (bus->reason == BUS_RUNNING)
        bus->reason = reason;
    if (bus->phase >= BUS_PHASE_DRAINING)
        return;
    bus->phase = BUS_PHASE_DRAINING;
    log_info(bus->log, "", "shutting down");
    listener_close(&bus->listener);
    bus_stop_client_input(bus);
    timers_start(stdio_bus_event_loop_timers(bus->loop), &bus->drain,
                 stdio_bus_event_loop_now_ms(bus->loop) +
                     (int64_t)bus->options.config->limits.drain_timeout_sec * 1000);
    bus_stop_workers(bus);
    bus_check_stopped(bus);
}

void bus_stop(struct stdio_bus *bus)
{
    if (bus->phase < BUS_PHASE_DRAINING)
        bus_begin_stop(bus, BUS_DONE);
    else if (bus->phase != BUS_PHASE_STOPPED)
        stop_now(bus);
}

void bus_check_stopped(struct stdio_bus *bus)
{
    if (bus->phase == BUS_PHASE_DRAINING && bus_workers_finished(bus)) {
        bus->phase = BUS_PHASE_FLUSHING;
        bus_close_clients(bus, false);
    }
    if (bus->phase == BUS_PHASE_FLUSHING && list_empty(&bus->clients)) {
        timers_stop(stdio_bus_event_loop_timers(bus->loop), &bus->drain);
        bus->phase = BUS_PHASE_STOPPED;
        log_info(bus->log, "", "stopped");
    }
}

void bus_destroy(struct stdio_bus *bus)
{
    if (bus == NULL)
        return;
    if (bus->loop != NULL) {
        listener_close(&bus->listener);
        bus_close_clients(bus, true);
        bus_destroy_workers(bus);
        if (bus->has_signals)
            signals_close(&bus->signals);
        transport_free(&bus->transport);
        stdio_bus_event_loop_destroy(bus->loop);
    }
    router_free(&bus->router);
    free(bus);
}
