/* nvme.c - NVMe/TCP for the load generator: an admin queue to set up, one I/O queue to load.
 *
 * A write that fits into the I/O capsule goes in it; a longer one waits for R2T. Digests are off,
 * one R2T per command at a time. */
#include "load.h"
#include "wire.h"

#include <string.h>
#include <unistd.h>

static const char hostnqn[] = "nqn.2014-08.org.nvmexpress:uuid:5eaf10ad-0000-4000-8000-000000000001";

static struct {
	int admin_fd;
	uint16_t cntlid;
	uint32_t nsid, block;
	uint32_t in_capsule_max, h2cdata_max;
} ctrl = { .nsid = 1 };

/* ---- one command at a time, while the queues are made */

static void set_sgl(struct sqe *sqe, uint8_t type, uint32_t length)
{
	sqe->flags = FLAG_SGL;
	sqe->sgl.type = type;
	sqe->sgl.length = htole32(length);
}

static void expect(const char *what, const struct pdu_hdr *hdr, uint8_t type)
{
	if (hdr->type == PDU_C2H_TERM)
		die("%s: the target ended the connection (C2HTermReq)", what);
	if (hdr->type != type)
		die("%s: PDU type %u where %u is expected", what, hdr->type, type);
}

static uint32_t initialise(int fd)
{
	struct pdu_icreq req = { .hdr = { PDU_ICREQ, 0, sizeof(req), 0, htole32(sizeof(req)) } };
	struct pdu_icresp resp;

	load_write_all(fd, &req, sizeof(req));
	load_read_all(fd, &resp, sizeof(resp));
	expect("ICReq", &resp.hdr, PDU_ICRESP);
	if (resp.cpda || resp.dgst)
		die("the target asks for alignment or digests, which this program does not do");
	if (le32toh(resp.maxh2cdata) < 4096)
		die("ICResp: MAXH2CDATA of %u, 4096 is the least", le32toh(resp.maxh2cdata));
	return le32toh(resp.maxh2cdata);
}

static void send_command(int fd, const struct sqe *sqe, const void *data, uint32_t n)
{
	uint8_t pdu[sizeof(struct pdu_cmd) + sizeof(struct connect_data)];
	struct pdu_cmd cmd = { .hdr = { PDU_CMD, 0, sizeof(cmd), n ? sizeof(cmd) : 0,
					htole32(sizeof(cmd) + n) },
			       .sqe = *sqe };

	memcpy(pdu, &cmd, sizeof(cmd));
	if (n)
		memcpy(pdu + sizeof(cmd), data, n);
	load_write_all(fd, pdu, sizeof(cmd) + n);
}

static uint64_t read_response(int fd, const char *what, const struct pdu_hdr *hdr)
{
	struct pdu_rsp rsp = { .hdr = *hdr };

	expect(what, hdr, PDU_RSP);
	load_read_all(fd, &rsp.result, sizeof(rsp) - sizeof(rsp.hdr));
	if (le16toh(rsp.status) >> 1)
		die("%s: status %03xh", what, le16toh(rsp.status) >> 1 & 0x7ff);
	return le64toh(rsp.result);
}

static uint64_t command(int fd, const char *what, struct sqe *sqe, const void *data, uint32_t n)
{
	struct pdu_hdr hdr;

	send_command(fd, sqe, data, n);
	load_read_all(fd, &hdr, sizeof(hdr));
	return read_response(fd, what, &hdr);
}

static void identify(uint8_t cns, uint32_t nsid, uint8_t *data)
{
	struct sqe sqe = { .opcode = OP_IDENTIFY, .nsid = htole32(nsid), .cdw[0] = htole32(cns) };
	struct pdu_data c2h;
	struct pdu_hdr hdr;

	set_sgl(&sqe, SGL_TRANSPORT, IDENTIFY_BYTES);
	send_command(ctrl.admin_fd, &sqe, NULL, 0);
	load_read_all(ctrl.admin_fd, &hdr, sizeof(hdr));
	if (hdr.type == PDU_RSP)
		read_response(ctrl.admin_fd, "Identify", &hdr);
	expect("Identify", &hdr, PDU_C2H_DATA);
	load_read_all(ctrl.admin_fd, (uint8_t *)&c2h + sizeof(hdr), sizeof(c2h) - sizeof(hdr));
	if (le32toh(c2h.length) != IDENTIFY_BYTES || hdr.pdo != sizeof(c2h))
		die("Identify: data in pieces, which this program does not do");
	load_read_all(ctrl.admin_fd, data, IDENTIFY_BYTES);
	if (!(hdr.flags & PDU_SUCCESS)) {
		load_read_all(ctrl.admin_fd, &hdr, sizeof(hdr));
		read_response(ctrl.admin_fd, "Identify", &hdr);
	}
}

static uint64_t property_get(uint32_t offset, uint8_t eight)
{
	struct sqe sqe = { .opcode = OP_FABRICS,
			   .flags = FLAG_SGL,
			   .fctype = FCTYPE_PROPERTY_GET,
			   .property = { .attrib = eight, .offset = htole32(offset) } };

	return command(ctrl.admin_fd, "Property Get", &sqe, NULL, 0);
}

static void property_set(uint32_t offset, uint64_t value)
{
	struct sqe sqe = { .opcode = OP_FABRICS,
			   .flags = FLAG_SGL,
			   .fctype = FCTYPE_PROPERTY_SET,
			   .property = { .offset = htole32(offset), .value = htole64(value) } };

	command(ctrl.admin_fd, "Property Set", &sqe, NULL, 0);
}

static int connect_queue(struct load *l, uint16_t qid, uint16_t entries)
{
	struct sqe sqe = { .opcode = OP_FABRICS,
			   .fctype = FCTYPE_CONNECT,
			   .connect = { .qid = htole16(qid),
					.sqsize = htole16(entries - 1),
					.cattr = l->flow_control ? 0 : CATTR_NO_SQ_FLOW } };
	struct connect_data data = { .hostid = { 0x5e, 0xaf, 0x10, 0xad, [15] = 1 },
				     .cntlid = htole16(ctrl.cntlid) };
	int fd = load_connect(l);

	if (strlen(l->nqn) >= sizeof(data.subnqn))
		die("the NQN is too long");
	strcpy(data.subnqn, l->nqn);
	strcpy(data.hostnqn, hostnqn);
	set_sgl(&sqe, SGL_IN_CAPSULE, sizeof(data));
	ctrl.h2cdata_max = initialise(fd);
	ctrl.cntlid = (uint16_t)command(fd, "Connect", &sqe, &data, sizeof(data));
	return fd;
}

static void enable(void)
{
	property_set(PROPERTY_CC, 1 | 6 << 16 | 4 << 20); /* EN, 64-byte SQEs, 16-byte CQEs */
	while (!(property_get(PROPERTY_CSTS, 0) & 1))
		usleep(1000);
}

static void set_queues(void)
{
	struct sqe sqe = { .opcode = OP_SET_FEATURES,
			   .flags = FLAG_SGL,
			   .cdw = { htole32(FEATURE_QUEUES), 0 } };

	command(ctrl.admin_fd, "Set Features", &sqe, NULL, 0);
}

static uint64_t le(const uint8_t *p, unsigned n)
{
	uint64_t value = 0;

	while (n--)
		value = value << 8 | p[n];
	return value;
}

static void learn_controller(const struct load *l)
{
	uint64_t cap = property_get(PROPERTY_CAP, 1);
	uint8_t data[IDENTIFY_BYTES];

	if (l->depth > (cap & 0xffff))
		die("the target's queues hold %u commands", (unsigned)(cap & 0xffff));
	identify(1, 0, data);
	ctrl.in_capsule_max = (uint32_t)le(data + ID_CTRL_IOCCSZ, 4) * 16 - sizeof(struct sqe);
	if (data[ID_CTRL_MDTS] && l->bytes > 4096ull << data[ID_CTRL_MDTS])
		die("the target moves at most %llu bytes per command",
		    4096ull << data[ID_CTRL_MDTS]);
}

static void learn_namespace(struct load *l)
{
	uint8_t data[IDENTIFY_BYTES];

	identify(0, ctrl.nsid, data);
	ctrl.block = 1u << data[128 + 4 * (data[26] & 0xf) + 2];
	if (l->bytes % ctrl.block)
		die("the namespace has blocks of %u bytes", ctrl.block);
	l->blocks = le(data, 8) * ctrl.block / l->bytes;
	if (!l->blocks)
		die("namespace %u is smaller than one operation", ctrl.nsid);
}

static void nvme_open(struct load *l)
{
	ctrl.cntlid = 0xffff;
	ctrl.admin_fd = connect_queue(l, 0, 32);
	enable();
	learn_controller(l);
	learn_namespace(l);
	set_queues();
	/* One entry of a queue stays empty. */
	l->fd = connect_queue(l, 1, (uint16_t)(l->depth + 1));
	l->items_per_op = 2 + 2 * (l->bytes / ctrl.h2cdata_max + 1);
}

/* ---- the load */

static void nvme_issue(struct load *l, unsigned slot)
{
	uint64_t slba = load_random() % l->blocks * (l->bytes / ctrl.block);
	bool in_capsule = l->write && l->bytes <= ctrl.in_capsule_max;
	struct pdu_cmd *cmd = load_header(l, sizeof(*cmd));

	cmd->hdr.type = PDU_CMD;
	cmd->hdr.hlen = sizeof(*cmd);
	cmd->hdr.pdo = in_capsule ? sizeof(*cmd) : 0;
	cmd->hdr.plen = htole32(sizeof(*cmd) + (in_capsule ? l->bytes : 0));
	cmd->sqe.opcode = l->write ? OP_WRITE : OP_READ;
	cmd->sqe.cid = htole16((uint16_t)slot);
	cmd->sqe.nsid = htole32(ctrl.nsid);
	set_sgl(&cmd->sqe, in_capsule ? SGL_IN_CAPSULE : SGL_TRANSPORT, l->bytes);
	cmd->sqe.cdw[0] = htole32((uint32_t)slba);
	cmd->sqe.cdw[1] = htole32((uint32_t)(slba >> 32));
	cmd->sqe.cdw[2] = htole32(l->bytes / ctrl.block - 1);
	if (in_capsule)
		load_payload(l, l->bytes);
}

static void on_response(struct load *l, const uint8_t *p)
{
	struct pdu_rsp rsp;

	memcpy(&rsp, p, sizeof(rsp));
	if (le16toh(rsp.status) >> 1)
		die("I/O failed: status %03xh", le16toh(rsp.status) >> 1 & 0x7ff);
	load_done(l, le16toh(rsp.cid));
}

static void on_data(struct load *l, const struct pdu_data *c2h)
{
	load_skip(l, le32toh(c2h->hdr.plen) - sizeof(*c2h),
		  c2h->hdr.flags & PDU_SUCCESS ? le16toh(c2h->cid) : NO_SLOT);
}

static void on_r2t(struct load *l, const struct pdu_data *r2t)
{
	uint32_t at = le32toh(r2t->offset), left = le32toh(r2t->length);

	if (at > l->bytes || left > l->bytes - at)
		die("R2T for bytes that the command does not have");
	while (left) {
		uint32_t n = left < ctrl.h2cdata_max ? left : ctrl.h2cdata_max;
		struct pdu_data *h2c = load_header(l, sizeof(*h2c));

		h2c->hdr = (struct pdu_hdr){ PDU_H2C_DATA, n == left ? PDU_LAST : 0, sizeof(*h2c),
					     sizeof(*h2c), htole32(sizeof(*h2c) + n) };
		h2c->cid = r2t->cid;
		h2c->ttag = r2t->ttag;
		h2c->offset = htole32(at);
		h2c->length = htole32(n);
		load_payload(l, n);
		at += n;
		left -= n;
	}
}

static size_t nvme_consume(struct load *l, const uint8_t *p, size_t n)
{
	struct pdu_data pdu;

	if (n < RSP_BYTES)
		return 0;
	memcpy(&pdu, p, sizeof(pdu));
	switch (pdu.hdr.type) {
	case PDU_RSP:
		on_response(l, p);
		break;
	case PDU_C2H_DATA:
		on_data(l, &pdu);
		break;
	case PDU_R2T:
		on_r2t(l, &pdu);
		break;
	default:
		die("PDU of type %u from the target", pdu.hdr.type);
	}
	return RSP_BYTES;
}

const struct framing nvme_framing = { nvme_open, nvme_issue, nvme_consume };
