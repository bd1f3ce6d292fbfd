#include "build_config.h"

#include "transport/memory.h"

#include "base/assert.h"

/* What a message gets in any case. */
#define MESSAGE_MS 1000
#define BYTES_PER_MS 8192

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Whether a connection that reserves `len` bytes may need more before its message ends. */
static bool may_grow(const struct connection *connection, size_t len)
{
    return memory_grows(connection) && len < connection->framing_state.max_long;
}

/* What other connections of the same origin have reserved. For a line that grows, those that may
 * grow too do not count: they may wait for it. */
static size_t held_by_origin(const struct connection *connection)
{
    const struct transport_origin *origin = connection->origin;

    if (origin == NULL)
        return 0;
    return connection->grows ? origin->reserved - origin->growing : origin->reserved;
}

/* What is left for the messages of clients beside what tables keep for them. */
static size_t half_of_clients(const struct transport *transport)
{
    size_t half = transport->limits->max_memory / 2;

    return half - least(transport->kept, half / 2);
}

/* What there is for messages like that of the connection, which reserves `len` bytes. */
static size_t half_of(const struct connection *connection, size_t len)
{
    const struct transport *transport = connection->transport;

    if (connection->of_worker || (connection->grows && len > connection->reserved))
        return transport->limits->max_memory / 2;
    return half_of_clients(transport);
}

/* Whether there are `len` bytes for the connection, in place of those that it has, when
 * `taken` more are in queues. Beside all lines that may grow there is room for one to do so: else
 * each could wait for the others. */
static bool fits(const struct connection *connection, size_t len, size_t taken)
{
    const struct memory_share *share = memory_share_of(connection);
    size_t half = half_of(connection, len);
    size_t bound = held_by_origin(connection) > 0 ? half / 2 : half;
    size_t used = share->queued + taken + share->reserved - connection->reserved;

    return used + least(len, bound) <= bound &&
           (!may_grow(connection, len) ||
            share->growing + least(connection->framing_state.max_long, half) <= half);
}

static void set_reserved(struct connection *connection, size_t len, bool grows)
{
    struct memory_share *share = memory_share_of(connection);
    struct transport_origin none = {0}, *origin = connection->origin;
    size_t before = connection->grows ? connection->reserved : 0, after = grows ? len : 0;

    if (origin == NULL)
        origin = &none;
    if (len < connection->reserved || after < before || origin->waiting_count > 0)
        share->settled = false;
    share->reserved += len - connection->reserved;
    share->growing += after - before;
    origin->reserved += len - connection->reserved;
    origin->growing += after - before;
    connection->reserved = len;
    connection->grows = grows;
}

static void hold(struct connection *connection, size_t len)
{
    ASSERT(!list_linked(&connection->memory) && len > 0);
    set_reserved(connection, len, may_grow(connection, len));
    if (connection->origin != NULL)
        connection->origin->turn = ++connection->transport->memory_turns;
    list_append(&memory_share_of(connection)->holders, &connection->memory);
}

void memory_shrink(struct connection *connection, size_t len)
{
    if (len < connection->reserved && !memory_waits(connection))
        set_reserved(connection, len, false);
}

/* How long the first in the line has waited. */
static int64_t waited_ms(const struct list *line, int64_t now_ms)
{
    const struct connection *first;

    if (list_empty(line))
        return 0;
    first = list_entry(line->head.next, struct connection, memory);
    return now_ms - first->awaited_ms;
}

int64_t memory_frame_ms(const struct connection *connection)
{
    const struct memory_share *share = memory_share_of(connection);
    int64_t now_ms = stdio_bus_event_loop_now_ms(connection->transport->loop);
    int64_t whole = (int64_t)connection->transport->limits->frame_timeout_sec * 1000;
    int64_t fewest = MESSAGE_MS + (int64_t)(connection->reserved / BYTES_PER_MS);
    int64_t outgrown = waited_ms(&share->outgrown, now_ms);
    int64_t waiting = waited_ms(&share->waiting, now_ms);
    int64_t left = whole - (outgrown > waiting ? outgrown : waiting);

    if (connection->framing_state.frame_ms > 0)
        return connection->framing_state.frame_ms;
    if (connection->reserved == 0 || whole < fewest)
        return whole;
    return left > fewest ? left : fewest;
}

/* A message whose memory others wait for must be complete in time. A frame has its time anyway. */
static void start_time(struct connection *connection)
{
    if (!connection->has_lines || timer_started(&connection->frame_time))
        return;
    connection->timed_frames = connection->frames_in;
    connection_start_frame_time(connection, memory_frame_ms(connection));
}

static void leave_line(struct connection *connection)
{
    struct transport *transport = connection->transport;

    list_remove(&connection->memory);
    connection->awaited = 0;
    transport->waiting_count--;
    if (connection->origin != NULL)
        connection->origin->waiting_count--;
    memory_share_of(connection)->settled = false;
    transport->is_awaited = memory_share_awaited(&transport->shares[1]);
}

bool memory_reserve(struct connection *connection, size_t len)
{
    const struct memory_share *share = memory_share_of(connection);
    bool goes_first = connection->grows && len > connection->reserved;

    if (!goes_first)
        memory_release(connection);
    if ((goes_first ? !list_empty(&share->outgrown) : memory_share_awaited(share)) ||
        !fits(connection, len, 0))
        return false;
    list_remove(&connection->memory);
    hold(connection, len);
    return true;
}

bool memory_keeps(const struct connection *connection, size_t taken)
{
    return !memory_awaited(connection) && fits(connection, connection->reserved, taken);
}

void memory_wait(struct connection *connection, size_t len)
{
    struct memory_share *share = memory_share_of(connection);
    struct list_node *node, *following;

    ASSERT(!memory_waits(connection));
    log_debug(connection->transport->log, connection->context,
              "waits for the memory of long messages (max_memory)");
    connection->awaited = len;
    connection->awaited_ms = stdio_bus_event_loop_now_ms(connection->transport->loop);
    list_remove(&connection->memory);
    list_append(connection->reserved > 0 ? &share->outgrown : &share->waiting, &connection->memory);
    connection->transport->waiting_count++;
    if (connection->origin != NULL)
        connection->origin->waiting_count++;
    share->settled = false;
    connection->transport->is_awaited |= connection->of_worker;
    list_each(&share->holders, node, following)
        start_time(list_entry(node, struct connection, memory));
    connection_watch(connection, connection->interest & ~STDIO_BUS_EVENT_READ);
}

void memory_forget(struct connection *connection)
{
    if (memory_waits(connection))
        leave_line(connection);
    list_remove(&connection->memory);
    set_reserved(connection, 0, false);
    if (connection->has_lines)
        stdio_bus_event_loop_stop_timer(connection->transport->loop, &connection->frame_time);
}

/* Adds what the connection has, or waits for, to the origin, or takes it away. Accepts NULL. */
static void count_for(struct transport_origin *origin, const struct connection *connection,
                      bool more)
{
    size_t reserved = connection->reserved, waits = memory_waits(connection);
    size_t grows = connection->grows ? reserved : 0;

    if (origin == NULL)
        return;
    origin->reserved += more ? reserved : 0 - reserved;
    origin->growing += more ? grows : 0 - grows;
    origin->waiting_count += more ? waits : 0 - waits;
}

/* One that is not open, or whose reservation of before an upgrade is still to be made again, has
 * none. */
void memory_move(struct connection *connection, struct transport_origin *origin)
{
    if (list_linked(&connection->memory)) {
        count_for(connection->origin, connection, false);
        count_for(origin, connection, true);
        memory_share_of(connection)->settled = false;
    }
    connection->origin = origin;
}

static bool is_before(const struct connection *a, const struct connection *b)
{
    size_t held_by_a = held_by_origin(a), held_by_b = held_by_origin(b);

    if (held_by_a != held_by_b)
        return held_by_a < held_by_b;
    return a->origin != NULL && b->origin != NULL && a->origin->turn < b->origin->turn;
}

/* The connection whose origin has least; of several, that of the origin that has waited longest
 * since its last reservation. */
static struct connection *next_in(struct list *line)
{
    struct list_node *node, *following;
    struct connection *first = NULL;

    list_each(line, node, following) {
        struct connection *connection = list_entry(node, struct connection, memory);

        if (first == NULL || is_before(connection, first))
            first = connection;
    }
    return first;
}

/* False: a connection of the line still waits. */
static bool serve_line(const struct memory_share *share, struct list *line)
{
    struct connection *first;

    while ((first = next_in(line)) != NULL) {
        size_t len = first->awaited;

        if (!fits(first, len, 0))
            return false;
        leave_line(first);
        hold(first, len);
        if (timer_started(&first->frame_time)) /* the wait was not the peer's delay */
            connection_start_frame_time(first, memory_frame_ms(first));
        if (memory_share_awaited(share))
            start_time(first);
        connection_watch(first, first->interest | STDIO_BUS_EVENT_READ);
    }
    return true;
}

/* Looks at the lines only if something has changed that can let one of them continue. */
static void serve_share(const struct transport *transport, struct memory_share *share)
{
    size_t half = half_of_clients(transport);

    if (share->settled && share->queued >= share->settled_queued && half <= share->settled_half)
        return;
    if (serve_line(share, &share->outgrown))
        serve_line(share, &share->waiting);
    share->settled = true;
    share->settled_queued = share->queued;
    share->settled_half = half;
}

void memory_serve(struct transport *transport)
{
    serve_share(transport, &transport->shares[0]);
    serve_share(transport, &transport->shares[1]);
    transport->is_awaited = memory_share_awaited(&transport->shares[1]);
}
