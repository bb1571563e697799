/* tcp_host.c - a host's end of a connection. */
#include "peer/tcp_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "must.h"
#include "peer/digest.h"
#include "peer/pdu_out.h"
#include "transport/tcp/tcp.h"
#include "world/world.h"

/* --- sending ---------------------------------------------------------------------------------- */

/* A stream that lost bytes in the middle is of no more use for sending. */
static void give_up(struct tcp_host *h)
{
	h->tainted = true;
	shutdown(h->fd, SHUT_WR);
}

static void meanwhile(void *arg)
{
	world_turn(1);
	tcp_host_hear(arg);
}

static void send_out(struct tcp_host *h)
{
	if (!outgoing_send(h->fd, meanwhile, h))
		give_up(h);
}

/* Behind a header of @hlen bytes that has digests if any was agreed on, and @pad words. */
static uint32_t pdo_of(const struct tcp_host *h, uint32_t hlen, unsigned pad)
{
	return hlen + (h->hdgst ? NVME_TCP_DIGEST : 0) + 4 * pad;
}

static void send_pdu(struct tcp_host *h, const struct nvme_tcp_hdr *hdr, uint32_t len, uint32_t pdo)
{
	bool digests = hdr->type == NVME_TCP_CMD || hdr->type == NVME_TCP_H2C_DATA;
	const struct outgoing_form form = {
		.hdr = hdr,
		.len = len,
		.pdo = pdo,
		.hdgst = digests && h->hdgst,
		.ddgst = digests && len && h->ddgst,
	};

	h->tainted |= outgoing_build(&form);
	send_out(h);
}

void tcp_host_icreq(struct tcp_host *h, uint8_t dgst, uint8_t hpda, uint32_t maxr2t)
{
	struct nvme_tcp_icreq pdu = {
		.hdr = { .type = NVME_TCP_ICREQ, .hlen = sizeof(pdu) },
		.hpda = hpda,
		.dgst = dgst,
		.maxr2t = cpu_to_le32(maxr2t),
	};

	if (hpda > NVME_TCP_HPDA_MAX || h->asked)
		h->tainted = true;
	send_pdu(h, &pdu.hdr, 0, 0);
	if (!h->asked && !h->ready) {
		h->maxr2t = maxr2t < HOST_R2TS ? maxr2t + 1 : HOST_R2TS;
		h->hdgst = dgst & NVME_TCP_DGST_HDR;
		h->ddgst = dgst & NVME_TCP_DGST_DATA;
	}
	h->asked = true;
}

uint32_t tcp_host_capsule_max(const struct tcp_host *h)
{
	return h->connected && h->qid ? TCP_CAPSULE_BYTES : TCP_ADMIN_CAPSULE_BYTES;
}

void tcp_host_command(struct tcp_host *h, union nvme_sqe *sqe, const void *data, uint32_t len,
		      unsigned pad)
{
	struct nvme_tcp_cmd pdu = { .hdr = { .type = NVME_TCP_CMD, .hlen = sizeof(pdu) } };
	struct host_cmd *cmd = &h->cmds[h->cid];
	uint32_t pdo = pdo_of(h, sizeof(pdu), pad);

	if (cmd->open)
		return; /* all ids are in use */
	sqe->common.cid = cpu_to_le16(h->cid++);
	*cmd = (struct host_cmd){ .open = true, .sqe = *sqe };
	h->open++;
	h->tainted |= !h->asked;
	pdu.sqe = *sqe;
	if (len)
		memcpy(outgoing.bytes + pdo, data, len);
	send_pdu(h, &pdu.hdr, len, pdo);
}

static void r2t_remove(struct tcp_host *h, unsigned index)
{
	h->r2ts[index] = h->r2ts[--h->nr2ts];
}

static bool is_connect(const struct host_cmd *cmd)
{
	return cmd->sqe.common.opcode == NVME_FABRICS_OPCODE &&
	       cmd->sqe.connect.fctype == NVMF_CONNECT;
}

/* The bytes of a command's data from @at on. */
static void write_data(const struct tcp_host *h, const struct host_cmd *cmd, char *to, uint32_t at,
		       uint32_t len, uint8_t fill)
{
	const uint32_t size = sizeof(h->connect);

	memset(to, fill, len);
	if (is_connect(cmd) && at < size)
		memcpy(to, (const char *)&h->connect + at, len < size - at ? len : size - at);
}

/* The first @len bytes of what @r2t asks for. */
static void send_data(struct tcp_host *h, const struct tcp_host_r2t *r2t, uint32_t len, bool last,
		      uint8_t fill)
{
	struct nvme_tcp_data pdu = {
		.hdr = { .type = NVME_TCP_H2C_DATA, .hlen = sizeof(pdu) },
		.cccid = cpu_to_le16(r2t->cccid),
		.ttag = cpu_to_le16(r2t->ttag),
		.datao = cpu_to_le32(r2t->offset),
		.datal = cpu_to_le32(len),
	};
	uint32_t pdo = pdo_of(h, sizeof(pdu), 0);

	pdu.hdr.flags = last ? NVME_TCP_F_LAST : 0;
	write_data(h, &h->cmds[r2t->cccid % HOST_CIDS], outgoing.bytes + pdo, r2t->offset, len,
		   fill);
	send_pdu(h, &pdu.hdr, len, pdo);
}

void tcp_host_data(struct tcp_host *h, unsigned index, uint32_t len, uint8_t fill)
{
	struct tcp_host_r2t now = h->r2ts[index], *r2t = &h->r2ts[index];

	if (!len || len > now.left)
		len = now.left;
	h->tainted |= len % 4 != 0;
	r2t->offset += len;
	r2t->left -= len;
	if (!r2t->left)
		r2t_remove(h, index);
	send_data(h, &now, len, len == now.left, fill);
}

void tcp_host_stray(struct tcp_host *h, const struct tcp_host_r2t *as, bool last)
{
	h->tainted = true;
	send_data(h, as, as->left < HOST_DATA_MAX ? as->left : HOST_DATA_MAX, last, 0);
}

void tcp_host_term(struct tcp_host *h, uint16_t fes)
{
	struct nvme_tcp_term pdu = {
		.hdr = { .type = NVME_TCP_H2C_TERM, .hlen = sizeof(pdu) },
		.fes = cpu_to_le16(fes),
	};

	h->tainted = true;
	send_pdu(h, &pdu.hdr, 0, 0);
}

void tcp_host_raw(struct tcp_host *h, const void *bytes, uint32_t len)
{
	h->tainted = true;
	outgoing.len = len;
	memcpy(outgoing.bytes, bytes, len);
	send_out(h);
}

/* --- hearing ---------------------------------------------------------------------------------- */

static struct host_cmd *answered(struct tcp_host *h, __le16 cid)
{
	struct host_cmd *cmd = &h->cmds[le16_to_cpu(cid) % HOST_CIDS];

	if (!h->tainted)
		must(le16_to_cpu(cid) < HOST_CIDS && cmd->open);
	return cmd;
}

static void completed(struct tcp_host *h, struct host_cmd *cmd)
{
	h->open -= cmd->open;
	cmd->open = false;
}

static void hear_icresp(struct tcp_host *h, const struct nvme_tcp_icresp *pdu)
{
	uint8_t dgst = (h->hdgst ? NVME_TCP_DGST_HDR : 0) | (h->ddgst ? NVME_TCP_DGST_DATA : 0);

	must(!h->ready && le32_to_cpu(pdu->hdr.plen) == sizeof(*pdu) && !pdu->pfv && !pdu->cpda);
	must(le32_to_cpu(pdu->maxh2cdata) >= 4096 && le32_to_cpu(pdu->maxh2cdata) % 4 == 0);
	if (!h->tainted)
		must(pdu->dgst == dgst);
	h->ready = true;
	h->hdgst = pdu->dgst & NVME_TCP_DGST_HDR;
	h->ddgst = pdu->dgst & NVME_TCP_DGST_DATA;
}

static void connected(struct tcp_host *h, const struct nvmf_connect_cmd *cmd, uint64_t result)
{
	h->connected = true;
	h->qid = le16_to_cpu(cmd->qid);
	h->sqsize = le16_to_cpu(cmd->sqsize) + 1u;
	h->cntlid = (uint16_t)result;
}

static void hear_resp(struct tcp_host *h, const struct nvme_tcp_resp *pdu)
{
	struct host_cmd *cmd = answered(h, pdu->cqe.cid);

	must(!(le16_to_cpu(pdu->cqe.status) & 1)); /* no phase on a fabric */
	if (is_connect(cmd) && !pdu->cqe.status)
		connected(h, &cmd->sqe.connect, le64_to_cpu(pdu->cqe.result));
	completed(h, cmd);
}

static uint32_t sgl_len(const struct host_cmd *cmd)
{
	return le32_to_cpu(cmd->sqe.common.sgl.length);
}

static void hear_data(struct tcp_host *h, const struct nvme_tcp_data *pdu, const char *bytes)
{
	struct host_cmd *cmd = answered(h, pdu->cccid);
	uint32_t header = sizeof(*pdu) + (h->hdgst ? NVME_TCP_DIGEST : 0);
	uint32_t len = le32_to_cpu(pdu->datal), tail = h->ddgst ? NVME_TCP_DIGEST : 0;
	char digest[NVME_TCP_DIGEST];

	must(pdu->hdr.pdo >= header && pdu->hdr.pdo % 4 == 0 && len);
	must(le32_to_cpu(pdu->hdr.plen) == pdu->hdr.pdo + len + tail);
	must(!!(pdu->hdr.flags & NVME_TCP_F_DDGST) == h->ddgst);
	seal(digest, bytes + pdu->hdr.pdo, len);
	must(!h->ddgst || !memcmp(digest, bytes + pdu->hdr.pdo + len, sizeof(digest)));
	if (!h->tainted)
		must(le32_to_cpu(pdu->datao) + len <= sgl_len(cmd));
	if (pdu->hdr.flags & NVME_TCP_F_SUCCESS) {
		must(pdu->hdr.flags & NVME_TCP_F_LAST);
		completed(h, cmd);
	}
}

static unsigned count_r2ts(const struct tcp_host *h, uint16_t cccid)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->nr2ts; i++)
		n += h->r2ts[i].cccid == cccid;
	return n;
}

static void hear_r2t(struct tcp_host *h, const struct nvme_tcp_data *pdu)
{
	struct host_cmd *cmd = answered(h, pdu->cccid);
	uint32_t offset = le32_to_cpu(pdu->datao), len = le32_to_cpu(pdu->datal);

	must(len && offset + (uint64_t)len <= HOST_DATA_MAX);
	cmd->asked += len;
	if (!h->tainted)
		must(offset + len <= sgl_len(cmd) && cmd->asked <= sgl_len(cmd) &&
		     count_r2ts(h, le16_to_cpu(pdu->cccid)) < h->maxr2t);
	if (h->nr2ts == HOST_R2TS) {
		h->tainted = true;
		return;
	}
	h->r2ts[h->nr2ts++] = (struct tcp_host_r2t){ le16_to_cpu(pdu->cccid),
						     le16_to_cpu(pdu->ttag), offset, len };
}

static void hear_term(struct tcp_host *h, const struct nvme_tcp_term *pdu)
{
	uint32_t plen = le32_to_cpu(pdu->hdr.plen);

	must(h->tainted);
	must(plen >= sizeof(*pdu) && plen <= sizeof(*pdu) + NVME_TCP_TERM_DATA_MAX);
	must(le16_to_cpu(pdu->fes) >= 1 && le16_to_cpu(pdu->fes) <= NVME_TCP_FES_UNSUPPORTED);
	h->terminated = true;
}

/* A header without data after it. */
static void check_plain(const struct tcp_host *h, const struct nvme_tcp_hdr *hdr)
{
	must(le32_to_cpu(hdr->plen) == hdr->hlen + (h->hdgst ? NVME_TCP_DIGEST : 0u));
}

static void check_header(const struct tcp_host *h, const struct nvme_tcp_hdr *hdr, const char *pdu)
{
	char digest[NVME_TCP_DIGEST];

	must(le32_to_cpu(hdr->plen) >= hdr->hlen);
	if (hdr->type == NVME_TCP_ICRESP || hdr->type == NVME_TCP_C2H_TERM)
		return;
	must(!!(hdr->flags & NVME_TCP_F_HDGST) == h->hdgst);
	seal(digest, pdu, hdr->hlen);
	must(!h->hdgst || !memcmp(digest, pdu + hdr->hlen, sizeof(digest)));
}

static void hear_pdu(struct tcp_host *h, const char *bytes)
{
	union {
		struct nvme_tcp_hdr hdr;
		struct nvme_tcp_icresp icresp;
		struct nvme_tcp_resp resp;
		struct nvme_tcp_data data;
		struct nvme_tcp_term term;
	} pdu = { 0 };
	uint8_t hlen = bytes[0] == NVME_TCP_ICRESP ? sizeof(pdu.icresp) : sizeof(pdu.data);

	memcpy(&pdu, bytes, hlen);
	must(pdu.hdr.hlen == hlen);
	check_header(h, &pdu.hdr, bytes);
	switch (pdu.hdr.type) {
	case NVME_TCP_ICRESP:
		hear_icresp(h, &pdu.icresp);
		break;
	case NVME_TCP_C2H_TERM:
		hear_term(h, &pdu.term);
		break;
	case NVME_TCP_RESP:
		check_plain(h, &pdu.hdr);
		hear_resp(h, &pdu.resp);
		break;
	case NVME_TCP_C2H_DATA:
		hear_data(h, &pdu.data, bytes);
		break;
	default:
		must(pdu.hdr.type == NVME_TCP_R2T);
		check_plain(h, &pdu.hdr);
		hear_r2t(h, &pdu.data);
	}
}

static void hear_all(struct tcp_host *h)
{
	size_t at = 0;

	while (h->have - at >= sizeof(struct nvme_tcp_hdr)) {
		struct nvme_tcp_hdr hdr;
		uint32_t plen;

		memcpy(&hdr, h->in + at, sizeof(hdr));
		plen = le32_to_cpu(hdr.plen);
		must(!h->terminated); /* nothing follows a termination */
		must(plen >= sizeof(struct nvme_tcp_term) && plen <= HOST_IN_MAX);
		if (h->have - at < plen)
			break;
		hear_pdu(h, h->in + at);
		at += plen;
	}
	memmove(h->in, h->in + at, h->have - at);
	h->have -= at;
}

bool tcp_host_hear(struct tcp_host *h)
{
	bool heard = false;
	ssize_t n;

	if (h->fd < 0 || h->deaf || h->ended)
		return false;
	while ((n = recv(h->fd, h->in + h->have, HOST_IN_MAX - h->have, 0)) > 0) {
		h->have += (size_t)n;
		hear_all(h);
		heard = true;
	}
	h->ended = !n || errno != EAGAIN;
	return heard || h->ended;
}

/* --- beginning and end ------------------------------------------------------------------------ */

void tcp_host_open(struct tcp_host *h, int fd)
{
	char *in = h->in ? h->in : malloc(HOST_IN_MAX);

	must(in);
	*h = (struct tcp_host){ .fd = fd, .in = in };
}

void tcp_host_close(struct tcp_host *h)
{
	if (h->fd >= 0)
		world_disconnect(h->fd);
	h->fd = -1;
}

void tcp_host_shut(struct tcp_host *h)
{
	shutdown(h->fd, SHUT_WR);
}

/* A target asks for no more than that at a time; writes of which nothing was asked for wait. */
static bool owes_much(const struct tcp_host *h)
{
	uint64_t left = 0;

	for (unsigned i = 0; i < h->nr2ts; i++)
		left += h->r2ts[i].left;
	return left >= TCP_OWED_MAX;
}

/* For an event, for its other half, or for the host itself: also one that came while the target
 * stood still, and is in line behind writes. */
static bool may_wait(const struct tcp_host *h, unsigned cid)
{
	const union nvme_sqe *sqe = &h->cmds[cid].sqe;

	return (!h->qid && sqe->common.opcode == nvme_admin_async_event) ||
	       sqe->common.flags & NVME_FUSE_MASK || count_r2ts(h, (uint16_t)cid) || owes_much(h);
}

void tcp_host_check_settled(const struct tcp_host *h)
{
	if (h->fd < 0 || h->tainted || h->ended || !h->connected || h->open >= h->sqsize)
		return;
	for (unsigned cid = 0; cid < HOST_CIDS; cid++)
		must(!h->cmds[cid].open || may_wait(h, cid));
}
