/* list.h - an intrusive doubly linked list; the head is a link like the others. */
#ifndef WEFT_BASE_LIST_H
#define WEFT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct weft_list {
	struct weft_list *next, *prev;
};

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void weft_list_init(struct weft_list *head)
{
	head->next = head->prev = head;
}

static inline bool weft_list_empty(const struct weft_list *head)
{
	return head->next == head;
}

static inline void weft_list_push(struct weft_list *head, struct weft_list *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

static inline void weft_list_push_first(struct weft_list *head, struct weft_list *link)
{
	weft_list_push(head->next, link);
}

/* Leaves @link pointing at itself, so that removing it twice is harmless. */
static inline void weft_list_remove(struct weft_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	weft_list_init(link);
}

static inline struct weft_list *weft_list_pop(struct weft_list *head)
{
	struct weft_list *link = head->next;

	if (link == head)
		return NULL;
	weft_list_remove(link);
	return link;
}

/* Moves everything on @from behind what is on @to. */
static inline void weft_list_splice(struct weft_list *to, struct weft_list *from)
{
	if (weft_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	weft_list_init(from);
}

#define weft_list_for_each(pos, head, member)                                                \
	for (pos = container_of((head)->next, typeof(*pos), member); &pos->member != (head); \
	     pos = container_of(pos->member.next, typeof(*pos), member))

/* The body may remove @pos. */
#define weft_list_for_each_safe(pos, tmp, head, member)                 \
	for (pos = container_of((head)->next, typeof(*pos), member),    \
	    tmp = container_of(pos->member.next, typeof(*pos), member); \
	     &pos->member != (head);                                    \
	     pos = tmp, tmp = container_of(tmp->member.next, typeof(*tmp), member))

#endif
