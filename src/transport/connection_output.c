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
    uint64_t before = connection->bytes_out;

    if (!shut) {
        connection_flush(connection);
        if (!connection_is_open(connection) ||
            (was_full ? !connection->full : connection->bytes_out > before))
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
    else
        connection_start_stall(connection);
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
    if (connection->transport->writes != NULL)
        written = connection->transport->writes(connection->fd_out, pieces, count);
    else
        written = count == 1 ? write(connection->fd_out, pieces[0].iov_base, pieces[0].iov_len)
                             : writev(connection->fd_out, pieces, count); /* costs more */
    if (written < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? STDIO_BUS_EAGAIN
                                                                         : STDIO_BUS_ERR;
    connection->bytes_out += (size_t)written;
    if (connection->output_state == OUTPUT_LINGERING && !connection->full)
        connection_start_stall(connection); /* the peer reads */
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

#define MOVED_MIN (BUFFER_LARGE / 4) /* a shorter frame is copied */

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

/* Whether to move a frame with its buffer: that costs a copy of what follows the frame instead. A
 * buffer that is mostly empty would occupy more in a queue than the queue counts. */
static inline bool worth_moving(const struct connection *from, struct slice body)
{
    if (from == NULL || body.len < MOVED_MIN)
        return false;
    ASSERT(from->at_hand >= body.len && body.data == from->input->data + from->input->start);
    return body.len >= from->input->capacity / 4 &&
           buffer_len(from->input) - from->at_hand <= body.len;
}

/* Takes the buffer of the current frame away from `from`, which keeps the bytes after the frame.
 * NULL if out of memory. */
static struct buffer *detach_frame(struct connection *from, struct slice body)
{
    struct buffer *whole = from->input;
    size_t start = (size_t)(body.data - whole->data);
    size_t rest_start = whole->start + from->at_hand;
    size_t rest_len = whole->end - rest_start;
    struct buffer *rest = NULL;
    bool keeps = rest_len > 0 && memory_keeps(from, whole->capacity);

    if (body.len > BUFFER_LARGE) /* the last read of such a frame, too, finds room */
        from->expected = body.len + CONNECTION_ROOM_MIN;
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

/* Whether most of the body is in one piece. */
static bool few_edited(struct slice body, const struct splice_edit *edits, unsigned count)
{
    const struct splice_edit *last;

    if (count == 0)
        return true;
    last = &edits[count - 1];
    return edits[0].offset > body.len / 2 || last->offset + last->len < body.len / 2;
}

/* --- parts --- */

/* A reader of lines must find no end of a line in the body. */
static void make_line(char *body, size_t len)
{
    splice_blank(body, len, '\n');
    splice_blank(body, len, '\r');
}

static char *write_bytes(char *to, struct slice bytes)
{
    if (bytes.len > 0)
        memcpy(to, bytes.data, bytes.len);
    return to + bytes.len;
}

/* Writes the bytes of the body from `start` to `end`, edited; all edits are within. Returns the end
 * of what was written. */
static char *write_body(char *to, const struct connection_parts *parts, struct slice body,
                        size_t start, size_t end, const struct splice_edit *edits, unsigned count)
{
    size_t len = splice_len(end - start, edits, count);

    splice_write(to, body.data, start, end, edits, count);
    if (parts->one_line)
        make_line(to, len);
    return to + len;
}

static int copy_parts(struct connection *to, const struct connection_parts *parts,
                      struct slice body, const struct splice_edit *edits, unsigned count)
{
    size_t len = splice_len(body.len, edits, count);
    char *room = queue_reserve(&to->output, &to->transport->pool,
                               parts->before.len + len + parts->after.len);

    if (room == NULL)
        return STDIO_BUS_ERR;
    room = write_bytes(room, parts->before);
    room = write_body(room, parts, body, 0, body.len, edits, count);
    write_bytes(room, parts->after);
    return STDIO_BUS_OK;
}

/* The bytes before the first edit or those after the last one move with the buffer; the others are
 * copied, into a buffer before or after it. */
struct move {
    size_t start, end; /* of what moves, in the body */
    size_t before_len, after_len;
    struct buffer *before, *after; /* NULL: nothing, or what comes after fits into the buffer */
};

static void plan_move(struct move *move, const struct connection *from,
                      const struct connection_parts *parts, struct slice body,
                      const struct splice_edit *edits, unsigned count)
{
    const struct buffer *buffer = from->input;
    size_t len = splice_len(body.len, edits, count);
    size_t first, last;

    *move = (struct move){.end = body.len};
    if (count > 0) {
        first = edits[0].offset;
        last = edits[count - 1].offset + edits[count - 1].len;
        if (first > body.len - last)
            move->end = first;
        else
            move->start = last;
    }
    len -= move->end - move->start;
    move->before_len = parts->before.len + (move->start > 0 ? len : 0);
    move->after_len = parts->after.len + (move->start > 0 ? 0 : len);
    ASSERT(body.data + move->end <= buffer->data + buffer->capacity);
}

static bool has_room_after(const struct connection *from, struct slice body,
                           const struct move *move)
{
    const struct buffer *buffer = from->input;
    const char *end = body.data + body.len;

    return move->end == body.len &&
           move->after_len <= (size_t)(buffer->data + buffer->capacity - end);
}

static bool take_buffers(struct move *move, struct buffer_pool *pool, bool room_after)
{
    if (move->before_len > 0) {
        move->before = buffer_take(pool, move->before_len);
        if (move->before == NULL)
            return false;
        move->before->end = move->before_len;
    }
    if (move->after_len > 0 && !room_after) {
        move->after = buffer_take(pool, move->after_len);
        if (move->after == NULL)
            return false;
        move->after->end = move->after_len;
    }
    return true;
}

static int move_parts(struct connection *to, struct connection *from,
                      const struct connection_parts *parts, struct slice body,
                      const struct splice_edit *edits, unsigned count)
{
    struct buffer_pool *pool = &to->transport->pool;
    struct buffer *buffer = NULL;
    struct move move;
    char *end;

    plan_move(&move, from, parts, body, edits, count);
    if (take_buffers(&move, pool, has_room_after(from, body, &move)))
        buffer = detach_frame(from, body);
    if (buffer == NULL) {
        buffer_give(pool, move.before);
        buffer_give(pool, move.after);
        return STDIO_BUS_ERR;
    }
    if (move.before != NULL) {
        end = write_bytes(move.before->data, parts->before);
        if (move.start > 0)
            write_body(end, parts, body, 0, move.start, edits, count);
        queue_append_buffer(&to->output, move.before);
    }
    end = move.after != NULL ? move.after->data : buffer->data + buffer->end;
    if (move.end < body.len)
        end = write_body(end, parts, body, move.end, body.len, edits, count);
    write_bytes(end, parts->after);
    buffer->end = buffer->start + move.end;
    buffer->start += move.start;
    if (parts->one_line)
        make_line(buffer->data + buffer->start, buffer->end - buffer->start);
    if (move.after == NULL)
        buffer->end += move.after_len;
    queue_append_buffer(&to->output, buffer);
    if (move.after != NULL)
        queue_append_buffer(&to->output, move.after);
    return STDIO_BUS_OK;
}

int connection_send_parts(struct connection *to, struct connection *from,
                          const struct connection_parts *parts, struct slice body,
                          const struct splice_edit *edits, unsigned count)
{
    int status;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (worth_moving(from, body) && few_edited(body, edits, count))
        status = move_parts(to, from, parts, body, edits, count);
    else
        status = copy_parts(to, parts, body, edits, count);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
}

int connection_send_bytes(struct connection *to, struct slice bytes)
{
    int status;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    status = queue_append(&to->output, &to->transport->pool, bytes);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
}

/* --- bodies and lines --- */

int connection_send_body(struct connection *to, struct connection *from, struct slice body,
                         const struct splice_edit *edits, unsigned count)
{
    struct connection_parts parts = {.one_line = to->has_lines};
    char prefix[FRAME_PREFIX_MAX];
    size_t len;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (to->has_lines) {
        parts.after = slice_of("\n", 1);
    } else {
        len = to->framing->prefix(prefix, splice_len(body.len, edits, count));
        parts.before = slice_of(prefix, len);
    }
    return connection_send_parts(to, from, &parts, body, edits, count);
}

int connection_send_line(struct connection *to, struct connection *from, struct slice line)
{
    static const struct connection_parts none;
    int status;

    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (!to->has_lines)
        return connection_send_body(to, from, slice_without_newline(line), NULL, 0);
    if (worth_moving(from, line))
        return connection_send_parts(to, from, &none, line, NULL, 0);
    status = queue_append(&to->output, &to->transport->pool, line);
    if (status == STDIO_BUS_OK)
        note_queued(to);
    return status;
}

int connection_send_edited(struct connection *to, struct connection *from, struct slice line,
                           const struct splice_edit *edits, unsigned count)
{
    static const struct connection_parts none;
    char *room;

    ASSERT(count > 0);
    if (to->output_state < OUTPUT_LINGERING)
        return STDIO_BUS_OK;
    if (!to->has_lines)
        return connection_send_body(to, from, slice_without_newline(line), edits, count);
    if (worth_moving(from, line))
        return connection_send_parts(to, from, &none, line, edits, count);
    room = queue_reserve(&to->output, &to->transport->pool, splice_len(line.len, edits, count));
    if (room == NULL)
        return STDIO_BUS_ERR;
    splice_write(room, line.data, 0, line.len, edits, count);
    note_queued(to);
    return STDIO_BUS_OK;
}
