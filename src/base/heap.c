#include "build_config.h"

#include "base/heap.h"

#include <stddef.h>

struct heap_node *heap_meld(struct heap_node *a, struct heap_node *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    if (b->key < a->key) {
        struct heap_node *swap = a;
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
static struct heap_node *meld_siblings(struct heap_node *first)
{
    struct heap_node *pairs = NULL; /* the last pair first */
    struct heap_node *heap = NULL;

    while (first != NULL) {
        struct heap_node *a = first;
        struct heap_node *b = a->sibling;
        first = b != NULL ? b->sibling : NULL;
        a->sibling = NULL;
        if (b != NULL)
            b->sibling = NULL;
        a = heap_meld(a, b);
        a->sibling = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct heap_node *next = pairs->sibling;
        pairs->sibling = NULL;
        heap = heap_meld(heap, pairs);
        pairs = next;
    }
    if (heap != NULL)
        heap->parent = NULL;
    return heap;
}

/* Puts the heap `with`, or nothing, in the place of a node that is not a root. */
static void replace(struct heap_node *node, struct heap_node *with)
{
    struct heap_node **place = &node->parent->sibling;

    if (node->parent->child == node)
        place = &node->parent->child;
    if (with == NULL)
        with = node->sibling;
    else if ((with->sibling = node->sibling) != NULL)
        with->sibling->parent = with;
    if (with != NULL)
        with->parent = node->parent;
    *place = with;
    node->sibling = node->parent = NULL;
}

void heap_insert(struct heap_node **root, struct heap_node *node, int64_t key)
{
    node->key = key;
    node->in_heap = true;
    *root = heap_meld(*root, node);
}

void heap_remove(struct heap_node **root, struct heap_node *node)
{
    struct heap_node *children;

    if (!node->in_heap)
        return;
    node->in_heap = false;
    children = meld_siblings(node->child);
    node->child = NULL;
    if (node->parent != NULL)
        replace(node, children);
    else
        *root = children;
}
