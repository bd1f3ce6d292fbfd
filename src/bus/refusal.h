/* The reasons for which a connection or a message is refused, for the metrics. */
#ifndef STDIO_BUS_BUS_REFUSAL_H
#define STDIO_BUS_BUS_REFUSAL_H

enum refusal_reason {
    REFUSAL_NOT_ALLOWED, /* a connection: of this user, or of another machine */
    REFUSAL_NO_TOKEN,    /* a connection: no token, or no first line, or a wrong one */
    REFUSAL_MALFORMED,   /* a connection: what it sends is no message */
    REFUSAL_CONNECTIONS, /* max_connections */
    REFUSAL_SESSIONS,    /* max_sessions */
    REFUSAL_REQUESTS,    /* max_pending_requests */
    REFUSAL_NO_WORKER,   /* each has failed */
    REFUSAL_BUSY,        /* busy_timeout_sec */
    REFUSAL_ID_IN_USE,
    REFUSAL_NO_POOL,
    REFUSAL_TOO_LONG,
    REFUSAL_UNROUTABLE, /* nothing tells for which peer the message is */
    REFUSAL_CLOSING,    /* the daemon is shutting down */
    REFUSAL_OTHER,
    REFUSALS
};

/* As in the metrics. */
extern const char *const refusal_names[REFUSALS];

/* The reason that the text of an error gives (router/decision.h, bus/gate.h). */
enum refusal_reason refusal_of(const char *text);

#endif
