#include "build_config.h"

#include "bus/client_limits.h"

#include "bus/deliver.h"
#include "endpoint/stream.h"
#include "router/waiting.h"

#define MESSAGE 1000 /* the credit that a message costs */

static const struct limits *limits_of(const struct stdio_bus *bus)
{
    return &bus->options.config->limits;
}

/* --- the rate --- */

static void due(void *user_data)
{
    struct endpoint *endpoint = user_data;
    struct stdio_bus *bus = endpoint->bus;

    waiting_release_all(&bus->router, &endpoint->limits->waiting);
}

/* Takes the credit for a message. Returns 0, or the milliseconds until there will be enough. */
static int64_t take_turn(const struct stdio_bus *bus, struct client_limits *limits)
{
    int64_t now_ms = stdio_bus_event_loop_now_ms(bus->loop);
    int64_t rate = (int64_t)limits_of(bus)->max_message_rate, full = rate * MESSAGE;
    int64_t passed_ms = now_ms - limits->credited_ms;

    limits->credit = passed_ms >= 1000 ? full : limits->credit + passed_ms * rate;
    if (limits->credit > full)
        limits->credit = full;
    limits->credited_ms = now_ms;
    if (limits->credit < MESSAGE)
        return (MESSAGE - limits->credit + rate - 1) / rate;
    limits->credit -= MESSAGE;
    return 0;
}

/* Whether the message waits: then it is offered again. The shutdown does not wait for turns. */
static bool waits(struct endpoint *from)
{
    struct stdio_bus *bus = from->bus;
    struct client_limits *limits = from->limits;
    int64_t wait_ms;

    if (limits == NULL || limits->is_paid || bus->router.closing ||
        limits_of(bus)->max_message_rate == 0)
        return false;
    wait_ms = take_turn(bus, limits);
    if (wait_ms == 0)
        return false;
    bus->rate_waits++;
    from->ops->pause(from);
    waiting_hold(&limits->waiting, &from->peer);
    stdio_bus_event_loop_start_timer(bus->loop, &limits->due, wait_ms);
    return true;
}

/* A message that the router holds comes again, and has had its turn. */
static void note_paid(struct endpoint *from)
{
    if (from->limits != NULL) /* it may have come before there was a limit */
        from->limits->is_paid = peer_held(&from->peer);
}

void client_limits_message(struct endpoint *from, const struct message *message)
{
    if (waits(from))
        return;
    deliver_message(from, message);
    note_paid(from);
}

void client_limits_long_message(struct endpoint *from, const struct message *message)
{
    if (waits(from))
        return;
    deliver_long_message(from, message);
    note_paid(from);
}

void client_limits_offer(struct endpoint *from, const struct message *message)
{
    const struct stdio_bus *bus = from->bus;
    bool has_rate = limits_of(bus)->max_message_rate > 0;

    if (has_rate && waits(from))
        return;
    if (message->fields->oddities & (SCAN_LONG | SCAN_CUT))
        deliver_long_message(from, message);
    else
        deliver_message(from, message);
    if (has_rate)
        note_paid(from);
}

/* --- silence --- */

static int64_t check_interval_ms(const struct stdio_bus *bus)
{
    return (int64_t)limits_of(bus)->idle_timeout_sec * 1000 / 4;
}

/* A client that waits for an answer, was asked, or has bytes to read is not idle. */
static bool is_busy(const struct peer *peer, const struct connection *connection)
{
    return !list_empty(&peer->asked) || !list_empty(&peer->answering) || peer_held(peer) ||
           connection->input_state == INPUT_PAUSED || connection->output.bytes > 0;
}

static bool is_silent(const struct stdio_bus *bus, struct client_limits *limits, int64_t now_ms)
{
    const struct connection *connection = &stream_of(limits->endpoint)->connection;
    uint64_t frames = connection->frames_in + connection->frames_out;

    if (frames != limits->frames || is_busy(&limits->endpoint->peer, connection)) {
        limits->frames = frames;
        limits->silent_ms = now_ms;
    }
    return limits_of(bus)->idle_timeout_sec > 0 &&
           now_ms - limits->silent_ms >= (int64_t)limits_of(bus)->idle_timeout_sec * 1000;
}

static void close_idle(struct stdio_bus *bus, struct client_limits *limits)
{
    limits->may_idle = false;
    bus->idle_closed++;
    limits->endpoint->peer.closing = "no message for idle_timeout_sec";
    limits->endpoint->ops->close(limits->endpoint);
}

void client_limits_check_idle(void *user_data)
{
    struct stdio_bus *bus = user_data;
    int64_t now_ms = stdio_bus_event_loop_now_ms(bus->loop);
    struct list_node *node, *following;

    list_each(&bus->limited, node, following) {
        struct client_limits *limits = list_entry(node, struct client_limits, link);

        if (limits->may_idle && is_silent(bus, limits, now_ms))
            close_idle(bus, limits);
    }
    client_limits_changed(bus);
}

void client_limits_changed(struct stdio_bus *bus)
{
    if (!list_empty(&bus->limited) && limits_of(bus)->idle_timeout_sec > 0)
        stdio_bus_event_loop_start_timer(bus->loop, &bus->idle_clients, check_interval_ms(bus));
}

/* --- from start to stop --- */

size_t client_limits_size(const struct stdio_bus *bus)
{
    const struct limits *limits = limits_of(bus);

    return limits->max_message_rate > 0 || limits->idle_timeout_sec > 0
               ? sizeof(struct client_limits)
               : 0;
}

void client_limits_start(struct endpoint *endpoint, bool may_idle)
{
    struct stdio_bus *bus = endpoint->bus;
    struct client_limits *limits = endpoint->limits;

    if (limits == NULL)
        return;
    limits->endpoint = endpoint;
    list_init(&limits->waiting);
    list_append(&bus->limited, &limits->link);
    timer_init(&limits->due, due, endpoint);
    limits->credited_ms = stdio_bus_event_loop_now_ms(bus->loop);
    limits->credit = (int64_t)limits_of(bus)->max_message_rate * MESSAGE;
    client_limits_set_idle(endpoint, may_idle);
}

void client_limits_set_idle(struct endpoint *endpoint, bool may_idle)
{
    struct stdio_bus *bus = endpoint->bus;
    struct client_limits *limits = endpoint->limits;

    if (limits == NULL)
        return;
    limits->may_idle = may_idle && limits_of(bus)->idle_timeout_sec > 0;
    limits->silent_ms = stdio_bus_event_loop_now_ms(bus->loop);
    if (limits->may_idle && !timer_started(&bus->idle_clients))
        stdio_bus_event_loop_start_timer(bus->loop, &bus->idle_clients, check_interval_ms(bus));
}

void client_limits_stop(struct endpoint *endpoint)
{
    struct stdio_bus *bus = endpoint->bus;

    if (endpoint->limits == NULL)
        return;
    list_remove(&endpoint->limits->link);
    stdio_bus_event_loop_stop_timer(bus->loop, &endpoint->limits->due);
}

/* --- the archive --- */

/* One that was connected when there was no limit has none; and the limits may be gone since. */
void client_limits_archive(struct archive *archive, struct endpoint *endpoint)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct client_limits, may_idle, is_paid),
        ARCHIVE_INTEGERS(struct client_limits, credit, credited_ms, frames, silent_ms),
    };
    struct client_limits none = {.may_idle = false}, *limits = endpoint->limits;
    bool is_limited = archive_present(archive, limits != NULL);

    if (!is_limited && archive_ok(archive)) {
        client_limits_stop(endpoint);
        endpoint->limits = NULL;
    }
    if (is_limited)
        ARCHIVE_FIELDS(archive, limits != NULL ? limits : &none, fields);
}
