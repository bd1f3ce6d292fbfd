/* A heap of intrusive nodes, the one with the least key at its root (NULL: it is empty). Nothing
 * here allocates or fails. */
#ifndef STDIO_BUS_BASE_HEAP_H
#define STDIO_BUS_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Lives inside its owner, which removes it before it goes. A node that is in no heap is zeroed, but
 * for its key. */
struct heap_node {
    int64_t key;
    struct heap_node *child, *sibling; /* pairing heap */
    struct heap_node *parent;          /* the previous sibling; of a first child, its parent */
    bool in_heap;
};

/* Makes one heap of two roots, either of which may be NULL. O(1). */
struct heap_node *heap_meld(struct heap_node *a, struct heap_node *b);

/* Adds a node that is in no heap. O(1). */
void heap_insert(struct heap_node **root, struct heap_node *node, int64_t key);

/* Takes a node out of the heap of this root; one that is in no heap is left alone. O(log n)
 * amortised. */
void heap_remove(struct heap_node **root, struct heap_node *node);

#endif
