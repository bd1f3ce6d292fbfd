/* Intrusive doubly linked list. A node that is on no list is zeroed; to remove it does nothing. */
#ifndef STDIO_BUS_BASE_LIST_H
#define STDIO_BUS_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"

struct list_node {
    struct list_node *next, *prev;
};

/* The head is a node, too: that of an empty list points at itself. */
struct list {
    struct list_node head;
};

/* The struct that contains this node. */
#define list_entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* Visits every node; the current one may be removed. */
#define list_each(list, node, following)                                                           \
    for ((node) = (list)->head.next, (following) = (node)->next; (node) != &(list)->head;          \
         (node) = (following), (following) = (node)->next)

static inline void list_init(struct list *list)
{
    list->head.next = list->head.prev = &list->head;
}

static inline bool list_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline bool list_linked(const struct list_node *node)
{
    return node->next != NULL;
}

static inline size_t list_count(const struct list *list)
{
    const struct list_node *node;
    size_t count = 0;

    for (node = list->head.next; node != &list->head; node = node->next)
        count++;
    return count;
}

static inline void list_append(struct list *list, struct list_node *node)
{
    ASSERT(!list_linked(node) && list->head.prev != NULL);
    node->prev = list->head.prev;
    node->next = &list->head;
    node->prev->next = node;
    list->head.prev = node;
}

/* After `before`, which is a node of a list, or the head of one. */
static inline void list_insert(struct list_node *before, struct list_node *node)
{
    ASSERT(!list_linked(node));
    node->prev = before;
    node->next = before->next;
    node->next->prev = node;
    before->next = node;
}

static inline void list_prepend(struct list *list, struct list_node *node)
{
    ASSERT(!list_linked(node));
    node->next = list->head.next;
    node->prev = &list->head;
    node->next->prev = node;
    list->head.next = node;
}

static inline void list_remove(struct list_node *node)
{
    if (node->next == NULL)
        return;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

/* The node `by`, which is on no list, takes the place of one that is on a list. */
static inline void list_replace(struct list_node *node, struct list_node *by)
{
    ASSERT(list_linked(node) && !list_linked(by));
    *by = *node;
    by->prev->next = by;
    by->next->prev = by;
    node->next = node->prev = NULL;
}

/* Returns the node, and moves to the next one. */
static inline struct list_node *list_pass(struct list_node **node)
{
    struct list_node *passed = *node;

    *node = passed->next;
    return passed;
}

/* Removes the first node and returns it, or NULL if the list is empty. */
static inline struct list_node *list_take_first(struct list *list)
{
    struct list_node *node = list->head.next;

    if (node == &list->head)
        return NULL;
    list->head.next = node->next;
    node->next->prev = &list->head;
    node->next = node->prev = NULL;
    return node;
}

/* Moves the nodes of `from` after those of `to`, in their order. */
static inline void list_move_all(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->head.next->prev = to->head.prev;
    to->head.prev->next = from->head.next;
    from->head.prev->next = &to->head;
    to->head.prev = from->head.prev;
    list_init(from);
}

#endif
