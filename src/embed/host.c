#include "build_config.h"

#include "embed/host.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "embed/sigpipe.h"
#include "router/decision.h"
#include "router/departure.h"
#include "router/to_worker.h"
#include "router/waiting.h"
#include "supervisor/workers.h"
#include "json/scanner.h"

/* --- events --- */

static void note(struct host *host, enum event_kind kind, int number, const char *text)
{
    size_t len = strlen(text);
    char *room = events_add(&host->events, &host->bus->transport.pool, kind, number, len);

    if (room != NULL)
        memcpy(room, text, len + 1);
    else
        log_error(&host->log, host->endpoint.context, "out of memory: \"%s\" is not reported",
                  text);
}

void host_note_error(struct host *host, int code, const char *message)
{
    if (host->options.on_error != NULL)
        note(host, EVENT_ERROR, code, message);
}

static void call_back(void *user_data, const struct event *event, const char *text)
{
    struct host *host = user_data;
    const stdio_bus_options_t *to = &host->options;

    switch (event->kind) {
    case EVENT_MESSAGE:
        to->on_message(host->bus, text, event->len, to->user_data);
        break;
    case EVENT_ERROR:
        to->on_error(host->bus, event->number, text, to->user_data);
        break;
    case EVENT_WORKER:
        to->on_worker(host->bus, event->number, text, to->user_data);
        break;
    case EVENT_CONNECTED:
        to->on_client_connect(host->bus, event->number, text, to->user_data);
        break;
    case EVENT_DISCONNECTED:
        to->on_client_disconnect(host->bus, event->number, text, to->user_data);
        break;
    }
}

int host_call_back(struct host *host, enum event_messages messages)
{
    struct stdio_bus *bus = host->bus;
    int count;

    host->in_callback = true;
    count = events_give(&host->events, &bus->transport.pool, messages, call_back, host);
    host->in_callback = false;
    if (host->endpoint.peer.full &&
        host->events.queue.bytes <= bus->router.limits->max_output_queue / 2)
        waiting_set_full(&bus->router, &host->endpoint.peer, false);
    return count;
}

/* --- operations of the endpoint --- */

static struct host *host_of_endpoint(struct endpoint *endpoint)
{
    return list_entry(endpoint, struct host, endpoint);
}

/* The error that answers the message which is being offered. */
static bool is_of_offer(const struct host *host, const struct delivery *delivery)
{
    return delivery->from == NULL && !delivery->keep && delivery->answered != NULL &&
           host->offered_id.data != NULL && delivery->answered->text.data == host->offered_id.data;
}

static int deliver(struct endpoint *endpoint, const struct delivery *delivery)
{
    struct host *host = host_of_endpoint(endpoint);
    struct stdio_bus *bus = endpoint->bus;
    struct slice bytes = slice_without_newline(delivery->bytes);
    size_t len = splice_len(bytes.len, delivery->edits, delivery->edit_count);
    char *room;

    if (is_of_offer(host, delivery))
        return STDIO_BUS_OK;
    room = events_add(&host->events, &bus->transport.pool, EVENT_MESSAGE, 0, len);
    if (room == NULL)
        return STDIO_BUS_ERR;
    splice_write(room, bytes.data, 0, bytes.len, delivery->edits, delivery->edit_count);
    host->carried.frames_out++;
    host->carried.bytes_out += len;
    if (!endpoint->peer.full && host->events.queue.bytes > bus->router.limits->max_output_queue)
        waiting_set_full(&bus->router, &endpoint->peer, true);
    return STDIO_BUS_OK;
}

static void pause_host(struct endpoint *endpoint)
{
    host_of_endpoint(endpoint)->is_paused = true;
}

static void do_nothing(struct endpoint *endpoint)
{
    (void)endpoint;
}

static void too_long(struct endpoint *endpoint, const struct message *message)
{
    (void)endpoint;
    (void)message;
}

static const struct endpoint_ops host_ops = {
    .deliver = deliver,
    .pause = pause_host,
    .resume = do_nothing,
    .close = do_nothing,
    .watch_hangup = do_nothing,
    .too_long = too_long,
};

/* --- messages of the host --- */

static bool takes_all(const struct worker *worker)
{
    const struct peer *peer = &worker->stream.endpoint.peer;

    return peer->availability != PEER_READY || !peer->full;
}

/* The message would be held: the host keeps it instead. */
static int leave_hold(struct host *host)
{
    struct endpoint *endpoint = &host->endpoint;
    struct stdio_bus *bus = endpoint->bus;
    enum peer_hold held_for = endpoint->peer.held_for;
    bool is_full = held_for == HELD_FOR_QUEUE ||
                   (held_for == HELD_FOR_WORKER && !workers_all(bus, takes_all));

    host->is_paused = false;
    endpoint->blocks_itself = false;
    waiting_leave(&bus->router, &endpoint->peer);
    deliver_end_hold(endpoint);
    stdio_bus_event_loop_stop_timer(bus->loop, &endpoint->hold_timer);
    return is_full ? STDIO_BUS_EFULL : STDIO_BUS_EAGAIN;
}

/* Whether the pool that it is for takes a message of this length. */
static bool fits(struct host *host, const struct message *message)
{
    struct router *router = &host->bus->router;
    struct decision decision UNINITIALIZED;

    if (message->bytes.len <= router->limits->max_input_buffer)
        return true;
    decision_begin(&decision, router, &host->endpoint.peer, message);
    return to_worker_takes_long(&decision) && message->bytes.len <= router->limits->max_message;
}

static int offer(struct host *host, const struct message *message)
{
    enum action action;

    host->offered_id = message->id.text;
    action = deliver_offer(&host->endpoint, message);
    host->offered_id = slice_of(NULL, 0);
    if (host->is_paused)
        return leave_hold(host);
    if (action == ACTION_REFUSE)
        return STDIO_BUS_ERR_ROUTING;
    if (action == ACTION_DISCARD) {
        host->dropped++;
        return STDIO_BUS_ERR_ROUTING;
    }
    host->carried.frames_in++;
    host->carried.bytes_in += message->bytes.len;
    return STDIO_BUS_OK;
}

int host_ingest(struct host *host, struct slice bytes)
{
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    struct scanner scanner UNINITIALIZED;

    if (bytes.data == NULL || !message_scan(&scanner, bytes) ||
        message_from_scan(&message, bytes, &scanner.fields, &scratch) != MESSAGE_OK)
        return STDIO_BUS_ERR_INVALID;
    return fits(host, &message) ? offer(host, &message) : STDIO_BUS_ERR_BUFFER;
}

/* --- reports --- */

/* "closed", "error" or "timeout". */
static const char *short_reason(const char *reason)
{
    static const char *const closed[] = {"hung up", "closed", "shutting down"};

    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
        if (strcmp(reason, closed[i]) == 0)
            return "closed";
    }
    return strstr(reason, "_sec") != NULL || strstr(reason, "did not") != NULL ? "timeout"
                                                                               : "error";
}

static void report_client(struct host *host, const struct bus_report *report, bool came)
{
    bool is_unix = host->options.listener.mode == STDIO_BUS_LISTEN_UNIX;

    if (came) {
        host->connects++;
        if (host->options.on_client_connect != NULL)
            note(host, EVENT_CONNECTED, (int)report->number, is_unix ? "unix" : report->text);
    } else {
        host->disconnects++;
        if (host->options.on_client_disconnect != NULL)
            note(host, EVENT_DISCONNECTED, (int)report->number, short_reason(report->text));
    }
}

void host_report(void *state, const struct bus_report *report)
{
    struct host *host = state;
    const char *event;

    if (report->number == 0)
        return;
    if (report->pool == NULL) {
        report_client(host, report, strcmp(report->name, "connected") == 0);
        return;
    }
    event = report->name;
    if (strcmp(event, "exited") == 0)
        event = report->restarts ? "restarting" : "stopped";
    if (strcmp(event, "started") != 0)
        host->bus->services_noted = true; /* it may be an embedded one */
    if (host->options.on_worker != NULL)
        note(host, EVENT_WORKER, (int)report->number, event);
}

/* --- the service --- */

void *host_create(struct stdio_bus *bus)
{
    struct host *host = bus->options.host;
    struct endpoint *endpoint = &host->endpoint;

    host->bus = bus;
    if (waker_open(&host->waker, bus->loop) != STDIO_BUS_OK)
        return NULL;
    bus->transport.writes = sigpipe_writev;
    host->events.queue.account = &bus->transport.shares[true].queued;
    endpoint->ops = &host_ops;
    endpoint->bus = bus;
    snprintf(endpoint->context, sizeof endpoint->context, "host");
    timer_init(&endpoint->hold_timer, deliver_hold_expired, endpoint);
    router_add_client(&bus->router, &endpoint->peer);
    router_admit_client(&bus->router, &endpoint->peer);
    if (host->options.listener.mode == STDIO_BUS_LISTEN_NONE)
        bus->router.host = &endpoint->peer;
    return host;
}

static void ignore_unanswered(void *user_data, const struct request *request)
{
    (void)user_data;
    (void)request;
}

void host_detach(void *state)
{
    struct host *host = state;
    struct stdio_bus *bus = host->bus;

    bus->router.host = NULL;
    bus_read_clock(bus);
    departure_client(&bus->router, &host->endpoint.peer, ignore_unanswered, NULL);
    stdio_bus_event_loop_stop_timer(bus->loop, &host->endpoint.hold_timer);
    events_clear(&host->events, &bus->transport.pool);
    waker_close(&host->waker);
}
