/* heap.h - an intrusive pairing heap: the smallest key on top, no allocation, any node
 * removable. */
#ifndef WEFT_BASE_HEAP_H
#define WEFT_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct weft_heap_node {
	uint64_t key;
	struct weft_heap_node *child, *next;
	struct weft_heap_node **owner; /* the pointer that points here; NULL: not in a heap */
};

struct weft_heap {
	struct weft_heap_node *top;
};

void weft_heap_push(struct weft_heap *heap, struct weft_heap_node *node, uint64_t key);
void weft_heap_remove(struct weft_heap *heap, struct weft_heap_node *node);

static inline bool weft_heap_has(const struct weft_heap_node *node)
{
	return node->owner;
}

#endif
