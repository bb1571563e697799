/* link_tx.c - the host sends: command capsules, and data that the controller asks for.
 *
 *   submit ─▶ capsule, with its data if that is small enough
 *   R2T ────▶ H2CData, H2CData … as large as the controller takes, one after the other
 *
 * A slot is done when its completion has come and the send queue has no item of it any more: until
 * then the kernel may still read its memory. */

#include "transport/tcp/link.h"

/* --- one PDU ---------------------------------------------------------------------------------- */

static int fill_pdu(struct tcp_link *tl, struct tcp_link_pdu *out, struct nvme_tcp_hdr *hdr,
		    struct iovec *iov, int room)
{
	uint32_t header = hdr->hlen + tcp_header_digest_len(&tl->stream.rules);
	int n = 0;

	if (!out->header_out) {
		iov[n++] = (struct iovec){ hdr, header };
		if (hdr->pdo > header)
			iov[n++] = (struct iovec){ (void *)tcp_zeroes, hdr->pdo - header };
		out->header_out = true;
	}
	n += weft_iov_iter_map(&out->at, iov + n, room - n - 1, &out->left);
	if (out->left)
		out->tx.more = true;
	else if (hdr->flags & NVME_TCP_F_DDGST)
		iov[n++] = (struct iovec){ &out->ddgst, sizeof(out->ddgst) };
	return n;
}

/* PDO, PLEN and flags of a PDU with @len bytes of data from @at on. */
static void set_pdu_data(struct tcp_link *tl, struct tcp_link_pdu *out, struct nvme_tcp_hdr *hdr,
			 struct weft_iov_iter at, uint32_t len)
{
	uint32_t header = hdr->hlen + tcp_header_digest_len(&tl->stream.rules), end = header;

	out->header_out = false;
	out->at = at;
	out->left = len;
	if (len) {
		end = tcp_data_offset(header, tl->cpda);
		hdr->pdo = (uint8_t)end;
		end += len;
	}
	if (len && tl->stream.rules.ddgst) {
		hdr->flags |= NVME_TCP_F_DDGST;
		out->ddgst = htole32(tcp_iov_crc(at, len));
		end += NVME_TCP_DIGEST;
	}
	hdr->plen = cpu_to_le32(end);
}

static void queue_pdu(struct tcp_link *tl, struct tcp_link_slot *slot, struct tcp_link_pdu *out)
{
	slot->sending++;
	tl->link.stats.posted++;
	tcp_send_queue_push(&tl->stream.sendq, &out->tx);
}

static void complete_if_done(struct tcp_link *tl, struct tcp_link_slot *slot)
{
	if (slot->answered && !slot->sending)
		weft_link_complete(&tl->link, &slot->slot);
}

void tcp_link_answered(struct tcp_link *tl, struct tcp_link_slot *slot)
{
	slot->answered = true;
	complete_if_done(tl, slot);
}

/* --- capsules --------------------------------------------------------------------------------- */

static int fill_capsule(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct tcp_link_slot *slot = container_of(tx, struct tcp_link_slot, capsule.tx);

	return fill_pdu(tcp_link_of(slot->slot.link), &slot->capsule, &slot->capsule_pdu.pdu.hdr,
			iov, room);
}

static void capsule_sent(struct tcp_tx *tx)
{
	struct tcp_link_slot *slot = container_of(tx, struct tcp_link_slot, capsule.tx);

	slot->sending--;
	complete_if_done(tcp_link_of(slot->slot.link), slot);
}

static bool fits_capsule(const struct tcp_link *tl, const struct weft_link_slot *slot)
{
	uint32_t most = slot->cmd.common.opcode == NVME_FABRICS_OPCODE ? TCP_LINK_ADMIN_CAPSULE :
									 tl->link.capsule_max;

	return nvme_cmd_direction(&slot->cmd) == NVME_DIR_TO_CTRL && slot->data_len &&
	       slot->data_len <= most;
}

static void set_sgl(struct weft_link_slot *slot, bool in_capsule)
{
	slot->cmd.common.flags |= NVME_PSDT_SGL;
	slot->cmd.common.sgl = (struct nvme_sgl){
		.length = cpu_to_le32(slot->data_len),
		.type = in_capsule ? NVME_SGL_IN_CAPSULE : NVME_SGL_TRANSPORT,
	};
}

void tcp_link_submit(struct weft_link *link, struct weft_link_slot *base)
{
	struct tcp_link *tl = tcp_link_of(link);
	struct tcp_link_slot *slot = tcp_link_slot_of(base);
	struct weft_iov_iter data = base->data;
	bool in_capsule = fits_capsule(tl, base);

	set_sgl(base, in_capsule);
	slot->answered = false;
	slot->nr2ts = 0;
	slot->unsent = data;
	base->moved = slot->asked = in_capsule ? base->data_len : 0;
	slot->capsule_pdu.pdu = (struct nvme_tcp_cmd){
		.hdr.type = NVME_TCP_CMD,
		.hdr.hlen = sizeof(slot->capsule_pdu.pdu),
		.sqe = base->cmd,
	};
	set_pdu_data(tl, &slot->capsule, &slot->capsule_pdu.pdu.hdr, data,
		     in_capsule ? base->data_len : 0);
	tcp_set_header_digest(&tl->stream.rules, &slot->capsule_pdu.pdu.hdr,
			      &slot->capsule_pdu.hdgst);
	slot->capsule.tx.fill = fill_capsule;
	slot->capsule.tx.sent = capsule_sent;
	queue_pdu(tl, slot, &slot->capsule);
}

/* --- H2CData ---------------------------------------------------------------------------------- */

static void send_h2c(struct tcp_link *tl, struct tcp_link_slot *slot);

static int fill_h2c(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct tcp_link_slot *slot = container_of(tx, struct tcp_link_slot, h2c.tx);

	return fill_pdu(tcp_link_of(slot->slot.link), &slot->h2c, &slot->h2c_pdu.pdu.hdr, iov,
			room);
}

static void h2c_sent(struct tcp_tx *tx)
{
	struct tcp_link_slot *slot = container_of(tx, struct tcp_link_slot, h2c.tx);
	struct tcp_link *tl = tcp_link_of(slot->slot.link);

	slot->sending--;
	slot->unsent = slot->h2c.at;
	if (!slot->r2ts[0].left) {
		slot->r2ts[0] = slot->r2ts[1];
		slot->nr2ts--;
	}
	if (slot->nr2ts && tl->stream.state == TCP_STREAM_OPEN)
		send_h2c(tl, slot);
	complete_if_done(tl, slot);
}

static void send_h2c(struct tcp_link *tl, struct tcp_link_slot *slot)
{
	struct tcp_link_r2t *r2t = &slot->r2ts[0];
	uint32_t len = r2t->left < tl->h2c_max ? r2t->left : tl->h2c_max;
	struct nvme_tcp_data *pdu = &slot->h2c_pdu.pdu;

	r2t->left -= len;
	*pdu = (struct nvme_tcp_data){
		.hdr.type = NVME_TCP_H2C_DATA,
		.hdr.flags = r2t->left ? 0 : NVME_TCP_F_LAST,
		.hdr.hlen = sizeof(*pdu),
		.cccid = slot->slot.cmd.common.cid,
		.ttag = cpu_to_le16(r2t->ttag),
		.datao = cpu_to_le32(slot->slot.moved),
		.datal = cpu_to_le32(len),
	};
	slot->slot.moved += len;
	set_pdu_data(tl, &slot->h2c, &pdu->hdr, slot->unsent, len);
	tcp_set_header_digest(&tl->stream.rules, &pdu->hdr, &slot->h2c_pdu.hdgst);
	slot->h2c.tx.fill = fill_h2c;
	slot->h2c.tx.sent = h2c_sent;
	queue_pdu(tl, slot, &slot->h2c);
}

int tcp_link_on_r2t(struct tcp_link *tl, const struct nvme_tcp_data *r2t,
		    struct nvme_tcp_fault *fault)
{
	struct weft_link_slot *base = weft_link_find_slot(&tl->link, le16_to_cpu(r2t->cccid));
	uint32_t at = le32_to_cpu(r2t->datao), len = le32_to_cpu(r2t->datal);
	struct tcp_link_slot *slot;

	if (!base || tcp_link_slot_of(base)->answered)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_data, cccid),
				       "for a command that is not in flight");
	slot = tcp_link_slot_of(base);
	if (nvme_cmd_direction(&base->cmd) != NVME_DIR_TO_CTRL || at != slot->asked)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_data, datao),
				       "asks for data out of order");
	if (!len || len > base->data_len - at)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_RANGE, 0,
				       "asks for data beyond the command");
	/* The last one's data must have left us, though we may not have seen it leave. */
	if (slot->nr2ts == 2 || (slot->nr2ts == 1 && slot->r2ts[0].left))
		return nvme_tcp_refuse(fault, NVME_TCP_FES_LIMIT, 0,
				       "more R2Ts at once than allowed");
	slot->asked += len;
	slot->r2ts[slot->nr2ts++] = (struct tcp_link_r2t){ le16_to_cpu(r2t->ttag), len };
	if (slot->nr2ts == 1)
		send_h2c(tl, slot);
	return 0;
}
