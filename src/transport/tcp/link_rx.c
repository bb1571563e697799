/* link_rx.c - the host receives: completions, data, requests for data.
 *
 *   stream.c: recv ─▶ buf ─▶ CapsuleResp ─▶ done()
 *                       ├─▶ C2HData ─▶ the command's memory; what is not here yet is received
 *                       │              straight into it
 *                       └─▶ R2T ─▶ link_tx.c
 *
 * Many small PDUs come with one call and are copied once. Where payloads are large, only the next
 * header is received ahead: its payload is then received in place, without a copy.
 *
 * The controller is not trusted: a PDU must name a command in flight, and bring that command's data
 * in order and to its end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/tcp/link.h"
#include "transport/tcp/stream_parse.h"

/* --- receiving -------------------------------------------------------------------------------- */

static void compact_rx_buffer(struct tcp_stream *stream)
{
	if (stream->head == stream->tail) {
		stream->head = stream->tail = 0;
	} else if (stream->head > TCP_LINK_RX_BYTES / 2) {
		memmove(stream->buf, stream->buf + stream->head, stream->tail - stream->head);
		stream->tail -= stream->head;
		stream->head = 0;
	}
}

/* After a large payload the next one is likely to be large. */
uint32_t tcp_link_make_room(struct tcp_stream *stream)
{
	uint32_t all;

	compact_rx_buffer(stream);
	all = TCP_LINK_RX_BYTES - stream->tail;
	return tcp_link_of_stream(stream)->large_payloads && all > TCP_LINK_RX_AHEAD ?
		       TCP_LINK_RX_AHEAD :
		       all;
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
	tl->stream.rules.ready = true;
	tl->stream.rules.hdgst = icresp.dgst & NVME_TCP_DGST_HDR;
	tl->stream.rules.ddgst = icresp.dgst & NVME_TCP_DGST_DATA;
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
	tl->payload.success = data.hdr.flags & NVME_TCP_F_SUCCESS;
	tl->large_payloads = shape->data_len >= TCP_LINK_RX_LARGE;
	tcp_stream_expect(&tl->stream, slot->data, shape->data_len, shape->ddgst);
	return 0;
}

/* The slot's place in its memory moves on with the data. */
static void payload_received(struct tcp_stream *stream, bool digest_ok)
{
	struct tcp_link *tl = tcp_link_of_stream(stream);
	struct tcp_link_slot *slot = tl->payload.slot;

	tl->link.stats.copied_bytes += stream->payload.copied;
	if (!digest_ok)
		slot->slot.corrupt = true;
	slot->slot.data = stream->payload.at;
	slot->slot.moved += stream->payload.len;
	if (!tl->payload.success)
		return;
	slot->slot.cqe = (struct nvme_cqe){ .cid = slot->slot.cmd.common.cid };
	tcp_link_answered(tl, slot);
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

static bool on_pdu(struct tcp_stream *stream, uint8_t type, const char *pdu,
		   const struct nvme_tcp_shape *shape)
{
	struct nvme_tcp_fault fault;

	if (handle_pdu(tcp_link_of_stream(stream), type, pdu, shape, &fault) < 0) {
		tcp_stream_terminate(stream, pdu, (uint8_t)pdu[offsetof(struct nvme_tcp_hdr, hlen)],
				     &fault);
		return false;
	}
	return true;
}

void tcp_link_parse(struct tcp_stream *stream)
{
	while (stream->state == TCP_STREAM_OPEN)
		if (!tcp_stream_step(stream, on_pdu, payload_received))
			break;
	tcp_stream_receive(stream);
}

void tcp_link_rx_init(struct tcp_link *tl)
{
	tl->stream.size = TCP_LINK_RX_BYTES;
	tl->stream.sink = (struct iovec){ tl->stream.buf, TCP_LINK_RX_BYTES };
	tl->stream.rx_iov = tl->rx_iov;
	tl->stream.rx_iovs = sizeof(tl->rx_iov) / sizeof(tl->rx_iov[0]);
}
