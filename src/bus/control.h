/* The control socket within the bus: its clients, and the events that are reported to them. */
#ifndef STDIO_BUS_BUS_CONTROL_H
#define STDIO_BUS_BUS_CONTROL_H

#include "bus/state.h"
#include "process/worker.h"
#include "json/text.h"

#define CONTROL_CLIENTS_MAX 16     /* at once; they do not count among the others */
#define CONTROL_UPGRADE_ID_MAX 128 /* an id with its quotes, and a NUL */

struct control {
    struct stdio_bus *bus;
    struct list clients; /* struct control_client */
    size_t client_count;
    size_t watcher_count; /* of them, those that get the events */
    unsigned last_client; /* its number, for the log */
    int64_t started_ms;   /* of the event loop's time */
    uint64_t started_epoch_ms;
};

struct control_client {
    struct connection connection;
    struct scanner scanner;
    struct control *control;
    struct list_node link; /* control->clients */
    bool watches;          /* it gets the events */
    bool is_held;          /* its input is paused until it has read its replies */
    bool awaits_upgrade;   /* upgrade_id has the id of its request, which is not answered yet */
    char upgrade_id[CONTROL_UPGRADE_ID_MAX];
    char context[24]; /* for the log: "control=3" */
    struct stdio_bus_event_deferred deferred;
};

/* From now on the bus measures. NULL when memory is out. */
struct control *control_create(struct stdio_bus *bus);

/* No client may be left. NULL is fine. */
void control_destroy(struct control *control);

/* Disconnects a client at once. The reason is for the log. */
void control_remove(struct control_client *client, const char *reason);

/* Queues a reply or an event. One that memory is out for, or that finds the queue full, ends the
 * client: nothing is left out, and nothing waits. */
void control_send(struct control_client *client, const struct json_text *line);

/* Reports to the clients that want events. Any of the texts may be NULL but the name and `of`. A
 * bus without a control socket has none. */
void control_report(struct stdio_bus *bus, const char *name, const char *of, const char *pool,
                    const char *text);

/* Count and report that a client has come, which is logged too, or is gone; that a worker runs, or
 * has ended. Without a control socket there is no report. */
void control_client_came(struct stream *client, const struct origin *origin);
void control_client_gone(struct stream *client, const char *reason);

/* The same of a session of HTTP, which is a client; `of`: whose connection has begun it. */
void control_session_came(struct endpoint *session, const char *of);
void control_session_gone(struct endpoint *session, const char *reason);

/* An upgrade is over: answers the clients that have asked for it. `before`: the version of the
 * program before this one; or the problem in words. */
void control_upgraded(struct stdio_bus *bus, const char *before, const char *problem);

void control_worker_available(struct worker *worker, enum peer_availability availability);
void control_worker_finished(struct worker *worker);

static inline size_t control_count(const struct control *control)
{
    return control != NULL ? control->client_count : 0;
}

#endif
