#include "build_config.h"

#include "transport/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "framing/first_frame.h"
#include "transport/origin.h"

/* --- opening --- */

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

/* A closed output has no descriptor. */
static int add_to_loop(struct connection *connection)
{
    struct stdio_bus_event_loop *loop = connection->transport->loop;
    bool is_pair = connection->fd_in != connection->fd_out;
    int error;

    if (stdio_bus_event_loop_add(loop, connection->fd_in, STDIO_BUS_EVENT_READ,
                                 is_pair ? connection_readable : connection_ready,
                                 connection) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (is_pair && connection->fd_out >= 0 &&
        stdio_bus_event_loop_add(loop, connection->fd_out, 0, connection_writable, connection) !=
            STDIO_BUS_OK) {
        error = errno;
        stdio_bus_event_loop_remove(loop, connection->fd_in);
        errno = error;
        return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

/* The flags of a borrowed descriptor are shared: those of a terminal also with the workers' stderr,
 * where a write must not fail. So it is opened once more. True where that cannot be, and it is used
 * as it is. */
static bool is_shared(int *fd, int access)
{
    int own = descriptor_open_own(*fd, access);

    if (own < 0)
        return true;
    *fd = own;
    return false;
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

static void close_own(const struct connection *connection, const struct connection_options *options)
{
    int error = errno;

    if (connection->fd_in != options->fd_in)
        close(connection->fd_in);
    if (connection->fd_out != options->fd_out)
        close(connection->fd_out);
    errno = error;
}

/* Ready for the first frame. */
static void start_framing(struct connection *connection, const struct framing *framing,
                          size_t max_body)
{
    const struct limits *limits = connection->transport->limits;
    struct framing_state *state = &connection->framing_state;

    connection->framing = framing != NULL ? framing : &framing_ndjson;
    connection->has_lines = connection->framing->prefix == NULL;
    connection->reader = state->wary ? &framing_first_frame : connection->framing;
    state->inner = connection->framing;
    state->max_body = max_body;
    state->max_long = max_body == 0 ? connection->max_long : 0;
    if (max_body == 0)
        state->max_body = connection->has_lines ? limits->max_input_buffer : limits->max_frame_body;
    if (state->max_long > 0 && state->max_body > state->max_long)
        state->max_body = state->max_long;
    connection->reader->reset(state);
}

void connection_prepare(struct connection *connection, struct transport *transport,
                        const struct connection_options *options)
{
    ASSERT(!connection_is_open(connection) && options->handler != NULL && options->check != NULL);
    ASSERT(options->context != NULL);
    *connection = (struct connection){
        .transport = transport,
        .handler = options->handler,
        .context = options->context,
        .framing_state = {.check = options->check,
                          .check_state = options->check_state,
                          .reader = options->reader,
                          .wary = options->wary},
        .fd_in = options->fd_in,
        .fd_out = options->fd_out,
        .max_long = options->max_long,
        .skips_bad_lines = options->skips_bad_lines,
        .same_socket = options->same_socket,
        .of_worker = options->of_worker,
        .output.account = &transport->shares[!options->of_worker].queued,
    };
    start_framing(connection, options->framing, options->max_body);
    connection->framing_state.may_open = options->may_open && !connection->has_lines;
    timer_init(&connection->stall, connection_stalled, connection);
    timer_init(&connection->frame_time, connection_frame_time_over, connection);
}

int connection_watch_again(struct connection *connection)
{
    unsigned interest = connection->interest;

    connection->interest = STDIO_BUS_EVENT_READ;
    if (add_to_loop(connection) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    connection_watch(connection, interest);
    return connection_is_open(connection) ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

int connection_open(struct connection *connection, struct transport *transport,
                    const struct connection_options *options)
{
    bool shares_in, shares_out;

    ASSERT(options->fd_in >= 0 && options->fd_out >= 0);
    connection_prepare(connection, transport, options);
    shares_in = options->borrowed && is_shared(&connection->fd_in, O_RDONLY);
    shares_out = options->borrowed && is_shared(&connection->fd_out, O_WRONLY);
    if (set_nonblocking(connection) != STDIO_BUS_OK || add_to_loop(connection) != STDIO_BUS_OK) {
        restore_flags(connection);
        close_own(connection, options);
        return STDIO_BUS_ERR;
    }
    if (!shares_in)
        connection->flags_in = -1;
    if (!shares_out)
        connection->flags_out = -1;
    connection->interest = STDIO_BUS_EVENT_READ;
    connection->input_state = INPUT_OPEN;
    connection->output_state = OUTPUT_OPEN;
    return STDIO_BUS_OK;
}

void connection_hand_over(struct connection *connection, const struct connection_handler *handler,
                          const struct framing *framing)
{
    connection->handler = handler;
    start_framing(connection, framing, 0);
}

/* --- closing --- */

void connection_close(struct connection *connection)
{
    bool is_pair = connection->fd_in != connection->fd_out;

    if (!connection_is_open(connection))
        return;
    connection->input_state = INPUT_CLOSED;
    reading_leave(connection);
    connection_close_output(connection);
    stdio_bus_event_loop_stop_timer(connection->transport->loop, &connection->frame_time);
    if (is_pair)
        connection_release_fd(connection, connection->fd_in, connection->flags_in);
    connection->fd_in = -1;
    connection_drop_input(connection);
}

void connection_linger(struct connection *connection)
{
    if (connection->output_state != OUTPUT_OPEN)
        return;
    connection->output_state = OUTPUT_LINGERING;
    connection_stop_input(connection);
    /* The input is still read: unread bytes would become a reset, which destroys the last ones. */
    if (connection->input_state == INPUT_DEAF)
        connection_watch(connection, connection->interest | STDIO_BUS_EVENT_READ);
    if (!connection_is_open(connection))
        return;
    if (!timer_started(&connection->stall))
        connection_start_stall(connection);
    if (!list_linked(&connection->dirty))
        list_append(&connection->transport->dirty, &connection->dirty);
}
