/* The listeners of the bus (spec 4.1). */
#ifndef STDIO_BUS_BUS_LISTENERS_H
#define STDIO_BUS_BUS_LISTENERS_H

#include "bus/state.h"

enum bus_listener_kind { BUS_LISTENER_UNIX, BUS_LISTENER_TCP, BUS_LISTENER_RMP };

#define BUS_LISTENER_KINDS 3

struct bus_listener {
    struct list_node link; /* bus->listeners */
    struct stdio_bus *bus;
    enum bus_listener_kind kind;
    struct listener listener;
};

/* Opens the listeners that the options ask for. `accepted` has the function of each kind, which
 * gets the bus_listener as its user_data. STDIO_BUS_ERR after the reason was logged. */
int listeners_open(struct stdio_bus *bus, listener_fn *const accepted[BUS_LISTENER_KINDS]);

/* A descriptor was freed: listeners that rest for want of one go on. */
void listeners_descriptor_freed(struct stdio_bus *bus);

/* Closes and frees all of them. */
void listeners_close(struct stdio_bus *bus);

#endif
