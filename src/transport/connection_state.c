#include "build_config.h"

#include "transport/connection_state.h"

#include <errno.h>
#include <fcntl.h>

#include "base/assert.h"
#include "base/descriptor.h"
#include "base/error.h"

void transport_init(struct transport *transport, struct stdio_bus_event_loop *loop, struct log *log,
                    const struct limits *limits)
{
    *transport = (struct transport){.loop = loop, .log = log, .limits = limits};
    list_init(&transport->dirty);
    list_init(&transport->reading);
    for (int i = 0; i < 2; i++) {
        list_init(&transport->shares[i].holders);
        list_init(&transport->shares[i].outgrown);
        list_init(&transport->shares[i].waiting);
    }
}

void transport_free(struct transport *transport)
{
    ASSERT(list_empty(&transport->dirty));
    buffer_pool_free(&transport->pool);
}

static bool input_has_ended(const struct connection *connection)
{
    return connection->input_state == INPUT_ENDED || connection->input_state == INPUT_DEAF_ENDED;
}

/* A socket whose end of input was read is watched for the peer's end only. */
static unsigned hangup_of_socket(const struct connection *connection)
{
    bool ended = input_has_ended(connection) ||
                 (connection->watches_hangup && !(connection->interest & STDIO_BUS_EVENT_READ));

    return ended ? STDIO_BUS_EVENT_HANGUP : 0;
}

/* One that waits for its turn is not watched for reading. */
static unsigned watched(const struct connection *connection)
{
    unsigned masked = list_linked(&connection->read_turn) ? STDIO_BUS_EVENT_READ : 0;

    return connection->interest & ~masked;
}

/* So is stdout once stdin has ended: without a reader of its answers the client is gone. */
static unsigned interest_of_output(const struct connection *connection)
{
    bool is_stdout = connection->flags_in >= 0;

    return (connection->interest & STDIO_BUS_EVENT_WRITE) |
           (is_stdout && input_has_ended(connection) ? STDIO_BUS_EVENT_HANGUP : 0);
}

void connection_watch(struct connection *connection, unsigned interest)
{
    struct stdio_bus_event_loop *loop = connection->transport->loop;
    int status = STDIO_BUS_OK;

    if (!connection_is_open(connection))
        return;
    connection->interest = interest;
    interest = watched(connection);
    if (connection->fd_in == connection->fd_out) {
        status = stdio_bus_event_loop_modify(loop, connection->fd_in,
                                             interest | hangup_of_socket(connection));
    } else {
        status = stdio_bus_event_loop_modify(loop, connection->fd_in,
                                             interest & STDIO_BUS_EVENT_READ);
        if (connection->fd_out >= 0 && status == STDIO_BUS_OK)
            status = stdio_bus_event_loop_modify(loop, connection->fd_out,
                                                 interest_of_output(connection));
    }
    if (status != STDIO_BUS_OK) /* out of kernel memory: errno is the event loop's */
        connection->handler->failed(connection, CONNECTION_BROKEN, errno);
}

void connection_note_jam(struct connection *connection, size_t took, bool jammed)
{
    int64_t now_ms = stdio_bus_event_loop_now_ms(connection->transport->loop);

    if (connection->jammed_ms == 0)
        connection->jammed_ms = connection->took_ms = now_ms;
    if (took > 0) {
        if (now_ms - connection->took_ms >= CONNECTION_LATE_MS &&
            !connection_reads_late(connection))
            connection->late_bytes += took;
        connection->took_ms = now_ms;
    }
    if (!jammed)
        connection->jammed_ms = 0;
}

void connection_start_frame_time(struct connection *connection, int64_t ms)
{
    stdio_bus_event_loop_start_timer(connection->transport->loop, &connection->frame_time, ms);
}

void connection_release_fd(struct connection *connection, int fd, int flags)
{
    stdio_bus_event_loop_remove(connection->transport->loop, fd);
    if (flags >= 0) /* borrowed, and perhaps shared: it goes back as it was */
        fcntl(fd, F_SETFL, flags);
    else
        descriptor_close(fd);
}

void connection_move_traffic(struct connection *connection, struct traffic *to)
{
    connection_add_traffic(connection, to);
    connection->bytes_in = connection->bytes_out = 0;
    connection->frames_in = connection->frames_out = 0;
}
