/* Turns of reading: first the origins (users and addresses), then the connections of each. In a
 * round of the event loop an origin is read READING_SHARE bytes, and at most one read more, however
 * many connections it has. The others that are readable wait, and are not watched meanwhile. So
 * bytes of an origin wait for at most that share of every other one. Alone, an origin has no
 * bound. */
#ifndef STDIO_BUS_TRANSPORT_READING_H
#define STDIO_BUS_TRANSPORT_READING_H

#include "transport/connection_state.h"

#define READING_SHARE ((size_t)65536)
#define READING_COST ((size_t)1024) /* what a read counts beside its bytes */

/* From now on the connection, which has no reservation of memory, is one of this origin. */
void connection_set_origin(struct connection *connection, struct transport_origin *origin);

/* This number of bytes of the connection, which has an origin, was read. */
static inline void reading_note(const struct connection *connection, size_t len)
{
    struct transport_origin *origin = connection->origin;

    if (origin->round != connection->transport->round) {
        origin->round = connection->transport->round;
        origin->read = 0;
    }
    origin->read += len + READING_COST;
}

/* The connection, whose origin is not alone, is readable. True: it has to wait for its turn. */
bool reading_waits(struct connection *connection);

/* It was read, and is readable still: it waits for its next turn. */
void reading_wait(struct connection *connection);

/* It waits no more. The caller watches it again, or closes it. */
void reading_leave(struct connection *connection);

/* The turns of a round, which ends with connection_flush_all. Begin takes them out of `transport`;
 * those that are left are for the next round. NULL: there is none any more. */
void reading_begin(struct transport *transport, struct list *turns);
struct connection *reading_next(struct transport *transport, struct list *turns);

#endif
