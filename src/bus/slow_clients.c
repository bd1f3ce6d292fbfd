#include "build_config.h"

#include "bus/slow_clients.h"

#include <string.h>

#include "bus/clients.h"
#include "router/waiting.h"

/* A client reads until it has taken nothing for so long: short, or the time of one client after the
 * other would add up; longer for a client that is known to read, if slowly, and for the first of
 * its origin: a client that reads may pause for a moment. */
#define PATIENCE_MS 3
#define READER_PATIENCE_MS 500

#define CHECK_MS 5
#define CHECK_LATER_MS 100 /* while no client waits */
#define STEP_MAX_MS 50     /* longer: the daemon itself was stopped in between */

/* --- the time that is used up --- */

/* Forgets the seconds that are more than a minute ago. */
static void advance(struct slow_clients *slow, int64_t now_ms)
{
    int64_t second = now_ms / 1000;

    if (second - slow->second >= SLOW_CLIENTS_SECONDS)
        memset(slow->used_ms, 0, sizeof slow->used_ms);
    else
        while (slow->second < second)
            slow->used_ms[++slow->second % SLOW_CLIENTS_SECONDS] = 0;
    slow->second = second;
}

static bool is_used_up(const struct stdio_bus *bus)
{
    unsigned used_ms = 0;

    for (size_t i = 0; i < SLOW_CLIENTS_SECONDS; i++)
        used_ms += bus->slow_clients.used_ms[i];
    return used_ms >= bus->options.config->limits.slow_client_timeout_sec * 1000;
}

/* --- who waits --- */

/* Another client waits for any worker of a group of this one. */
static bool has_other_sender(const struct router *router, const struct peer *worker,
                             const struct peer *client)
{
    const struct group *pool = worker->pool;

    return turns_have_other(&pool->senders, client) ||
           (pool->other_era != NULL && turns_have_other(&pool->other_era->senders, client)) ||
           turns_have_other(&router->all.senders, client);
}

/* Another client waits for an answer of the worker, for an id of such an answer to be free, or for
 * its queue to drain. */
static bool serves_other(const struct router *router, const struct peer *worker,
                         const struct peer *client)
{
    struct list_node *node, *following;

    if (turns_have_other(&worker->waiting, client) ||
        (worker->full && has_other_sender(router, worker, client)))
        return true;
    list_each(&worker->answering, node, following) {
        const struct request *request = list_entry(node, struct request, in_answerer);

        if (request->asker == client ? turns_have_other(&request->waiters, client)
                                     : request->state == REQUEST_ACTIVE)
            return true;
    }
    return false;
}

enum standing {
    HOLDS_NOBODY,
    HOLDS_WORKER, /* but no client that waits for that worker */
    IN_THE_WAY    /* other clients wait for a worker that is held for this client */
};

/* Of the workers of a lane that are held for the client. */
static enum standing standing_in_lane(const struct stdio_bus *bus, const struct peer *client,
                                      const struct lane *lane)
{
    enum standing standing = HOLDS_NOBODY;
    struct list_node *node, *following;

    list_each(&lane->peers, node, following) {
        struct peer *held = list_entry(node, struct peer, hold);

        if (!endpoint_of_peer(held)->is_worker)
            continue;
        if (serves_other(&bus->router, held, client))
            return IN_THE_WAY;
        standing = HOLDS_WORKER;
    }
    return standing;
}

static enum standing standing_of(const struct stdio_bus *bus, const struct client *of)
{
    const struct peer *client = of->speaks_for != NULL ? of->speaks_for : &of->stream.endpoint.peer;
    enum standing worst = HOLDS_NOBODY;
    struct list_node *node, *following;

    if (bus->transport.is_awaited && of->stream.connection.output.bytes > BUFFER_LARGE)
        return IN_THE_WAY; /* its queue has a part of that memory */
    if (!client->full)
        return HOLDS_NOBODY;
    list_each(&client->waiting.lanes, node, following) {
        enum standing standing = standing_in_lane(bus, client,
                                                  list_entry(node, struct lane, in_turns));

        worst = standing > worst ? standing : worst;
    }
    return worst;
}

/* --- the check --- */

/* How long a client that is in the way has taken nothing. */
static int64_t idle_ms(const struct client *client, int64_t now_ms)
{
    const struct connection *connection = &client->stream.connection;

    if (!list_linked(&client->visitor.link) || connection->jammed_ms == 0)
        return 0;
    return now_ms - connection->took_ms;
}

/* Looks at the client, and disconnects it if it does not read and the time is used up. Returns
 * whether the time runs because of it. */
static bool check_client(struct client *client, int64_t now_ms, bool used_up)
{
    bool is_reader = connection_reads_late(&client->stream.connection);
    bool is_known = slow_origins_has(client->stream.endpoint.bus, &client->visitor.origin);
    int64_t idle;

    connection_flush(&client->stream.connection); /* there may be room that was not reported */
    idle = idle_ms(client, now_ms);
    if (used_up && idle > (is_known && !is_reader ? PATIENCE_MS : READER_PATIENCE_MS)) {
        slow_origins_note(client->stream.endpoint.bus, &client->visitor.origin);
        clients_remove(client,
                       "it did not read while other clients waited: slow_client_timeout_sec");
    }
    return idle > (is_reader ? READER_PATIENCE_MS : CONNECTION_LATE_MS);
}

static void check_serving(struct stdio_bus *bus)
{
    struct slow_clients *slow = &bus->slow_clients;
    int64_t now_ms = stdio_bus_event_loop_now_ms(bus->loop), step_ms = now_ms - slow->checked_ms;
    enum standing worst = HOLDS_NOBODY;
    struct list_node *node, *following;
    bool any_idle = false, used_up;

    advance(slow, now_ms);
    used_up = is_used_up(bus);
    list_each(&bus->clients.list, node, following) {
        struct client *client = client_at(node);
        enum standing standing = standing_of(bus, client);

        if (standing > worst)
            worst = standing;
        if (standing == IN_THE_WAY)
            any_idle |= check_client(client, now_ms, used_up);
    }
    if (any_idle)
        slow->used_ms[slow->second % SLOW_CLIENTS_SECONDS] +=
            (unsigned)(step_ms < STEP_MAX_MS ? step_ms : STEP_MAX_MS);
    slow->checked_ms = now_ms;
    if (worst == IN_THE_WAY || (worst == HOLDS_WORKER && used_up))
        bus_watch_slow_clients(bus, CHECK_MS);
    else if (worst == HOLDS_WORKER)
        bus_watch_slow_clients(bus, CHECK_LATER_MS);
}

/* The shutdown waits for all clients to read the rest. Those that take nothing from one look to the
 * next one are disconnected. */
static void check_closing(struct stdio_bus *bus)
{
    visitors_remove_idle(
        bus, "it did not read while the daemon was shutting down: slow_client_timeout_sec");
    bus_watch_slow_clients(bus,
                           bus->options.config->limits.slow_client_timeout_sec * INT64_C(1000));
}

void slow_clients_check(void *user_data)
{
    struct stdio_bus *bus = user_data;

    if (bus->phase == BUS_PHASE_FLUSHING)
        check_closing(bus);
    else if (bus->phase < BUS_PHASE_FLUSHING)
        check_serving(bus);
}

/* --- slow origins --- */

#define NOTED_MS 60000
#define TURN_MS 100 /* from one new client of an origin to the next */

/* NULL: not noted in the last minute. */
static struct slow_origin *find_origin(struct slow_origins *slow, const struct origin *origin,
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
    struct slow_origin *entry = find_origin(slow, origin, now_ms);

    if (entry == NULL) {
        entry = &slow->noted[slow->count++ % SLOW_ORIGINS_MAX];
        waiting_release_all(&bus->router, &entry->waiting);
        entry->origin = *origin;
    }
    entry->until_ms = now_ms + NOTED_MS;
}

bool slow_origins_has(struct stdio_bus *bus, const struct origin *origin)
{
    return find_origin(&bus->slow_origins, origin, stdio_bus_event_loop_now_ms(bus->loop)) != NULL;
}

void slow_origins_arrived(struct endpoint *client, const struct origin *origin)
{
    struct stdio_bus *bus = client->bus;
    struct slow_origins *slow = &bus->slow_origins;
    struct slow_origin *entry = find_origin(slow, origin, stdio_bus_event_loop_now_ms(bus->loop));

    if (entry == NULL)
        return;
    client->ops->pause(client);
    waiting_hold(&entry->waiting, &client->peer);
    if (!timer_started(&slow->turn))
        stdio_bus_event_loop_start_timer(bus->loop, &slow->turn, TURN_MS);
}
