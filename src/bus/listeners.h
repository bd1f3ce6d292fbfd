/* The listeners of the bus (spec 4.1). */
#ifndef STDIO_BUS_BUS_LISTENERS_H
#define STDIO_BUS_BUS_LISTENERS_H

#include "bus/state.h"

struct bus_listener {
    struct list_node link; /* bus->listeners */
    struct stdio_bus *bus;
    bool is_tcp;
    struct listener listener;
};

/* Opens the listener that the options ask for, if any. `accepted` gets the bus_listener as its
 * user_data. STDIO_BUS_ERR after the reason was logged. */
int listeners_open(struct stdio_bus *bus, listener_fn *accepted);

/* A descriptor was freed: listeners that rest for want of one go on. */
void listeners_descriptor_freed(struct stdio_bus *bus);

/* Closes and frees all of them. */
void listeners_close(struct stdio_bus *bus);

#endif
