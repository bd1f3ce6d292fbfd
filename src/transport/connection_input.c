#include "build_config.h"

#include "transport/connection_input.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "framing/sized_frame.h"
#include "transport/connection_output.h"
#include "transport/memory.h"
#include "transport/origin.h"

/* --- the buffer --- */

void connection_drop_input(struct connection *connection)
{
    if (connection->input != NULL)
        buffer_give(&connection->transport->pool, connection->input);
    connection->input = NULL;
    connection->at_hand = 0;
    memory_release(connection);
}

/* Exchanges a long buffer that has few bytes for one of a read's size. */
static void connection_shorten_input(struct connection *connection)
{
    struct buffer *input = connection->input, *shorter;
    size_t len = buffer_len(input);

    if (input->capacity <= BUFFER_LARGE || len > BUFFER_LARGE)
        return;
    shorter = buffer_take(&connection->transport->pool, BUFFER_LARGE);
    if (shorter == NULL)
        return;
    memcpy(shorter->data, input->data + input->start, len);
    shorter->end = len;
    buffer_give(&connection->transport->pool, input);
    connection->input = shorter;
}

/* --- frames that are skipped or cut --- */

/* Skips the line that the input starts with. False: not before more of it is here to be shown. */
static bool skip_line(struct connection *connection, const char *problem)
{
    const struct buffer *input = connection->input;
    struct slice line = slice_of(input->data + input->start, buffer_len(input));
    const char *newline = memchr(line.data, '\n', line.len);

    if (newline != NULL) {
        line.len = (size_t)(newline - line.data);
    } else if (line.len < CONNECTION_SHOWN_BYTES) {
        return false;
    }
    connection->handler->skipped(connection, line, problem);
    connection->framing->give_up(&connection->framing_state, 0);
    return true;
}

/* The input cannot continue. */
static void refuse_input(struct connection *connection, enum frame_fault fault, const char *problem)
{
    connection->input_state = INPUT_DEAF;
    connection->handler->malformed(connection, fault, problem);
}

/* Reports the frame as malformed or, where bad lines are skipped, as skipped. True: a later frame
 * may be good. */
static bool connection_malformed(struct connection *connection, enum frame_fault fault,
                                 const char *problem)
{
    if (connection->skips_bad_lines)
        return skip_line(connection, problem);
    refuse_input(connection, fault, problem);
    return false;
}

/* A line that others wait for: it occupies memory, and is not complete in time. */
static void line_time_over(struct connection *connection)
{
    bool goes_on = connection->frames_in != connection->timed_frames ||
                   connection->input_state == INPUT_PAUSED || memory_waits(connection);

    if (connection->reserved == 0 || connection->input == NULL || !memory_awaited(connection))
        return;
    if (goes_on) {
        connection->timed_frames = connection->frames_in;
        connection_start_frame_time(connection, memory_frame_ms(connection));
        return;
    }
    if (connection->input_state != INPUT_OPEN ||
        connection_malformed(
            connection, FRAME_FAULT_TOO_LONG,
            "not complete after frame_timeout_sec, while others waited for its memory"))
        connection_drop_input(connection);
}

void connection_frame_time_over(void *user_data)
{
    struct connection *connection = user_data;
    size_t dropped = connection->input != NULL ? buffer_len(connection->input) : 0;

    if (connection->has_lines) {
        line_time_over(connection);
        return;
    }
    if (!connection->framing_state.begun)
        return;
    if (connection->input_state == INPUT_PAUSED || memory_waits(connection)) { /* not its delay */
        connection_start_frame_time(connection, memory_frame_ms(connection));
        return;
    }
    if (connection->input_state != INPUT_OPEN)
        return;
    if (connection->reader->give_up == NULL) {
        refuse_input(connection, FRAME_FAULT_SYNTAX,
                     connection->reader != connection->framing
                         ? "the first frame was not complete after frame_timeout_sec"
                         : "the message was not complete in time");
        return;
    }
    log_warn(connection->transport->log, connection->context,
             "a frame was not complete after frame_timeout_sec: it is skipped, "
             "%zu bytes of it were dropped",
             dropped);
    connection->framing->give_up(&connection->framing_state, dropped);
    connection_drop_input(connection);
}

/* Keeps only what the check needs of the frame, which continues. */
static void connection_cut_frame(struct connection *connection)
{
    struct buffer *input = connection->input;

    input->end = input->start + connection->framing->cut(&connection->framing_state,
                                                         input->data + input->start,
                                                         buffer_len(input));
    connection_shorten_input(connection);
    if (connection->input->capacity <= BUFFER_LARGE)
        memory_release(connection);
}

/* The line has `len` bytes, max_body or more, or was cut before, and continues. True: a later frame
 * may be good. */
static bool connection_line_goes_on(struct connection *connection, size_t len)
{
    const struct framing_state *state = &connection->framing_state;

    if (state->max_long == 0)
        return connection_malformed(connection, FRAME_FAULT_TOO_LONG, CONNECTION_TOO_LONG);
    if (len >= state->max_long || state->cut)
        connection_cut_frame(connection);
    return false;
}

/* The frame is whole, and longer than max_body. False: it is malformed. */
static bool connection_take_long(const struct connection *connection, size_t len)
{
    const struct framing_state *state = &connection->framing_state;

    if (state->max_long > 0)
        state->check->mark(state->check_state, len > state->max_long);
    return state->max_long > 0;
}

#define ROOM_CHEAP ((size_t)49152) /* with less, new room is made if that costs little */

/* --- the buffer --- */

/* The length of the frame whose body the input begins with, and of the newline that may follow. 0:
 * not known. */
static size_t announced(const struct connection *connection)
{
    const struct framing_state *state = &connection->framing_state;

    return !connection->has_lines && state->part == PART_BODY && !state->cut
               ? (size_t)state->left + 1
               : 0;
}

/* How long a line may be of which there are `len` bytes: few are longer than max_body. */
static size_t line_max(const struct connection *connection, size_t len)
{
    const struct framing_state *state = &connection->framing_state;

    return state->max_long == 0 || len < state->max_body ? state->max_body : state->max_long;
}

/* What to reserve for a buffer of `wanted` bytes. */
static size_t most_of(const struct connection *connection, size_t wanted)
{
    return memory_grows(connection) ? line_max(connection, wanted - 1) : wanted;
}

/* The first buffer: with room for as long a frame as the last long one, which then stays in one
 * buffer, if that memory is free. */
static size_t make_first_room(struct connection *connection)
{
    size_t expected = connection->expected;

    connection->expected = expected / 2 > BUFFER_LARGE ? expected / 2 : 0;
    if (expected <= BUFFER_LARGE || !memory_reserve(connection, most_of(connection, expected + 1)))
        expected = BUFFER_LARGE;
    connection->input = buffer_take(&connection->transport->pool, expected);
    if (connection->input == NULL)
        memory_release(connection);
    return connection->input != NULL ? BUFFER_LARGE : 0;
}

/* The capacity that goes with `len` bytes of a message. Doubling keeps the copying linear. */
static size_t wanted_capacity(const struct connection *connection, size_t len)
{
    size_t whole = announced(connection), max = line_max(connection, len);
    size_t wanted = 2 * len;

    if (whole > BUFFER_LARGE)
        return whole;
    if (len <= BUFFER_LARGE - CONNECTION_ROOM_MIN)
        return BUFFER_LARGE;
    if (wanted < connection->expected)
        wanted = connection->expected;
    return memory_grows(connection) && wanted > max && max > BUFFER_LARGE ? max : wanted;
}

/* False: the connection waits. */
static bool reserve(struct connection *connection, size_t most)
{
    if (most <= BUFFER_LARGE || connection->reserved >= most || memory_reserve(connection, most))
        return true;
    connection_shorten_input(connection);
    memory_wait(connection, most);
    return false;
}

/* An announced message gets its room while little of it would have to be moved. */
static bool gets_short(const struct connection *connection, size_t room)
{
    return room < CONNECTION_ROOM_MIN || announced(connection) > BUFFER_LARGE;
}

/* Returns how many bytes a read may take now. 0: out of memory, or the connection waits for it. */
static size_t make_room(struct connection *connection)
{
    struct buffer *input = connection->input;
    size_t len, wanted, most, room;
    bool outgrows;

    if (input == NULL)
        return make_first_room(connection);
    room = buffer_room(input);
    len = buffer_len(input);
    wanted = wanted_capacity(connection, len);
    most = wanted > BUFFER_LARGE ? most_of(connection, wanted) : wanted;
    outgrows = connection->reserved > 0 && most > connection->reserved;
    /* Moving no more than was consumed keeps the copying linear, too. */
    if (outgrows || (gets_short(connection, room) && room + len < wanted) ||
        (room < ROOM_CHEAP && input->start >= len && input->start > 0)) {
        if (!reserve(connection, most))
            return 0;
        input = buffer_with_room(&connection->transport->pool, connection->input, wanted - len);
        if (input == NULL)
            return 0;
        connection->input = input;
        room = buffer_room(input);
    }
    return room < BUFFER_LARGE ? room : BUFFER_LARGE;
}

/* Others wait for the memory of a long message that was taken. */
static void give_way(struct connection *connection)
{
    if (announced(connection) > BUFFER_LARGE)
        return;
    connection_shorten_input(connection);
    if (connection->input->capacity <= BUFFER_LARGE)
        memory_release(connection);
}

/* An idle connection holds no buffer, and one with a short rest of input only a small one. */
static void trim(struct connection *connection)
{
    struct buffer_pool *pool = &connection->transport->pool;
    struct buffer *input = connection->input, *small = NULL;
    size_t len;

    if (input == NULL)
        return;
    len = input->end - input->start;
    if (len > 0 && connection->input_state != INPUT_DEAF) {
        if (connection->reserved > 0 && connection->at_hand > 0)
            memory_shrink(connection, input->capacity);
        else if (connection->reserved > 0 && memory_awaited(connection))
            give_way(connection);
        input = connection->input;
        if (len > BUFFER_SMALL || input->capacity <= BUFFER_SMALL)
            return;
        small = buffer_take(pool, len);
        if (small == NULL)
            return;
        memcpy(small->data, input->data + input->start, len);
        small->end = len;
    }
    buffer_give(pool, input);
    connection->input = small;
    if (connection->reserved > 0)
        memory_forget(connection);
}

/* --- the time of a frame --- */

/* The framing waits for more: starts the time of a frame that has begun. */
static void watch_frame(struct connection *connection)
{
    struct framing_state *state = &connection->framing_state;

    if (!state->begun) {
        stdio_bus_event_loop_stop_timer(connection->transport->loop, &connection->frame_time);
    } else if (!timer_started(&connection->frame_time) || !state->timed) {
        state->timed = true;
        connection_start_frame_time(connection, memory_frame_ms(connection));
    }
}

/* --- frames --- */

/* Finds the next frame in the input. False: there is none to offer now. */
static bool next_frame(struct connection *connection)
{
    struct buffer *input = connection->input;
    size_t max = connection->framing_state.max_body;
    struct frame frame UNINITIALIZED;

    if (input->start == input->end && !connection->framing_state.begun &&
        !timer_started(&connection->frame_time))
        return false;
    for (;;) {
        struct slice bytes = {input->data + input->start, input->end - input->start};

        switch (connection->reader->next(&connection->framing_state, bytes, &frame)) {
        case FRAME_WHOLE:
            if (frame.consumed <= max || connection_take_long(connection, frame.consumed)) {
                connection->at_hand = frame.consumed;
                connection->reader = connection->framing;
                return true;
            }
            if (!connection_malformed(connection, FRAME_FAULT_TOO_LONG, CONNECTION_TOO_LONG))
                return false;
            break;
        case FRAME_SKIP:
            input->start += frame.consumed;
            break;
        case FRAME_MORE:
            if ((bytes.len < max && !connection->framing_state.cut) ||
                !connection_line_goes_on(connection, bytes.len))
                return false;
            break;
        case FRAME_MALFORMED:
            if (!connection_malformed(connection, frame.fault, frame.problem))
                return false;
            break;
        case FRAME_WAIT:
            if (connection->framing_state.cut)
                connection_cut_frame(connection);
            watch_frame(connection);
            return false;
        case FRAME_REFUSED:
            input->start += frame.consumed;
            connection->handler->refused(connection, frame.fault, frame.problem);
            if (connection->input_state != INPUT_OPEN)
                return false;
            break;
        case FRAME_REWRITE:
            input->end = input->start + connection->framing->rewrite(&connection->framing_state,
                                                                     input->data + input->start,
                                                                     bytes.len);
            break;
        case FRAME_NOTED:
            input->start += frame.consumed;
            connection->handler->noted(connection);
            if (connection->input_state != INPUT_OPEN)
                return false;
            break;
        }
    }
}

/* Offers the frames that are here, until the owner pauses or closes. */
static void take_input(struct connection *connection)
{
    while (connection->input_state == INPUT_OPEN && connection->input != NULL) {
        const struct buffer *input = connection->input;
        struct slice body;

        if (connection->at_hand == 0 && !next_frame(connection))
            break;
        body.data = input->data + input->start;
        body.len = connection->at_hand;
        connection->handler->frame(connection, body);
        if (connection->input_state == INPUT_PAUSED)
            break;
        if (connection->input != NULL)
            connection->input->start += connection->at_hand;
        connection->at_hand = 0;
        connection->frames_in++;
    }
    trim(connection);
}

/* --- reading --- */

/* The input has ended: nothing more is awaited, and a frame that is cut is refused. */
static void report_end(struct connection *connection)
{
    const struct framing_state *state = &connection->framing_state;
    size_t cut = connection->input != NULL ? buffer_len(connection->input) : 0;

    connection_drop_input(connection);
    stdio_bus_event_loop_stop_timer(connection->transport->loop, &connection->frame_time);
    if (state->begun && !state->reported) {
        cut = 0;
        connection->handler->refused(connection, FRAME_FAULT_SYNTAX,
                                     "the input ends in the middle of a frame");
    }
    if (connection_is_open(connection))
        connection->handler->ended(connection, cut);
}

static void end_input(struct connection *connection)
{
    bool deaf = connection->input_state == INPUT_DEAF;

    connection->input_state = deaf ? INPUT_DEAF_ENDED : INPUT_ENDED;
    connection_watch(connection, connection->interest & ~STDIO_BUS_EVENT_READ);
    if (!connection_is_open(connection))
        return;
    if (!deaf)
        report_end(connection);
    else if (connection->output_state == OUTPUT_SHUT)
        connection->handler->failed(connection, CONNECTION_LINGERED, 0);
    else
        connection_drop_input(connection);
}

void connection_readable(void *user_data, unsigned events)
{
    struct connection *connection = user_data;
    bool has_turns = connection->origin != NULL && connection->transport->origin_count > 1;
    size_t room;
    ssize_t got;

    (void)events;
    if (connection->input_state == INPUT_PAUSED) { /* only now: a short pause costs nothing */
        connection_watch(connection, connection->interest & ~STDIO_BUS_EVENT_READ);
        return;
    }
    if (!(connection->interest & STDIO_BUS_EVENT_READ) || (has_turns && reading_waits(connection)))
        return;
    room = make_room(connection);
    if (room == 0 && (memory_waits(connection) || !connection_is_open(connection)))
        return;
    if (room == 0) {
        connection_pause(connection);
        connection_watch(connection, connection->interest & ~STDIO_BUS_EVENT_READ);
        if (connection_is_open(connection))
            connection->handler->starved(connection);
        return;
    }
    got = read(connection->fd_in, connection->input->data + connection->input->end, room);
    if (got > 0) {
        connection->input->end += (size_t)got;
        connection->bytes_in += (size_t)got;
        if (has_turns)
            reading_note(connection, (size_t)got);
        take_input(connection);
    } else if (got == 0) {
        end_input(connection);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        trim(connection);
    } else {
        connection->handler->failed(connection, CONNECTION_BROKEN, errno);
    }
}

/* One that had bytes to read may have more. */
static void take_turn(struct connection *connection)
{
    struct transport *transport = connection->transport;
    uint64_t before = connection->bytes_in;

    if (connection->input_state != INPUT_PAUSED) {
        transport->in_turn = connection;
        connection_readable(connection, STDIO_BUS_EVENT_READ);
        transport->in_turn = NULL;
    }
    if (!connection_is_open(connection))
        return;
    if (connection->bytes_in > before && connection->input_state == INPUT_OPEN &&
        (connection->interest & STDIO_BUS_EVENT_READ))
        reading_wait(connection);
    else
        connection_watch(connection, connection->interest);
}

void connection_read_turns(struct transport *transport)
{
    struct connection *connection;
    struct list turns;

    reading_begin(transport, &turns);
    while ((connection = reading_next(transport, &turns)) != NULL)
        take_turn(connection);
}

void connection_ready(void *user_data, unsigned events)
{
    struct connection *connection = user_data;

    if (events & STDIO_BUS_EVENT_WRITE) {
        connection_flush(connection);
        if (!connection_is_open(connection))
            return;
    }
    if (events & STDIO_BUS_EVENT_READ)
        connection_readable(connection, events);
    if ((events & STDIO_BUS_EVENT_HANGUP) && connection_is_open(connection))
        connection->handler->failed(connection, CONNECTION_BROKEN, 0);
}

/* --- the owner's word --- */

void connection_pause(struct connection *connection)
{
    if (connection->input_state == INPUT_OPEN)
        connection->input_state = INPUT_PAUSED;
}

void connection_watch_hangup(struct connection *connection)
{
    if (connection->input_state != INPUT_PAUSED)
        return;
    connection->watches_hangup = true;
    connection_watch(connection, connection->interest & ~STDIO_BUS_EVENT_READ);
}

bool connection_input_is_over(const struct connection *connection)
{
    char byte;

    return connection->input_state == INPUT_PAUSED &&
           recv(connection->fd_in, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void connection_resume(struct connection *connection)
{
    unsigned reads;

    if (connection->input_state != INPUT_PAUSED)
        return;
    connection->input_state = INPUT_OPEN;
    connection->watches_hangup = false;
    take_input(connection);
    reads = connection->input_state == INPUT_OPEN ? STDIO_BUS_EVENT_READ : 0;
    connection_watch(connection, connection->interest | reads);
}

void connection_stop_input(struct connection *connection)
{
    if (connection->input_state == INPUT_OPEN || connection->input_state == INPUT_PAUSED)
        connection->input_state = INPUT_DEAF;
    connection_drop_input(connection);
    if (connection->output_state != OUTPUT_LINGERING)
        connection_watch(connection, connection->interest & ~STDIO_BUS_EVENT_READ);
}
