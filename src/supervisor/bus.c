#include "build_config.h"

#include "supervisor/bus.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/siphash.h"
#include "bus/cancel.h"
#include "bus/client_limits.h"
#include "bus/clients.h"
#include "bus/deliver.h"
#include "bus/errands.h"
#include "bus/gate.h"
#include "bus/listeners.h"
#include "bus/notifier.h"
#include "bus/service.h"
#include "bus/slow_clients.h"
#include "bus/state.h"
#include "bus/token_reload.h"
#include "config/setup.h"
#include "router/waiting.h"
#include "supervisor/pools.h"
#include "supervisor/preempt.h"
#include "supervisor/workers.h"

#define KILL_WAIT_MS 3000 /* between SIGKILL and giving up on a process that the kernel holds */

/* --- the shutdown (spec 10.2) --- */

static void close_visitors(struct stdio_bus *bus, bool now)
{
    each_service(bus, at, before_close)
        at.service->before_close(at.state);
    visitors_close(bus, now);
}

/* Continues with the shutdown where it waited for an end. */
static void check_stopped(struct stdio_bus *bus)
{
    if (bus->phase == BUS_PHASE_DRAINING && workers_all(bus, worker_finished)) {
        bus->phase = BUS_PHASE_FLUSHING;
        close_visitors(bus, false);
    }
    if (bus->phase == BUS_PHASE_FLUSHING && !visitors_any(bus)) {
        stdio_bus_event_loop_stop_timer(bus->loop, &bus->drain);
        bus->phase = BUS_PHASE_STOPPED;
        log_info(bus->log, "", "stopped");
    }
}

static void begin_stop(struct stdio_bus *bus, enum bus_outcome reason)
{
    bus_note_stop(bus, reason);
    bus->stop_noted = false;
    if (bus->phase >= BUS_PHASE_DRAINING)
        return;
    bus->phase = BUS_PHASE_DRAINING;
    log_info(bus->log, "", "shutting down");
    bus->router.closing = true;
    listeners_close(bus);
    bus_start_drain(bus);
    workers_each(bus, worker_stop); /* from here on no worker takes a message */
    each_service(bus, at, stop_input)
        at.service->stop_input(at.state);
    clients_stop_input(bus);
    workers_each(bus, workers_end_hold);
    notifier_phase(bus);
    check_stopped(bus);
}

/* No worker and no client is waited for any more. */
static void give_up(struct stdio_bus *bus)
{
    if (!workers_all(bus, worker_finished)) {
        log_error(bus->log, "", "a worker does not go although it was killed; not waiting for it");
        workers_each(bus, worker_abandon);
        connection_flush_all(&bus->transport);
    }
    close_visitors(bus, true);
    check_stopped(bus);
    bus->phase = BUS_PHASE_STOPPED;
}

/* Ends the wait for the workers, and for the clients that do not read. The others get the rest of
 * the workers' output, and errors for the requests that were not answered. */
static void stop_now(struct stdio_bus *bus)
{
    workers_each(bus, worker_check_exit); /* a SIGCHLD may have been lost */
    check_stopped(bus);
    if (bus->phase == BUS_PHASE_STOPPED)
        return;
    if (bus->killed || bus->phase == BUS_PHASE_FLUSHING) {
        give_up(bus);
        return;
    }
    bus->killed = true;
    workers_each(bus, worker_kill);
    clients_close_full(bus);
    stdio_bus_event_loop_start_timer(bus->loop, &bus->drain, KILL_WAIT_MS);
    check_stopped(bus);
}

static void drain_expired(void *user_data)
{
    struct stdio_bus *bus = user_data;

    if (bus->phase == BUS_PHASE_ENDING) {
        log_warn(bus->log, "", "requests are still unanswered after drain_timeout_sec");
        begin_stop(bus, BUS_DONE);
    } else if (bus->phase != BUS_PHASE_STOPPED) {
        stop_now(bus);
    }
}

static void idle_expired(void *user_data)
{
    struct stdio_bus *bus = user_data;

    if (bus->router.client_count > 0 || visitors_keep_awake(bus))
        return; /* its end restarts the time */
    log_info(bus->log, "", "there was no client for %u seconds", bus->options.idle_exit_sec);
    bus_note_stop(bus, BUS_DONE);
}

void bus_stop(struct stdio_bus *bus)
{
    if (bus->phase < BUS_PHASE_DRAINING)
        begin_stop(bus, BUS_DONE);
    else if (bus->phase != BUS_PHASE_STOPPED)
        stop_now(bus);
}

/* --- signals --- */

/* Whether a service has taken the signal. */
static bool is_caught(struct stdio_bus *bus, int signo)
{
    each_service(bus, at, caught) {
        if (at.service->signal == signo) {
            at.service->caught(at.state);
            return true;
        }
    }
    return false;
}

static void caught_signal(void *user_data, int signo)
{
    struct stdio_bus *bus = user_data;
    char name[SIGNALS_NAME_MAX];
    int status;

    if (signo == SIGCHLD) {
        workers_reap(bus);
        return;
    }
    if (signo == SIGUSR1) { /* the file may have been moved away by a log rotation */
        status = log_reopen(bus->log);
        if (status != STDIO_BUS_OK)
            log_error(bus->log, "", "cannot open the log file again, the old one stays: %s",
                      log_file_problem(status));
        token_reload_all(bus);
        return;
    }
    log_info(bus->log, "", "received %s", signals_name(name, sizeof name, signo));
    if (is_caught(bus, signo))
        return;
    if (signo == SIGUSR2 || (signo == SIGHUP && !bus->options.ends_on_hangup)) {
        log_warn(bus->log, "", "nothing acts on %s here", name);
        return;
    }
    /* Where a terminal goes, SIGHUP may come twice, or right after SIGTERM: not a sign of
     * impatience. */
    if (signo != SIGHUP || bus->phase < BUS_PHASE_DRAINING)
        bus_stop(bus);
}

/* --- the log --- */

static void lines_left_out(void *user_data)
{
    struct stdio_bus *bus = user_data;

    if (!timer_started(&bus->log_due))
        stdio_bus_event_loop_start_timer(bus->loop, &bus->log_due, REPETITION_WINDOW_MS);
}

static void report_left_out(void *user_data)
{
    struct stdio_bus *bus = user_data;

    if (log_report(bus->log))
        lines_left_out(bus);
}

/* --- a round of the event loop --- */

/* Every worker has been executed: serves stdin, or the clients that connect. */
static void serve(struct stdio_bus *bus)
{
    bus->phase = BUS_PHASE_SERVING;
    bus_start_idle(bus);
    workers_serve(bus);
    bus->router.demand = true;
    if (bus->options.stdio && clients_add_stdio(bus) != STDIO_BUS_OK)
        begin_stop(bus, BUS_SYSTEM_ERROR);
    else
        notifier_phase(bus);
}

static bool has_notes(const struct stdio_bus *bus)
{
    return bus->router.demand | bus->router.answered_last | bus->router.handshakes.noted |
           bus->stop_noted | bus->end_noted | bus->started_noted | bus->services_noted;
}

/* No client is closed for another one for which a link to another machine is opened. */
static void supply(struct stdio_bus *bus)
{
    workers_overflow(bus);
    if (bus->phase < BUS_PHASE_DRAINING)
        preempt_processes(bus);
    workers_probe(bus);
    workers_supply(bus);
}

/* Acts on what the callbacks of the round have noted. */
static void act_on_notes(struct stdio_bus *bus)
{
    bool ended;

    if (bus->services_noted) {
        bus->services_noted = false;
        each_service(bus, at, act)
            at.service->act(at.state);
    }
    ended = bus->end_noted;
    errands_run(bus);
    if (bus->router.demand)
        supply(bus);
    if (bus->router.answered_last)
        clients_end_answered(bus);
    bus->router.answered_last = bus->end_noted = false;
    if (ended && !bus->options.is_guest && bus->phase < BUS_PHASE_DRAINING &&
        bus->router.worker_count > 0 && workers_all(bus, worker_failed)) {
        log_error(bus->log, "", "no worker is left");
        bus_note_stop(bus, BUS_NO_WORKER_LEFT);
    }
    if (bus->stop_noted)
        begin_stop(bus, bus->reason);
    if (bus->started_noted && bus->phase == BUS_PHASE_STARTING)
        serve(bus);
    bus->started_noted = false;
    if (ended)
        check_stopped(bus);
}

bool bus_has_work(const struct stdio_bus *bus)
{
    return !list_empty(&bus->router.open) || !list_empty(&bus->transport.dirty) ||
           bus->transport.reader_count > 0 || has_notes(bus);
}

static bool after_round(void *user_data)
{
    struct stdio_bus *bus = user_data;
    struct router *router = &bus->router;

    if (bus->transport.reader_count > 0)
        connection_read_turns(&bus->transport);
    if (!list_empty(&router->open))
        deliver_released(bus);
    if (router->timed | router->abandoned)
        cancel_plan(bus);
    if (bus->attentive > 0) {
        each_service(bus, at, after_reading)
            at.service->after_reading(at.state);
    }
    if (has_notes(bus))
        act_on_notes(bus);
    if (bus->attentive > 0) {
        each_service(bus, at, before_writing)
            at.service->before_writing(at.state);
    }
    connection_flush_all(&bus->transport);
    if (bus->attentive > 0) {
        each_service(bus, at, after_writing)
            at.service->after_writing(at.state);
    }
    if (bus->transport.is_awaited)
        bus_watch_slow_clients(bus, SLOW_CLIENTS_SOON_MS);
    return bus_has_work(bus);
}

enum bus_outcome bus_step(struct stdio_bus *bus, int timeout_ms)
{
    if (bus->phase == BUS_PHASE_STOPPED)
        return bus->reason;
    bus->served = stdio_bus_event_loop_run_once(bus->loop, timeout_ms);
    if (bus->served == STDIO_BUS_ERR) {
        log_error(bus->log, "", "cannot wait for events: %s", strerror(errno));
        bus->phase = BUS_PHASE_STOPPED;
        bus->reason = BUS_SYSTEM_ERROR;
    }
    return bus->phase == BUS_PHASE_STOPPED ? bus->reason : BUS_RUNNING;
}

/* --- from creation to destruction --- */

struct stdio_bus *bus_create(const struct bus_options *options)
{
    struct stdio_bus *bus = calloc(1, sizeof *bus);
    struct siphash_key key = siphash_random_key();

    if (bus == NULL)
        goto fail_early;
    bus->options = *options;
    setup_hold(options->setup);
    bus->log = options->log;
    list_init(&bus->listeners);
    list_init(&bus->pools);
    list_init(&bus->visitors);
    visitors_init(&bus->clients, bus, &clients_kind);
    bus->origins_key = key;
    list_init(&bus->gated);
    list_init(&bus->starved);
    list_init(&bus->limited);
    timer_init(&bus->starved_retry, deliver_retry_starved, bus);
    timer_init(&bus->slow_clients.check, slow_clients_check, bus);
    slow_origins_init(bus);
    timer_init(&bus->requests, cancel_expired, bus);
    timer_init(&bus->drain, drain_expired, bus);
    timer_init(&bus->idle, idle_expired, bus);
    timer_init(&bus->log_due, report_left_out, bus);
    timer_init(&bus->idle_clients, client_limits_check_idle, bus);
    notifier_init(bus);
    bus->has_nofile = getrlimit(RLIMIT_NOFILE, &bus->nofile) == 0;
    router_init(&bus->router, &options->config->limits, &key);
    bus->router.strict = options->config->strict;
    router_count_memory(&bus->router, &bus->transport.kept);
    bus->loop = stdio_bus_event_loop_create();
    if (bus->loop == NULL)
        goto fail;
    bus->started_ms = stdio_bus_event_loop_now_ms(bus->loop);
    bus->started_epoch_ms = clock_epoch_ms();
    transport_init(&bus->transport, bus->loop, bus->log, &options->config->limits);
    stdio_bus_event_loop_set_after(bus->loop, after_round, bus);
    log_on_left_out(bus->log, lines_left_out, bus);
    listeners_add_kind(bus, &gate_unix_listener, NULL, NULL);
    listeners_add_kind(bus, &gate_tcp_listener, NULL, NULL);
    if (pools_create(bus) != STDIO_BUS_OK || services_create(bus) != STDIO_BUS_OK ||
        pools_find_dialers(bus) != STDIO_BUS_OK)
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

static int open_signals(struct stdio_bus *bus)
{
    if (!bus->options.handle_signals)
        return STDIO_BUS_OK;
    if (signals_open(&bus->signals, bus->loop, caught_signal, bus) != STDIO_BUS_OK) {
        log_error(bus->log, "", "cannot catch signals: %s", strerror(errno));
        return STDIO_BUS_ERR;
    }
    bus->has_signals = true;
    bus->adopts = getpid() == 1;
    return STDIO_BUS_OK;
}

int bus_start(struct stdio_bus *bus)
{
    descriptor_limit_raise(bus);
    if (open_signals(bus) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    /* Listeners come before workers: if the address cannot be had, no worker is started. */
    notifier_start(bus);
    each_service(bus, at, start)
        at.service->start(at.state);
    if (listeners_open(bus) != STDIO_BUS_OK || pools_start(bus) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (bus->starting_count == 0) /* exclusive pools without spare workers */
        serve(bus);
    return STDIO_BUS_OK;
}

int bus_continue(struct stdio_bus *bus)
{
    if (open_signals(bus) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    notifier_start(bus);
    workers_reap(bus);
    return STDIO_BUS_OK;
}

void bus_destroy(struct stdio_bus *bus)
{
    if (bus == NULL)
        return;
    log_on_left_out(bus->log, NULL, NULL);
    if (bus->loop != NULL) {
        stdio_bus_event_loop_stop_timer(bus->loop, &bus->log_due);
        stdio_bus_event_loop_stop_timer(bus->loop, &bus->idle_clients);
        listeners_close(bus);
        close_visitors(bus, true);
        notifier_stop(bus);
        listeners_free(bus);
        each_service(bus, at, detach)
            at.service->detach(at.state);
        pools_destroy(bus);
        if (bus->has_signals)
            signals_close(&bus->signals);
        transport_free(&bus->transport);
        stdio_bus_event_loop_destroy(bus->loop);
    }
    services_destroy(bus);
    router_free(&bus->router);
    hash_table_free(&bus->origins);
    setup_release(bus->options.setup);
    free(bus);
}

/* --- descriptor limit --- */

void descriptor_limit_raise(struct stdio_bus *bus)
{
    struct rlimit wanted;
    rlim_t need = 32 + 4 * (rlim_t)bus->router.worker_count;

    if (bus->options.listen_count > 0 || services_listen(bus))
        need += (rlim_t)bus->options.config->limits.max_connections * 3 / 2 + 1;
    each_service(bus, at, descriptors)
        need += at.service->descriptors(at.state);
    if (!bus->has_nofile || bus->options.is_guest)
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
