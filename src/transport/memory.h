/* The memory of long messages. All connections share limits.max_memory: one half is for the
 * messages of clients, the other for those of workers, so that answers never wait for requests.
 *
 * A connection reserves memory before it reads on in a message that is longer than one read, for
 * the whole message at once: a connection with a reservation never waits again. Without one it
 * waits in a line, and nothing is read from it. A reservation ends when the message was taken; the
 * bytes count on in the queue of their destination (the account of struct queue) until they were
 * written.
 * What the router keeps for clients (transport->kept) is taken from their half, of which a half is
 * left in any case. A line that grows does not miss it, since it may hold what others wait for.
 * A message that is longer than its half of max_memory waits until it is alone.
 *
 * An origin that has a reservation gets another one only in the first half of the clients' memory,
 * so the rest is there for those that have none. Of the connections that wait, the one whose origin
 * has least is next.
 *
 * Nobody knows how long a line will be. Where lines may be long (max_long), one that is longer than
 * max_body reserves a second time, and may have to wait with what it has. So there is always room
 * for the growth of one of them, whatever its origin has reserved for such lines, and they come
 * before all others that wait. */
#ifndef STDIO_BUS_TRANSPORT_MEMORY_H
#define STDIO_BUS_TRANSPORT_MEMORY_H

#include "framing/sized_frame.h"
#include "transport/connection_state.h"

/* The share of what the connection reads. */
static inline struct memory_share *memory_share_of(const struct connection *connection)
{
    return &connection->transport->shares[connection->of_worker];
}

/* The bytes of all buffers and of what the tables of the router keep. */
static inline size_t memory_used(const struct transport *transport)
{
    return transport->pool.used + transport->kept;
}

/* Reserves memory for a message of `len` bytes, in place of what was reserved before. False: there
 * is not enough; then nothing is reserved, except for a line that grows. */
bool memory_reserve(struct connection *connection, size_t len);

/* Whether the connection may keep its reservation for its next message: no other connection waits,
 * and there is room for it beside the `taken` bytes, which count in a queue from now on. */
bool memory_keeps(const struct connection *connection, size_t taken);

/* After memory_reserve has failed: the connection is not read from until it has its reservation. */
void memory_wait(struct connection *connection, size_t len);

static inline bool memory_waits(const struct connection *connection)
{
    return connection->awaited > 0;
}

static inline bool memory_share_awaited(const struct memory_share *share)
{
    return !list_empty(&share->waiting) || !list_empty(&share->outgrown);
}

/* Whether the length of the current message is not known before its end. */
static inline bool memory_grows(const struct connection *connection)
{
    return connection->has_lines || connection->framing_state.part == PART_GROWING;
}

/* Whether other connections wait for a reservation like that of this one. */
static inline bool memory_awaited(const struct connection *connection)
{
    return memory_share_awaited(memory_share_of(connection));
}

/* The time of a frame, or of a line whose memory others wait for: that of its framing, or
 * frame_timeout_sec, less the time
 * that the first of them has waited; but at least a second, and a second for every 8 MiB. */
int64_t memory_frame_ms(const struct connection *connection);

/* The message is whole: reserves no more than `len` bytes. */
void memory_shrink(struct connection *connection, size_t len);

/* Ends the reservation or the wait of a connection that has one. */
void memory_forget(struct connection *connection);

static inline void memory_release(struct connection *connection)
{
    if (list_linked(&connection->memory))
        memory_forget(connection);
}

/* The connection is of this origin, or of none (NULL), from now on, and what it has or waits for
 * counts there. */
void memory_move(struct connection *connection, struct transport_origin *origin);

/* Gives free memory to the connections that wait for it. */
void memory_serve(struct transport *transport);

#endif
