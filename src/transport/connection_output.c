#include "build_config.h"

#include "transport/connection_output.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "transport/memory.h"

#define PIECES_MAX 64      /* buffers described in one writev */
#define WRITES_PER_FLUSH 4 /* a fair share for a fast reader with a long queue */

/* --- backpressure --- */

void connection_start_stall(struct connection *connection)
{
    stdio_bus_event_loop_start_timer(
        connection->transport->loop, &connection->stall,
        (int64_t)connection->transport->limits->backpressure_timeout_sec * 1000);
}

void connection_renew_stall(struct connection *connection)
{
    if (connection->full && connection->output_state >= OUTPUT_OPEN)
        connection_start_stall(connection);
}

/* A system reports room only when there is much of it (Linux: three quarters of a Unix socket's
 * buffer), so a slow reader may have made room that was not reported. */
void connection_stalled(void *user_data)
{
    struct connection *connection = user_data;
    bool shut = connection->output_state == OUTPUT_SHUT, was_full = connection->full;

    if (was_full && connection->output_state >= OUTPUT_OPEN) {
        connection_flush(connection);
        if (!connection->full)
            return;
    }
    connection->handler->failed(connection, shut ? CONNECTION_LINGERED : CONNECTION_STALLED, 0);
}

/* The queue was full: reports that it is below half of its limit again. */
static void release_backpressure(struct connection *connection)
{
    struct transport *transport = connection->transport;

    if (connection->output.bytes >= (connection_queue_max(transport) + 1) / 2)
        return;
    connection->full = false;
    connection->jammed_ms = 0;
    if (connection->output_state >= OUTPUT_OPEN)
        stdio_bus_event_loop_stop_timer(transport->loop, &connection->stall);
    connection->handler->full(connection, false);
}

/* --- the end --- */

void connection_close_output(struct connection *connection)
{
    struct transport *transport = connection->transport;

    if (connection->output_state == OUTPUT_CLOSED)
        return;
    ASSERT(!connection_is_open(connection) || connection->fd_in != connection->fd_out);
    if (connection->same_socket && connection_is_open(connection)) /* fd_in keeps it open */
        (void)shutdown(connection->fd_out, SHUT_WR);
    connection->output_state = OUTPUT_CLOSED;
    connection_release_fd(connection, connection->fd_out, connection->flags_out);
    connection->fd_out = -1;
    connection->interest &= ~STDIO_BUS_EVENT_WRITE;
    queue_clear(&connection->output, &transport->pool);
    list_remove(&connection->dirty);
    stdio_bus_event_loop_stop_timer(transport->loop, &connection->stall);
    if (!connection->full)
        return;
    connection->full = false;
    if (connection_is_open(connection)) /* otherwise the owner knows */
        connection->handler->full(connection, false);
}

void connection_end_output(struct connection *connection)
{
    if (connection->output_state != OUTPUT_OPEN)
        return;
    connection->output_state = OUTPUT_ENDING;
    if (connection->output.bytes == 0)
        connection_close_output(connection);
}

/* --- writing --- */

/* The last byte is written: shows the peer that there is no more, and gives it time to close. */
static void finish_lingering(struct connection *connection)
{
    if (connection->fd_in != connection->fd_out || connection->input_state != INPUT_DEAF ||
        shutdown(connection->fd_out, SHUT_WR) < 0) {
        connection->handler->failed(connection, CONNECTION_LINGERED, 0);
        return;
    }
    connection->output_state = OUTPUT_SHUT;
    stdio_bus_event_loop_start_timer(connection->transport->loop, &connection->stall,
                                     CONNECTION_LINGER_MS);
}

/* One write. STDIO_BUS_OK: the descriptor may take more; EAGAIN: not now; ERR: errno says why. */
static int write_some(struct connection *connection)
{
    struct iovec pieces[PIECES_MAX] UNINITIALIZED;
    int count = queue_pieces(&connection->output, pieces, PIECES_MAX);
    size_t offered = 0;
    ssize_t written;
    int i;

    for (i = 0; i < count; i++)
        offered += pieces[i].iov_len;
    written = count == 1 ? write(connection->fd_out, pieces[0].iov_base, pieces[0].iov_len)
                         : writev(connection->fd_out, pieces, count); /* costs more */
    if (written < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? STDIO_BUS_EAGAIN
                                                                         : STDIO_BUS_ERR;
    connection->bytes_out += (size_t)written;
    queue_consume(&connection->output, &connection->transport->pool, (size_t)written);
    return (size_t)written == offered ? STDIO_BUS_OK : STDIO_BUS_EAGAIN;
}

void connection_flush(struct connection *connection)
{
    size_t before = connection->output.bytes;
    int status = STDIO_BUS_OK;
    int writes;

    for (writes = 0; connection->output.bytes > 0 && writes < WRITES_PER_FLUSH; writes++) {
        status = write_some(connection);
        if (status != STDIO_BUS_OK)
            break;
    }
    if (status == STDIO_BUS_ERR) {
        connection->handler->failed(connection, CONNECTION_BROKEN, errno);
        return;
    }
    if (connection->full || connection->transport->is_awaited)
        connection_note_jam(connection, before - connection->output.bytes,
                            status == STDIO_BUS_EAGAIN);
    if (connection->full)
        release_backpressure(connection);
    if (connection->output_state == OUTPUT_CLOSED)
        return;
    if (connection->output.bytes > 0) {
        connection_watch(connection, connection->interest | STDIO_BUS_EVENT_WRITE);
        return;
    }
    connection->jammed_ms = 0;
    if (connection->interest & STDIO_BUS_EVENT_WRITE)
        connection_watch(connection, connection->interest & ~STDIO_BUS_EVENT_WRITE);
    if (connection->output_state == OUTPUT_ENDING)
        connection_close_output(connection);
    else if (connection->output_state == OUTPUT_LINGERING)
        finish_lingering(connection);
}

bool connection_took_nothing(struct connection *connection)
{
    uint64_t before = connection->looked_out;

    connection_flush(connection); /* there may be room that was not reported */
    connection->looked_out = connection->bytes_out + 1;
    return connection->output.bytes > 0 && connection->looked_out == before;
}

void connection_writable(void *user_data, unsigned events)
{
    struct connection *connection = user_data;

    connection_flush(connection);
    if ((events & STDIO_BUS_EVENT_HANGUP) && connection_is_open(connection))
        connection->handler->failed(connection, CONNECTION_BROKEN, 0);
}

void connection_flush_all(struct transport *transport)
{
    struct list round;
    struct list_node *node;

    transport->round++;
    list_init(&round);
    list_move_all(&round, &transport->dirty);
    while ((node = list_take_first(&round)) != NULL)
        connection_flush(list_entry(node, struct connection, dirty));
    transport->is_tight = transport->pool.used + transport->kept >
                          transport->limits->max_memory / 4 * 3;
    if (transport->waiting_count > 0)
        memory_serve(transport);
}
