#include "build_config.h"

#include "endpoint/stream.h"

#include "base/assert.h"
#include "base/error.h"
#include "transport/connection.h"
#include "json/message.h"
#include "json/scanner.h"

/* --- reports of the connection --- */

int stream_error_code(enum frame_fault fault)
{
    return fault == FRAME_FAULT_SYNTAX ? JSONRPC_PARSE_ERROR : JSONRPC_INVALID_REQUEST;
}

/* The current object becomes a line without brackets of an array around it. Some readers of lines
 * take a carriage return for the end of a line, and what follows it for a message of its own; so
 * only one before the newline stays. */
__attribute__((cold)) static void make_line(struct connection *connection, size_t len)
{
    char *line = connection->input->data + connection->input->start, *before = line;

    for (; *before != '{'; before++) {
        if (*before == '[')
            *before = ' ';
    }
    line[--len] = '\n';
    if (line[len - 1] == '\r')
        len--;
    splice_blank(line, len, '\r');
}

typedef void message_fn(struct endpoint *from, const struct message *message);

/* Prepares the current message, of `len` bytes. Returns the report for it. */
__attribute__((cold)) static message_fn *read_odd(struct stream *stream, size_t len)
{
    struct scan_fields *fields = &stream->scanner.fields;

    if (fields->oddities & SCAN_CUT) {
        fields->session_id.type = fields->pool.type = SCAN_ABSENT;
        fields->method.offset = fields->method.len = 0;
    } else if ((fields->oddities & SCAN_UNTIDY) && stream->connection.has_lines) {
        make_line(&stream->connection, len);
    }
    return fields->oddities & (SCAN_LONG | SCAN_CUT) ? stream->handler->long_message
                                                     : stream->handler->message;
}

void stream_read(struct connection *connection, struct slice body)
{
    struct stream *stream = list_entry(connection, struct stream, connection);
    message_fn *report = stream->handler->message;
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    enum message_problem problem;

    if (stream->scanner.fields.oddities != 0)
        report = read_odd(stream, body.len);
    problem = message_from_scan(&message, body, &stream->scanner.fields, &scratch);
    if (problem == MESSAGE_OK)
        report(&stream->endpoint, &message);
    else
        stream->handler->unacceptable(stream, &message, problem);
}

void stream_skipped(struct connection *connection, struct slice line, const char *problem)
{
    struct stream *stream = list_entry(connection, struct stream, connection);
    char shown[CONNECTION_SHOWN_BYTES];

    while (line.len > 0 && (line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r'))
        line.len--;
    stream->skipped++;
    log_warn(connection->transport->log, stream->endpoint.context,
             "skipped output that is no message (%u so far): %s: \"%s\"", stream->skipped, problem,
             log_escape(shown, sizeof shown, line));
}

/* --- operations of the endpoint --- */

static const struct endpoint_ops stream_ops;

struct connection *stream_source(const struct delivery *delivery)
{
    struct endpoint *from = delivery->from;

    if (from == NULL || delivery->keep)
        return NULL;
    if (from->ops != &stream_ops)
        from = from->carrier;
    return from != NULL ? &stream_of(from)->connection : NULL;
}

int stream_deliver(struct endpoint *endpoint, const struct delivery *delivery)
{
    struct connection *to = &list_entry(endpoint, struct stream, endpoint)->connection;
    struct connection *from = NULL;
    bool is_line = delivery->from == NULL;

    if (!is_line && delivery->from->ops == &stream_ops) {
        from = &list_entry(delivery->from, struct stream, endpoint)->connection;
        is_line = from->has_lines;
        if (delivery->keep)
            from = NULL;
    } else if (!is_line && delivery->from->carrier != NULL) {
        from = &stream_of(delivery->from->carrier)->connection;
    }
    if (!is_line)
        return connection_send_body(to, from, delivery->bytes, delivery->edits,
                                    delivery->edit_count);
    if (delivery->edit_count > 0)
        return connection_send_edited(to, from, delivery->bytes, delivery->edits,
                                      delivery->edit_count);
    return connection_send_line(to, from, delivery->bytes);
}

void stream_pause(struct endpoint *endpoint)
{
    connection_pause(&stream_of(endpoint)->connection);
}

void stream_resume(struct endpoint *endpoint)
{
    struct stream *stream = stream_of(endpoint);

    if (stream->connection.input_state == INPUT_PAUSED)
        stream->resumed = true;
    connection_resume(&stream->connection);
}

void stream_close(struct endpoint *endpoint)
{
    connection_linger(&stream_of(endpoint)->connection);
}

void stream_watch_hangup(struct endpoint *endpoint)
{
    connection_watch_hangup(&stream_of(endpoint)->connection);
}

void stream_too_long(struct endpoint *endpoint, const struct message *message)
{
    struct stream *stream = stream_of(endpoint);

    stream->handler->unacceptable(stream, message, MESSAGE_TOO_LONG);
}

static const struct endpoint_ops stream_ops = {
    .deliver = stream_deliver,
    .pause = stream_pause,
    .resume = stream_resume,
    .close = stream_close,
    .watch_hangup = stream_watch_hangup,
    .too_long = stream_too_long,
};

void stream_init(struct stream *stream)
{
    stream->endpoint.ops = &stream_ops;
}

/* What its connection is opened with. */
static struct connection_options connection_options(struct stream *stream,
                                                    const struct stream_options *options)
{
    return (struct connection_options){
        .handler = &options->handler->connection,
        .framing = options->framing,
        .reader = options->reader,
        .max_body = options->max_body,
        .max_long = options->max_long,
        .check = &json_body_check,
        .check_state = &stream->scanner,
        .context = stream->endpoint.context,
        .fd_in = options->fd_in,
        .fd_out = options->fd_out,
        .same_socket = options->same_socket,
        .borrowed = options->borrowed,
        .skips_bad_lines = options->skips_bad_lines,
        .wary = options->wary,
        .may_open = options->may_open,
        .of_worker = stream->endpoint.is_worker,
    };
}

int stream_open(struct stream *stream, struct transport *transport,
                const struct stream_options *options)
{
    const struct connection_options connection = connection_options(stream, options);

    ASSERT(stream->endpoint.ops == &stream_ops);
    stream->handler = options->handler;
    stream->scanner.splits_arrays = options->splits_arrays;
    stream->skipped = 0;
    stream->resumed = false;
    return connection_open(&stream->connection, transport, &connection);
}

void stream_archive(struct archive *archive, struct stream *stream, struct transport *transport,
                    const struct stream_options *options)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct stream, skipped, endpoint.since_ms, endpoint.held_since_ms),
        ARCHIVE_FLAGS(struct stream, resumed, endpoint.owes_answers, endpoint.blocks_itself),
        ARCHIVE_TEXTS(struct stream, endpoint.context),
    };
    struct endpoint *endpoint = &stream->endpoint;
    struct connection_options connection;

    archive_mark(archive, "stream");
    if (!archive->saves) {
        connection = connection_options(stream, options);
        stream->handler = options->handler;
    }
    connection_archive(archive, &stream->connection, transport, &connection);
    if (connection_is_open(&stream->connection))
        scanner_archive(archive, &stream->scanner);
    ARCHIVE_FIELDS(archive, stream, fields);
    timer_archive(archive, transport->loop, &endpoint->hold_timer);
}

void stream_hand_over(struct stream *stream, const struct stream_handler *handler,
                      const struct framing *framing, bool splits_arrays)
{
    stream->handler = handler;
    stream->scanner.splits_arrays = splits_arrays;
    connection_hand_over(&stream->connection, &handler->connection, framing);
}
