/* The streams of a session (MCP, Streamable HTTP): one for each request, and one for a GET. A
 * stream is attached to a connection or, when that was cut, to none; its events are kept so that it
 * can continue elsewhere. */
#ifndef STDIO_BUS_WEB_STREAM_H
#define STDIO_BUS_WEB_STREAM_H

#include "bus/deliver.h"
#include "web/exchange.h"

#define HTTP_SESSION_ID_LEN 32 /* 128 random bits in hexadecimal digits */
#define HTTP_STREAM_TAG_LEN 8
#define HTTP_STREAMS_KEPT 32 /* of those that are over */

struct http_stream {
    struct list_node link; /* session->streams; of the general stream: none */
    struct http_session *session;
    unsigned number;            /* 0: the general stream, of GET */
    struct http_exchange *http; /* NULL: it is attached to no connection */
    struct event_stream events;
    uint32_t written;        /* the last event that was written to a connection */
    bool begun;              /* its client has been sent an event stream */
    bool over;               /* its request was answered: the last event is the answer */
    struct message_id id;    /* of the request. ID_NONE: the general stream */
    struct message_id token; /* of its progress. ID_NONE: it has none */
    char text[];             /* of both */
};

struct http_session {
    struct endpoint endpoint;
    struct http_hub *hub;
    struct list_node link; /* hub->sessions */
    uint64_t hash;
    unsigned number;        /* of the client that it is */
    struct origin origin;   /* of the client that began it */
    struct traffic traffic; /* messages, and their bytes without HTTP */
    char id[HTTP_SESSION_ID_LEN + 1];
    char tag[HTTP_STREAM_TAG_LEN + 1]; /* begins the ids of its events */
    struct group *pool;                /* of the path; NULL: its messages name it */
    struct bus_listener *listener;     /* to which its client connects */
    unsigned token;                    /* serial number; 0: none */
    bool answered;                     /* initialize, with a result: its client knows the id */
    bool names_itself;                 /* the next answer has its id */
    bool primes;                       /* its streams begin with an event without data */
    const char *ending;                /* it is to end, and why; NULL: it is not */
    struct event_log log;
    struct list streams; /* of requests, the oldest first */
    size_t in_flight;    /* of these, that are not over */
    size_t kept;         /* that are over */
    unsigned last_stream;
    struct http_stream *general;
    struct list exchanges;          /* struct http_exchange, all that serve it */
    size_t pressing;                /* of these, whose queues are full */
    struct list held;               /* of these, whose messages wait to be taken by the router */
    struct http_exchange *offering; /* whose message is being delivered; NULL: none */
    bool paused;                    /* the router holds it, for the message of: */
    struct http_exchange *holder;   /* NULL: a line of its own */
    struct list lines;              /* struct http_line: replies that the daemon makes for it */
    struct http_due due;
    struct timer idle;
    struct list_node rest; /* hub->resting */
    int64_t used_ms;       /* hub->resting is in this order */
    struct stdio_bus_event_deferred deferred;
};

/* The stream of a request with this id and progress token; without an id the session's general
 * stream. NULL if out of memory. */
struct http_stream *http_stream_create(struct http_session *session, struct message_id id,
                                       struct message_id token);

/* Frees it; it is attached to no connection. */
void http_stream_free(struct http_stream *stream);

/* Whether the message of the stream's request waits to be taken by the router. */
bool http_stream_waits(const struct http_stream *stream);

/* The stream whose request is in flight and has this id, or NULL. */
struct http_stream *http_stream_find(const struct http_session *session, struct message_id id);

/* The exchange serves the stream from now on; and no more. */
void http_stream_attach(struct http_stream *stream, struct http_exchange *http);
void http_stream_detach(struct http_stream *stream);

/* The queue of its connection is full or drained. */
void http_stream_press(struct http_stream *stream, bool full);

/* Begins an event stream on the connection of the stream. STDIO_BUS_ERR if out of memory. */
int http_stream_open(struct http_stream *stream);

/* Writes the events that were not written yet, and the end, as far as the connection takes them. */
void http_stream_flow(struct http_stream *stream);

/* Writes all of them however full the connection's queue is, and the end: the session ends. */
void http_stream_finish(struct http_stream *stream);

/* A message for the session: the answer to the request of this id, or another one, which is about
 * such a request or (NULL) none that is known. STDIO_BUS_ERR if out of memory, and then nothing was
 * taken. */
int http_stream_answer(struct http_session *session, struct message_id id,
                       const struct delivery *delivery);
int http_stream_tell(struct http_session *session, const struct delivery_subject *subject,
                     const struct delivery *delivery);

/* The request of the stream will not be answered: an error of the daemon, or (text NULL) the end of
 * the stream without a word. */
void http_stream_give_up(struct http_stream *stream, const char *text);

/* GET with Last-Event-ID: the stream that it names, of which the reader has got the events up to
 * *number; or NULL. No event has named a stream that has not begun. */
struct http_stream *http_stream_named(const struct http_session *session, struct slice event_id,
                                      uint32_t *number);

/* The stream continues, on another connection, after this event. */
void http_stream_resume(struct http_stream *stream, struct http_exchange *http, uint32_t number);

/* Saves the streams of a session, or loads them. */
struct archive;
void http_streams_archive(struct archive *archive, struct http_session *session);

/* A reference in an archive, by its number: the stream that is saved, or the one that was loaded.
 * NULL with a problem: there is none. */
struct http_stream *http_stream_archive_one(struct archive *archive, struct http_session *session,
                                            const struct http_stream *saved);

#endif
