/* The resource limits of spec 8 and their defaults, in one place. */
#ifndef STDIO_BUS_BASE_LIMITS_H
#define STDIO_BUS_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* Spec 8.2: fixed. */
#define STDIO_BUS_MAX_SESSION_ID_LEN 256 /* bytes of a sessionId, escapes decoded */
#define STDIO_BUS_MAX_REQUEST_ID_LEN 128 /* bytes of an id: decoded string, or number text */

/* Depth of nested objects and arrays that the scanner follows; deeper is malformed. */
#define STDIO_BUS_MAX_DEPTH 1024

/* Limits that the configuration can set: the type of the member, the key, its bounds, its default,
 * and the sentence of the schema. A row is all that a limit needs beside its use and its manual. */
#define LIMITS_TABLE(LIMIT)                                                                        \
    LIMIT(size_t, max_input_buffer, 1, LIMIT_GIB, 1048576, "Bytes of a message in a plain pool.")  \
    LIMIT(size_t, max_message, 1, LIMIT_GIB, (size_t)64 << 20,                                     \
          "Bytes of a message in a pool with a protocol.")                                         \
    LIMIT(size_t, max_output_queue, 1, LIMIT_GIB, 4194304, "Bytes that wait for one connection.")  \
    LIMIT(size_t, max_memory, 1048576, LIMIT_MEMORY, (size_t)256 << 20,                            \
          "Bytes of all buffers together.")                                                        \
    LIMIT(unsigned, max_restarts, 0, 1000, 5, "Restarts of a worker in restart_window_sec.")       \
    LIMIT(unsigned, restart_window_sec, 1, LIMIT_DAY, 60, "See max_restarts.")                     \
    LIMIT(unsigned, drain_timeout_sec, 0, LIMIT_DAY, 30, "How long workers have to end.")          \
    LIMIT(unsigned, backpressure_timeout_sec, 1, LIMIT_DAY, 60, "How long a peer may not read.")   \
    LIMIT(unsigned, abandoned_id_sec, 1, LIMIT_DAY, 300,                                           \
          "How long an id is taken whose client has left.")                                        \
    LIMIT(unsigned, slow_client_timeout_sec, 1, 60, 10,                                            \
          "How long in a minute slow clients may hold up others.")                                 \
    LIMIT(unsigned, frame_timeout_sec, 1, LIMIT_DAY, 30,                                           \
          "From the first byte of a frame to the last.")                                           \
    LIMIT(unsigned, half_close_sec, 1, LIMIT_DAY, 300,                                             \
          "How long a half-closed TCP client may wait for answers.")                               \
    LIMIT(size_t, max_connections, 1, 1000000, 1024, "Clients at once.")                           \
    LIMIT(size_t, max_sessions, 1, 1000000, 1024, "Sessions at once.")                             \
    LIMIT(size_t, max_pending_requests, 1, 1000000, 4096, "Requests in flight at once.")           \
    LIMIT(unsigned, session_idle_sec, 1, LIMIT_WEEK, 60,                                           \
          "HTTP: how long a session of MCP lasts without use.")                                    \
    LIMIT(unsigned, max_session_requests, 1, 65536, 256,                                           \
          "HTTP: requests of one session in flight.")                                              \
    LIMIT(size_t, max_resume, 0, LIMIT_GIB, 1048576,                                               \
          "HTTP: bytes of events that are kept for each session.")                                 \
    LIMIT(size_t, max_resume_total, 0, LIMIT_GIB, (size_t)64 << 20,                                \
          "HTTP: bytes of events that are kept for all sessions.")                                 \
    LIMIT(unsigned, max_requests_per_connection, 0, 1000000000, 0,                                 \
          "HTTP: then the connection is closed; 0: it is not.")                                    \
    LIMIT(unsigned, ping_sec, 0, LIMIT_DAY, 30,                                                    \
          "WebSocket: of silence until a ping; 0: no pings.")                                      \
    LIMIT(size_t, max_requests_per_client, 0, 1000000, 0, "The same of one client; 0: no limit.")  \
    LIMIT(unsigned, max_message_rate, 0, 1000000, 0,                                               \
          "Messages of one client in a second, the rest waits; 0: no limit.")                      \
    LIMIT(unsigned, idle_timeout_sec, 0, LIMIT_DAY, 0,                                             \
          "A client that is silent for so long is disconnected; 0: none.")

#define LIMIT_GIB 1073741824
#define LIMIT_MEMORY (SIZE_MAX > UINT32_MAX ? 1LL << 40 : LIMIT_GIB)
#define LIMIT_DAY 86400
#define LIMIT_WEEK 604800

#define LIMIT_MEMBER(type, name, min, max, standard, help) type name;
#define LIMIT_STANDARD(type, name, min, max, standard, help) .name = (standard),

struct limits {
    LIMITS_TABLE(LIMIT_MEMBER)
    size_t max_frame_body; /* bytes of a message of announced length (ADR-010); max_input_buffer, if
                            * that is set */
};

#define LIMITS_DEFAULT                                                                             \
    {                                                                                              \
        LIMITS_TABLE(LIMIT_STANDARD).max_frame_body = 10485760                                     \
    }

#endif
