#include "build_config.h"

#include "event/timers.h"

#include <limits.h>
#include <stddef.h>

void timer_init(struct timer *timer, timer_fn *fn, void *user_data)
{
    timer->deadline_ms = 0;
    timer->fn = fn;
    timer->user_data = user_data;
    timer->child = timer->sibling = timer->parent = NULL;
    timer->started = false;
}

/* One heap of two; either may be NULL. Neither has siblings. */
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

/* One heap of a row of siblings: pairs from the left, then those from the right. This order is what
 * makes the amortised cost logarithmic. */
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

/* Takes a timer that is not a root, and all below it, out of its row of siblings. */
static void cut(struct timer *timer)
{
    if (timer->parent->child == timer)
        timer->parent->child = timer->sibling;
    else
        timer->parent->sibling = timer->sibling;
    if (timer->sibling != NULL)
        timer->sibling->parent = timer->parent;
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
    if (timer == timers->root) {
        timers->root = children;
        return;
    }
    cut(timer);
    timers->root = meld(timers->root, children);
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

/* Moves the due timers out of the heap, to be the children of `due` in order of their deadlines. */
static void take_due(struct timers *timers, struct timer *due, int64_t now_ms)
{
    struct timer *last = NULL;

    while (timers->root != NULL && timers->root->deadline_ms <= now_ms) {
        struct timer *timer = timers->root;
        timers->root = meld_siblings(timer->child);
        timer->child = NULL;
        if (last == NULL) {
            due->child = timer;
            timer->parent = due;
        } else {
            last->sibling = timer;
            timer->parent = last;
        }
        last = timer;
    }
}

int timers_run(struct timers *timers, int64_t now_ms)
{
    struct timer due;
    int called = 0;

    /* What is due leaves the heap before the first call, so that a timer started by a callback
     * waits for the next run. As children of a head the timers are still in a row of siblings,
     * where timers_stop looks for them: to stop or restart one in a callback is no special case. */
    timer_init(&due, NULL, NULL);
    take_due(timers, &due, now_ms);
    while (due.child != NULL) {
        struct timer *timer = due.child;
        timers_stop(timers, timer);
        timer->fn(timer->user_data);
        called++;
    }
    return called;
}
