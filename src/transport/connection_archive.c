#include "build_config.h"

#include "transport/connection_archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "event/timer_archive.h"
#include "framing/first_frame.h"
#include "framing/framing.h"
#include "transport/memory.h"

#define FRAMING_NAME_MAX 32
#define INPUT_CAPACITY_MAX ((uint64_t)1 << 40)

/* --- the framing --- */

static void archive_framing_state(struct archive *archive, struct framing_state *state)
{
    archive_mark(archive, "framing");
    ARCHIVE_INTEGER(archive, state->max_body);
    ARCHIVE_INTEGER(archive, state->max_long);
    archive_flag(archive, &state->wary);
    archive_flag(archive, &state->may_open);
    archive_flag(archive, &state->begun);
    archive_flag(archive, &state->reported);
    archive_flag(archive, &state->cut);
    archive_flag(archive, &state->timed);
    ARCHIVE_INTEGER(archive, state->frame_ms);
    archive_flag(archive, &state->looked_at_start);
    archive_flag(archive, &state->has_length);
    archive_flag(archive, &state->wrong_type);
    archive_flag(archive, &state->leftover);
    ARCHIVE_INTEGER(archive, state->part);
    ARCHIVE_INTEGER(archive, state->line);
    ARCHIVE_INTEGER(archive, state->headers);
    ARCHIVE_INTEGER(archive, state->looked);
    ARCHIVE_INTEGER(archive, state->line_start);
    ARCHIVE_INTEGER(archive, state->name_len);
    ARCHIVE_INTEGER(archive, state->left);
}

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
    if (archive->saves || !archive_ok(archive))
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
    archive_framing_state(archive, &connection->framing_state);
    connection->reader = is_first ? &framing_first_frame : connection->framing;
    connection->framing_state.inner = connection->framing;
}

/* --- the bytes --- */

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
    if (connection->input == NULL) {
        archive_fail(archive, "out of memory");
        return;
    }
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
    if (bytes != NULL && len > 0 &&
        queue_append(output, &connection->transport->pool, slice_of(bytes, len)) != STDIO_BUS_OK)
        archive_fail(archive, "out of memory");
}

/* --- the state --- */

static void archive_counters(struct archive *archive, struct connection *connection)
{
    ARCHIVE_INTEGER(archive, connection->jammed_ms);
    ARCHIVE_INTEGER(archive, connection->took_ms);
    ARCHIVE_INTEGER(archive, connection->late_bytes);
    ARCHIVE_INTEGER(archive, connection->bytes_in);
    ARCHIVE_INTEGER(archive, connection->bytes_out);
    ARCHIVE_INTEGER(archive, connection->frames_in);
    ARCHIVE_INTEGER(archive, connection->frames_out);
    ARCHIVE_INTEGER(archive, connection->timed_frames);
}

static void archive_state(struct archive *archive, struct connection *connection)
{
    ARCHIVE_ENUM(archive, connection->input_state, INPUT_DEAF_ENDED);
    ARCHIVE_ENUM(archive, connection->output_state, OUTPUT_ENDING);
    ARCHIVE_ENUM(archive, connection->interest, STDIO_BUS_EVENT_READ | STDIO_BUS_EVENT_WRITE);
    ARCHIVE_INTEGER(archive, connection->flags_in);
    ARCHIVE_INTEGER(archive, connection->flags_out);
    ARCHIVE_INTEGER(archive, connection->max_long);
    archive_flag(archive, &connection->watches_hangup);
    archive_flag(archive, &connection->full);
    ARCHIVE_INTEGER(archive, connection->expected);
    ARCHIVE_INTEGER(archive, connection->at_hand);
    ARCHIVE_INTEGER(archive, connection->reserved);
    ARCHIVE_INTEGER(archive, connection->awaited);
    ARCHIVE_INTEGER(archive, connection->awaited_ms);
}

static void archive_timers(struct archive *archive, struct connection *connection)
{
    struct stdio_bus_event_loop *loop = connection->transport->loop;

    timer_archive(archive, loop, &connection->stall);
    timer_archive(archive, loop, &connection->frame_time);
}

/* A socket is one descriptor, which the archive has once. */
static void archive_descriptors(struct archive *archive, struct connection *connection)
{
    bool is_pair = connection->fd_in != connection->fd_out;

    archive_flag(archive, &is_pair);
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
    bool is_open = connection_is_open(connection);

    archive_mark(archive, "connect");
    archive_flag(archive, &is_open);
    if (!is_open || !archive_ok(archive))
        return;
    if (!archive->saves)
        connection_prepare(connection, transport, options);
    archive_state(archive, connection);
    archive_descriptors(archive, connection);
    archive_framing(archive, connection);
    archive_input(archive, connection);
    archive_output(archive, connection);
    archive_counters(archive, connection);
    archive_expect(archive,
                   connection_is_open(connection) &&
                       connection->at_hand <=
                           (connection->input != NULL ? buffer_len(connection->input) : 0),
                   "a message of a connection is beyond its input");
    archive_timers(archive, connection);
    if (!archive->saves && archive_ok(archive) &&
        connection_watch_again(connection) != STDIO_BUS_OK)
        archive_fail(archive, strerror(errno));
}

void traffic_archive(struct archive *archive, struct traffic *traffic)
{
    ARCHIVE_INTEGER(archive, traffic->bytes_in);
    ARCHIVE_INTEGER(archive, traffic->bytes_out);
    ARCHIVE_INTEGER(archive, traffic->frames_in);
    ARCHIVE_INTEGER(archive, traffic->frames_out);
}

/* --- memory --- */

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
