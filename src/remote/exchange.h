/* An exchange: a request of HTTP to the server, and what its response brings. */
#ifndef STDIO_BUS_REMOTE_EXCHANGE_H
#define STDIO_BUS_REMOTE_EXCHANGE_H

#include "http/event_reader.h"
#include "remote/link.h"

#define EXCHANGE_REASON_MAX 512
#define EXCHANGE_CHALLENGE_MAX 1024
#define EXCHANGE_FIELDS_MAX 8192 /* of the request, beside those that all have */

enum exchange_end {
    EXCHANGE_COMPLETE, /* the response has a status of 2xx, and is over */
    EXCHANGE_REFUSED,  /* the response has another status; its body is in `text` */
    EXCHANGE_CUT,      /* the connection broke within a response of 2xx: `reason` */
    EXCHANGE_FAILED,   /* there was no response: `reason` */
    EXCHANGE_UNUSABLE  /* its body cannot be taken: `reason` */
};

enum exchange_body {
    EXCHANGE_BODY_NONE,  /* skipped */
    EXCHANGE_BODY_TEXT,  /* kept in `text` */
    EXCHANGE_BODY_EVENTS /* each event is reported */
};

struct exchange;

/* Each may call exchange_stop, exchange_drain, or start the exchange again. */
struct exchange_handler {
    /* The head has come; exchange->status is set. */
    void (*head)(struct exchange *exchange, const struct http_response_reader *response);
    /* An event with data that is a message, by its name; its bytes may be changed. */
    void (*event)(struct exchange *exchange, char *bytes, size_t len);
    /* The event that begins the older transport, HTTP+SSE. NULL: it is skipped. */
    void (*endpoint)(struct exchange *exchange);
    void (*ended)(struct exchange *exchange, enum exchange_end end);
};

/* Zeroed, with the first group set: ready to be started. */
struct exchange {
    struct remote *remote;
    const struct exchange_handler *handler;
    const char *method; /* "POST", "GET", "DELETE" */
    const char *path;   /* the owner's; NULL: that of the URL */
    struct slice body;  /* of a POST; the owner's, until it is sent */
    char *fields;       /* further fields, each with its end of line; the exchange's, or NULL */

    struct remote_link *link;               /* NULL: it is not under way */
    bool is_sent;                           /* the request is queued */
    unsigned status;                        /* of the response; 0: there is none yet */
    bool is_json, is_html;                  /* its body */
    char challenge[EXCHANGE_CHALLENGE_MAX]; /* of a 401 or 403: WWW-Authenticate; "": none */
    enum exchange_body kind;
    char *text;
    size_t text_len, text_size, text_max;
    struct http_event_reader events; /* its last id stays until exchange_free */
    char reason[EXCHANGE_REASON_MAX];
};

/* Sends the request. The first report comes after the return. STDIO_BUS_ERR if out of memory. */
int exchange_start(struct exchange *exchange);

/* Ends it without a report; and keeps the connection, if the rest of the response comes soon. */
void exchange_stop(struct exchange *exchange);
void exchange_drain(struct exchange *exchange);

/* Frees what it owns; it is not under way. */
void exchange_free(struct exchange *exchange);

#endif
