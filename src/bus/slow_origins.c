#include "build_config.h"

#include "bus/slow_origins.h"

#include "router/waiting.h"

#define NOTED_MS 60000
#define TURN_MS 100 /* from one new client of an origin to the next */

/* NULL: not noted in the last minute. */
static struct slow_origin *find(struct slow_origins *slow, const struct origin *origin,
                                int64_t now_ms)
{
    for (size_t i = 0; i < SLOW_ORIGINS_MAX; i++) {
        if (slow->noted[i].until_ms > now_ms && origin_equal(&slow->noted[i].origin, origin))
            return &slow->noted[i];
    }
    return NULL;
}

/* The next of each origin; all of an origin that is forgotten. */
static void take_turn(void *user_data)
{
    struct stdio_bus *bus = user_data;
    struct slow_origins *slow = &bus->slow_origins;
    int64_t now_ms = stdio_bus_event_loop_now_ms(bus->loop);
    bool any = false;

    for (size_t i = 0; i < SLOW_ORIGINS_MAX; i++) {
        struct list *waiting = &slow->noted[i].waiting;

        if (slow->noted[i].until_ms <= now_ms)
            waiting_release_all(&bus->router, waiting);
        else if (!list_empty(waiting))
            waiting_release(&bus->router, list_entry(waiting->head.next, struct peer, hold));
        any = any || !list_empty(waiting);
    }
    if (any)
        stdio_bus_event_loop_start_timer(bus->loop, &slow->turn, TURN_MS);
}

void slow_origins_init(struct stdio_bus *bus)
{
    for (size_t i = 0; i < SLOW_ORIGINS_MAX; i++)
        list_init(&bus->slow_origins.noted[i].waiting);
    timer_init(&bus->slow_origins.turn, take_turn, bus);
}

void slow_origins_note(struct stdio_bus *bus, const struct origin *origin)
{
    struct slow_origins *slow = &bus->slow_origins;
    int64_t now_ms = stdio_bus_event_loop_now_ms(bus->loop);
    struct slow_origin *entry = find(slow, origin, now_ms);

    if (entry == NULL) {
        entry = &slow->noted[slow->count++ % SLOW_ORIGINS_MAX];
        waiting_release_all(&bus->router, &entry->waiting);
        entry->origin = *origin;
    }
    entry->until_ms = now_ms + NOTED_MS;
}

bool slow_origins_has(struct stdio_bus *bus, const struct origin *origin)
{
    return find(&bus->slow_origins, origin, stdio_bus_event_loop_now_ms(bus->loop)) != NULL;
}

void slow_origins_arrived(struct endpoint *client, const struct origin *origin)
{
    struct stdio_bus *bus = client->bus;
    struct slow_origins *slow = &bus->slow_origins;
    struct slow_origin *entry = find(slow, origin, stdio_bus_event_loop_now_ms(bus->loop));

    if (entry == NULL)
        return;
    client->ops->pause(client);
    waiting_hold(&entry->waiting, &client->peer);
    if (!timer_started(&slow->turn))
        stdio_bus_event_loop_start_timer(bus->loop, &slow->turn, TURN_MS);
}
