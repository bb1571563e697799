/* order.h - a command that the harness gave to a link: its memory, and what may become of it.
 *
 * Memory is in parts of their own, so that the address sanitizer sees who leaves them, and is freed
 * when the link is done with it. What was ordered is kept until the run is over: bytes about it may
 * still be on the wire. */
#ifndef WEFT_FUZZ_ORDER_H
#define WEFT_FUZZ_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/region.h"
#include "transport/link.h"

enum { ORDERS_MAX = 64, ORDER_PARTS = 200, ORDER_LEN_MAX = 4 * 65535, ORDER_R2TS = 8 };

struct order {
	struct weft_link_slot *slot; /* NULL: done, or void */
	union nvme_sqe sqe;
	uint16_t cid;
	uint32_t len, skip;
	struct iovec iov[ORDER_PARTS];
	struct weft_region *regions[ORDER_PARTS];
	int iovcnt;
	bool again; /* from inside done(), another one like it */

	/* What the controller has seen of it, and said to it. */
	bool left; /* it was on the wire */
	bool seen, answered, corrupt;
	uint16_t status;
	uint32_t received; /* C2HData, in order */
	uint32_t asked;    /* by R2Ts, in order */
	struct order_r2t {
		uint16_t ttag;
		uint32_t at, left;
	} r2ts[ORDER_R2TS];
	unsigned nr2ts;
};

/* How one is made. */
struct order_form {
	uint8_t kind; /* of a few opcodes */
	uint32_t len;
	uint8_t shape; /* of its memory: bytes per part, and parts without any */
	uint8_t skip, tail;
	uint8_t known; /* which of its parts are declared (memory/region.h), by eights */
	bool again;
};

extern struct order orders[ORDERS_MAX];
extern unsigned norders;

enum nvme_direction order_direction(const struct order *o);
bool order_is_open(const struct order *o); /* the link has it */
bool order_waits(const struct order *o);   /* ... and the controller owes it an answer */
bool orders_are_open(void);                /* any of them */
/* @o's data from byte @at on, whichever way it goes. */
const uint8_t *order_bytes(const struct order *o, uint32_t at);
struct order *order_find(uint16_t cid);

/* Takes a slot and submits it; false: there is none, or there were enough. */
bool order_place(struct weft_link *link, const struct order_form *form);
/* Inside done(): @strict when the controller kept the rules. Frees the memory. */
void order_check_done(struct order *o, const struct weft_link_slot *slot, bool strict);
/* Inside closed(). */
void orders_void(void);
void orders_forget(void);

#endif
