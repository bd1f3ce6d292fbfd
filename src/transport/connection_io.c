#include "build_config.h"

#include "transport/connection_io.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

#define PIECES_MAX 64      /* buffers described in one writev */
#define WRITES_PER_FLUSH 4 /* a fair share for a fast reader with a long queue */
#define ROOM_MIN ((size_t)16384)      /* with less, reading would cost more than room does */
#define ROOM_CHEAP ((size_t)49152)    /* with less, room that costs little is made */

static void set_interest(struct connection *connection)
{
    struct stdio_bus_event_loop *loop = connection->transport->loop;
    unsigned in = connection->reading ? STDIO_BUS_EVENT_READ : 0;
    unsigned out = connection->writing ? STDIO_BUS_EVENT_WRITE : 0;
    int status = STDIO_BUS_OK;

    if (connection->fd_in == connection->fd_out) {
        /* Half-closed: the end of input was read; what is left to see is that the peer goes. */
        unsigned hangup = connection->input_ended ? STDIO_BUS_EVENT_HANGUP : 0;

        status = stdio_bus_event_loop_modify(loop, connection->fd_in, in | out | hangup);
    } else {
        if (connection->fd_in >= 0)
            status = stdio_bus_event_loop_modify(loop, connection->fd_in, in);
        if (connection->fd_out >= 0 && status == STDIO_BUS_OK)
            status = stdio_bus_event_loop_modify(loop, connection->fd_out, out);
    }
    if (status != STDIO_BUS_OK) /* out of kernel memory: errno is the event loop's */
        connection->handler->failed(connection, CONNECTION_BROKEN, errno);
}

void connection_set_reading(struct connection *connection, bool reading)
{
    if (connection->reading == reading || !connection->open)
        return;
    connection->reading = reading;
    set_interest(connection);
}

static void set_writing(struct connection *connection, bool writing)
{
    if (connection->writing == writing)
        return;
    connection->writing = writing;
    set_interest(connection);
}

void connection_start_stall(struct connection *connection, int64_t delay_ms)
{
    struct stdio_bus_event_loop *loop = connection->transport->loop;

    timers_start(stdio_bus_event_loop_timers(loop), &connection->stall,
                 stdio_bus_event_loop_now_ms(loop) + delay_ms);
}

void connection_drop_input(struct connection *connection)
{
    if (connection->input != NULL)
        buffer_give(&connection->transport->pool, connection->input);
    connection->input = NULL;
    connection->offered.consumed = 0;
}

/* --- input --- */

/* A buffer for a message of which nothing is here: for one as long as the last long one, lest it
 * has to move from buffer to buffer while it comes in. */
static bool take_input(struct connection *connection)
{
    size_t expected = connection->expected;

    connection->input = buffer_take(&connection->transport->pool,
                                    expected > BUFFER_LARGE ? expected : BUFFER_LARGE);
    connection->expected = expected / 2 > BUFFER_LARGE ? expected / 2 : 0;
    return connection->input != NULL;
}

static bool make_room(struct connection *connection)
{
    struct buffer *input = connection->input;
    size_t len, wanted;

    if (input == NULL)
        return take_input(connection);
    if (buffer_room(input) >= ROOM_CHEAP)
        return true;
    len = buffer_len(input);
    wanted = len <= BUFFER_LARGE / 2 ? BUFFER_LARGE : 2 * len;
    if (wanted < connection->expected)
        wanted = connection->expected;
    /* Moving no more than was consumed, and doubling, keep the copying linear. */
    if ((input->start == 0 || input->start < len) && buffer_room(input) >= ROOM_MIN)
        return true;
    input = buffer_with_room(&connection->transport->pool, input, wanted - len);
    if (input == NULL)
        return false;
    connection->input = input;
    return true;
}

/* An idle connection holds no buffer, and one with a short rest only a small one. */
static void trim_input(struct connection *connection)
{
    struct buffer_pool *pool = &connection->transport->pool;
    struct buffer *input = connection->input;
    struct buffer *small;
    size_t len;

    if (input == NULL)
        return;
    len = buffer_len(input);
    if (len == 0) {
        connection_drop_input(connection);
    } else if (len <= BUFFER_SMALL && input->capacity > BUFFER_SMALL) {
        small = buffer_take(pool, len);
        if (small == NULL)
            return;
        memcpy(small->data, input->data + input->start, len);
        small->end = len;
        buffer_give(pool, input);
        connection->input = small;
    }
}

/* True: a later message may be none the worse for it. */
static bool malformed(struct connection *connection, int code, const char *problem)
{
    if (connection->skips_bad_lines)
        return connection_skip_line(connection, problem);
    connection->deaf = true;
    connection->handler->malformed(connection, code, problem);
    return false;
}

/* Finds the next message in the input. False: there is none to offer now. */
static bool next_message(struct connection *connection)
{
    static const char too_long[] = "message exceeds max_input_buffer";
    struct buffer *input = connection->input;
    size_t max = connection->framing_state.max_body;

    for (;;) {
        struct slice bytes = slice_of(input->data + input->start, buffer_len(input));
        enum frame_status status = connection->framing->next(&connection->framing_state, bytes,
                                                             &connection->offered);

        switch (status) {
        case FRAME_MESSAGE:
            if (connection->offered.body.len <= max)
                return true;
            if (!malformed(connection, JSONRPC_INVALID_REQUEST, too_long))
                return false;
            break;
        case FRAME_SKIP:
            input->start += connection->offered.consumed;
            connection->offered.consumed = 0;
            if (connection->framing == &framing_rest_of_line)
                connection_skipped_to(connection, input->data + input->start);
            break;
        case FRAME_MALFORMED:
            if (!malformed(connection, JSONRPC_PARSE_ERROR, connection->offered.problem))
                return false;
            break;
        default:
            if (!connection_look_at_frame(connection, status))
                return false;
            break;
        case FRAME_MORE:
            connection->offered.consumed = 0;
            if (bytes.len < max || !malformed(connection, JSONRPC_INVALID_REQUEST, too_long))
                return false;
            break;
        }
    }
}

static enum connection_verdict offer(struct connection *connection)
{
    struct buffer *input = connection->input;
    struct message_scratch scratch;
    struct message message;
    enum message_problem problem;

    problem = message_from_scan(
        &message, slice_of(input->data + input->start, connection->offered.body.len),
        &connection->framing_state.scanner.fields, &scratch);
    connection->handed_over = false;
    return connection->handler->message(connection, &message, problem);
}

static void process(struct connection *connection)
{
    while (connection->open && !connection->deaf && !connection->held &&
           connection->input != NULL) {
        size_t consumed;

        if (connection->offered.consumed == 0 && !next_message(connection))
            break;
        consumed = connection->offered.consumed;
        if (offer(connection) == CONNECTION_HELD) {
            connection->held = true;
            break;
        }
        connection->offered.consumed = 0;
        if (connection->input != NULL && !connection->handed_over)
            connection->input->start += consumed;
    }
}

static void tell_end(struct connection *connection)
{
    size_t cut = connection->input != NULL ? buffer_len(connection->input) : 0;

    connection->ended_told = true;
    connection_drop_input(connection);
    if (connection->framed)
        cut = connection_end_frames(connection, cut);
    if (connection->open)
        connection->handler->ended(connection, cut);
}

static void go_on(struct connection *connection)
{
    process(connection);
    if (!connection->open)
        return;
    if (connection->deaf)
        connection_drop_input(connection);
    else
        trim_input(connection);
    if (connection->input_ended && !connection->held && !connection->deaf &&
        !connection->ended_told)
        tell_end(connection);
}

void connection_resume(struct connection *connection)
{
    if (!connection->open || connection->deaf)
        return;
    connection->held = false;
    connection->resumed = true;
    go_on(connection);
    if (connection->open && !connection->held && !connection->deaf && !connection->input_ended)
        connection_set_reading(connection, true);
}

static void input_ended(struct connection *connection)
{
    connection->input_ended = true;
    connection->reading = false;
    set_interest(connection);
    if (!connection->open)
        return;
    if (connection->shut)
        connection->handler->failed(connection, CONNECTION_LINGERED, 0);
    else
        go_on(connection);
}

/* Returns what read() did; an error that will pass counts as STDIO_BUS_EAGAIN. */
static ssize_t read_some(struct connection *connection)
{
    struct buffer *input = connection->input;
    size_t room = buffer_room(input) < BUFFER_LARGE ? buffer_room(input) : BUFFER_LARGE;
    ssize_t got = read(connection->fd_in, input->data + input->end, room);

    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return STDIO_BUS_EAGAIN;
    if (got > 0)
        input->end += (size_t)got;
    return got;
}

static void read_input(struct connection *connection)
{
    ssize_t got;

    if (!make_room(connection)) {
        connection->held = true;
        connection_set_reading(connection, false);
        connection->handler->starved(connection);
        return;
    }
    got = read_some(connection);
    if (got == 0) {
        input_ended(connection);
    } else if (got == STDIO_BUS_EAGAIN) {
        trim_input(connection);
    } else if (got < 0) {
        connection->handler->failed(connection, CONNECTION_BROKEN, errno);
    } else {
        go_on(connection);
    }
}

void connection_readable(void *user_data, unsigned events)
{
    struct connection *connection = user_data;

    (void)events;
    if (connection->held)
        connection_set_reading(connection, false); /* only now, so a short hold costs nothing */
    else if (connection->reading)
        read_input(connection);
}

/* --- output --- */

static void release_backpressure(struct connection *connection)
{
    struct transport *transport = connection->transport;

    if (!connection->is_full ||
        connection->output.bytes >= (transport->limits->max_output_queue + 1) / 2)
        return;
    connection->is_full = false;
    if (!connection->lingering)
        timers_stop(stdio_bus_event_loop_timers(transport->loop), &connection->stall);
    connection->handler->full(connection, false);
}

/* All is written and nothing more will be: say so, and wait a moment for the peer to close. */
static void finish_lingering(struct connection *connection)
{
    if (connection->fd_in != connection->fd_out || connection->input_ended ||
        shutdown(connection->fd_out, SHUT_WR) < 0) {
        connection->handler->failed(connection, CONNECTION_LINGERED, 0);
        return;
    }
    connection->shut = true;
    connection->takes_lines = false;
    connection_start_stall(connection, CONNECTION_LINGER_MS);
}

static void all_written(struct connection *connection)
{
    set_writing(connection, false);
    if (!connection->open)
        return;
    if (connection->lingering && !connection->shut)
        finish_lingering(connection);
    else if (!connection->lingering)
        connection->handler->flushed(connection);
}

/* One write. STDIO_BUS_OK: all that was offered went; EAGAIN: not all; ERR: errno says why. */
static int write_some(struct connection *connection)
{
    struct iovec pieces[PIECES_MAX];
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
    queue_consume(&connection->output, &connection->transport->pool, (size_t)written);
    return (size_t)written == offered ? STDIO_BUS_OK : STDIO_BUS_EAGAIN;
}

void connection_flush(struct connection *connection)
{
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
    release_backpressure(connection);
    if (!connection->open || connection->fd_out < 0)
        return;
    if (connection->output.bytes > 0)
        set_writing(connection, true);
    else
        all_written(connection);
}

void connection_writable(void *user_data, unsigned events)
{
    struct connection *connection = user_data;

    (void)events;
    connection_flush(connection);
}

void connection_ready(void *user_data, unsigned events)
{
    struct connection *connection = user_data;

    if (events & STDIO_BUS_EVENT_WRITE)
        connection_flush(connection);
    if (connection->open && (events & STDIO_BUS_EVENT_READ))
        connection_readable(connection, events);
    if (connection->open && connection->input_ended && (events & STDIO_BUS_EVENT_HANGUP))
        connection->handler->failed(connection, CONNECTION_BROKEN, 0);
}
