/* order.c - a command that the harness gave to a link. */
#include "order.h"

#include <string.h>

#include "must.h"

enum { UNTOUCHED = 0xee };

struct order orders[ORDERS_MAX];
unsigned norders;

static const struct {
	uint8_t opcode, fctype;
} kinds[] = {
	{ nvme_cmd_read, 0 },       { nvme_cmd_write, 0 },
	{ nvme_cmd_flush, 0 },      { NVME_FABRICS_OPCODE, NVMF_CONNECT },
	{ nvme_admin_identify, 0 }, { 0x83, 0 }, /* both ways: no transport moves such data */
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

enum nvme_direction order_direction(const struct order *o)
{
	return nvme_cmd_direction(&o->sqe);
}

bool order_is_open(const struct order *o)
{
	return o->slot;
}

bool order_waits(const struct order *o)
{
	return order_is_open(o) && !o->answered;
}

bool orders_are_open(void)
{
	for (unsigned i = 0; i < norders; i++)
		if (order_is_open(&orders[i]))
			return true;
	return false;
}

const uint8_t *order_bytes(const struct order *o, uint32_t at)
{
	static uint8_t pattern[ORDERS_MAX * 37 + 2 * ORDER_LEN_MAX];

	if (!pattern[0])
		for (size_t i = 0; i < sizeof(pattern); i++)
			pattern[i] = (uint8_t)(i * 7 + i / 251 + 1);
	return pattern + (o - orders) * 37 + at;
}

struct order *order_find(uint16_t cid)
{
	for (unsigned i = 0; i < norders; i++)
		if (orders[i].cid == cid)
			return &orders[i];
	return NULL;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* What belongs at byte @at of the memory when there are @data bytes of data behind the skipped
 * ones; *@len says for how long. */
static const uint8_t *expected(const struct order *o, uint32_t at, uint32_t data, uint32_t *len)
{
	static uint8_t untouched[ORDER_LEN_MAX + 2 * UINT8_MAX];

	if (!untouched[0])
		memset(untouched, UNTOUCHED, sizeof(untouched));
	*len = at < o->skip ? o->skip - at : sizeof(untouched);
	if (at < o->skip || at - o->skip >= data)
		return untouched;
	*len = data - (at - o->skip);
	return order_bytes(o, at - o->skip);
}

/* Bytes [from, to) of the memory, as far as there are so many: filled, or compared. */
static void visit(const struct order *o, uint32_t from, uint32_t to, uint32_t data, bool compare)
{
	uint32_t at = 0, len;

	for (int i = 0; i < o->iovcnt; i++) {
		uint8_t *part = o->iov[i].iov_base;
		uint32_t end = at + (uint32_t)o->iov[i].iov_len, n = at < from ? from : at;

		for (; n < end && n < to; n += len) {
			const uint8_t *want = expected(o, n, data, &len);

			len = len < end - n ? len : end - n;
			len = len < to - n ? len : to - n;
			if (compare)
				must(!memcmp(part + (n - at), want, len));
			else
				memcpy(part + (n - at), want, len);
		}
		at = end;
	}
}

static void check(const struct order *o, uint32_t from, uint32_t to, uint32_t data)
{
	visit(o, from, to, data, true);
}

static void add_part(struct order *o, uint32_t len)
{
	char *part = malloc(len);

	must(part || !len);
	o->iov[o->iovcnt++] = (struct iovec){ part, len };
}

static void make_memory(struct order *o, uint8_t shape, uint32_t len)
{
	uint32_t each = shape ? 1 + (shape & 0x3fu) * (shape & 0x80 ? 64 : 1) : len;

	while (len) {
		uint32_t part = each < len && o->iovcnt < ORDER_PARTS - 2 ? each : len;

		if (shape & 0x40 && o->iovcnt % 5 == 3 && o->iovcnt < ORDER_PARTS - 2)
			part = 0;
		add_part(o, part);
		len -= part;
	}
	if (!o->iovcnt)
		add_part(o, 0);
}

static void declare(struct order *o, uint8_t known)
{
	for (int i = 0; i < o->iovcnt; i++)
		if (known >> i % 8 & 1 && o->iov[i].iov_len)
			must(!weft_region_add(&o->regions[i], o->iov[i].iov_base, o->iov[i].iov_len,
					      0, NULL));
}

static void free_memory(struct order *o)
{
	for (int i = 0; i < o->iovcnt; i++) {
		weft_region_remove(o->regions[i]);
		free(o->iov[i].iov_base);
	}
	o->iovcnt = 0;
}

/* --- its life --------------------------------------------------------------------------------- */

bool order_place(struct weft_link *link, const struct order_form *form)
{
	struct order *o = &orders[norders];
	struct weft_link_slot *slot = norders < ORDERS_MAX ? weft_link_get_slot(link) : NULL;

	if (!slot)
		return false;
	norders++;
	*o = (struct order){ .slot = slot, .len = form->len, .skip = form->skip };
	o->again = form->again;
	o->cid = le16_to_cpu(slot->cmd.common.cid);
	must(order_find(o->cid) == o);
	slot->cmd.common.opcode = kinds[form->kind % KINDS].opcode;
	if (kinds[form->kind % KINDS].opcode == NVME_FABRICS_OPCODE)
		slot->cmd.connect.fctype = kinds[form->kind % KINDS].fctype;
	o->sqe = slot->cmd;
	make_memory(o, form->shape, o->skip + o->len + form->tail);
	declare(o, form->known);
	visit(o, 0, UINT32_MAX, order_direction(o) == NVME_DIR_TO_CTRL ? o->len : 0, false);
	slot->data = (struct weft_iov_iter){ o->iov, o->skip };
	slot->data_len = o->len;
	slot->user = o;
	weft_link_submit(link, slot);
	return true;
}

static void check_strictly(const struct order *o, const struct weft_link_slot *slot)
{
	must(o->answered);
	must(slot->corrupt == o->corrupt);
	must(order_direction(o) != NVME_DIR_TO_HOST || slot->moved == o->received);
	must(le16_to_cpu(slot->cqe.status) >> 1 == o->status);
	check(o, 0, UINT32_MAX,
	      order_direction(o) == NVME_DIR_TO_HOST ? o->received :
	      order_direction(o) == NVME_DIR_TO_CTRL ? o->len :
						       0);
}

void order_check_done(struct order *o, const struct weft_link_slot *slot, bool strict)
{
	must(o->slot == slot && !slot->busy && slot->user == o);
	must(slot->moved <= o->len && slot->data_len == o->len);
	must(le16_to_cpu(slot->cqe.cid) == o->cid);
	if (strict)
		check_strictly(o, slot);
	check(o, 0, o->skip, 0);
	check(o, o->skip + o->len, UINT32_MAX, 0);
	if (order_direction(o) == NVME_DIR_TO_CTRL)
		check(o, 0, UINT32_MAX, o->len);
	o->slot = NULL;
	free_memory(o);
}

void orders_void(void)
{
	for (unsigned i = 0; i < norders; i++) {
		orders[i].slot = NULL;
		free_memory(&orders[i]);
	}
}

void orders_forget(void)
{
	for (unsigned i = 0; i < norders; i++)
		must(!order_is_open(&orders[i]));
	norders = 0;
}
