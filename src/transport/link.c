/* link.c - what links of every transport share: slots, command identifiers, the first cause.
 *
 * CID = generation * step + index, with step a power of two that holds every index. A slot's
 * generation moves on with each use, so that a duplicate or late completion finds nobody. */
#include "transport/link.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CID_NONE = 0xffff }; /* in the error log: of no command */

static struct weft_link_slot *slot_by_index(struct weft_link *link, uint32_t index)
{
	return (struct weft_link_slot *)(link->slots + index * link->transport->slot_size);
}

static uint32_t power_of_two(uint32_t least)
{
	uint32_t n = 1;

	while (n < least)
		n *= 2;
	return n;
}

int weft_link_init(struct weft_link *link, const struct weft_link_transport *transport,
		   struct weft_reactor *r, const struct weft_link_options *options,
		   const struct weft_link_ops *ops, void *user)
{
	assert_driving(r);
	assert(options->depth && transport->slot_size >= sizeof(struct weft_link_slot));
	link->transport = transport;
	link->reactor = r;
	link->options = *options;
	link->ops = ops;
	link->user = user;
	link->blocks_max = 1;
	link->cid_stride = power_of_two(options->depth);
	link->slots = calloc(options->depth, transport->slot_size);
	if (!link->slots)
		return -ENOMEM;
	for (uint32_t i = options->depth; i--;) {
		struct weft_link_slot *slot = slot_by_index(link, i);

		slot->link = link;
		slot->cmd.common.cid = cpu_to_le16((uint16_t)i);
		weft_list_init(&slot->user_link);
		weft_link_put_slot(link, slot);
	}
	return 0;
}

void weft_link_destroy(struct weft_link *link)
{
	free(link->slots);
}

struct weft_link_slot *weft_link_get_slot(struct weft_link *link)
{
	struct weft_link_slot *slot = link->free;
	uint16_t cid;

	if (!slot)
		return NULL;
	link->free = slot->next_free;
	cid = (uint16_t)(le16_to_cpu(slot->cmd.common.cid) + link->cid_stride);
	if (cid == CID_NONE)
		cid = (uint16_t)(cid + link->cid_stride);
	memset(&slot->cmd, 0, sizeof(slot->cmd));
	slot->cmd.common.cid = cpu_to_le16(cid);
	slot->data = (struct weft_iov_iter){ 0 };
	slot->data_len = slot->moved = 0;
	slot->corrupt = false;
	return slot;
}

void weft_link_put_slot(struct weft_link *link, struct weft_link_slot *slot)
{
	assert(!slot->busy && slot->link == link);
	slot->next_free = link->free;
	link->free = slot;
}

void weft_link_submit(struct weft_link *link, struct weft_link_slot *slot)
{
	assert(!link->closing && !slot->busy);
	slot->busy = true;
	link->transport->submit(link, slot);
}

struct weft_link_slot *weft_link_find_slot(struct weft_link *link, uint16_t cid)
{
	uint32_t index = cid % link->cid_stride;
	struct weft_link_slot *slot;

	if (index >= link->options.depth)
		return NULL;
	slot = slot_by_index(link, index);
	return slot->busy && le16_to_cpu(slot->cmd.common.cid) == cid ? slot : NULL;
}

void weft_link_complete(struct weft_link *link, struct weft_link_slot *slot)
{
	assert(slot->busy && slot->link == link);
	slot->busy = false;
	link->stats.completed++;
	link->ops->done(link, slot);
	weft_link_put_slot(link, slot);
}

static void record_first_cause(struct weft_link *link, int rc, const char *why, va_list ap)
{
	assert(rc < 0);
	if (link->closing)
		return;
	link->closing = true;
	link->rc = rc;
	vsnprintf(link->err.text, sizeof(link->err.text), why, ap);
}

void weft_link_record_fault(struct weft_link *link, int rc, const char *why, ...)
{
	va_list ap;

	va_start(ap, why);
	record_first_cause(link, rc, why, ap);
	va_end(ap);
}

void weft_link_close(struct weft_link *link, int rc, const char *why, ...)
{
	va_list ap;

	assert_driving(link->reactor);
	va_start(ap, why);
	record_first_cause(link, rc, why, ap);
	va_end(ap);
	link->transport->close(link);
}

void weft_link_free(struct weft_link *link)
{
	assert(link->closing);
	link->transport->free(link);
}
