#include "build_config.h"

#include "transport/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "transport/connection_io.h"

static void stalled(void *user_data)
{
    struct connection *connection = user_data;

    connection->handler->failed(connection,
                                connection->shut ? CONNECTION_LINGERED : CONNECTION_STALLED, 0);
}

/* Both flags are read before either is changed: the two may be one description. */
static int set_nonblocking(struct connection *connection)
{
    connection->flags_in = fcntl(connection->fd_in, F_GETFL);
    connection->flags_out = fcntl(connection->fd_out, F_GETFL);
    if (connection->flags_in < 0 || connection->flags_out < 0)
        return STDIO_BUS_ERR;
    if (fcntl(connection->fd_in, F_SETFL, connection->flags_in | O_NONBLOCK) < 0 ||
        fcntl(connection->fd_out, F_SETFL, connection->flags_out | O_NONBLOCK) < 0)
        return STDIO_BUS_ERR;
    return STDIO_BUS_OK;
}

static void restore_flags(const struct connection *connection)
{
    int error = errno;

    if (connection->flags_in >= 0)
        fcntl(connection->fd_in, F_SETFL, connection->flags_in);
    if (connection->flags_out >= 0)
        fcntl(connection->fd_out, F_SETFL, connection->flags_out);
    errno = error;
}

static int add_to_loop(struct connection *connection)
{
    struct stdio_bus_event_loop *loop = connection->transport->loop;
    bool is_pair = connection->fd_in != connection->fd_out;
    int error;

    if (stdio_bus_event_loop_add(loop, connection->fd_in, STDIO_BUS_EVENT_READ,
                                 is_pair ? connection_readable : connection_ready,
                                 connection) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (is_pair && stdio_bus_event_loop_add(loop, connection->fd_out, 0, connection_writable,
                                            connection) != STDIO_BUS_OK) {
        error = errno;
        stdio_bus_event_loop_remove(loop, connection->fd_in);
        errno = error;
        return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

/* The flags of what is lent to us are those of all who have it: of a terminal also the workers', as
 * their stderr, and to write there must not fail for them. So it is opened once more; where that
 * cannot be, true, and it is used as it is. */
static bool is_lent(int *fd, int access)
{
    int own = descriptor_open_own(*fd, access);

    if (own < 0)
        return true;
    *fd = own;
    return false;
}

static void close_own(const struct connection *connection)
{
    int error = errno;

    if (!connection->lent_in)
        close(connection->fd_in);
    if (!connection->lent_out)
        close(connection->fd_out);
    errno = error;
}

int connection_open(struct connection *connection, struct transport *transport,
                    const struct connection_handler *handler, int fd_in, int fd_out,
                    bool borrowed)
{
    connection->transport = transport;
    connection->handler = handler;
    if (connection->framing == NULL)
        connection->framing = &framing_ndjson;
    connection->framed = connection->framing != &framing_ndjson;
    connection->framing_state.max_body = connection->framed ? transport->limits->max_frame_body
                                                            : transport->limits->max_input_buffer;
    connection->framing->reset(&connection->framing_state);
    connection->fd_in = fd_in;
    connection->fd_out = fd_out;
    connection->lent_in = borrowed && is_lent(&connection->fd_in, O_RDONLY);
    connection->lent_out = borrowed && is_lent(&connection->fd_out, O_WRONLY);
    timer_init(&connection->stall, stalled, connection);
    timer_init(&connection->frame_time, connection_frame_time_over, connection);
    if (set_nonblocking(connection) != STDIO_BUS_OK || add_to_loop(connection) != STDIO_BUS_OK) {
        restore_flags(connection);
        if (borrowed)
            close_own(connection);
        return STDIO_BUS_ERR;
    }
    connection->reading = true;
    connection->takes_lines = !connection->framed;
    connection->open = true;
    return STDIO_BUS_OK;
}

static void release_fd(bool lent, int fd, int flags)
{
    /* Others may share what we were lent: they get it back as it was. */
    if (lent)
        fcntl(fd, F_SETFL, flags);
    else
        close(fd);
}

void connection_close_output(struct connection *connection)
{
    if (connection->fd_out < 0)
        return;
    stdio_bus_event_loop_remove(connection->transport->loop, connection->fd_out);
    release_fd(connection->lent_out, connection->fd_out, connection->flags_out);
    connection->fd_out = -1;
    connection->takes_lines = connection->writing = false;
    queue_clear(&connection->output, &connection->transport->pool);
    list_remove(&connection->dirty);
    timers_stop(stdio_bus_event_loop_timers(connection->transport->loop), &connection->stall);
    if (!connection->is_full)
        return;
    connection->is_full = false;
    if (connection->open) /* else the owner knows, and lets those go who wait for this queue */
        connection->handler->full(connection, false);
}

void connection_close(struct connection *connection)
{
    struct transport *transport = connection->transport;

    if (!connection->open)
        return;
    connection->open = false;
    if (connection->fd_in == connection->fd_out)
        connection->fd_in = -1;
    connection_close_output(connection);
    timers_stop(stdio_bus_event_loop_timers(transport->loop), &connection->stall);
    timers_stop(stdio_bus_event_loop_timers(transport->loop), &connection->frame_time);
    if (connection->fd_in >= 0) {
        stdio_bus_event_loop_remove(transport->loop, connection->fd_in);
        release_fd(connection->lent_in, connection->fd_in, connection->flags_in);
        connection->fd_in = -1;
    }
    connection_drop_input(connection);
}

void connection_start_backpressure(struct connection *connection)
{
    connection_start_stall(
        connection,
        (int64_t)connection->transport->limits->backpressure_timeout_sec * 1000);
}

void connection_renew_stall(struct connection *connection)
{
    if (connection->is_full && !connection->lingering)
        connection_start_backpressure(connection);
}

void connection_stop_input(struct connection *connection)
{
    connection->deaf = true;
    connection->held = false;
    connection_drop_input(connection);
    if (!connection->lingering)
        connection_set_reading(connection, false);
}

void connection_linger(struct connection *connection)
{
    if (connection->lingering)
        return;
    connection->lingering = true;
    connection_stop_input(connection);
    /* What the peer still sends is read and thrown away, lest a reset destroys our last words. */
    if (!connection->input_ended)
        connection_set_reading(connection, true);
    if (!connection->open)
        return;
    if (!timer_started(&connection->stall))
        connection_start_backpressure(connection);
    if (!list_linked(&connection->dirty))
        list_append(&connection->transport->dirty, &connection->dirty);
}

void transport_init(struct transport *transport, struct stdio_bus_event_loop *loop,
                    struct log *log, const struct limits *limits)
{
    memset(transport, 0, sizeof *transport);
    transport->loop = loop;
    transport->log = log;
    transport->limits = limits;
    list_init(&transport->dirty);
}

void transport_free(struct transport *transport)
{
    buffer_pool_free(&transport->pool);
}

void transport_flush(struct transport *transport)
{
    struct list round;
    struct list_node *node;

    list_init(&round);
    list_move_all(&round, &transport->dirty);
    while ((node = list_take_first(&round)) != NULL)
        connection_flush(list_entry(node, struct connection, dirty));
}
