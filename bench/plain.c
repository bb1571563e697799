/* plain.c - the bytes of an NVMe/TCP operation without NVMe/TCP, for bare.c.
 *
 *   read:  72 out, 24 + data in (and 24 more where there is a response capsule)
 *   write: 72 + data out, 24 in
 *
 * The first message tells the server both numbers; from then on it only counts. Replies come in
 * the order of the requests, so a reply's slot is the next one. */
#include "load.h"

static uint64_t replies;

static uint32_t request_bytes(const struct load *l)
{
	return CMD_BYTES + (l->write ? l->bytes : 0);
}

static uint32_t reply_bytes(const struct load *l)
{
	if (l->write)
		return RSP_BYTES;
	return RSP_BYTES + l->bytes + (l->flow_control ? RSP_BYTES : 0);
}

static void plain_open(struct load *l)
{
	uint32_t hello[2] = { request_bytes(l), reply_bytes(l) };

	l->fd = load_connect(l);
	l->items_per_op = 2;
	load_write_all(l->fd, hello, sizeof(hello));
}

static void plain_issue(struct load *l, unsigned slot)
{
	load_header(l, CMD_BYTES);
	if (l->write)
		load_payload(l, l->bytes);
}

static size_t plain_consume(struct load *l, const uint8_t *p, size_t n)
{
	unsigned slot = (unsigned)(replies % l->depth);

	if (n < RSP_BYTES)
		return 0;
	replies++;
	if (l->write)
		load_done(l, slot);
	else
		load_skip(l, reply_bytes(l) - RSP_BYTES, (int)slot);
	return RSP_BYTES;
}

const struct framing plain_framing = { plain_open, plain_issue, plain_consume };
