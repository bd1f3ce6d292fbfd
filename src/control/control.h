/* The control socket within the bus: its clients, and the events that are reported to them. */
#ifndef STDIO_BUS_CONTROL_CONTROL_H
#define STDIO_BUS_CONTROL_CONTROL_H

#include "bus/service.h"
#include "json/text.h"

#define CONTROL_CLIENTS_MAX 16     /* at once; they do not count among the others */
#define CONTROL_UPGRADE_ID_MAX 128 /* an id with its quotes, and a NUL */

struct control {
    struct stdio_bus *bus;
    struct list clients; /* struct control_client */
    size_t client_count;
    size_t watcher_count; /* of them, those that get the events */
    unsigned last_client; /* its number, for the log */
    bool measures;        /* the bus does, for the socket or a listener with metrics */
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

/* The bus measures if there is a control socket, or a listener with metrics. NULL if out of
 * memory. */
struct control *control_create(struct stdio_bus *bus);

/* The same after a reload; and from now on, in any case. */
void control_reloaded(struct control *control);
void control_measure(struct control *control);

/* No client may be left. */
void control_destroy(struct control *control);

/* Disconnects a client at once. The reason is for the log. */
void control_remove(struct control_client *client, const char *reason);

/* Queues a reply or an event. A full queue, or no memory for the text, ends the client: nothing is
 * left out, and nothing waits. */
void control_send(struct control_client *client, const struct json_text *line);

/* Reports to the clients that want events. */
void control_report(struct control *control, const struct bus_report *report);

/* An upgrade is over: answers the clients that have asked for it. `before`: the version of the
 * program before this one; or the problem in words. */
void control_upgraded(struct control *control, const char *before, const char *problem);

#endif
