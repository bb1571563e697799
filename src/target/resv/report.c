/* report.c - Reservation Report: the registrants, and which of them hold the reservation. */
#include <string.h>

#include "target/io/io.h"
#include "target/resv/resv.h"

static void put_registrant(struct nvme_registered_ctrl_ext *to, const struct resv_state *st,
			   const struct resv_reg *reg)
{
	to->cntlid = cpu_to_le16(NVME_CNTLID_DYNAMIC); /* a host, through any of its controllers */
	to->rcsts = resv_is_holder(st, reg);
	to->rkey = cpu_to_le64(reg->key);
	memcpy(to->hostid, reg->host, sizeof(to->hostid));
}

static void report_put_bytes(struct weft_req *req, size_t at, const void *from, size_t size)
{
	size_t room = at < req->data_len ? req->data_len - at : 0;

	memcpy((char *)req->data + at, from, size < room ? size : room);
}

/* Into cleared memory. Data that does not fit is left out, at any byte; the count is that of all
 * registrants. */
static void put_report(struct weft_req *req, const struct resv_state *st)
{
	struct nvme_resv_status head = {
		.gen = cpu_to_le32(st->generation),
		.rtype = st->rtype,
		.regctl = { (uint8_t)st->nregs, (uint8_t)(st->nregs >> 8) },
		.ptpls = st->ptpl,
	};

	report_put_bytes(req, 0, &head, sizeof(head));
	for (unsigned i = 0; i < st->nregs; i++) {
		struct nvme_registered_ctrl_ext reg = { 0 };

		put_registrant(&reg, st, &st->regs[i]);
		report_put_bytes(req, sizeof(head) + i * sizeof(reg), &reg, sizeof(reg));
	}
	req->reply_len = req->data_len;
}
static_assert(sizeof(struct nvme_resv_status) == 64, "head of a Reservation Status, extended");
static_assert(sizeof(struct nvme_registered_ctrl_ext) == 64, "Registered Controller Extended");

static void resv_report_on_control(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	const struct weft_store_record *record;
	struct resv_state st;
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_lookup(req, &ns);

	assert_on(req->qp->group->control);
	if (!sc && tgt_resv_state(ns, &st, &record) < 0)
		sc = SC_GENERIC(INTERNAL);
	if (!sc)
		put_report(req, &st);
	tgt_control_reply(req, sc);
}

/* Here the memory is cleared, all that the host asks for: the control reactor's turn is everybody's. */
static void resv_report_buffer_ready(struct weft_req *req, uint16_t sc)
{
	if (sc) {
		tgt_io_finish(req, sc);
		return;
	}
	memset(req->data, 0, req->data_len);
	tgt_post_control(req, resv_report_on_control);
}

/* Host identifiers have 128 bits on a fabric: only the extended form has room for them. */
void tgt_resv_report(struct weft_req *req)
{
	uint64_t length = ((uint64_t)le32_to_cpu(req->cmd.common.cdw10) + 1) * 4;
	bool extended = le32_to_cpu(req->cmd.common.cdw11) & 1;
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_lookup(req, &ns);

	if (!sc && !extended)
		sc = SC_GENERIC(HOSTID_FORMAT) | SC_DNR;
	if (!sc && length > WEFT_MDTS_BYTES)
		sc = SC_GENERIC(INVALID_FIELD) | SC_DNR;
	if (!sc)
		sc = weft_req_check_sgl(req, (uint32_t)length);
	if (sc)
		tgt_io_finish(req, sc);
	else
		weft_req_get_buffer(req, (uint32_t)length, resv_report_buffer_ready);
}
