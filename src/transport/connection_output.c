#include "build_config.h"

#include "transport/connection_output.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "transport/memory.h"

#define PIECES_MAX 64                /* buffers described in one writev */
#define MOVED_MIN (BUFFER_LARGE / 4) /* a shorter frame is copied */
#define WRITES_PER_FLUSH 4           /* a fair share for a fast reader with a long queue */

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

/* After something was queued: it is written at the end of the round. */
static inline void note_queued(struct connection *connection)
{
    struct transport *transport = connection->transport;

    connection->frames_out++;
    if (!list_linked(&connection->dirty))
        list_append(&transport->dirty, &connection->dirty);
    if (connection->full || (connection->output.bytes <= transport->limits->max_output_queue &&
                             !(transport->is_tight && connection->output.bytes > BUFFER_LARGE)))
        return;
    connection->full = true;
    connection_start_stall(connection);
    connection->handler->full(connection, true);
}

/* --- moving --- */

/* Whether to move a frame with its buffer, which needs room for `more` bytes: that costs a copy of
 * what follows the frame instead. A buffer that is mostly empty would occupy more in a queue than
 * the queue counts. */
static inline bool worth_moving(const struct connection *from, struct slice body, size_t more)
{
    if (from == NULL || body.len < MOVED_MIN)
        return false;
    ASSERT(from->at_hand >= body.len && body.data == from->input->data + from->input->start);
    return body.len >= from->input->capacity / 4 &&
           buffer_len(from->input) - from->at_hand <= body.len &&
           body.data + body.len + more <= from->input->data + from->input->capacity;
}

/* Takes the buffer of the frame at hand away from `from`, which keeps the bytes after the frame.
 * NULL when memory is out. */
static struct buffer *detach_frame(struct connection *from, struct slice body)
{
    struct buffer *whole = from->input;
    size_t start = (size_t)(body.data - whole->data);
    size_t rest_start = whole->start + from->at_hand;
    size_t rest_len = whole->end - rest_start;
    struct buffer *rest = NULL;
    bool keeps = rest_len > 0 && !memory_awaited(from); /* its reservation, for the next frame */

    if (body.len > BUFFER_LARGE)
        from->expected = body.len;
    if (rest_len > 0) {
        rest = buffer_take(&from->transport->pool,
                           keeps && rest_len < from->expected && from->expected <= from->reserved
                               ? from->expected
                               : rest_len);
        if (rest == NULL)
            return NULL;
        memcpy(rest->data, whole->data + rest_start, rest_len);
        rest->end = rest_len;
    }
    whole->start = start;
    whole->end = start + body.len;
    from->input = rest;
    from->at_hand = 0;
    if (!keeps)
        memory_release(from);
    return whole;
}

/* Whether most of the line is in one piece. */
static bool few_edited(struct slice line, const struct splice_edit *edits, unsigned count)
{
    const struct splice_edit *last = &edits[count - 1];

    return edits[0].offset > line.len / 2 || last->offset + last->len < line.len / 2;
}

/* The bytes before the first edit or those after the last one move with the buffer; the others are
 * copied. */
static int move_edited(struct connection *to, struct connection *from, struct slice line,
                       const struct splice_edit *edits, unsigned count)
{
    size_t first = edits[0].offset, last = edits[count - 1].offset + edits[count - 1].len;
    bool keeps_head = first > line.len - last;
    size_t kept = keeps_head ? first : line.len - last;
    size_t len = splice_len(line.len, edits, count) - kept;
    struct buffer *copy = buffer_take(&to->transport->pool, len);
    struct buffer *buffer = copy != NULL ? detach_frame(from, line) : NULL;

    if (buffer == NULL) {
        buffer_give(&to->transport->pool, copy);
        return STDIO_BUS_ERR;
    }
    copy->end = len;
    if (keeps_head) {
        splice_write(copy->data, line.data, first, line.len, edits, count);
        buffer->end = buffer->start + first;
        queue_append_buffer(&to->output, buffer);
        queue_append_buffer(&to->output, copy);
    } else {
        splice_write(copy->data, line.data, 0, last, edits, count);
        buffer->start += last;
        queue_append_buffer(&to->output, copy);
        queue_append_buffer(&to->output, buffer);
    }
    return STDIO_BUS_OK;
}

static int move_sized(struct connection *to, struct connection *from, struct slice body)
{
    struct buffer_pool *pool = &to->transport->pool;
    struct buffer *head = buffer_take(pool, FRAME_PREFIX_MAX), *buffer;

    if (head == NULL)
        return STDIO_BUS_ERR;
    head->end = to->framing->prefix(head->data, body.len);
    buffer = detach_frame(from, body);
    if (buffer == NULL) {
        buffer_give(pool, head);
        return STDIO_BUS_ERR;
    }
    queue_append_buffer(&to->output, head);
    queue_append_buffer(&to->output, buffer);
    return STDIO_BUS_OK;
}

/* --- bridging --- */

/* A reader of lines must find no end of a line in the body. */
static void make_line(char *body, size_t len)
{
    splice_blank(body, len, '\n');
    splice_blank(body, len, '\r');
}

static int move_as_line(struct connection *to, struct connection *from, struct slice body)
{
    struct buffer *buffer = detach_frame(from, body);

    if (buffer == NULL)
        return STDIO_BUS_ERR;
    make_line(buffer->data + buffer->start, body.len);
    buffer->data[buffer->end++] = '\n';
    queue_append_buffer(&to->output, buffer);
    return STDIO_BUS_OK;
}

static int copy_body(struct connection *to, struct slice body, const struct splice_edit *edits,
                     unsigned count)
{
    size_t len = splice_len(body.len, edits, count), prefix_len = 0;
    bool to_lines = to->has_lines;
    char prefix[FRAME_PREFIX_MAX], *room;

    if (!to_lines)
        prefix_len = to->framing->prefix(prefix, len);
    room = queue_reserve(&to->output, &to->transport->pool, prefix_len + len + to_lines);
    if (room == NULL)
        return STDIO_BUS_ERR;
    memcpy(room, prefix, prefix_len);
    room += prefix_len;
    splice_write(room, body.data, 0, body.len, edits, count);
    if (to_lines) {
        make_line(room, len);
        room[len] = '\n';
    }
    return STDIO_BUS_OK;
}

int connection_send_body(struct connection *to, struct connection *from, struct slice body,
                         const struct splice_edit *edits, unsigned count)
{
    int status;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (count > 0 || !worth_moving(from, body, to->has_lines))
        status = copy_body(to, body, edits, count);
    else if (to->has_lines)
        status = move_as_line(to, from, body);
    else
        status = move_sized(to, from, body);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
}

/* --- lines --- */

static struct slice without_newline(struct slice line)
{
    if (line.len > 0 && line.data[line.len - 1] == '\n')
        line.len--;
    return line;
}

static int move_line(struct connection *to, struct connection *from, struct slice line)
{
    struct buffer *buffer = detach_frame(from, line);

    if (buffer == NULL)
        return STDIO_BUS_ERR;
    queue_append_buffer(&to->output, buffer);
    return STDIO_BUS_OK;
}

int connection_send_line(struct connection *to, struct connection *from, struct slice line)
{
    int status;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (!to->has_lines)
        return connection_send_body(to, from, without_newline(line), NULL, 0);
    if (worth_moving(from, line, 0))
        status = move_line(to, from, line);
    else
        status = queue_append(&to->output, &to->transport->pool, line);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
}

static int copy_edited(struct connection *to, struct slice line, const struct splice_edit *edits,
                       unsigned count)
{
    char *room = queue_reserve(&to->output, &to->transport->pool,
                               splice_len(line.len, edits, count));

    if (room == NULL)
        return STDIO_BUS_ERR;
    splice_write(room, line.data, 0, line.len, edits, count);
    return STDIO_BUS_OK;
}

int connection_send_edited(struct connection *to, struct connection *from, struct slice line,
                           const struct splice_edit *edits, unsigned count)
{
    int status;

    ASSERT(count > 0);
    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (!to->has_lines)
        return connection_send_body(to, from, without_newline(line), edits, count);
    if (worth_moving(from, line, 0) && few_edited(line, edits, count))
        status = move_edited(to, from, line, edits, count);
    else
        status = copy_edited(to, line, edits, count);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
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

void connection_writable(void *user_data, unsigned events)
{
    (void)events;
    connection_flush(user_data);
}

void connection_flush_all(struct transport *transport)
{
    struct list round;
    struct list_node *node;

    list_init(&round);
    list_move_all(&round, &transport->dirty);
    while ((node = list_take_first(&round)) != NULL)
        connection_flush(list_entry(node, struct connection, dirty));
    transport->is_tight = transport->pool.used > transport->limits->max_memory / 4 * 3;
    if (transport->waiting_count > 0)
        memory_serve(transport);
}
