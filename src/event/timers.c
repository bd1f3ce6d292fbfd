#include "build_config.h"

#include "event/timers.h"

#include <limits.h>
#include <stddef.h>

void timer_init(struct timer *timer, timer_fn *fn, void *user_data)
{
    *timer = (struct timer){.fn = fn, .user_data = user_data};
}

static struct timer *timer_of(struct heap_node *node)
{
    return (struct timer *)(void *)((char *)node - offsetof(struct timer, node));
}

void timers_start(struct timers *timers, struct timer *timer, int64_t deadline_ms)
{
    timers_stop(timers, timer);
    heap_insert(&timers->root, &timer->node, deadline_ms);
}

void timers_stop(struct timers *timers, struct timer *timer)
{
    heap_remove(&timer->node == timers->due ? &timers->due : &timers->root, &timer->node);
}

int timers_wait_ms(const struct timers *timers, int64_t now_ms)
{
    uint64_t wait_ms;

    if (timers->root == NULL)
        return -1;
    if (timers->root->key <= now_ms)
        return 0;
    wait_ms = (uint64_t)timers->root->key - (uint64_t)now_ms;
    return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

int timers_run(struct timers *timers, int64_t now_ms)
{
    int called = 0;

    /* A timer started by a callback waits for the next run in a heap of its own. */
    timers->due = timers->root;
    timers->root = NULL;
    while (timers->due != NULL && timers->due->key <= now_ms) {
        struct timer *timer = timer_of(timers->due);
        timers_stop(timers, timer);
        timer->fn(timer->user_data);
        called++;
    }
    timers->root = heap_meld(timers->root, timers->due);
    timers->due = NULL;
    return called;
}
