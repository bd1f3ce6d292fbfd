/* The control socket within the bus: its clients, and the events that are reported to them. */
#ifndef STDIO_BUS_CONTROL_CONTROL_H
#define STDIO_BUS_CONTROL_CONTROL_H

#include "bus/service.h"
#include "bus/visitor.h"
#include "json/text.h"

#define CONTROL_CLIENTS_MAX 16     /* at once; they do not count among the others */
#define CONTROL_UPGRADE_ID_MAX 128 /* an id with its quotes, and a NUL */

struct control {
    struct stdio_bus *bus;
    const char *socket;      /* its path; NULL: there is none */
    struct visitors clients; /* struct control_client */
    size_t watcher_count;    /* of them, those that get the events */
    bool measures;           /* the bus does, for the socket or a listener with metrics */
};

struct control_client {
    struct visitor visitor;
    struct connection connection;
    struct scanner scanner;
    struct control *control;
    bool watches;        /* it gets the events */
    bool awaits_upgrade; /* upgrade_id has the id of its request, which is not answered yet */
    char upgrade_id[CONTROL_UPGRADE_ID_MAX];
    char context[VISITOR_CONTEXT_MAX];
};

static inline struct control_client *control_client_of(struct visitor *visitor)
{
    return list_entry(visitor, struct control_client, visitor);
}

/* The bus measures if there is a control socket, or a listener with metrics. `clients`: their kind;
 * `socket`: its path, or NULL. NULL if out of memory. */
struct control *control_create(struct stdio_bus *bus, const struct visitor_kind *clients,
                               const char *socket);

/* The same after a reload; and from now on, in any case. */
void control_reloaded(struct control *control);
void control_measure(struct control *control);

/* No client may be left. */
void control_destroy(struct control *control);

/* Queues a reply or an event. A full queue, or no memory for the text, ends the client: nothing is
 * left out, and nothing waits. */
void control_send(struct control_client *client, const struct json_text *line);

/* Reports to the clients that want events. */
void control_report(struct control *control, const struct bus_report *report);

/* An upgrade is over: answers the clients that have asked for it. `before`: the version of the
 * program before this one; or the problem in words. */
void control_upgraded(struct control *control, const char *before, const char *problem);

#endif
