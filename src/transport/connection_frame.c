#include "build_config.h"

#include "transport/connection_frame.h"

#include <string.h>

#include "transport/memory.h"

/* --- the buffer --- */

void connection_drop_input(struct connection *connection)
{
    if (connection->input != NULL)
        buffer_give(&connection->transport->pool, connection->input);
    connection->input = NULL;
    connection->at_hand = 0;
    memory_release(connection);
}

void connection_shorten_input(struct connection *connection)
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

bool connection_malformed(struct connection *connection, enum frame_fault fault,
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

void connection_cut_frame(struct connection *connection)
{
    struct buffer *input = connection->input;

    input->end = input->start + connection->framing->cut(&connection->framing_state,
                                                         input->data + input->start,
                                                         buffer_len(input));
    connection_shorten_input(connection);
    if (connection->input->capacity <= BUFFER_LARGE)
        memory_release(connection);
}

bool connection_line_goes_on(struct connection *connection, size_t len)
{
    const struct framing_state *state = &connection->framing_state;

    if (state->max_long == 0)
        return connection_malformed(connection, FRAME_FAULT_TOO_LONG, CONNECTION_TOO_LONG);
    if (len >= state->max_long || state->cut)
        connection_cut_frame(connection);
    return false;
}

bool connection_take_long(const struct connection *connection, size_t len)
{
    const struct framing_state *state = &connection->framing_state;

    if (state->max_long > 0)
        state->check->mark(state->check_state, len > state->max_long);
    return state->max_long > 0;
}
