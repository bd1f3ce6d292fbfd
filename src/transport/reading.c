#include "build_config.h"

#include "transport/reading.h"

#include "transport/memory.h"

static bool has_share(const struct transport *transport, const struct transport_origin *origin)
{
    return origin->round != transport->round || origin->read < READING_SHARE;
}

void connection_set_origin(struct connection *connection, struct transport_origin *origin)
{
    if (list_linked(&connection->read_turn)) {
        reading_leave(connection);
        connection_watch(connection, connection->interest);
    }
    memory_move(connection, origin);
}

bool reading_waits(struct connection *connection)
{
    const struct transport *transport = connection->transport;
    const struct transport_origin *origin = connection->origin;

    if (transport->in_turn == connection ||
        (list_empty(&origin->readers) && has_share(transport, origin)))
        return false;
    reading_wait(connection);
    connection_watch(connection, connection->interest);
    return true;
}

void reading_wait(struct connection *connection)
{
    struct transport_origin *origin = connection->origin;

    if (list_linked(&connection->read_turn))
        return;
    list_append(&origin->readers, &connection->read_turn);
    connection->transport->reader_count++;
    if (!list_linked(&origin->reading))
        list_append(&connection->transport->reading, &origin->reading);
}

void reading_leave(struct connection *connection)
{
    if (!list_linked(&connection->read_turn))
        return;
    list_remove(&connection->read_turn);
    connection->transport->reader_count--;
    if (list_empty(&connection->origin->readers))
        list_remove(&connection->origin->reading);
}

void reading_begin(struct transport *transport, struct list *turns)
{
    list_init(turns);
    list_move_all(turns, &transport->reading);
}

struct connection *reading_next(struct transport *transport, struct list *turns)
{
    struct list_node *node;

    while ((node = list_take_first(turns)) != NULL) {
        struct transport_origin *origin = list_entry(node, struct transport_origin, reading);
        struct connection *connection;

        if (!has_share(transport, origin)) {
            list_append(&transport->reading, node);
            continue;
        }
        list_append(turns, node);
        connection = list_entry(origin->readers.head.next, struct connection, read_turn);
        reading_leave(connection);
        return connection;
    }
    return NULL;
}
