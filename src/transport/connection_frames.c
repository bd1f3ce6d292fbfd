#include "build_config.h"

#include "transport/connection_io.h"

static void stop_watching(struct connection *connection)
{
    timers_stop(stdio_bus_event_loop_timers(connection->transport->loop), &connection->frame_time);
}

static void start_time(struct connection *connection)
{
    struct stdio_bus_event_loop *loop = connection->transport->loop;
    int64_t ms = (int64_t)connection->transport->limits->frame_timeout_sec * 1000;

    timers_start(stdio_bus_event_loop_timers(loop), &connection->frame_time,
                 stdio_bus_event_loop_now_ms(loop) + ms);
}

/* Sees to the time that the frame may take of which part is here, if any. */
static void watch_frame(struct connection *connection)
{
    struct framing_state *state = &connection->framing_state;

    if (!state->begun) {
        stop_watching(connection);
        return;
    }
    if (timer_started(&connection->frame_time) && state->timed)
        return;
    state->timed = true;
    start_time(connection);
}

bool connection_look_at_frame(struct connection *connection, enum frame_status status)
{
    const struct frame *frame = &connection->offered;
    size_t consumed = connection->offered.consumed;

    connection->offered.consumed = 0;
    if (status == FRAME_WAIT) {
        watch_frame(connection);
        return false;
    }
    connection->input->start += consumed;
    if (connection->handler->refused(connection, frame->code, frame->problem) == CONNECTION_HELD)
        connection->held = true;
    return connection->open && !connection->deaf && !connection->held;
}

void connection_frame_time_over(void *user_data)
{
    struct connection *connection = user_data;
    size_t dropped = connection->input != NULL ? buffer_len(connection->input) : 0;

    if (connection->deaf || !connection->framing_state.begun)
        return;
    if (connection->held) { /* it waits for us: its time starts anew */
        start_time(connection);
        return;
    }
    log_warn(connection->transport->log, connection->context,
             "a frame was not complete after frame_timeout_sec: it is skipped, "
             "%zu bytes of it were dropped",
             dropped);
    connection->framing->give_up(&connection->framing_state, dropped);
    connection_drop_input(connection);
}

size_t connection_end_frames(struct connection *connection, size_t cut)
{
    const struct framing_state *state = &connection->framing_state;

    stop_watching(connection);
    if (!state->begun || state->told)
        return cut;
    (void)connection->handler->refused(connection, JSONRPC_PARSE_ERROR,
                                       "the input ends in the middle of a frame");
    return 0;
}
