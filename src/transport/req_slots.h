/* req_slots.h - memory for requests, shared by the queue pairs of a reactor. */
#ifndef WEFT_TRANSPORT_REQ_SLOTS_H
#define WEFT_TRANSPORT_REQ_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_req;

/* All zeros but for the size: none yet. */
struct weft_req_slots {
	size_t size;     /* bytes of one */
	size_t reserved; /* slots that the queue pairs may use at a time, together */
	size_t nblocks;  /* of 4,096 */
	size_t first;    /* no block below it has a free one */
	size_t trimmed;  /* blocks that this trim has looked at */
	struct slot_block *blocks;
};

/* @count more slots may be in use at a time, or as many fewer. -errno: no address space. */
int weft_req_slots_reserve(struct weft_req_slots *slots, size_t count);
void weft_req_slots_unreserve(struct weft_req_slots *slots, size_t count);
void weft_req_slots_destroy(struct weft_req_slots *slots);
/* A reserved slot: zeroed when it is new, else as it was freed or zeroed, except req->slot. */
struct weft_req *weft_req_slots_alloc(struct weft_req_slots *slots);
/* True: there is memory to give back, if it is not used again soon. */
bool weft_req_slots_free(struct weft_req_slots *slots, struct weft_req *req);
/* Gives memory back that no slot uses, a part in each call. False: call it again. */
bool weft_req_slots_trim(struct weft_req_slots *slots);

#endif
