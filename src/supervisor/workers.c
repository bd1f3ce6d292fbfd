#include "build_config.h"

#include "supervisor/workers.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "bus/listeners.h"
#include "bus/notifier.h"
#include "bus/origins.h"
#include "bus/reports.h"
#include "bus/service.h"
#include "process/pool.h"
#include "router/departure.h"
#include "router/handshake.h"
#include "router/shares.h"
#include "router/waiting.h"
#include "supervisor/crashes.h"
#include "supervisor/early_exit.h"
#include "supervisor/first_answer.h"
#include "supervisor/probe.h"
#include "supervisor/replay.h"
#include "supervisor/sleep.h"

const char *const workers_state_names[WORKER_FAILED + 1] = {
    [WORKER_STARTING] = "starting", [WORKER_RUNNING] = "running", [WORKER_STOPPING] = "stopping",
    [WORKER_STOPPED] = "stopped",   [WORKER_FAILED] = "failed",
};

static struct stdio_bus *bus_of(const struct worker *worker)
{
    return worker->stream.endpoint.bus;
}

static const char *context(const struct worker *worker)
{
    return worker->stream.endpoint.context;
}

/* --- reports of the worker's connection --- */

static struct worker *worker_of(struct connection *connection)
{
    return list_entry(connection, struct worker, stream.connection);
}

/* The connection is all that there is of a process that was dialled. One that has sent something
 * does not count as a failure, but for a refusal; nor does one that is on another machine. */
static void report_end(struct worker *worker, enum worker_event event)
{
    bool dialled = worker->program.dialer != NULL;

    if (dialled && !worker->refused &&
        (worker->stream.connection.frames_in > 0 || !worker_is_front(worker)))
        restart_forget(&worker->restart);
    worker->refused = false;
    worker_handle(worker, event);
    if (dialled)
        worker_handle(worker, WORKER_EXITED);
}

/* What programs write that speak as language servers do, in a pool of lines. */
static bool is_header(struct slice output)
{
    static const char header[] = "Content-Length:";

    return output.len >= sizeof header - 1 &&
           strncasecmp(output.data, header, sizeof header - 1) == 0;
}

static void advise_framing(const struct worker *worker)
{
    log_warn(bus_of(worker)->log, context(worker),
             "the worker writes Content-Length headers: its pool needs \"framing\": "
             "\"content-length\" (--worker-framing content-length)");
}

/* Spec 5.3. */
static void on_malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct worker *worker = worker_of(connection);

    (void)fault;
    log_error(bus_of(worker)->log, context(worker), "malformed output: %s; terminating it",
              problem);
    if (connection->has_lines && connection->input != NULL &&
        is_header(slice_of(connection->input->data + connection->input->start,
                           buffer_len(connection->input))))
        advise_framing(worker);
    report_end(worker, WORKER_MISBEHAVED);
}

/* ADR-010: the worker continues. If the frame was an answer, it is lost. */
static void on_refused(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct worker *worker = worker_of(connection);

    (void)fault;
    log_warn(bus_of(worker)->log, context(worker), "refused a frame of its output: %s", problem);
}

/* Reads what the scanner has seen of a line that is no message. False: not even its beginning. */
static bool read_fields(const struct scanner *scanner, struct slice line, struct message *message,
                        struct message_scratch *scratch)
{
    bool in_object = scanner->depth > 0 || scanner->error == SCAN_ERROR_TRAILING;

    if (in_object)
        (void)message_from_scan(message, line, &scanner->fields, scratch);
    return in_object;
}

/* If the line was to be an answer, its client would wait in vain. */
static void skip(struct worker *worker, const struct message *message, struct slice line,
                 const char *problem)
{
    stream_skipped(&worker->stream.connection, line, problem);
    if (is_header(line))
        advise_framing(worker);
    if (message != NULL && message_is_response(message) && message->id.type != ID_NONE)
        deliver_lost_answer(&worker->stream.endpoint, message, problem);
}

static void on_skipped(struct connection *connection, struct slice line, const char *problem)
{
    struct worker *worker = worker_of(connection);
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    bool begun = read_fields(&worker->stream.scanner, line, &message, &scratch);

    skip(worker, begun ? &message : NULL, line, problem);
}

static void on_unacceptable(struct stream *stream, const struct message *message,
                            enum message_problem problem)
{
    struct connection *connection = &stream->connection;
    const char *text = message_problem_text(problem);

    if (!connection->has_lines)
        on_refused(connection, FRAME_FAULT_TYPE, text);
    else if (connection->skips_bad_lines)
        skip(worker_of(connection), message, message->bytes, text);
    else
        on_malformed(connection, FRAME_FAULT_SYNTAX, text);
}

static void on_ended(struct connection *connection, size_t cut)
{
    struct worker *worker = worker_of(connection);

    if (cut > 0)
        log_warn(bus_of(worker)->log, context(worker),
                 "its output ended in the middle of a message; %zu bytes were dropped", cut);
    report_end(worker, WORKER_OUTPUT_ENDED);
}

static void on_connection_failed(struct connection *connection, enum connection_failure failure,
                                 int error)
{
    struct worker *worker = worker_of(connection);
    struct log *log = bus_of(worker)->log;

    if (failure == CONNECTION_BROKEN) {
        log_warn(log, context(worker), "its stdin is closed (%s); %zu bytes for it were dropped",
                 strerror(error), connection->output.bytes);
        worker_handle(worker, WORKER_INPUT_BROKEN);
        return;
    }
    if (connection->input_state == INPUT_PAUSED && !worker->stream.endpoint.blocks_itself) {
        /* Its output is held, so that it may be unable to read. The peer that it is held for has a
         * time limit too. */
        connection_renew_stall(connection);
        return;
    }
    log_error(log, context(worker),
              "did not read for backpressure_timeout_sec; %zu bytes for it were dropped; "
              "terminating it",
              connection->output.bytes);
    report_end(worker, WORKER_MISBEHAVED);
}

#define WORKER_HANDLER(message_fn)                                                                 \
    {                                                                                              \
        .message = (message_fn), .unacceptable = on_unacceptable,                                  \
        .long_message = deliver_long_message,                                                      \
        .connection = {                                                                            \
            .frame = stream_read,                                                                  \
            .malformed = on_malformed,                                                             \
            .skipped = on_skipped,                                                                 \
            .refused = on_refused,                                                                 \
            .ended = on_ended,                                                                     \
            .full = deliver_full,                                                                  \
            .failed = on_connection_failed,                                                        \
            .starved = deliver_starved,                                                            \
        },                                                                                         \
    }

/* The messages after the first answer cost nothing more. What its pool lacks is started now. */
static void on_first_answer(struct worker *worker)
{
    worker->stream.handler = &workers_handlers[WORKERS_MESSAGES];
    if (pool_of(worker)->group.failure.count > 0)
        bus_of(worker)->router.demand = true;
}

/* A message of a new process. */
static void on_new_message(struct endpoint *from, const struct message *message)
{
    struct worker *worker = list_entry(from, struct worker, stream.endpoint);

    if (message_is_response(message)) {
        first_answer_check(worker, message);
        on_first_answer(worker);
    }
    deliver_message(from, message);
}

static void on_message_in_replay(struct endpoint *from, const struct message *message)
{
    struct worker *worker = list_entry(from, struct worker, stream.endpoint);

    if (!message_is_response(message) || !replay_take_answer(worker, message)) {
        first_answer_check_refusal(worker, message);
        deliver_message(from, message);
    } else if (!replay_runs(worker)) {
        on_first_answer(worker);
    }
}

static void on_message_in_probe(struct endpoint *from, const struct message *message)
{
    struct worker *worker = list_entry(from, struct worker, stream.endpoint);

    if (!message_is_response(message)) {
        deliver_message(from, message);
        return;
    }
    on_first_answer(worker);
    probe_take_answer(worker, message);
}

const struct stream_handler workers_handlers[WORKERS_HANDLERS] = {
    [WORKERS_MESSAGES] = WORKER_HANDLER(deliver_message),
    [WORKERS_NEW] = WORKER_HANDLER(on_new_message),
    [WORKERS_REPLAY] = WORKER_HANDLER(on_message_in_replay),
    [WORKERS_PROBE] = WORKER_HANDLER(on_message_in_probe),
};

static void probe(struct worker *worker)
{
    if (probe_begin(worker))
        worker->stream.handler = &workers_handlers[WORKERS_PROBE];
}

const char *workers_state(const struct worker *worker)
{
    if (worker->state != WORKER_STOPPED || timer_started(&worker->deadline))
        return workers_state_names[worker->state];
    if (worker->stream.endpoint.peer.rest == PEER_AWAKE)
        return workers_state_names[WORKER_STOPPED];
    return worker->starts == 0 ? "not started" : "asleep";
}

void workers_probe(struct stdio_bus *bus)
{
    workers_each(bus, probe);
}

/* --- reports of the worker itself --- */

static void on_available(struct worker *worker, enum peer_availability availability)
{
    struct stdio_bus *bus = bus_of(worker);

    notifier_changed(bus);
    if (availability == PEER_READY) {
        reports_worker_started(worker);
        sleep_begin(worker);
    }
    /* While starting, the first worker to be up would get everything; afterwards no worker gets a
     * message. */
    if (availability == PEER_READY &&
        (bus->phase == BUS_PHASE_STARTING || bus->phase >= BUS_PHASE_DRAINING))
        return;
    if (availability == PEER_READY && replay_begin(worker)) {
        worker->stream.handler = &workers_handlers[WORKERS_REPLAY];
        return;
    }
    if (availability == PEER_FAILED)
        replay_worker_failed(worker);
    waiting_worker_available(&bus->router, &worker->stream.endpoint.peer, availability);
}

/* A client's request will not be answered by the worker that had it (spec 7.1.2). */
static void report_unanswered(void *user_data, const struct request *request)
{
    const struct worker *worker = user_data;
    char text[64];

    log_warn(bus_of(worker)->log, endpoint_of_peer(request->asker)->context,
             "its pending request (id %s) is discarded: the worker exited",
             log_escape(text, sizeof text, request->asker_id.text));
    early_exit_answer(worker, request);
}

/* The only client that there will be has just been closed. */
static bool lost_its_only_client(const struct worker *worker)
{
    return worker_is_front(worker) && bus_of(worker)->reason != BUS_RUNNING;
}

static void on_gone(struct worker *worker)
{
    struct stdio_bus *bus = bus_of(worker);
    struct peer *peer = &worker->stream.endpoint.peer;
    bool expected;

    stdio_bus_event_loop_stop_timer(bus->loop, &worker->stream.endpoint.hold_timer);
    bus_read_clock(bus);
    crashes_blame(worker);
    probe_process_ended(worker);
    sleep_process_ended(worker);
    early_exit_note(worker);
    expected = departure_worker(&bus->router, peer, report_unanswered, worker);
    replay_process_ended(worker);
    if (lost_its_only_client(worker)) {
        worker_stop(worker);
    } else if (expected) {
        crashes_excuse(worker);
        worker_handle(worker, WORKER_RETIRE);
    }
    crashes_note(worker);
}

void workers_release_origin(struct worker *worker)
{
    struct peer *peer = &worker->stream.endpoint.peer;

    origins_release(peer->origin);
    shares_ended(peer);
}

/* The next process is of the configuration that there is now (reload/renewals.h). */
static void note_renewed(struct worker *worker)
{
    if (worker->renewal != RENEWAL_IN_PLACE)
        return;
    worker->renewal = RENEWAL_NONE;
    list_remove(&worker->renewing);
}

/* A process that was ended for that is started again at once. */
static void restart_if_asked(struct worker *worker)
{
    bool asked = worker->restart_asked;

    worker->restart_asked = false;
    if (asked && bus_of(worker)->phase < BUS_PHASE_DRAINING)
        worker_handle(worker, WORKER_DEADLINE);
}

static void on_finished(struct worker *worker)
{
    struct stdio_bus *bus = bus_of(worker);

    listeners_descriptor_freed(bus);
    note_renewed(worker);
    workers_release_origin(worker);
    crashes_note(worker);
    waiting_worker_free(&bus->router, &worker->stream.endpoint.peer);
    bus->router.demand = true;
    bus->end_noted = true;
    notifier_changed(bus);
    reports_worker_finished(worker);
    restart_if_asked(worker);
}

static void on_first_exec(struct worker *worker, bool succeeded)
{
    struct stdio_bus *bus = bus_of(worker);

    if (bus->phase != BUS_PHASE_STARTING)
        return; /* started for a client: its restarts show whether it can be executed */
    if (succeeded || bus->options.told_log != NULL) /* the clients that wait are told */
        bus->started_noted = --bus->starting_count == 0;
    else
        bus_note_stop(bus, BUS_BAD_COMMAND);
}

#define WORKER_HOST(stream_handler)                                                                \
    {                                                                                              \
        .stream = (stream_handler), .available = on_available, .gone = on_gone,                    \
        .finished = on_finished, .first_exec = on_first_exec, .early_delay = early_exit_delay,     \
    }

static const struct worker_host worker_host = WORKER_HOST(&workers_handlers[WORKERS_MESSAGES]);
static const struct worker_host new_worker_host = WORKER_HOST(&workers_handlers[WORKERS_NEW]);

const struct worker_host *workers_host_of(const struct pool_mode *mode)
{
    return first_answer_matters(mode) ? &new_worker_host : &worker_host;
}

/* --- all of them --- */

size_t workers_answering(const struct peer *peer)
{
    struct list_node *node, *following;
    size_t count = 0;

    list_each(&peer->answering, node, following)
        count += list_entry(node, struct request, in_answerer)->state == REQUEST_ACTIVE;
    return count;
}

struct worker *workers_next(const struct stdio_bus *bus, const struct worker *worker)
{
    const struct list_node *pool = &bus->pools.head, *node = NULL;

    if (worker != NULL) {
        pool = &pool_of(worker)->link;
        node = worker->link.next;
    }
    while (node == NULL || node == &list_entry(pool, struct pool, link)->workers.head) {
        pool = pool->next;
        if (pool == &bus->pools.head)
            return NULL;
        node = list_entry(pool, struct pool, link)->workers.head.next;
    }
    return list_entry(node, struct worker, link);
}

struct worker *workers_numbered(const struct stdio_bus *bus, int64_t number)
{
    struct worker *worker = NULL;

    while ((worker = workers_next(bus, worker)) != NULL) {
        if (worker->number == number)
            break;
    }
    return worker;
}

void workers_each(struct stdio_bus *bus, void (*fn)(struct worker *worker))
{
    struct worker *worker, *following;

    for (worker = workers_next(bus, NULL); worker != NULL; worker = following) {
        following = workers_next(bus, worker);
        fn(worker);
    }
}

bool workers_all(const struct stdio_bus *bus, bool (*is)(const struct worker *worker))
{
    const struct worker *worker = NULL;

    while ((worker = workers_next(bus, worker)) != NULL) {
        if (!is(worker))
            return false;
    }
    return true;
}

void workers_end_hold(struct worker *worker)
{
    struct stdio_bus *bus = worker->stream.endpoint.bus;
    struct peer *peer = &worker->stream.endpoint.peer;

    if (peer_held(peer))
        waiting_release(&bus->router, peer);
}

static void overflow(struct stdio_bus *bus, struct pool *pool)
{
    size_t count = pool_lacks(pool);

    each_service(bus, at, overflow) {
        if (count > 0)
            at.service->overflow(at.state, pool, count);
    }
}

static bool may_supply(const struct stdio_bus *bus)
{
    return bus->phase != BUS_PHASE_STARTING && bus->phase < BUS_PHASE_DRAINING;
}

void workers_overflow(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    if (!turns_empty(&bus->router.released) || !may_supply(bus))
        return;
    list_each(&bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        if (pool->config->overflows && pool->fate == POOL_SERVES)
            overflow(bus, pool);
    }
}

void workers_supply(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    if (!turns_empty(&bus->router.released))
        return; /* a released client may be about to take a process */
    bus->router.demand = false;
    if (!may_supply(bus))
        return;
    list_each(&bus->pools, node, following)
        pool_supply(list_entry(node, struct pool, link));
}

static void serve(struct worker *worker)
{
    if (worker->state == WORKER_RUNNING)
        waiting_worker_available(&bus_of(worker)->router, &worker->stream.endpoint.peer,
                                 PEER_READY);
}

void workers_serve(struct stdio_bus *bus)
{
    workers_each(bus, serve);
}

/* --- reap --- */

static struct worker *worker_of_process(struct stdio_bus *bus, pid_t pid)
{
    struct worker *worker = NULL;

    while ((worker = workers_next(bus, worker)) != NULL) {
        if (worker->child.pid == pid)
            break;
    }
    return worker;
}

/* The exit of a worker that is seen here is the worker's to read: its status must not be lost. */
static void reap_adopted(struct stdio_bus *bus)
{
    pid_t pid;
    int status;

    while ((pid = process_exited()) > 0) {
        struct worker *worker = worker_of_process(bus, pid);

        if (worker != NULL) {
            worker_check_exit(worker);
            if (worker->child.pid == pid)
                return;
        } else if (process_reap(pid, &status)) {
            log_debug(bus->log, "", "reaped process %ld, which had lost its parent", (long)pid);
        } else {
            return;
        }
    }
}

void workers_reap(struct stdio_bus *bus)
{
    workers_each(bus, worker_check_exit);
    if (bus->adopts)
        reap_adopted(bus);
}
