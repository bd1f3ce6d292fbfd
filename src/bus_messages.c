#include "build_config.h"

#include "bus_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define STARVED_RETRY_MS 100

void bus_send_error(struct stdio_bus *bus, struct endpoint *to, struct message_id id, int code,
                    const char *text)
{
    char line[MESSAGE_ERROR_MAX];
    size_t len;

    if (bus->options.config->strict)
        return;
    len = message_write_error(line, sizeof line, id, code, text);
    if (connection_send(&to->connection, slice_of(line, len)) != STDIO_BUS_OK)
        log_error(bus->log, to->connection.context, "out of memory: an error reply was lost");
}

void bus_starve(struct stdio_bus *bus, struct endpoint *endpoint)
{
    log_error(bus->log, endpoint->connection.context, "out of memory: trying again in %d ms",
              STARVED_RETRY_MS);
    router_hold(&bus->starved, &endpoint->peer);
    if (!timer_started(&bus->starved_retry))
        timers_start(stdio_bus_event_loop_timers(bus->loop), &bus->starved_retry,
                     stdio_bus_event_loop_now_ms(bus->loop) + STARVED_RETRY_MS);
}

/* The id in a log line. */
static const char *id_text(char *to, size_t size, struct message_id id)
{
    if (id.type == ID_NONE) {
        snprintf(to, size, "none");
        return to;
    }
    return log_escape(to, size, id.text);
}

/* "discarded a message (id 7, sessionId none): TEXT", at the level of what was done with it. */
static void log_message(struct stdio_bus *bus, enum log_level level, const struct endpoint *from,
                        const struct message *message, const char *done, const char *between,
                        const char *text)
{
    char id[64], session[64];

    log_write(bus->log, level, from->connection.context, "%s a message (id %s, sessionId %s)%s%s",
              done, id_text(id, sizeof id, message->id),
              message->session_id.data != NULL
                  ? log_escape(session, sizeof session, message->session_id)
                  : "none",
              between, text);
}

void bus_log_forwarding(struct stdio_bus *bus, const struct endpoint *from,
                        const struct message *message, const struct route *route)
{
    log_message(bus, LOG_LEVEL_DEBUG, from, message, "forwarding", " to ",
                endpoint_of_peer(route->to)->connection.context);
}

void bus_log_discarded(struct stdio_bus *bus, enum log_level level, const struct endpoint *from,
                       const struct message *message, const char *text)
{
    log_message(bus, level, from, message, "discarded", ": ", text);
}

static bool has_lengths(const struct framing *framing)
{
    return framing != NULL && framing != &framing_ndjson;
}

/* How long a message may be that is put into a queue. */
static size_t longest_message(const struct stdio_bus *bus)
{
    const struct config *config = bus->options.config;
    bool framed = has_lengths(bus->options.framing);
    size_t i;

    for (i = 0; i < config->pool_count; i++)
        framed = framed || has_lengths(config->pools[i].framing);
    return framed ? config->limits.max_frame_body : config->limits.max_input_buffer;
}

/* Who does not read their errors cannot go on asking for more of them. A worker may be unable to
 * read just because we hold its output, and would never be released if it were held for its own
 * queue: it has as much room for errors again, beside all that the queue may hold of messages, the
 * last of which may exceed it. */
static bool owed_too_much(const struct stdio_bus *bus, const struct endpoint *endpoint)
{
    const struct limits *limits = &bus->options.config->limits;
    size_t max = 2 * limits->max_output_queue + longest_message(bus);

    return endpoint->peer.full && (!endpoint->is_worker || endpoint->connection.output.bytes > max);
}

bool bus_hold_debtor(struct stdio_bus *bus, struct endpoint *endpoint)
{
    if (!owed_too_much(bus, endpoint))
        return false;
    endpoint->blocks_itself = true;
    router_hold(&endpoint->peer.waiting, &endpoint->peer);
    return true;
}

/* A request gets an error, so that whoever sent it does not wait in vain. */
static enum connection_verdict refuse(struct stdio_bus *bus, struct endpoint *from,
                                      const struct message *message, const struct route *route)
{
    bool is_reply = message_is_response(message) && message->method.data == NULL;
    bool told = message->id.type != ID_NONE && !is_reply && !bus->options.config->strict;

    if (told && bus_hold_debtor(bus, from))
        return CONNECTION_HELD;
    bus_log_discarded(bus, LOG_LEVEL_WARN, from, message, route->text);
    if (told)
        bus_send_error(bus, from, message->id, route->code, route->text);
    return CONNECTION_NEXT;
}

static void start_hold_timer(struct stdio_bus *bus, struct endpoint *endpoint)
{
    timers_start(stdio_bus_event_loop_timers(bus->loop), &endpoint->hold,
                 stdio_bus_event_loop_now_ms(bus->loop) +
                     (int64_t)bus->options.config->limits.backpressure_timeout_sec * 1000);
}

enum connection_verdict bus_end_forward(struct stdio_bus *bus, struct endpoint *from,
                                        const struct route *route, int status)
{
    if (status == STDIO_BUS_OK) {
        router_forwarded(&bus->router, route);
        return CONNECTION_NEXT;
    }
    router_forward_failed(&bus->router, route);
    bus_starve(bus, from);
    return CONNECTION_HELD;
}

enum connection_verdict bus_carry_out(struct stdio_bus *bus, struct endpoint *from,
                                      const struct message *message, const struct route *route)
{
    switch (route->action) {
    case ROUTE_FORWARD:
        if (log_enabled(bus->log, LOG_LEVEL_DEBUG))
            bus_log_forwarding(bus, from, message, route);
        return bus_end_forward(bus, from, route,
                               connection_forward(&endpoint_of_peer(route->to)->connection,
                                                  &from->connection, message->bytes));
    case ROUTE_HOLD:
        if (route->waits_for_id)
            start_hold_timer(bus, from);
        return CONNECTION_HELD;
    case ROUTE_REFUSE:
        return refuse(bus, from, message, route);
    case ROUTE_DISCARD:
        bus_log_discarded(bus, LOG_LEVEL_WARN, from, message, route->text);
        return CONNECTION_NEXT;
    case ROUTE_NO_MEMORY:
    case ROUTE_FORWARD_EDITED: /* these are bus_sharing.c's */
    case ROUTE_BROADCAST:
    case ROUTE_HOLD_UNTIL:
    case ROUTE_DROP:
        break;
    }
    bus_starve(bus, from);
    return CONNECTION_HELD;
}

void bus_resume(struct stdio_bus *bus, struct peer *peer)
{
    struct endpoint *endpoint = endpoint_of_peer(peer);

    timers_stop(stdio_bus_event_loop_timers(bus->loop), &endpoint->hold);
    endpoint->blocks_itself = false;
    /* A worker may have stopped reading because we stopped reading from it. */
    if (endpoint->is_worker)
        connection_renew_stall(&endpoint->connection);
    connection_resume(&endpoint->connection);
}
