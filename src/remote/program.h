/* The program on stdin and stdout, as the receiver of messages. */
#ifndef STDIO_BUS_REMOTE_PROGRAM_H
#define STDIO_BUS_REMOTE_PROGRAM_H

#include "base/list.h"
#include "base/log.h"
#include "config/headers.h"
#include "config/tokens.h"
#include "config/url.h"
#include "event/event_loop.h"
#include "event/signals.h"
#include "framing/framing.h"
#include "remote/proxy.h"
#include "remote/tunnel.h"
#include "transport/connection.h"
#include "json/message.h"
#include "json/scanner.h"

/* --- struct remote: what the files of this folder work on. --- */

/* --- How a server with a URL is served to a program, and why that ends. --- */

struct remote_options {
    struct remote_url url;
    const struct token *token;     /* NULL: none */
    const struct framing *framing; /* of stdin and stdout; NULL: NDJSON */
    struct remote_headers headers; /* of each request */
    const char *tls_command;       /* of tunnel_command; NULL: openssl */
    unsigned wait_sec;             /* for a server that is not there yet */
    struct log *log;
};

enum remote_outcome {
    REMOTE_DONE,          /* stdin has ended, or a signal came */
    REMOTE_MALFORMED,     /* stdin has something that is no message */
    REMOTE_OUTPUT_CLOSED, /* stdout is closed */
    REMOTE_LOST,          /* the stream of HTTP+SSE has ended; logged */
    REMOTE_UNUSABLE,      /* no program speaks TLS, or the proxy has no address; logged */
    REMOTE_SYSTEM_ERROR   /* the system refused something; logged */
};

#define REMOTE_LOGIN_MAX 512
#define REMOTE_SESSION_MAX 1024 /* bytes of the name of a session */
#define REMOTE_VERSION_MAX 64   /* of a protocol version */

struct call;

/* The session of the handshake era. */
struct remote_session {
    bool begun;                           /* an answer to initialize has come */
    char id[REMOTE_SESSION_MAX + 1];      /* "": the server has no sessions */
    char offered[REMOTE_SESSION_MAX + 1]; /* the same, until the answer to initialize is whole */
    char version[REMOTE_VERSION_MAX + 1]; /* that was agreed on */
    unsigned number;                      /* of this session, from 1 */
    char *initialize;                     /* the program's request, for a new session */
    size_t initialize_len;
    struct call *listener; /* the call of the GET stream; NULL: none */
    bool no_stream;        /* the server has none */
    bool has_listened;     /* it had one */
    bool renewing;         /* a new one is being made: */
    struct list waiting;   /* calls that wait for it */
};

enum remote_phase {
    REMOTE_PHASE_SERVING,
    REMOTE_PHASE_ENDING,   /* stdin has ended: requests in flight may finish */
    REMOTE_PHASE_PARTING,  /* the session is being ended */
    REMOTE_PHASE_FLUSHING, /* stdout gets the rest */
    REMOTE_PHASE_STOPPED
};

struct remote {
    const struct remote_options *options;
    struct log *log;
    struct stdio_bus_event_loop *loop;
    struct remote_proxy proxy;
    struct tunnel_command tunnel_command;
    char login[REMOTE_LOGIN_MAX]; /* how to log in; "": not asked yet */
    struct signals signals;
    struct limits limits;
    struct transport transport;
    struct connection program; /* stdin and stdout */
    struct scanner scanner;    /* of what the program sends */
    struct timer program_retry, parting;
    struct list links;    /* struct remote_link */
    struct list calls;    /* struct call */
    size_t request_count; /* of the program's calls, that are not cancelled */
    size_t cancelled_count;
    char path[URL_PATH_MAX + 1]; /* of the URL, or where the server has moved it */
    struct call *older;          /* the stream of HTTP+SSE; NULL: Streamable HTTP */
    bool is_lost;                /* it has ended */
    unsigned holds;              /* reasons to take no message of the program */
    struct remote_session session;
    int64_t wait_until_ms; /* a server that is not there yet is waited for */
    enum remote_phase phase;
    enum remote_outcome outcome;
};

/* The program's next message waits until each hold has ended. */
static inline void remote_hold(struct remote *remote)
{
    remote->holds++;
}

static inline void remote_release(struct remote *remote)
{
    if (--remote->holds == 0)
        connection_resume(&remote->program);
}

/* Queue a message of the server, which is whole and valid, and an error for a request of the
 * program. What memory has no room for is lost, and logged. */
void program_send(struct remote *remote, struct slice bytes);
void program_send_error(struct remote *remote, struct message_id id, int code, const char *text);

/* Queues the error of the server as the answer to the request with this id. */
void program_send_refusal(struct remote *remote, const struct message *error, struct message_id id);

#endif
