/* A stream: an endpoint over a connection whose frames are JSON-RPC messages. */
#ifndef STDIO_BUS_ENDPOINT_STREAM_H
#define STDIO_BUS_ENDPOINT_STREAM_H

#include "base/archive.h"
#include "endpoint/endpoint.h"
#include "transport/connection.h"
#include "json/message.h"

struct stream;

struct stream_handler {
    /* A message. Its bytes live until they were delivered or the call returns. After ops->pause the
     * same message is offered again. */
    void (*message)(struct endpoint *from, const struct message *message);
    /* The same for a message longer than max_input_buffer or max_frame_body; it may be cut. NULL
     * where no stream has a max_long. */
    void (*long_message)(struct endpoint *from, const struct message *message);
    /* JSON, but its routing fields cannot be extracted (spec 4.3.2). */
    void (*unacceptable)(struct stream *stream, const struct message *message,
                         enum message_problem problem);
    /* The other reports of the connection; its frames go to stream_read, its skipped lines to
     * stream_skipped. */
    struct connection_handler connection;
};

struct stream {
    struct endpoint endpoint;
    struct connection connection;
    const struct stream_handler *handler;
    struct scanner scanner;
    unsigned skipped; /* bad lines so far */
    bool resumed;     /* the input continued after a pause; the owner's to clear */
};

struct stream_options {
    const struct stream_handler *handler;
    const struct framing *framing; /* of both directions; NULL: NDJSON */
    void *reader;                  /* of a framing that has state of its own */
    size_t max_body;               /* the longest until stream_hand_over; 0: as in the limits, */
    size_t max_long;               /* and up to this, beyond which they are cut; 0: none */
    int fd_in, fd_out;
    bool same_socket;     /* the descriptors are two of one socket */
    bool borrowed;        /* the descriptors stay the caller's */
    bool skips_bad_lines; /* lines that are no message are logged instead of reported */
    bool splits_arrays;   /* a line may be an array of messages */
    bool wary;            /* of an unknown peer */
    bool may_open;        /* an opening line may precede its first message */
};

/* Makes a zeroed stream, or one with a context, an endpoint without a connection. What it is sent
 * is lost. */
void stream_init(struct stream *stream);

/* Opens the connection. Errors and descriptors as with connection_open. */
int stream_open(struct stream *stream, struct transport *transport,
                const struct stream_options *options);

/* Saves the stream, or loads it into one that stream_init has made; the peer is left out. The
 * options are those of stream_open, but for the descriptors, with the handler and the framing that
 * the stream has now. Where it saves, they may be NULL. */
void stream_archive(struct archive *archive, struct stream *stream, struct transport *transport,
                    const struct stream_options *options);

/* What follows the current message, if any, goes to another handler, in another framing
 * (connection_hand_over), and lines may be arrays or not. The message is dead. */
void stream_hand_over(struct stream *stream, const struct stream_handler *handler,
                      const struct framing *framing, bool splits_arrays);

/* For connection_handler: reads a frame as a message; logs that a line is skipped, and counts
 * it. */
void stream_read(struct connection *connection, struct slice body);
void stream_skipped(struct connection *connection, struct slice line, const char *problem);

/* The connection whose current frame the message is, so that it may move; or NULL. */
struct connection *stream_source(const struct delivery *delivery);

/* Operations of the endpoint, for other endpoints over a stream. */
int stream_deliver(struct endpoint *endpoint, const struct delivery *delivery);
void stream_pause(struct endpoint *endpoint);
void stream_resume(struct endpoint *endpoint);
void stream_close(struct endpoint *endpoint);
void stream_watch_hangup(struct endpoint *endpoint);
void stream_too_long(struct endpoint *endpoint, const struct message *message);

/* The JSON-RPC error that fits. */
int stream_error_code(enum frame_fault fault);

static inline struct stream *stream_of(struct endpoint *endpoint)
{
    return list_entry(endpoint, struct stream, endpoint);
}

#endif
