#include "build_config.h"

#include "event/timers.h"

#include <limits.h>
#include <stddef.h>

void timer_init(struct timer *timer, timer_fn *fn, void *user_data)
{
    *timer = (struct timer){.fn = fn, .user_data = user_data};
}

/* Makes one heap of two. Either may be NULL; neither has siblings. */
static struct timer *meld(struct timer *a, struct timer *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    if (b->deadline_ms < a->deadline_ms) {
        struct timer *swap = a;
        a = b;
        b = swap;
    }
    b->parent = a;
    b->sibling = a->child;
    if (a->child != NULL)
        a->child->parent = b;
    a->child = b;
    return a;
}

/* Makes one heap of a row of siblings: melds pairs from the left, then the pairs from the right.
 * This order makes the amortised cost logarithmic. */
static struct timer *meld_siblings(struct timer *first)
{
    struct timer *pairs = NULL; /* the last pair first */
    struct timer *heap = NULL;

    while (first != NULL) {
        struct timer *a = first;
        struct timer *b = a->sibling;
        first = b != NULL ? b->sibling : NULL;
        a->sibling = NULL;
        if (b != NULL)
            b->sibling = NULL;
        a = meld(a, b);
        a->sibling = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct timer *next = pairs->sibling;
        pairs->sibling = NULL;
        heap = meld(heap, pairs);
        pairs = next;
    }
    if (heap != NULL)
        heap->parent = NULL;
    return heap;
}

/* Puts the heap `with`, or nothing, in the place of a timer that is not a root. */
static void replace(struct timer *timer, struct timer *with)
{
    struct timer **place = &timer->parent->sibling;

    if (timer->parent->child == timer)
        place = &timer->parent->child;
    if (with == NULL)
        with = timer->sibling;
    else if ((with->sibling = timer->sibling) != NULL)
        with->sibling->parent = with;
    if (with != NULL)
        with->parent = timer->parent;
    *place = with;
    timer->sibling = timer->parent = NULL;
}

void timers_start(struct timers *timers, struct timer *timer, int64_t deadline_ms)
{
    timers_stop(timers, timer);
    timer->deadline_ms = deadline_ms;
    timer->started = true;
    timers->root = meld(timers->root, timer);
}

void timers_stop(struct timers *timers, struct timer *timer)
{
    struct timer *children;

    if (!timer->started)
        return;
    timer->started = false;
    children = meld_siblings(timer->child);
    timer->child = NULL;
    if (timer->parent != NULL)
        replace(timer, children);
    else if (timer == timers->due)
        timers->due = children;
    else
        timers->root = children;
}

int timers_wait_ms(const struct timers *timers, int64_t now_ms)
{
    uint64_t wait_ms;

    if (timers->root == NULL)
        return -1;
    if (timers->root->deadline_ms <= now_ms)
        return 0;
    wait_ms = (uint64_t)timers->root->deadline_ms - (uint64_t)now_ms;
    return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

int timers_run(struct timers *timers, int64_t now_ms)
{
    int called = 0;

    /* A timer started by a callback waits for the next run in a heap of its own. */
    timers->due = timers->root;
    timers->root = NULL;
    while (timers->due != NULL && timers->due->deadline_ms <= now_ms) {
        struct timer *timer = timers->due;
        timers_stop(timers, timer);
        timer->fn(timer->user_data);
        called++;
    }
    timers->root = meld(timers->root, timers->due);
    timers->due = NULL;
    return called;
}
