#include "build_config.h"

#include "web/hub.h"

#include <stdlib.h>

#include "base/clock.h"
#include "http/response.h"

static void look_for_idle(void *user_data)
{
    struct http_hub *hub = user_data;

    hub->bus->router.demand = true;
}

struct http_hub *http_hub_create(struct stdio_bus *bus)
{
    struct http_hub *hub = calloc(1, sizeof *hub);

    if (hub == NULL)
        return NULL;
    hub->bus = bus;
    hub->key = siphash_random_key();
    list_init(&hub->sessions);
    list_init(&hub->resting);
    list_init(&hub->due);
    timer_init(&hub->yields, look_for_idle, hub);
    event_memory_init(&hub->events, bus->options.config->limits.max_resume_total);
    return hub;
}

void http_hub_note(struct http_hub *hub, struct http_due *due)
{
    hub->bus->services_noted = true;
    if (!list_linked(&due->node))
        list_append(&hub->due, &due->node);
}

void http_hub_run(struct http_hub *hub)
{
    struct list round;
    struct list_node *node;

    list_init(&round);
    list_move_all(&round, &hub->due);
    while ((node = list_take_first(&round)) != NULL) {
        struct http_due *due = list_entry(node, struct http_due, node);

        due->act(due);
    }
}

struct slice http_hub_date(struct http_hub *hub)
{
    int64_t now_ms = stdio_bus_event_loop_now_ms(hub->bus->loop);

    if (now_ms >= hub->date_until_ms) {
        uint64_t epoch_ms = clock_epoch_ms();
        struct http_output out = {.to = hub->date, .size = sizeof hub->date};

        http_write_date(&out, (int64_t)(epoch_ms / 1000));
        hub->date_len = out.len;
        hub->date_until_ms = now_ms + 1000 - (int64_t)(epoch_ms % 1000);
    }
    return slice_of(hub->date, hub->date_len);
}

void http_hub_free(struct http_hub *hub)
{
    hash_table_free(&hub->by_id);
    free(hub);
}
