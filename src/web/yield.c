#include "build_config.h"

#include "web/yield.h"

#include "process/pool.h"
#include "router/affinity.h"
#include "router/shares.h"
#include "web/sessions.h"

/* A session between two requests of its client looks idle for this long at least. */
#define REST_MS 2000

#define REASON "it was idle, and gave way to another client"

/* --- sessions --- */

static int64_t rests_for_ms(const struct http_session *session)
{
    return stdio_bus_event_loop_now_ms(session->hub->bus->loop) - session->used_ms;
}

static struct http_session *session_of(struct list_node *node)
{
    return list_entry(node, struct http_session, rest);
}

void yield_connection(struct http_hub *hub, const struct peer_origin *origin)
{
    const struct stdio_bus *bus = hub->bus;
    struct list_node *node, *following;

    if (shares_left_of_connections(&bus->router, bus->client_count, origin))
        return;
    list_each(&hub->resting, node, following) {
        struct http_session *session = session_of(node);

        if (rests_for_ms(session) < REST_MS)
            return;
        if (session->in_flight > 0 || session->endpoint.peer.origin != origin)
            continue;
        http_sessions_end(session, REASON);
        return;
    }
}

static void look_again(struct http_hub *hub, int64_t after_ms)
{
    if (!timer_started(&hub->yields))
        stdio_bus_event_loop_start_timer(hub->bus->loop, &hub->yields, after_ms);
}

/* A client that waits for a process. */
struct need {
    const struct group *pool;
    const struct peer_origin *origin;
    size_t before; /* clients that come first */
};

static bool gives_way(const struct http_session *session, const struct need *need)
{
    const struct peer_origin *origin = session->endpoint.peer.origin;

    return session->in_flight == 0 &&
           affinity_worker(&session->endpoint.peer, need->pool) != NULL &&
           (origin == need->origin ||
            shares_processes(need->pool, origin) >
                shares_processes(need->pool, need->origin) + need->before);
}

/* False: no idle session has a process for the client. */
static bool yield_process(struct http_hub *hub, const struct need *need)
{
    struct list_node *node, *following;

    list_each(&hub->resting, node, following) {
        struct http_session *session = session_of(node);

        if (!gives_way(session, need))
            continue;
        if (rests_for_ms(session) >= REST_MS) {
            http_sessions_end(session, REASON);
            return true;
        }
        look_again(hub, REST_MS - rests_for_ms(session));
        return false;
    }
    return false;
}

/* --- pools --- */

#define NEEDS_MAX 32 /* in one round */

/* Notes the clients of the list that wait beyond the processes that are coming. */
static size_t find_needs(struct need needs[NEEDS_MAX], size_t count, const struct group *pool,
                         const struct list *waiting, size_t *coming)
{
    const struct list_node *node;

    for (node = waiting->head.next; node != &waiting->head && count < NEEDS_MAX;
         node = node->next) {
        if (*coming > 0)
            --*coming;
        else
            needs[count++] = (struct need){.pool = pool,
                                           .origin = list_entry(node, struct peer, hold)->origin};
    }
    return count;
}

/* The end of a session releases all clients that wait for the pool. */
static void yield_of_pool(struct http_hub *hub, struct group *pool)
{
    size_t coming = shares_coming(pool), count, i;
    struct need needs[NEEDS_MAX];

    if (pool->mode.clients != CLIENTS_EXCLUSIVE)
        return;
    count = find_needs(needs, 0, pool, &pool->waiting, &coming);
    if (pool->other_era != NULL)
        count = find_needs(needs, count, pool, &pool->other_era->waiting, &coming);
    for (i = 0; i < count; i++) {
        needs[i].before = i;
        if (!yield_process(hub, &needs[i]))
            hub->wanted = true;
    }
}

void yield_processes(struct http_hub *hub)
{
    struct list_node *node, *following;

    hub->wanted = false;
    list_each(&hub->bus->pools, node, following)
        yield_of_pool(hub, &list_entry(node, struct pool, link)->group);
}
