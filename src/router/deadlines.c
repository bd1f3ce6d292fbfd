#include "build_config.h"

#include "router/deadlines.h"

#include "router/waiting.h"

static struct request_extras *extras_at(const struct list_node *node)
{
    return list_entry(node, struct request_extras, timed);
}

struct list *deadlines_of(struct router *router, struct group *pool)
{
    if (!list_linked(&pool->timing))
        list_append(&router->timing, &pool->timing);
    return &pool->timed;
}

/* The time of a request that begins later ends later, unless a reload has lowered the limit. */
static struct list_node *place_of(struct list *timed, int64_t deadline_ms)
{
    struct list_node *node = timed->head.prev;

    while (node != &timed->head && extras_at(node)->deadline_ms > deadline_ms)
        node = node->prev;
    return node;
}

void deadlines_start(struct router *router, struct request *request)
{
    struct request_extras *extras = request->extras;
    struct group *pool = request->answerer->pool;

    extras->deadline_ms = router->now_ms + (int64_t)pool->mode.request_timeout_sec * 1000;
    list_remove(&extras->timed);
    list_insert(place_of(deadlines_of(router, pool), extras->deadline_ms), &extras->timed);
}

void deadlines_renew(struct router *router, struct request *request)
{
    if (list_linked(&request->extras->timed))
        deadlines_start(router, request);
}

static void expire_pool(struct router *router, struct group *pool, deadlines_expired_fn *expired,
                        void *user_data)
{
    struct list_node *node, *following;

    list_each(&pool->timed, node, following) {
        struct request_extras *extras = extras_at(node);

        if (extras->deadline_ms > router->now_ms)
            return;
        router->answered_last |= extras->request->asker->input_ended;
        expired(user_data, extras->request);
        waiting_abandon(router, extras->request, OUTCOME_TIMED_OUT);
    }
    list_remove(&pool->timing);
}

void deadlines_expire(struct router *router, deadlines_expired_fn *expired, void *user_data)
{
    struct list_node *node, *following;

    list_each(&router->timing, node, following)
        expire_pool(router, list_entry(node, struct group, timing), expired, user_data);
}

/* The request that was abandoned first, or NULL. */
static struct request *first_abandoned(const struct pending *pending)
{
    return list_empty(&pending->abandoned)
               ? NULL
               : list_entry(pending->abandoned.head.next, struct request, in_asker);
}

size_t deadlines_free_abandoned(struct router *router)
{
    struct pending *tables[] = {&router->from_clients, &router->from_workers};
    struct request *request;
    size_t count = 0, i;

    for (i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        while ((request = first_abandoned(tables[i])) != NULL &&
               request->free_at_ms <= router->now_ms) {
            waiting_late_answer(router, request);
            count++;
        }
    }
    return count;
}

/* The earlier one of two times; -1 is none. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int64_t first_free_ms(const struct pending *pending)
{
    const struct request *request = first_abandoned(pending);

    return request != NULL ? request->free_at_ms : -1;
}

int64_t deadlines_next(const struct router *router)
{
    struct list_node *node, *following;
    int64_t next = earlier(first_free_ms(&router->from_clients),
                           first_free_ms(&router->from_workers));

    list_each(&router->timing, node, following) {
        const struct list *timed = &list_entry(node, struct group, timing)->timed;

        if (!list_empty(timed))
            next = earlier(next, extras_at(timed->head.next)->deadline_ms);
    }
    return next;
}
