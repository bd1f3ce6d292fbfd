/* A call: a message of the program, or of this process itself, on its way to the server; and what
 * comes back. */
#ifndef STDIO_BUS_REMOTE_CALL_H
#define STDIO_BUS_REMOTE_CALL_H

#include <stddef.h>

#include "base/slice.h"
#include "remote/exchange.h"
#include "json/message.h"

#define CALL_KEPT_MAX ((size_t)1 << 20) /* a longer message is not kept to be sent again */

enum call_kind {
    CALL_REQUEST, /* of the program */
    CALL_NOTICE,  /* a notification or an answer of the program */
    CALL_OWN      /* of this process: the session's */
};

struct call {
    struct exchange exchange;
    struct list_node node;    /* remote->calls */
    struct list_node waiting; /* session->waiting */
    enum call_kind kind;
    struct message_id id; /* of the request; ID_NONE: none */
    char id_text[MESSAGE_ID_TEXT_MAX];
    bool is_stateless;   /* the message says so */
    bool begins;         /* initialize */
    bool is_initialized; /* notifications/initialized */
    bool stays_open;     /* subscriptions/listen: answered at its end only */
    bool holds;          /* the program's next message waits for its end */
    bool answered;
    bool cancelled;              /* by the program: no answer is for it any more */
    bool lost_session;           /* the server does not know its session */
    bool was_renewed, was_moved; /* it was sent a second time: session_renew, a redirect */
    char *bytes;                 /* the message; NULL: none, or not kept */
    size_t len;
    char *own_fields;  /* of a stateless message */
    char *location;    /* of a redirect */
    char *place;       /* of another request than that of the message: exchange.path */
    char *refusal;     /* why it was refused, while the server is asked for more */
    unsigned session;  /* the number of the session that it was sent in; 0: none */
    unsigned attempts; /* to continue its stream, without success */
    struct timer again;
    struct stdio_bus_event_deferred deferred;
};

static inline struct call *call_of(struct exchange *exchange)
{
    return list_entry(exchange, struct call, exchange);
}

/* A call with a copy of the message, which may be empty. NULL if out of memory. */
struct call *call_create(struct remote *remote, enum call_kind kind,
                         const struct exchange_handler *handler, struct slice message);

/* Sends the message; opens a stream, or continues that of its response after the last event; ends
 * the session. STDIO_BUS_ERR if out of memory; then the call is as it was. */
int call_post(struct call *call);
int call_continue(struct call *call);
int call_delete(struct call *call);

/* Gets JSON at another path of the server. STDIO_BUS_ERR if out of memory. */
int call_look(struct call *call, const char *path);

/* It has come to its end; its connection is kept if the response is over, or soon will be. */
void call_end(struct call *call);

/* The same for a request that is not answered yet: the program gets an error. */
void call_fail(struct call *call, const char *text);

/* The program has cancelled the request. What comes for it is dropped; its stream stays open, as
 * long as the server likes, since some servers take its end for that of the session. */
void call_cancel(struct call *call);

/* Forgets the long messages that were sent. */
void calls_trim(struct remote *remote);

/* The request of the program with this id that was not cancelled; NULL: there is none. */
struct call *call_find(const struct remote *remote, struct message_id id);

/* Why the server has refused it, or could not be asked. */
#define CALL_REASON_MAX (EXCHANGE_REASON_MAX + 2 * URL_HOST_MAX + 512)
const char *call_reason(const struct call *call, char to[CALL_REASON_MAX]);

#endif
