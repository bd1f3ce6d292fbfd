/* The host: the program that the bus is part of. To the router it is a client; to the core it is a
 * service, which hears of workers and clients. */
#ifndef STDIO_BUS_EMBED_HOST_H
#define STDIO_BUS_EMBED_HOST_H

#include "base/error.h"
#include "bus/service.h"
#include "config/setup.h"
#include "embed/events.h"
#include "embed/stdio_bus_embed.h"
#include "event/waker.h"

struct host {
    struct stdio_bus *bus;       /* NULL: not created yet */
    stdio_bus_options_t options; /* the texts are not valid after create */
    stdio_bus_state_t state;
    struct setup *setup;
    struct log log;
    struct waker waker;
    bool is_polled;  /* the poll_fd was asked for: the waker is armed */
    unsigned inside; /* the core works; the log alone may call back */
    bool in_callback;

    struct endpoint endpoint;
    struct events events;
    struct slice offered_id; /* of the message that is offered: its error is a code */
    bool is_paused;
    uint64_t dropped; /* messages of the host that were for no worker */
    uint64_t connects, disconnects;
    struct traffic carried; /* in: from the host; out: to it */

    struct list embedded; /* struct embedded_worker */
    struct list embedded_pools;
};

/* Operations of a service (bus/service.h). */
void *host_create(struct stdio_bus *bus);
void host_detach(void *state);
void host_report(void *state, const struct bus_report *report);

static inline struct host *host_of(const struct stdio_bus *bus)
{
    return bus->options.host;
}

/* Offers a message of the host. Returns as stdio_bus_ingest. */
int host_ingest(struct host *host, struct slice bytes);

/* Queues what on_error will be told. */
void host_note_error(struct host *host, int code, const char *message);

/* Calls the callbacks. Returns how many events there were. */
int host_call_back(struct host *host, enum event_messages messages);

#endif
