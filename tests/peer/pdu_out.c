/* pdu_out.c - the PDU that is sent next. */
#include "peer/pdu_out.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "peer/digest.h"
#include "peer/input.h"

enum {
	SPOILS_MAX = 4,
	PATIENCE = 64, /* turns for an end that does not receive */
};

struct outgoing outgoing;

static struct spoil {
	uint16_t at;
	uint8_t bits;
	bool after;
} spoils[SPOILS_MAX];
static unsigned nspoils;
static uint32_t split_at;

void op_spoil(void)
{
	uint16_t at = u16();
	uint8_t bits = u8();

	if (nspoils < SPOILS_MAX)
		spoils[nspoils++] = (struct spoil){ at & 0x7fff, bits, at >> 15 };
}

void op_split(void)
{
	split_at = u16();
}

void outgoing_forget(void)
{
	nspoils = 0;
	split_at = 0;
}

/* --- building --------------------------------------------------------------------------------- */

static bool apply_spoils(bool after)
{
	bool spoilt = false;

	for (unsigned i = 0; i < nspoils; i++) {
		if (spoils[i].after != after || !spoils[i].bits)
			continue;
		outgoing.bytes[spoils[i].at % outgoing.len] ^= (char)spoils[i].bits;
		spoilt = true;
	}
	return spoilt;
}

bool outgoing_build(const struct outgoing_form *form)
{
	uint32_t hlen = form->hdr->hlen, header = hlen + (form->hdgst ? NVME_TCP_DIGEST : 0);
	uint32_t end = form->len ? form->pdo + form->len : header;
	struct nvme_tcp_hdr *common = (struct nvme_tcp_hdr *)outgoing.bytes;
	bool spoilt;

	memset(outgoing.bytes, 0, form->len ? form->pdo : header);
	memcpy(outgoing.bytes, form->hdr, hlen);
	common->flags |= form->hdgst ? NVME_TCP_F_HDGST : 0;
	common->flags |= form->ddgst ? NVME_TCP_F_DDGST : 0;
	common->pdo = (uint8_t)(form->len ? form->pdo : 0);
	outgoing.len = end + (form->ddgst ? NVME_TCP_DIGEST : 0);
	common->plen = cpu_to_le32(outgoing.len);
	if (form->ddgst)
		seal(outgoing.bytes + end, outgoing.bytes + form->pdo, form->len);
	if (form->ddgst && form->wrong_digest)
		outgoing.bytes[end] ^= 1;
	spoilt = apply_spoils(false);
	if (form->hdgst)
		seal(outgoing.bytes + hlen, outgoing.bytes, hlen);
	return apply_spoils(true) || spoilt;
}

/* --- sending ---------------------------------------------------------------------------------- */

static bool send_bytes(int fd, const char *bytes, size_t len, void (*meanwhile)(void *arg),
		       void *arg)
{
	for (unsigned tries = 0; len;) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
			tries = 0;
		} else if (n < 0 && errno == EAGAIN && tries++ < PATIENCE) {
			meanwhile(arg);
		} else {
			return false;
		}
	}
	return true;
}

bool outgoing_send(int fd, void (*meanwhile)(void *arg), void *arg)
{
	uint32_t first = split_at < outgoing.len ? split_at : 0;

	outgoing_forget();
	if (first) {
		if (!send_bytes(fd, outgoing.bytes, first, meanwhile, arg))
			return false;
		meanwhile(arg);
		meanwhile(arg);
	}
	return send_bytes(fd, outgoing.bytes + first, outgoing.len - first, meanwhile, arg);
}
