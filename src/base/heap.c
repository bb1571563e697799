/* heap.c - an intrusive pairing heap. */
#include "base/heap.h"

#include <assert.h>
#include <stddef.h>

static void link_node(struct weft_heap_node **at, struct weft_heap_node *node)
{
	*at = node;
	if (node)
		node->owner = at;
}

/* Both roots stand alone; the larger becomes the smaller's first child. */
static struct weft_heap_node *meld(struct weft_heap_node *a, struct weft_heap_node *b)
{
	struct weft_heap_node *large;

	if (!a || !b)
		return a ? a : b;
	large = a->key <= b->key ? b : a;
	a = a->key <= b->key ? a : b;
	link_node(&large->next, a->child);
	link_node(&a->child, large);
	return a;
}

/* Melds a list of siblings in pairs from the left, then the pairs from the right. */
static struct weft_heap_node *meld_siblings(struct weft_heap_node *first)
{
	struct weft_heap_node *pairs = NULL, *root = NULL, *a, *b;

	while (first) {
		a = first;
		b = a->next;
		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		a = pairs;
		pairs = a->next;
		a->next = NULL;
		root = meld(root, a);
	}
	return root;
}

void weft_heap_push(struct weft_heap *heap, struct weft_heap_node *node, uint64_t key)
{
	assert(!weft_heap_has(node));
	node->key = key;
	node->child = node->next = NULL;
	link_node(&heap->top, meld(heap->top, node));
}

void weft_heap_remove(struct weft_heap *heap, struct weft_heap_node *node)
{
	struct weft_heap_node *rest = meld_siblings(node->child);

	assert(weft_heap_has(node));
	if (node == heap->top) {
		link_node(&heap->top, rest);
	} else {
		link_node(node->owner, node->next);
		link_node(&heap->top, meld(heap->top, rest));
	}
	node->owner = NULL;
}
