#include "build_config.h"

#include "transport/connection_io.h"

#include <string.h>

#include "base/error.h"

static inline void queued(struct connection *to)
{
    struct transport *transport = to->transport;

    if (!list_linked(&to->dirty))
        list_append(&transport->dirty, &to->dirty);
    if (to->is_full || to->output.bytes <= transport->limits->max_output_queue)
        return;
    to->is_full = true;
    connection_start_backpressure(to);
    to->handler->full(to, true);
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
static inline bool worth_moving(const struct connection *from, struct slice bytes)
{
    size_t rest = buffer_len(from->input) - from->offered.consumed;

    return bytes.len >= BUFFER_LARGE / 4 && bytes.len >= from->input->capacity / 4 &&
           rest <= bytes.len;
}

/* --- where not both sides are NDJSON --- */

static void replace(char *text, size_t len, char old)
{
    char *end = text + len, *found;

    while (text < end && (found = memchr(text, old, (size_t)(end - text))) != NULL) {
        *found = ' ';
        text = found + 1;
    }
}

/* Nothing of a body may look like the end of a line to whoever reads lines. */
static void make_line(struct connection *from, struct slice body)
{
    char *text = from->input->data + (body.data - from->input->data);

    replace(text, body.len, '\n');
    replace(text, body.len, '\r');
}

static struct slice without_newline(struct slice line)
{
    if (line.len > 0 && line.data[line.len - 1] == '\n')
        line.len--;
    return line;
}

static const struct splice_edit no_edits[1];

/* Copies a message of `from`, or a line if that is NULL, with `count` edits. */
static int copy_framed(struct connection *to, struct connection *from, struct slice bytes,
                       const struct splice_edit *edits, unsigned count)
{
    struct slice body = from != NULL && from->framed ? bytes : without_newline(bytes);
    size_t len = splice_len(body.len, edits, count), prefix_len = 0;
    char prefix[FRAME_PREFIX_MAX], *room;

    if (to->framed)
        prefix_len = to->framing->prefix(prefix, len);
    else if (from != NULL)
        make_line(from, body);
    room = queue_reserve(&to->output, &to->transport->pool, prefix_len + len + !to->framed);
    if (room == NULL)
        return STDIO_BUS_ERR;
    memcpy(room, prefix, prefix_len);
    splice_write(room + prefix_len, body.data, 0, body.len, edits, count);
    if (!to->framed)
        room[len] = '\n';
    queued(to);
    return STDIO_BUS_OK;
}

static int move_line(struct connection *to, struct connection *from, struct slice body)
{
    struct buffer *buffer = detach_message(from, body);

    if (buffer == NULL)
        return STDIO_BUS_ERR;
    buffer->data[buffer->end++] = '\n';
    queue_append_buffer(&to->output, buffer);
    return STDIO_BUS_OK;
}

static int move_body(struct connection *to, struct connection *from, struct slice body)
{
    struct buffer_pool *pool = &to->transport->pool;
    struct buffer *head = buffer_take(pool, FRAME_PREFIX_MAX), *buffer;

    if (head == NULL)
        return STDIO_BUS_ERR;
    head->end = to->framing->prefix(head->data, body.len);
    buffer = detach_message(from, body);
    if (buffer == NULL) {
        buffer_give(pool, head);
        return STDIO_BUS_ERR;
    }
    queue_append_buffer(&to->output, head);
    queue_append_buffer(&to->output, buffer);
    return STDIO_BUS_OK;
}

/* Whether there is a byte behind the body for the newline of the line that it becomes. */
static bool has_room_behind(const struct connection *from, struct slice body)
{
    return body.data + body.len < from->input->data + from->input->capacity;
}

static int forward_framed(struct connection *to, struct connection *from, struct slice bytes)
{
    struct slice body = from->framed ? bytes : without_newline(bytes);
    int status;

    if (!worth_moving(from, body) || (!to->framed && !has_room_behind(from, body)))
        return copy_framed(to, from, bytes, no_edits, 0);
    if (!to->framed)
        make_line(from, body);
    status = to->framed ? move_body(to, from, body) : move_line(to, from, body);
    if (status == STDIO_BUS_OK)
        queued(to);
    return status;
}

/* --- output --- */

/* What is sent then is as if it had been sent and then lost with the connection. */
static bool is_lost(const struct connection *to)
{
    return to->fd_out < 0 || to->shut;
}

static int append(struct connection *to, struct slice bytes)
{
    if (queue_append(&to->output, &to->transport->pool, bytes) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    queued(to);
    return STDIO_BUS_OK;
}

int connection_send(struct connection *to, struct slice line)
{
    if (to->takes_lines)
        return append(to, line);
    return is_lost(to) ? STDIO_BUS_OK : copy_framed(to, NULL, line, no_edits, 0);
}

int connection_copy(struct connection *to, struct connection *from, struct slice bytes)
{
    if (to->takes_lines && !from->framed)
        return append(to, bytes);
    return is_lost(to) ? STDIO_BUS_OK : copy_framed(to, from, bytes, no_edits, 0);
}

int connection_forward(struct connection *to, struct connection *from, struct slice bytes)
{
    struct buffer *buffer;

    if (!to->takes_lines || from->framed)
        return is_lost(to) ? STDIO_BUS_OK : forward_framed(to, from, bytes);
    if (!worth_moving(from, bytes))
        return append(to, bytes);
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

    if (!to->takes_lines || from->framed)
        return is_lost(to) ? STDIO_BUS_OK : copy_framed(to, from, bytes, edits, count);
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
