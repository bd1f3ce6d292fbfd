#include "build_config.h"

#include "transport/memory.h"

#include "base/assert.h"

/* What other connections of the same origin have reserved. */
static size_t held_by_origin(const struct connection *connection)
{
    return connection->memory_origin != NULL ? connection->memory_origin->reserved : 0;
}

static bool fits(const struct connection *connection, size_t len)
{
    const struct memory_share *share = memory_share_of(connection);
    size_t half = connection->transport->limits->max_memory / 2;
    size_t bound = held_by_origin(connection) > 0 ? half / 2 : half;
    size_t used = share->queued + share->reserved;

    return used + (len < bound ? len : bound) <= bound;
}

/* Adds to what the connection has reserved, or takes from it. */
static void account(struct connection *connection, size_t added, size_t taken)
{
    connection->reserved += added - taken;
    memory_share_of(connection)->reserved += added - taken;
    if (connection->memory_origin != NULL)
        connection->memory_origin->reserved += added - taken;
}

static void hold(struct connection *connection, size_t len)
{
    ASSERT(!list_linked(&connection->memory) && len > 0);
    account(connection, len, 0);
    if (connection->memory_origin != NULL)
        connection->memory_origin->turn = ++connection->transport->memory_turns;
    list_append(&memory_share_of(connection)->holders, &connection->memory);
}

/* A message whose memory others wait for must be complete in time. A frame has its time anyway. */
static void start_time(struct connection *connection)
{
    if (!connection->has_lines || timer_started(&connection->frame_time))
        return;
    connection->timed_frames = connection->frames_in;
    connection_start_frame_time(connection);
}

static void leave_line(struct connection *connection)
{
    struct transport *transport = connection->transport;

    list_remove(&connection->memory);
    transport->waiting_count--;
    transport->is_awaited = !list_empty(&transport->shares[1].waiting);
}

bool memory_reserve(struct connection *connection, size_t len)
{
    memory_release(connection);
    if (memory_awaited(connection) || !fits(connection, len))
        return false;
    hold(connection, len);
    return true;
}

void memory_wait(struct connection *connection, size_t len)
{
    struct memory_share *share = memory_share_of(connection);
    struct list_node *node, *following;

    ASSERT(!list_linked(&connection->memory));
    log_debug(connection->transport->log, connection->context,
              "waits for the memory of long messages (max_memory)");
    connection->awaited = len;
    list_append(&share->waiting, &connection->memory);
    connection->transport->waiting_count++;
    connection->transport->is_awaited |= connection->of_worker;
    list_each(&share->holders, node, following)
        start_time(list_entry(node, struct connection, memory));
    connection_watch(connection, connection->interest & ~STDIO_BUS_EVENT_READ);
}

void memory_forget(struct connection *connection)
{
    if (connection->reserved == 0)
        leave_line(connection);
    list_remove(&connection->memory);
    account(connection, 0, connection->reserved);
    if (connection->has_lines)
        stdio_bus_event_loop_stop_timer(connection->transport->loop, &connection->frame_time);
}

static bool is_before(const struct connection *a, const struct connection *b)
{
    size_t held_by_a = held_by_origin(a), held_by_b = held_by_origin(b);

    if (held_by_a != held_by_b)
        return held_by_a < held_by_b;
    return a->memory_origin != NULL && b->memory_origin != NULL &&
           a->memory_origin->turn < b->memory_origin->turn;
}

/* The connection whose origin has least; of several, that of the origin that has waited longest
 * since its last reservation. */
static struct connection *next_waiting(struct memory_share *share)
{
    struct list_node *node, *following;
    struct connection *first = NULL;

    list_each(&share->waiting, node, following) {
        struct connection *connection = list_entry(node, struct connection, memory);

        if (first == NULL || is_before(connection, first))
            first = connection;
    }
    return first;
}

static void serve_share(struct memory_share *share)
{
    struct connection *first;

    while ((first = next_waiting(share)) != NULL) {
        if (!fits(first, first->awaited))
            return;
        leave_line(first);
        hold(first, first->awaited);
        if (timer_started(&first->frame_time)) /* the wait was not the peer's delay */
            connection_start_frame_time(first);
        if (!list_empty(&share->waiting))
            start_time(first);
        connection_watch(first, first->interest | STDIO_BUS_EVENT_READ);
    }
}

void memory_serve(struct transport *transport)
{
    serve_share(&transport->shares[0]);
    serve_share(&transport->shares[1]);
    transport->is_awaited = !list_empty(&transport->shares[1].waiting);
}
