/* libstdio_bus: the bus inside another program. See libstdio_bus(3).
 *
 *     stdio_bus_options_t options = {0};
 *     stdio_bus_t *bus;
 *
 *     options.config_path = "bus.json";
 *     options.on_message = got_message;
 *     bus = stdio_bus_create(&options);
 *     if (bus != NULL && stdio_bus_start(bus) == STDIO_BUS_OK) {
 *         stdio_bus_ingest(bus, "{\"id\":1,\"method\":\"echo\"}", 24);
 *         while (stdio_bus_step(bus, -1) >= 0)
 *             continue;
 *     }
 *     stdio_bus_destroy(bus);
 *
 * One thread at a time calls the functions of one bus; several buses need no lock between them. The
 * library starts no thread, handles no signal and changes no setting of the process.
 *
 * Callbacks run inside stdio_bus_step; those for the log and for workers inside stdio_bus_start and
 * stdio_bus_stop, too. A callback may call all functions but stdio_bus_start, stdio_bus_step and
 * stdio_bus_destroy; on_log may only ask for states, counts and statistics. */
#ifndef STDIO_BUS_EMBED_H
#define STDIO_BUS_EMBED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

#define STDIO_BUS_EMBED_API_VERSION 2

/* --- codes --- */

#ifndef STDIO_BUS_OK
#define STDIO_BUS_OK 0
#define STDIO_BUS_ERR (-1)
#define STDIO_BUS_EAGAIN (-2)
#define STDIO_BUS_EOF (-3)
#define STDIO_BUS_EFULL (-4)
#define STDIO_BUS_ENOTFOUND (-5)
#define STDIO_BUS_EINVAL (-6)
#endif
#define STDIO_BUS_ERR_CONFIG (-10)  /* the configuration cannot be read, or breaks a rule */
#define STDIO_BUS_ERR_WORKER (-11)  /* a worker cannot be started */
#define STDIO_BUS_ERR_ROUTING (-12) /* no worker is to get the message */
#define STDIO_BUS_ERR_BUFFER (-13)  /* the message is longer than the configuration allows */
#define STDIO_BUS_ERR_INVALID (-14) /* an argument, or a message that is no JSON object */
#define STDIO_BUS_ERR_STATE (-15)   /* not in this state of the bus, or not inside this callback */

/* --- the bus --- */

typedef struct stdio_bus stdio_bus_t;

typedef enum {
    STDIO_BUS_STATE_CREATED = 0,
    STDIO_BUS_STATE_STARTING = 1,
    STDIO_BUS_STATE_RUNNING = 2,
    STDIO_BUS_STATE_STOPPING = 3,
    STDIO_BUS_STATE_STOPPED = 4
} stdio_bus_state_t;

/* --- callbacks --- */

/* A message for the host. It is NUL-terminated, has no newline at its end, and lives until the
 * callback returns. */
typedef void (*stdio_bus_message_cb)(stdio_bus_t *bus, const char *msg, size_t len,
                                     void *user_data);

/* What a function reports beside the code that it returns. From stdio_bus_create, bus is NULL. */
typedef void (*stdio_bus_error_cb)(stdio_bus_t *bus, int code, const char *message,
                                   void *user_data);

/* A line of the log; level 0: DEBUG, 1: INFO, 2: WARN, 3: ERROR. */
typedef void (*stdio_bus_log_cb)(stdio_bus_t *bus, int level, const char *message, void *user_data);

/* A worker has "started"; "stopped" for good; has exited and is "restarting"; or has "failed": it
 * exited too often. */
typedef void (*stdio_bus_worker_cb)(stdio_bus_t *bus, int worker_id, const char *event,
                                    void *user_data);

/* A client has connected to the listener: "127.0.0.1:5000" or "unix". */
typedef void (*stdio_bus_client_connect_cb)(stdio_bus_t *bus, int client_id, const char *peer_info,
                                            void *user_data);

/* It has left: "closed", "error" or "timeout". */
typedef void (*stdio_bus_client_disconnect_cb)(stdio_bus_t *bus, int client_id, const char *reason,
                                               void *user_data);

/* --- options --- */

typedef enum {
    STDIO_BUS_LISTEN_NONE = 0, /* the host is the only client */
    STDIO_BUS_LISTEN_TCP = 1,
    STDIO_BUS_LISTEN_UNIX = 2
} stdio_bus_listen_mode_t;

typedef struct stdio_bus_listener_config {
    stdio_bus_listen_mode_t mode;
    const char *tcp_host; /* NULL: 127.0.0.1 and ::1 */
    uint16_t tcp_port;
    const char *unix_path;
} stdio_bus_listener_config_t;

/* All of it is copied but user_data. */
typedef struct stdio_bus_options {
    const char *config_path; /* a file, or */
    const char *config_json; /* the text of one (stdio_bus.conf(5)); the other one is NULL */
    stdio_bus_listener_config_t listener;
    stdio_bus_message_cb on_message; /* the only one that must be set */
    stdio_bus_error_cb on_error;
    stdio_bus_log_cb on_log; /* NULL: the log goes to stderr */
    stdio_bus_worker_cb on_worker;
    stdio_bus_client_connect_cb on_client_connect;
    stdio_bus_client_disconnect_cb on_client_disconnect;
    void *user_data;
    int log_level; /* lines below it are left out */
} stdio_bus_options_t;

typedef struct stdio_bus_stats {
    uint64_t messages_in;  /* taken by stdio_bus_ingest, and from clients */
    uint64_t messages_out; /* given to on_message, and sent to clients */
    uint64_t bytes_in;     /* of these; the host's without newlines */
    uint64_t bytes_out;
    uint64_t worker_restarts;
    uint64_t routing_errors; /* messages that were refused, or dropped because they were for no
                              * peer */
    uint64_t client_connects;
    uint64_t client_disconnects;
} stdio_bus_stats_t;

/* --- from creation to destruction --- */

/* Reads and checks the configuration, and starts nothing. NULL after on_error was called, if there
 * is one. */
stdio_bus_t *stdio_bus_create(const stdio_bus_options_t *options);

/* Opens the listener, starts the workers, and waits until each was executed; then the bus is
 * RUNNING. An error (WORKER, STATE, ERR) leaves it STOPPED, unless it was not CREATED. */
int stdio_bus_start(stdio_bus_t *bus);

/* One round: reads, routes, writes, then calls the callbacks. timeout_ms: the longest wait, 0 for
 * none, -1 for no limit. Returns the number of events, or STATE before the start, after the stop
 * and in a callback. */
int stdio_bus_step(stdio_bus_t *bus, int timeout_ms);

/* Begins the drain, and returns; step until the bus is STOPPED. Workers that are left after
 * timeout_sec are killed; negative: after drain_timeout_sec of the configuration. Where there is
 * nothing to stop, and while the bus is stopping, it does nothing. */
int stdio_bus_stop(stdio_bus_t *bus, int timeout_sec);

/* Kills the workers that run, and frees everything. Accepts NULL. In a callback it does nothing but
 * call on_error. */
void stdio_bus_destroy(stdio_bus_t *bus);

/* --- messages --- */

/* Offers a message of the host, without newline. It is copied. A top-level "pool" names the pool.
 * STDIO_BUS_OK: it is on its way to a worker.
 * STDIO_BUS_EFULL: the queue of that worker is full; step, and try again.
 * STDIO_BUS_EAGAIN: not now: that worker is being restarted, the id is in use at each worker that
 * the message could go to, or out of memory; step, and try again.
 * ROUTING: no worker is to get it; the log has the reason.
 * BUFFER, INVALID, STATE. After an error, on_message is not called for the message. */
int stdio_bus_ingest(stdio_bus_t *bus, const char *msg, size_t len);

/* --- workers without a process --- */

/* Adds a worker to a pool, which is made if there is none of this id: the bus writes messages to
 * the first descriptor and reads from the second; they may be one socket. They belong to the bus
 * from then on. Returns the worker's id, or STATE (not RUNNING), INVALID or ERR, and then the
 * descriptors stay the caller's. */
int stdio_bus_register_embedded_worker(stdio_bus_t *bus, int fd_to_worker, int fd_from_worker,
                                       const char *pool_id);

/* Closes its descriptors; its requests in flight get an error, its sessions end. STDIO_BUS_OK also
 * for one that is gone already; INVALID for a worker with a process. */
int stdio_bus_unregister_embedded_worker(stdio_bus_t *bus, int worker_id);

/* --- what there is; NULL: nothing --- */

stdio_bus_state_t stdio_bus_get_state(const stdio_bus_t *bus);
int stdio_bus_worker_count(const stdio_bus_t *bus); /* that are running */
int stdio_bus_session_count(const stdio_bus_t *bus);
int stdio_bus_pending_count(const stdio_bus_t *bus); /* requests to workers, in flight */
int stdio_bus_client_count(const stdio_bus_t *bus);  /* of the listener */

/* A descriptor that is readable while stdio_bus_step has something to do, deadlines included. It
 * stays the same, and belongs to the bus. -1: the system has none, and the host has to call
 * stdio_bus_step. */
int stdio_bus_get_poll_fd(const stdio_bus_t *bus);

void stdio_bus_get_stats(const stdio_bus_t *bus, stdio_bus_stats_t *stats);

#if defined __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
