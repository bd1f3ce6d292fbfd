#include "build_config.h"

#include "bus/origins.h"

#include <stdlib.h>

struct present_origin {
    struct list_node link; /* bus->origins */
    struct origin origin;
    struct peer_origin peers;
};

struct peer_origin *origins_find(const struct stdio_bus *bus, const struct origin *origin)
{
    struct list_node *node, *following;

    list_each(&bus->origins, node, following) {
        struct present_origin *present = list_entry(node, struct present_origin, link);

        if (origin_equal(&present->origin, origin))
            return &present->peers;
    }
    return NULL;
}

struct peer_origin *origins_get(struct stdio_bus *bus, const struct origin *origin)
{
    struct peer_origin *found = origins_find(bus, origin);
    struct present_origin *present;

    if (found != NULL)
        return found;
    present = calloc(1, sizeof *present);
    if (present == NULL)
        return NULL;
    present->origin = *origin;
    list_append(&bus->origins, &present->link);
    return &present->peers;
}

void origins_release(struct peer_origin *origin)
{
    struct present_origin *present;

    if (origin == NULL || origin->clients > 0)
        return;
    present = list_entry(origin, struct present_origin, peers);
    list_remove(&present->link);
    free(present);
}
