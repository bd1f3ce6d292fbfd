/* A visitor: a connection that came in. It is below every client, of the core (bus/clients.h) or of
 * a service: admission, what counts, the two lines of the log, the end, and the part of an archive
 * that all kinds have in common.
 *
 * A kind is a const table, and a struct that begins with a struct visitor. */
#ifndef STDIO_BUS_BUS_VISITOR_H
#define STDIO_BUS_BUS_VISITOR_H

#include "base/archive.h"
#include "base/list.h"
#include "base/log.h"
#include "bus/state.h"
#include "transport/connection.h"
#include "transport/origin.h"

struct bus_listener;

#define VISITOR_CONTEXT_MAX 24 /* for the log: "control=3" */
#define VISITOR_REASON_MAX 160

struct visitor {
    struct visitors *of;
    struct list_node link;         /* of->list */
    struct connection *connection; /* of the struct that begins with the visitor */
    struct origin origin;
    struct peer_origin *present; /* a reference to the same, for fair shares; NULL: it has none */
    unsigned number;
    bool refused;   /* not admitted: gets an error line and is closed */
    bool announced; /* its two lines are in the log */
    bool is_held;   /* its input is paused until it has read what it was sent */
    struct stdio_bus_event_deferred deferred;
};

enum admission {
    ADMISSION_GRANTED,
    ADMISSION_DENIED, /* this origin is not served here */
    ADMISSION_FULL    /* not now: there are too many connections */
};

struct visitor_kind {
    const char *name;     /* of one, in its context */
    const char *frames;   /* what its connection carries, for the log */
    enum log_level level; /* of its two lines in the log */
    bool keeps_awake;     /* idle_exit_sec waits for its end */

    /* Its end is near, and its connection open still: leaves whatever it is in. */
    void (*leave)(struct visitor *visitor, const char *reason);

    /* Orderly end: it still gets what it was sent. */
    void (*close)(struct visitor *visitor);

    /* --- for visitors_accepted --- */

    size_t size; /* of its struct */

    /* Admits it apart: it is none of max_connections, and the keys of the listeners do not hold for
     * it. If it is not granted, `text` says why. NULL: it is admitted like all others. */
    enum admission (*judge)(const struct visitors *visitors, const struct origin *origin,
                            char *text, size_t size);

    /* Sets `connection`, and its options but for the descriptors. */
    void (*prepare)(struct visitor *visitor, struct connection_options *options);

    /* It is served from now on. May be NULL. */
    void (*begin)(struct visitor *visitor);

    /* Saves its struct, or loads it after its connection; user_data is that of visitors_archive. */
    void (*archive)(struct archive *archive, struct visitor *visitor, void *user_data);
};

/* The bus has visitors of the kind: none yet. */
void visitors_init(struct visitors *visitors, struct stdio_bus *bus,
                   const struct visitor_kind *kind);

/* --- admission --- */

/* A connection to any listener that is no visitor yet. */
struct arrival {
    struct bus_listener *listener;
    const struct origin *origin; /* borrowed */
    int fd;
    enum admission admission;
    char text[VISITOR_REASON_MAX]; /* why it is not granted, which has been logged and counted */
};

/* Whether the listener takes the connection. */
void visitor_judge(struct arrival *arrival, struct bus_listener *listener, int fd,
                   const struct origin *origin);

/* listener_fn, with a struct bus_listener whose kind names what visits it: for kinds without an
 * answer to those that are refused. */
void visitors_accepted(void *user_data, int fd, const struct origin *origin);

/* --- from the beginning to the end --- */

/* A zeroed one gets its origin and, unless it is `refused`, a share. STDIO_BUS_ERR if out of
 * memory. */
int visitor_init(struct visitor *visitor, const struct origin *origin, bool refused);

/* Frees one that could not be opened. */
void visitor_drop(struct visitor *visitor);

/* Its connection is open: it counts from now on. */
void visitor_enter(struct visitor *visitor);

/* Writes its context. */
void visitor_name(const struct visitor *visitor, char *to, size_t size);

/* Reports the visitor in the log, with the name of its token if that has one, and its end later.
 * Idempotent. */
void visitor_announce(struct visitor *visitor, const char *token);

/* Logs what is wrong with the input of a visitor that is closed for it. */
void visitor_complain(const struct visitor *visitor, enum log_level level, const char *problem);

/* Disconnects the visitor at once, and frees it at the end of the round. The reason is for the log.
 * Idempotent. */
void visitor_remove(struct visitor *visitor, const char *reason);

/* The connection has failed: removes the visitor. `closed`: the reason for one that was closed. */
void visitor_failed(struct visitor *visitor, enum connection_failure failure, int error,
                    const char *closed);

/* Whether the peer has gone, as errno says: a pipe, a socket, a terminal that hung up. */
bool visitor_has_left(int error);

/* A visitor that does not read what it is sent is not read from. Returns whether that is so: then
 * the current frame comes again after visitor_release, which is for a queue that is half empty. */
bool visitor_hold(struct visitor *visitor);
void visitor_release(struct visitor *visitor);

/* --- of all visitors of the bus --- */

/* Whether there are any; any that idle_exit_sec waits for. */
bool visitors_any(const struct stdio_bus *bus);
bool visitors_keep_awake(const struct stdio_bus *bus);

/* Closes each once its queue is written; at once if `now`. */
void visitors_close(struct stdio_bus *bus, bool now);

/* Disconnects those that have taken nothing since the last call while bytes wait for them. */
void visitors_remove_idle(struct stdio_bus *bus, const char *reason);

/* Calls fn for the connection of each. */
void visitors_each_connection(struct stdio_bus *bus, void (*fn)(struct connection *connection));

/* --- the archive --- */

/* Saves what is common to all kinds, or loads it into a new one, which counts from now on. False
 * after archive_fail: the new one is freed. */
bool visitor_archive(struct archive *archive, struct visitor *visitor);

/* After its connection was loaded: the connection is one of its origin. */
void visitor_archived(struct archive *archive, struct visitor *visitor);

/* Saves all visitors of a kind that visitors_accepted accepts, or loads them. */
void visitors_archive(struct archive *archive, struct visitors *visitors, void *user_data);

#endif
