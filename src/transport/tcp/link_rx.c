/* link_rx.c - the host receives: completions, data, requests for data.
 *
 *   recv ─▶ buf ─▶ parse ─▶ CapsuleResp ─▶ done()
 *                        ─▶ C2HData ─▶ the command's memory; what is not here yet is received
 *                                      straight into it
 *                        ─▶ R2T ─▶ link_tx.c
 *
 * Many small PDUs come with one call and are copied once. Where payloads are large, only the next
 * header is received ahead: its payload is then received in place, without a copy.
 *
 * The controller is not trusted: a PDU must fit its type, name a command in flight, and bring that
 * command's data in order and to its end. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/tcp/link.h"

static void start_receive(struct tcp_link *tl);

/* --- receiving -------------------------------------------------------------------------------- */

static void compact_rx_buffer(struct tcp_link *tl)
{
	if (tl->head == tl->tail) {
		tl->head = tl->tail = 0;
	} else if (tl->head > TCP_LINK_RX_BYTES / 2) {
		memmove(tl->buf, tl->buf + tl->head, tl->tail - tl->head);
		tl->tail -= tl->head;
		tl->head = 0;
	}
}

/* How much to receive into the buffer. After a large payload the next one is likely to be large. */
static uint32_t receive_room(const struct tcp_link *tl)
{
	uint32_t all = TCP_LINK_RX_BYTES - tl->tail;

	return tl->large_payloads && all > TCP_LINK_RX_AHEAD ? TCP_LINK_RX_AHEAD : all;
}

/* Into the command's memory first, then what follows into the buffer. */
static int plan_receive(struct tcp_link *tl)
{
	struct weft_iov_iter at = tl->payload.at;
	size_t left = tl->payload.left;
	int n = 0;

	if (tl->payload.slot)
		n = weft_iov_iter_map(&at, tl->rx_iov, TCP_LINK_RX_IOVS, &left);
	if (!tl->payload.slot || !left)
		tl->rx_iov[n++] = (struct iovec){ tl->buf + tl->tail, receive_room(tl) };
	return n;
}

static void start_receive(struct tcp_link *tl)
{
	if (tl->state >= TCP_LINK_CLOSING || tl->rx_busy)
		return;
	compact_rx_buffer(tl);
	tl->rx_busy = true;
	weft_sock_recv(&tl->sock, &tl->rx_op, tl->rx_iov, plan_receive(tl));
}

static void account_received(struct tcp_link *tl, size_t bytes)
{
	size_t direct = 0;

	if (tl->payload.slot) {
		direct = bytes < tl->payload.left ? bytes : tl->payload.left;
		weft_iov_iter_advance(&tl->payload.at, direct);
		tl->payload.left -= direct;
	}
	tl->tail += (uint32_t)(bytes - direct);
	assert(tl->tail <= TCP_LINK_RX_BYTES);
}

/* --- PDUs ------------------------------------------------------------------------------------- */

/* The target must have agreed to the digests that were asked for, and to no others. */
static int check_digests(const struct tcp_link *tl, const struct nvme_tcp_icresp *icresp,
			 struct nvme_tcp_fault *fault)
{
	uint8_t asked = tl->icreq.dgst,
		got = icresp->dgst & (NVME_TCP_DGST_HDR | NVME_TCP_DGST_DATA);

	if (asked == got)
		return 0;
	return nvme_tcp_refuse(
		fault, NVME_TCP_FES_UNSUPPORTED, offsetof(struct nvme_tcp_icresp, dgst),
		asked & ~got ? "the target does not do the digests asked for; leave out hdgst "
			       "and ddgst" :
			       "the target does digests that nobody asked for");
}

static int on_icresp(struct tcp_link *tl, const char *pdu, struct nvme_tcp_fault *fault)
{
	struct nvme_tcp_icresp icresp;

	memcpy(&icresp, pdu, sizeof(icresp));
	if (nvme_tcp_check_icresp(&icresp, fault) < 0) {
		snprintf(tl->why, sizeof(tl->why), "target wants PFV %u", le16_to_cpu(icresp.pfv));
		if (icresp.pfv)
			fault->why = tl->why;
		return -EPROTO;
	}
	if (check_digests(tl, &icresp, fault) < 0)
		return -EPROTO;
	tl->rules.ready = true;
	tl->rules.hdgst = icresp.dgst & NVME_TCP_DGST_HDR;
	tl->rules.ddgst = icresp.dgst & NVME_TCP_DGST_DATA;
	tl->cpda = icresp.cpda;
	tl->h2c_max = le32_to_cpu(icresp.maxh2cdata) & ~3u;
	tcp_link_ready(tl);
	return 0;
}

static void on_term(struct tcp_link *tl, const char *pdu)
{
	struct nvme_tcp_term term;

	memcpy(&term, pdu, sizeof(term));
	tl->link.peer_closed = true;
	weft_link_close(&tl->link, -EPROTO,
			"the target ended the connection: %s (C2HTermReq, FES %u, FEI %u)",
			nvme_tcp_fes_text(le16_to_cpu(term.fes)), le16_to_cpu(term.fes),
			le16_to_cpu(term.feil) | (unsigned)le16_to_cpu(term.feiu) << 16);
}

static int on_resp(struct tcp_link *tl, const char *pdu, struct nvme_tcp_fault *fault)
{
	struct nvme_tcp_resp resp;
	struct weft_link_slot *slot;

	memcpy(&resp, pdu, sizeof(resp));
	slot = weft_link_find_slot(&tl->link, le16_to_cpu(resp.cqe.cid));
	if (!slot || tcp_link_slot_of(slot)->answered)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_resp, cqe) +
					       offsetof(struct nvme_cqe, cid),
				       "completes a command that is not in flight");
	if (nvme_cmd_direction(&slot->cmd) != NVME_DIR_TO_HOST)
		tl->large_payloads = false;
	slot->cqe = resp.cqe;
	tcp_link_answered(tl, tcp_link_slot_of(slot));
	return 0;
}

static int on_r2t(struct tcp_link *tl, const char *pdu, struct nvme_tcp_fault *fault)
{
	struct nvme_tcp_data r2t;

	memcpy(&r2t, pdu, sizeof(r2t));
	return tcp_link_on_r2t(tl, &r2t, fault);
}

/* The command that C2HData is for; it must go on where the last one ended. */
static int match_data(struct tcp_link *tl, const struct nvme_tcp_data *data,
		      struct weft_link_slot **slot, struct nvme_tcp_fault *fault)
{
	*slot = weft_link_find_slot(&tl->link, le16_to_cpu(data->cccid));
	if (!*slot || tcp_link_slot_of(*slot)->answered)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_data, cccid),
				       "for a command that is not in flight");
	if (nvme_cmd_direction(&(*slot)->cmd) != NVME_DIR_TO_HOST ||
	    le32_to_cpu(data->datal) > (*slot)->data_len - (*slot)->moved)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_RANGE, 0,
				       "more data than the command asked for");
	if (le32_to_cpu(data->datao) != (*slot)->moved)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_data, datao), "data out of order");
	if (data->hdr.flags & NVME_TCP_F_SUCCESS && !(data->hdr.flags & NVME_TCP_F_LAST))
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_hdr, flags),
				       "SUCCESS without LAST_PDU");
	return 0;
}

static int on_c2h_data(struct tcp_link *tl, const char *pdu, const struct nvme_tcp_shape *shape,
		       struct nvme_tcp_fault *fault)
{
	struct nvme_tcp_data data;
	struct weft_link_slot *slot;

	memcpy(&data, pdu, sizeof(data));
	if (le32_to_cpu(data.datal) != shape->data_len)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_data, datal),
				       "DATAL and PLEN disagree");
	if (match_data(tl, &data, &slot, fault) < 0)
		return -EPROTO;
	tl->payload.slot = tcp_link_slot_of(slot);
	/* The slot's place in its memory moves on with the data. */
	tl->payload.start = tl->payload.at = slot->data;
	tl->payload.len = tl->payload.left = shape->data_len;
	tl->payload.ddgst = shape->ddgst;
	tl->payload.success = data.hdr.flags & NVME_TCP_F_SUCCESS;
	tl->large_payloads = shape->data_len >= TCP_LINK_RX_LARGE;
	return 0;
}

uint32_t tcp_iov_crc(struct weft_iov_iter iter, size_t len)
{
	uint32_t crc = 0;
	struct iovec part;

	for (; len; len -= part.iov_len) {
		part = weft_iov_iter_next(&iter, len);
		crc = nvme_tcp_crc(crc, part.iov_base, part.iov_len);
	}
	return crc;
}

static void payload_received(struct tcp_link *tl, const char *digest)
{
	struct tcp_link_slot *slot = tl->payload.slot;
	uint32_t crc;

	if (tl->payload.ddgst) {
		crc = htole32(tcp_iov_crc(tl->payload.start, tl->payload.len));
		if (memcmp(&crc, digest, sizeof(crc)))
			slot->slot.corrupt = true;
	}
	slot->slot.data = tl->payload.at;
	slot->slot.moved += (uint32_t)tl->payload.len;
	tl->payload.slot = NULL;
	if (!tl->payload.success)
		return;
	slot->slot.cqe = (struct nvme_cqe){ .cid = slot->slot.cmd.common.cid };
	tcp_link_answered(tl, slot);
}

/* --- parsing ---------------------------------------------------------------------------------- */

/* Each step returns true when it made progress and there may be more to do. */

static void copy_payload(struct weft_iov_iter *to, const char *from, size_t len)
{
	struct iovec part;

	for (; len; len -= part.iov_len, from += part.iov_len) {
		part = weft_iov_iter_next(to, len);
		memcpy(part.iov_base, from, part.iov_len);
	}
}

static bool parse_payload(struct tcp_link *tl)
{
	size_t have = tl->tail - tl->head;
	size_t n = have < tl->payload.left ? have : tl->payload.left;
	uint32_t digest = tl->payload.ddgst ? NVME_TCP_DIGEST : 0;

	copy_payload(&tl->payload.at, tl->buf + tl->head, n);
	tl->link.stats.copied_bytes += n;
	tl->payload.left -= n;
	tl->head += (uint32_t)n;
	if (tl->payload.left || tl->tail - tl->head < digest)
		return false;
	tl->head += digest;
	payload_received(tl, tl->buf + tl->head - digest);
	return true;
}

static bool header_digest_ok(const struct tcp_link *tl, const struct nvme_tcp_hdr *hdr,
			     const char *pdu, struct nvme_tcp_fault *fault)
{
	uint32_t got;

	if (!tl->rules.hdgst || hdr->type == NVME_TCP_C2H_TERM)
		return true;
	memcpy(&got, pdu + hdr->hlen, sizeof(got));
	if (le32toh(got) == nvme_tcp_crc(0, pdu, hdr->hlen))
		return true;
	nvme_tcp_refuse(fault, NVME_TCP_FES_HDGST, le32toh(got), "the header digest is wrong");
	return false;
}

static int handle_pdu(struct tcp_link *tl, uint8_t type, const char *pdu,
		      const struct nvme_tcp_shape *shape, struct nvme_tcp_fault *fault)
{
	switch (type) {
	case NVME_TCP_RESP:
		return on_resp(tl, pdu, fault);
	case NVME_TCP_C2H_DATA:
		return on_c2h_data(tl, pdu, shape, fault);
	case NVME_TCP_R2T:
		return on_r2t(tl, pdu, fault);
	case NVME_TCP_ICRESP:
		return on_icresp(tl, pdu, fault);
	default:
		on_term(tl, pdu);
		return 0;
	}
}

static bool parse_pdu(struct tcp_link *tl)
{
	uint32_t have = tl->tail - tl->head, want;
	const char *pdu = tl->buf + tl->head;
	struct nvme_tcp_fault fault;
	struct nvme_tcp_shape shape;
	struct nvme_tcp_hdr hdr;

	if (have < sizeof(hdr))
		return false;
	memcpy(&hdr, pdu, sizeof(hdr));
	if (nvme_tcp_check_hdr(&hdr, &tl->rules, &shape, &fault) < 0) {
		tcp_link_terminate(tl, pdu, have, &fault);
		return false;
	}
	want = hdr.type == NVME_TCP_C2H_DATA ? shape.data_at : le32_to_cpu(hdr.plen);
	if (have < want)
		return false;
	tl->head += want;
	if (!header_digest_ok(tl, &hdr, pdu, &fault) ||
	    handle_pdu(tl, hdr.type, pdu, &shape, &fault) < 0) {
		tcp_link_terminate(tl, pdu, hdr.hlen, &fault);
		return false;
	}
	return true;
}

static void parse_received(struct tcp_link *tl)
{
	while (tl->state <= TCP_LINK_OPEN)
		if (!(tl->payload.slot ? parse_payload(tl) : parse_pdu(tl)))
			break;
	if (tl->state == TCP_LINK_TERMINATING)
		tl->head = tl->tail = 0;
	start_receive(tl);
}

static void recv_done(struct weft_op *op, int res)
{
	struct tcp_link *tl = container_of(op, struct tcp_link, rx_op);

	tl->rx_busy = false;
	if (tl->state >= TCP_LINK_CLOSING) {
		tcp_link_finish_close_soon(tl);
		return;
	}
	if (res <= 0) {
		tl->link.peer_closed |= !res || res == -ECONNRESET;
		if (res)
			weft_link_close(&tl->link, res, "receive: %s", strerror(-res));
		else
			weft_link_close(&tl->link, -ECONNRESET, "the target closed the connection");
		return;
	}
	if (tl->state <= TCP_LINK_OPEN)
		account_received(tl, (size_t)res);
	parse_received(tl);
}

void tcp_link_rx_init(struct tcp_link *tl)
{
	tl->rx_op.done = recv_done;
}

void tcp_link_rx_start(struct tcp_link *tl)
{
	start_receive(tl);
}
