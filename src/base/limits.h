/* The resource limits of spec 8 and their defaults, in one place. */
#ifndef STDIO_BUS_BASE_LIMITS_H
#define STDIO_BUS_BASE_LIMITS_H

#include <stddef.h>

/* Spec 8.2: fixed. */
#define STDIO_BUS_MAX_SESSION_ID_LEN 256 /* bytes of a sessionId, escapes decoded */
#define STDIO_BUS_MAX_REQUEST_ID_LEN 128 /* bytes of an id: decoded string, or number text */

/* Depth of nested objects and arrays that the scanner follows; deeper is malformed. */
#define STDIO_BUS_MAX_DEPTH 1024

/* Limits that the configuration can set. */
struct limits {
    size_t max_input_buffer; /* bytes of one message, its newline included (spec 8.1) */
    size_t max_frame_body;   /* the same of announced length (ADR-010); max_input_buffer, if set */
    size_t max_message;      /* the same where a pool has a protocol; longer ones are cut */
    size_t max_output_queue; /* bytes waiting for one connection (spec 8.1) */
    size_t max_memory;       /* of long messages, and bounds all buffers together */
    unsigned max_restarts;   /* of one worker within restart_window_sec; 0 = never restart */
    unsigned restart_window_sec;
    unsigned drain_timeout_sec;
    unsigned backpressure_timeout_sec;
    unsigned abandoned_id_sec;        /* an id without its asker stays taken for so long at most */
    unsigned slow_client_timeout_sec; /* in a minute, for clients that do not read to hold others */
    unsigned frame_timeout_sec;       /* from a frame's first byte to its last (ADR-010) */
    unsigned half_close_sec; /* a TCP client may wait so long after it closed its sending side */
    size_t max_connections;  /* clients connected at once (spec 8.2 default) */
    size_t max_sessions;
    size_t max_pending_requests;
    unsigned session_idle_sec;            /* HTTP: a session of MCP ends after so long unused */
    unsigned max_session_requests;        /* HTTP: requests in flight of one session */
    size_t max_resume;                    /* HTTP: bytes of events that are kept for one session */
    size_t max_resume_total;              /* HTTP: the same for all sessions together */
    unsigned max_requests_per_connection; /* HTTP: then it is closed; 0: no limit */
    unsigned ping_sec; /* WebSocket: of silence until a ping, and then its answer; 0: no pings */
    size_t max_requests_per_client; /* in flight at once; this and the next two: 0 = no limit */
    unsigned max_message_rate;      /* messages of a client in a second; further ones wait */
    unsigned idle_timeout_sec;      /* a client without a message for so long is disconnected */
};

#define LIMITS_DEFAULT                                                                             \
    {                                                                                              \
        .max_input_buffer = 1048576, .max_output_queue = 4194304, .max_restarts = 5,               \
        .restart_window_sec = 60, .drain_timeout_sec = 30, .backpressure_timeout_sec = 60,         \
        .abandoned_id_sec = 300, .max_connections = 1024, .max_sessions = 1024,                    \
        .max_pending_requests = 4096, .max_frame_body = 10485760, .frame_timeout_sec = 30,         \
        .half_close_sec = 300, .slow_client_timeout_sec = 10, .max_memory = (size_t)256 << 20,     \
        .max_message = (size_t)64 << 20, .session_idle_sec = 60, .max_session_requests = 256,      \
        .max_resume = 1048576, .max_resume_total = (size_t)64 << 20,                               \
        .max_requests_per_connection = 0, .ping_sec = 30                                           \
    }

#endif
