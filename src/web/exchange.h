/* An exchange of HTTP: the current request on a connection, and its answer. A connection has one at
 * a time; a head that comes meanwhile waits. */
#ifndef STDIO_BUS_WEB_EXCHANGE_H
#define STDIO_BUS_WEB_EXCHANGE_H

#include "bus/clients.h"
#include "http/reader.h"
#include "web/hub.h"

/* So long after the last byte of an answer a stream begins, or gets a comment: proxies close what
 * is silent. */
#define HTTP_SILENCE_MS 15000

/* So long a connection may be without a request. */
#define HTTP_IDLE_MS 75000

/* Of a 429 or 503: when there may be room. */
#define HTTP_RETRY_AFTER "Retry-After: 5\r\n"

enum http_state {
    HTTP_IDLE,     /* no current request */
    HTTP_READING,  /* the head was taken, and the body comes; or it is a stateless notification,
                    * which is being delivered */
    HTTP_OWING,    /* the request is being served: nothing of the answer is written */
    HTTP_STREAMING /* a part of the answer is written */
};

/* How the body of the answer is written. */
enum http_form {
    HTTP_FORM_BARE,    /* the connection ends after one whose length is not known (HTTP/1.0) */
    HTTP_FORM_CHUNKED, /* in chunks, where its length is not known */
    HTTP_FORM_NONE     /* the request is HEAD */
};

/* What Accept allows in answer to a POST, or to a GET of MCP. */
enum http_reply {
    HTTP_REPLY_EITHER, /* JSON; events, if another message precedes the answer */
    HTTP_REPLY_JSON,
    HTTP_REPLY_EVENTS
};

struct http_exchange;
struct http_session;
struct http_stream;

/* What a request is for. Each may be NULL: nothing is to be done. */
struct http_kind {
    /* The body, or a member of a batch, which may be longer than some pool takes. Endpoints are
     * paused as usual. */
    void (*message)(struct http_exchange *http, const struct message *message);
    /* A batch is over. */
    void (*batch_over)(struct http_exchange *http);
    /* What the client's own endpoint is sent. NULL: that is lost. */
    int (*deliver)(struct http_exchange *http, const struct delivery *delivery);
    /* Nothing was written for HTTP_SILENCE_MS. */
    void (*silent)(struct http_exchange *http);
    /* The connection's queue is full or drained. */
    void (*full)(struct http_exchange *http, bool full);
    /* The input has ended, but the client may read on. False: it counts as gone. */
    bool (*input_ended)(struct http_exchange *http);
    /* The daemon closes the connection: the last words. */
    void (*closes)(struct http_exchange *http);
    /* The exchange is over, since its answer is written or its client leaves. */
    void (*over)(struct http_exchange *http);
};

struct http_exchange {
    struct client *client;
    struct http_hub *hub;
    struct http_reader reader;
    enum http_state state;
    const struct http_kind *kind; /* NULL: of no request, or its body is of no use */
    enum http_form form;
    enum http_reply reply;
    bool closes;        /* the connection ends after this answer */
    bool waits;         /* a head was paused */
    bool spoke;         /* something was written since the timer was started */
    struct group *pool; /* of the path; NULL: the messages name it */
    unsigned requests;  /* on this connection so far */
    unsigned token;     /* serial number of the one that was shown; 0: none */
    char *fields;       /* whole fields of the answer, fields_len bytes; NULL: none */
    size_t fields_len;
    struct timer timer;  /* of silence, or of a connection without a request */
    struct http_due due; /* to be resumed */
    struct stdio_bus_event_deferred deferred;

    struct http_session *session; /* of the request; NULL: none */
    struct http_stream *stream;   /* of the session, attached to this connection; NULL: none */
    struct list_node in_session;  /* session->exchanges */
    struct list_node held;        /* session->held */
    bool presses;                 /* its queue is full, and counted in the session */

    /* What is kept of the head; freed in the end. */
    struct mcp_fields *mcp; /* of MCP; NULL: of none */
    struct http_rpc *rpc;   /* of a request at /rpc; NULL: of none */
};

static inline struct connection *http_connection(struct http_exchange *http)
{
    return &http->client->stream.connection;
}

/* Whatever is answered has these fields, whole. STDIO_BUS_ERR if out of memory. */
int http_exchange_keep_fields(struct http_exchange *http, struct slice fields);

/* The messages of the client's own endpoint are for the pool of the path. */
void http_open_pool(struct http_exchange *http);

/* The request is whole: an answer is owed. */
void http_exchange_owe(struct http_exchange *http);

/* The answer is written: the connection is ready for the next request, or ends. */
void http_exchange_done(struct http_exchange *http);

/* The client leaves: the exchange is over, and the connection has no other. */
void http_exchange_end(struct http_exchange *http);

/* --- whole answers; the exchange is done with them --- */

/* An answer without a body; `more`: whole fields beside those of the exchange. */
void http_answer_empty(struct http_exchange *http, int status, struct slice more);

/* A body of this type, which may be NULL with an empty body. */
void http_answer(struct http_exchange *http, int status, const char *type, struct slice body,
                 struct slice more);

/* A JSON-RPC error as the body. */
void http_answer_error(struct http_exchange *http, int status, struct message_id id, int code,
                       const char *text);

/* A message as the body. STDIO_BUS_ERR if out of memory, and then nothing has changed. */
int http_answer_delivery(struct http_exchange *http, int status, const struct delivery *delivery,
                         struct slice more);

/* --- answers in pieces --- */

/* Begins an answer of this type, whose length is not known. STDIO_BUS_ERR if out of memory. */
int http_answer_begin(struct http_exchange *http, const char *type, struct slice more);

/* The same for a stream of events, of the session with this id; NULL: of none. */
int http_answer_begin_events(struct http_exchange *http, const char *session_id);

/* A piece of it: not for events. */
int http_answer_piece(struct http_exchange *http, struct slice before,
                      const struct delivery *delivery);

int http_answer_text(struct http_exchange *http, struct slice text);

/* An event with this id (len 0: none) and the message as its data; one without data, whose id is
 * given. STDIO_BUS_ERR if out of memory, and then nothing was written. */
int http_answer_event(struct http_exchange *http, struct slice id, const struct delivery *delivery);
int http_answer_empty_event(struct http_exchange *http, struct slice id);

/* A comment line, between events. */
void http_answer_comment(struct http_exchange *http);

/* The end of the answer: the exchange is done. */
void http_answer_end(struct http_exchange *http);

#endif
