#include "build_config.h"

#include "transport/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/archive.h"
#include "base/assert.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "framing/first_frame.h"
#include "framing/framing.h"
#include "transport/memory.h"
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

static void prepare(struct connection *connection, struct transport *transport,
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

static int watch_again(struct connection *connection)
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
    prepare(connection, transport, options);
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

/* --- the archive --- */

#define FRAMING_NAME_MAX 32
#define INPUT_CAPACITY_MAX ((uint64_t)1 << 40)

static const struct archive_field connection_fields[] = {
    ARCHIVE_CHOICE(struct connection, input_state, INPUT_DEAF_ENDED),
    ARCHIVE_CHOICE(struct connection, output_state, OUTPUT_ENDING),
    ARCHIVE_CHOICE(struct connection, interest, STDIO_BUS_EVENT_READ | STDIO_BUS_EVENT_WRITE),
    ARCHIVE_FLAGS(struct connection, watches_hangup, full),
    ARCHIVE_INTEGERS(struct connection, flags_in, flags_out, max_long, expected, at_hand, reserved,
                     awaited, awaited_ms),
    ARCHIVE_INTEGERS(struct connection, jammed_ms, took_ms, late_bytes, bytes_in, bytes_out,
                     frames_in, frames_out, timed_frames),
};

static const struct archive_field framing_fields[] = {
    ARCHIVE_FLAGS(struct framing_state, wary, may_open, begun, reported, cut, timed,
                  looked_at_start, has_length, wrong_type, leftover),
    ARCHIVE_INTEGERS(struct framing_state, max_body, max_long, frame_ms, part, line, headers,
                     looked, line_start, name_len, left),
};

/* The configuration may name another one since the connection was opened. */
static void archive_framing_name(struct archive *archive, struct connection *connection)
{
    char name[FRAMING_NAME_MAX];
    const struct framing *framing = connection->framing;

    (void)snprintf(name, sizeof name, "%s", framing->name);
    archive_text(archive, name, sizeof name);
    if (strcmp(name, framing->name) != 0)
        framing = framing_named(name);
    archive_expect(archive, framing != NULL, "a connection has an unknown framing");
    if (!archive_loads(archive))
        return;
    ASSERT(framing != NULL);
    connection->framing = framing;
    connection->has_lines = framing->prefix == NULL;
}

/* Before the first frame the input is judged by another one. */
static void archive_framing(struct archive *archive, struct connection *connection)
{
    bool is_first = connection->reader == &framing_first_frame;

    archive_framing_name(archive, connection);
    archive_flag(archive, &is_first);
    ARCHIVE_FIELDS(archive, &connection->framing_state, framing_fields);
    connection->reader = is_first ? &framing_first_frame : connection->framing;
    connection->framing_state.inner = connection->framing;
}

/* The buffer is as large as it was: nobody knows how much it will be needed for. */
static void archive_input(struct archive *archive, struct connection *connection)
{
    struct buffer *input = connection->input;
    size_t capacity = 0, len = input != NULL ? buffer_len(input) : 0;
    const char *bytes;

    if (input != NULL)
        capacity = input->capacity;
    capacity = (size_t)archive_number(archive, capacity, INPUT_CAPACITY_MAX);
    len = (size_t)archive_number(archive, len, capacity);
    if (archive->saves) {
        if (input != NULL && len > 0)
            archive_add(archive, input->data + input->start, len);
        return;
    }
    bytes = archive_take(archive, len);
    if (bytes == NULL || capacity == 0)
        return;
    connection->input = buffer_take(&connection->transport->pool, capacity);
    if (!archive_made(archive, connection->input != NULL))
        return;
    if (len > 0)
        memcpy(connection->input->data, bytes, len);
    connection->input->end = len;
}

static void archive_output(struct archive *archive, struct connection *connection)
{
    struct queue *output = &connection->output;
    size_t len = (size_t)archive_number(archive, output->bytes, SIZE_MAX);
    const struct buffer *buffer;
    const char *bytes;

    if (archive->saves) {
        for (buffer = output->first; buffer != NULL; buffer = buffer->next)
            archive_add(archive, buffer->data + buffer->start, buffer_len(buffer));
        return;
    }
    bytes = archive_take(archive, len);
    if (bytes != NULL && len > 0)
        archive_done(archive,
                     queue_append(output, &connection->transport->pool, slice_of(bytes, len)));
}

/* A socket is one descriptor, which the archive has once. */
static void archive_descriptors(struct archive *archive, struct connection *connection)
{
    bool is_pair = archive_present(archive, connection->fd_in != connection->fd_out);

    archive_fd(archive, &connection->fd_in);
    if (is_pair)
        archive_fd(archive, &connection->fd_out);
    else
        connection->fd_out = connection->fd_in;
    archive_expect(archive, connection->fd_in >= 0, "an open connection has no descriptor");
}

void connection_archive(struct archive *archive, struct connection *connection,
                        struct transport *transport, const struct connection_options *options)
{
    archive_mark(archive, "connect");
    if (!archive_present(archive, connection_is_open(connection)))
        return;
    if (!archive->saves)
        prepare(connection, transport, options);
    ARCHIVE_FIELDS(archive, connection, connection_fields);
    archive_descriptors(archive, connection);
    archive_framing(archive, connection);
    archive_input(archive, connection);
    archive_output(archive, connection);
    archive_expect(archive,
                   connection_is_open(connection) &&
                       connection->at_hand <=
                           (connection->input != NULL ? buffer_len(connection->input) : 0),
                   "a message of a connection is beyond its input");
    timer_archive(archive, transport->loop, &connection->stall);
    timer_archive(archive, transport->loop, &connection->frame_time);
    if (archive_loads(archive) && watch_again(connection) != STDIO_BUS_OK)
        archive_fail(archive, strerror(errno));
}

void connection_reserve_again(struct connection *connection)
{
    size_t len = connection->reserved;

    connection->reserved = 0;
    if (len > 0)
        (void)memory_reserve(connection, len); /* failing that, it waits when it reads on */
}

void connection_wait_again(struct connection *connection)
{
    size_t len = connection->awaited;
    int64_t since_ms = connection->awaited_ms;

    connection->awaited = 0;
    if (len == 0)
        return;
    memory_wait(connection, len);
    connection->awaited_ms = since_ms;
}
