#include "build_config.h"

#include "router/deadlines.h"

#include "router/waiting.h"

void deadlines_start(struct router *router, struct request *request)
{
    struct request_extras *extras = request->extras;
    struct group *pool = request->answerer->pool;

    extras->deadline_ms = router->now_ms + (int64_t)pool->mode.request_timeout_sec * 1000;
    list_remove(&extras->timed);
    list_append(&pool->timed, &extras->timed);
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
        struct request_extras *extras = list_entry(node, struct request_extras, timed);

        if (extras->deadline_ms > router->now_ms)
            return;
        router->answered_last |= extras->request->asker->input_ended;
        expired(user_data, extras->request);
        waiting_abandon(router, extras->request);
    }
}

void deadlines_expire(struct router *router, deadlines_expired_fn *expired, void *user_data)
{
    struct list_node *node, *following;

    list_each(&router->pools, node, following)
        expire_pool(router, list_entry(node, struct group, link), expired, user_data);
}

int64_t deadlines_next(const struct router *router)
{
    struct list_node *node, *following;
    int64_t next = -1;

    list_each(&router->pools, node, following) {
        const struct list *timed = &list_entry(node, struct group, link)->timed;
        int64_t deadline_ms;

        if (list_empty(timed))
            continue;
        deadline_ms = list_entry(timed->head.next, struct request_extras, timed)->deadline_ms;
        if (next < 0 || deadline_ms < next)
            next = deadline_ms;
    }
    return next;
}
