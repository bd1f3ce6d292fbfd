#include "build_config.h"

#include "transport/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

int connection_open(struct connection *connection, struct transport *transport,
                    const struct connection_handler *handler, int fd_in, int fd_out,
                    bool borrowed)
{
    connection->transport = transport;
    connection->handler = handler;
    connection->framing = &framing_ndjson;
    connection->framing->reset(&connection->framing_state);
    connection->fd_in = fd_in;
    connection->fd_out = fd_out;
    connection->borrowed = borrowed;
    timer_init(&connection->stall, stalled, connection);
    if (set_nonblocking(connection) != STDIO_BUS_OK || add_to_loop(connection) != STDIO_BUS_OK) {
        restore_flags(connection);
        return STDIO_BUS_ERR;
    }
    connection->reading = true;
    connection->open = true;
    return STDIO_BUS_OK;
}

static void release_fd(const struct connection *connection, int fd, int flags)
{
    /* Others may share what we were lent: they get it back as it was. */
    if (connection->borrowed)
        fcntl(fd, F_SETFL, flags);
    else
        close(fd);
}

void connection_close_output(struct connection *connection)
{
    if (connection->fd_out < 0)
        return;
    stdio_bus_event_loop_remove(connection->transport->loop, connection->fd_out);
    release_fd(connection, connection->fd_out, connection->flags_out);
    connection->fd_out = -1;
    connection->writing = false;
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
    if (connection->fd_in >= 0) {
        stdio_bus_event_loop_remove(transport->loop, connection->fd_in);
        release_fd(connection, connection->fd_in, connection->flags_in);
        connection->fd_in = -1;
    }
    connection_drop_input(connection);
}

static void start_backpressure(struct connection *connection)
{
    connection_start_stall(
        connection,
        (int64_t)connection->transport->limits->backpressure_timeout_sec * 1000);
}

void connection_renew_stall(struct connection *connection)
{
    if (connection->is_full && !connection->lingering)
        start_backpressure(connection);
}

static void queued(struct connection *to)
{
    struct transport *transport = to->transport;

    if (!list_linked(&to->dirty))
        list_append(&transport->dirty, &to->dirty);
    if (to->is_full || to->output.bytes <= transport->limits->max_output_queue)
        return;
    to->is_full = true;
    start_backpressure(to);
    to->handler->full(to, true);
}

int connection_send(struct connection *to, struct slice bytes)
{
    if (to->fd_out < 0 || to->shut)
        return STDIO_BUS_OK; /* as if it had been sent and then lost with the connection */
    if (queue_append(&to->output, &to->transport->pool, bytes) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    queued(to);
    return STDIO_BUS_OK;
}

/* Takes the message's buffer away from `from`, leaving it the bytes behind the message. NULL when
 * memory is out. */
static struct buffer *detach_message(struct connection *from, struct slice bytes)
{
    struct buffer *whole = from->input;
    size_t start = (size_t)(bytes.data - whole->data);
    size_t rest_start = whole->start + from->offered.consumed;
    size_t rest_len = whole->end - rest_start;
    struct buffer *rest = NULL;

    if (bytes.len > BUFFER_LARGE)
        from->expected = bytes.len;
    if (rest_len > 0) {
        rest = buffer_take(&from->transport->pool,
                           rest_len > from->expected ? rest_len : from->expected);
        if (rest == NULL)
            return NULL;
        memcpy(rest->data, whole->data + rest_start, rest_len);
        rest->end = rest_len;
    }
    whole->start = start;
    whole->end = start + bytes.len;
    from->input = rest;
    from->handed_over = true;
    return whole;
}

/* Handing a buffer over costs a copy of what stands behind the message instead of the message. A
 * buffer that is mostly empty would occupy more in a queue than the queue counts. */
static bool worth_moving(const struct connection *from, struct slice bytes)
{
    size_t rest = buffer_len(from->input) - from->offered.consumed;

    return bytes.len >= BUFFER_LARGE / 4 && bytes.len >= from->input->capacity / 4 &&
           rest <= bytes.len;
}

int connection_forward(struct connection *to, struct connection *from, struct slice bytes)
{
    struct buffer *buffer;

    if (to->fd_out < 0 || to->shut || !worth_moving(from, bytes))
        return connection_send(to, bytes);
    buffer = detach_message(from, bytes);
    if (buffer == NULL)
        return STDIO_BUS_ERR;
    queue_append_buffer(&to->output, buffer);
    queued(to);
    return STDIO_BUS_OK;
}

/* What is before the first edit or behind the last one moves with the message's buffer, the rest is
 * copied. */
static int move_edited(struct connection *to, struct connection *from, struct slice bytes,
                       const struct splice_edit *edits, unsigned count)
{
    size_t first = edits[0].offset, last = edits[count - 1].offset + edits[count - 1].len;
    bool keeps_head = first > bytes.len - last;
    size_t kept = keeps_head ? first : bytes.len - last;
    size_t len = splice_len(bytes.len, edits, count) - kept;
    struct buffer *copy = buffer_take(&to->transport->pool, len);
    struct buffer *buffer = copy != NULL ? detach_message(from, bytes) : NULL;

    if (buffer == NULL) {
        buffer_give(&to->transport->pool, copy);
        return STDIO_BUS_ERR;
    }
    copy->end = len;
    if (keeps_head) {
        splice_write(copy->data, bytes.data, first, bytes.len, edits, count);
        buffer->end = buffer->start + first;
        queue_append_buffer(&to->output, buffer);
        queue_append_buffer(&to->output, copy);
    } else {
        splice_write(copy->data, bytes.data, 0, last, edits, count);
        buffer->start += last;
        queue_append_buffer(&to->output, copy);
        queue_append_buffer(&to->output, buffer);
    }
    return STDIO_BUS_OK;
}

/* Most of the message is in one piece. */
static bool worth_moving_edited(const struct connection *from, struct slice bytes,
                                const struct splice_edit *edits, unsigned count)
{
    const struct splice_edit *last = &edits[count - 1];

    return bytes.len >= BUFFER_LARGE / 4 && worth_moving(from, bytes) &&
           (edits[0].offset > bytes.len / 2 || last->offset + last->len < bytes.len / 2);
}

int connection_forward_edited(struct connection *to, struct connection *from, struct slice bytes,
                              const struct splice_edit *edits, unsigned count)
{
    char *room;

    if (to->fd_out < 0 || to->shut)
        return STDIO_BUS_OK;
    if (worth_moving_edited(from, bytes, edits, count)) {
        if (move_edited(to, from, bytes, edits, count) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    } else {
        room = queue_reserve(&to->output, &to->transport->pool,
                             splice_len(bytes.len, edits, count));
        if (room == NULL)
            return STDIO_BUS_ERR;
        splice_write(room, bytes.data, 0, bytes.len, edits, count);
    }
    queued(to);
    return STDIO_BUS_OK;
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
        start_backpressure(connection);
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
