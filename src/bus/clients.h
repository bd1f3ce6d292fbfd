/* Clients: from their connection to their disconnection (spec 4, 7.2). */
#ifndef STDIO_BUS_BUS_CLIENTS_H
#define STDIO_BUS_BUS_CLIENTS_H

#include "bus/state.h"
#include "endpoint/stream.h"

struct client {
    struct stream stream;
    struct list_node link; /* bus->clients */
    struct origin origin;
    bool on_stdio;
    bool on_tcp;
    bool refused; /* not admitted: gets an error line and is closed */
    struct stdio_bus_event_deferred deferred;
};

/* Serves stdin and stdout as a client. STDIO_BUS_ERR after the reason was logged; the descriptors
 * are the caller's then. */
int clients_add_stdio(struct stdio_bus *bus);

/* listener_fn; user_data is a struct bus_listener. */
void clients_accepted(void *user_data, int fd, const struct origin *origin);

/* Ends the clients that have closed their input and for which no request is in flight any more. */
void clients_end_answered(struct stdio_bus *bus);

/* Offers what held clients have sent once more, to a router that is closing: their requests are
 * refused. Then reads from no client any more. */
void clients_stop_input(struct stdio_bus *bus);

/* Disconnects a client at once. The reason is for the log. */
void clients_remove(struct client *client, const char *reason);

/* Closes every client once its queue is written; at once if `now`. */
void clients_close(struct stdio_bus *bus, bool now);

#endif
