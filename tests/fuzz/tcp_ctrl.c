/* tcp_ctrl.c - a controller's end of a link. */
#include "tcp_ctrl.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link_user.h"
#include "must.h"
#include "peer/digest.h"
#include "peer/pdu_out.h"

struct peer peer = { .fd = -1 };

static unsigned pad_words;

void tcp_ctrl_taint(void)
{
	peer.tainted = true;
	peer.loose |= !peer.ready;
}

void tcp_ctrl_pad(unsigned pad)
{
	pad_words = pad;
}

void tcp_ctrl_forget(void)
{
	outgoing_forget();
	pad_words = 0;
}

/* --- beginning and end ------------------------------------------------------------------------ */

void tcp_ctrl_open(int fd, bool hdgst, bool ddgst)
{
	char *in = peer.in ? peer.in : malloc(PEER_IN_MAX);

	must(in && fd >= 0);
	peer = (struct peer){ .fd = fd, .hdgst = hdgst, .ddgst = ddgst, .in = in };
	tcp_ctrl_forget();
}

void tcp_ctrl_shut(void)
{
	peer.shut = true;
	shutdown(peer.fd, SHUT_WR);
}

void tcp_ctrl_close(void)
{
	if (peer.fd >= 0)
		close(peer.fd);
	peer.fd = -1;
	peer.shut = true;
}

/* --- sending ---------------------------------------------------------------------------------- */

static void meanwhile(void *arg)
{
	user_turns(1);
	tcp_ctrl_hear();
}

static void send_out(void)
{
	pad_words = 0;
	if (outgoing_send(peer.fd, meanwhile, NULL))
		return;
	tcp_ctrl_taint();
	tcp_ctrl_shut();
}

static void build(const struct nvme_tcp_hdr *hdr, uint32_t len, uint32_t pdo, bool wrong_digest)
{
	bool digests = hdr->type != NVME_TCP_ICRESP && hdr->type != NVME_TCP_C2H_TERM;
	const struct outgoing_form form = {
		.hdr = hdr,
		.len = len,
		.pdo = pdo,
		.hdgst = digests && peer.hdgst,
		.ddgst = len && peer.ddgst,
		.wrong_digest = wrong_digest,
	};

	if (!outgoing_build(&form))
		return;
	peer.raw = true;
	tcp_ctrl_taint();
}

static void build_plain(const struct nvme_tcp_hdr *hdr)
{
	build(hdr, 0, 0, false);
	send_out();
}

void tcp_ctrl_icresp(uint16_t pfv, uint8_t cpda, uint8_t dgst, uint32_t maxh2c)
{
	struct nvme_tcp_icresp pdu = {
		.hdr = { .type = NVME_TCP_ICRESP, .hlen = sizeof(pdu) },
		.pfv = cpu_to_le16(pfv),
		.cpda = cpda,
		.dgst = dgst,
		.maxh2cdata = cpu_to_le32(maxh2c),
	};

	if (pfv || cpda > NVME_TCP_HPDA_MAX || maxh2c < NVME_TCP_H2C_DATA_MIN || peer.ready ||
	    dgst != (peer.hdgst | peer.ddgst << 1))
		tcp_ctrl_taint();
	build_plain(&pdu.hdr); /* a spoilt one taints before it is ready */
	if (!peer.ready) {
		peer.cpda = cpda;
		peer.h2c_max = maxh2c;
	}
	peer.ready = true;
}

void tcp_ctrl_resp(const struct nvme_cqe *cqe)
{
	struct nvme_tcp_resp pdu = {
		.hdr = { .type = NVME_TCP_RESP, .hlen = sizeof(pdu) },
		.cqe = *cqe,
	};

	if (!peer.ready)
		tcp_ctrl_taint();
	build_plain(&pdu.hdr);
}

void tcp_ctrl_c2h(const struct order *o, const struct nvme_tcp_data *fields, uint32_t at,
		  uint32_t len, bool wrong_digest)
{
	struct nvme_tcp_data pdu = *fields;
	uint32_t pdo = sizeof(pdu) + (peer.hdgst ? NVME_TCP_DIGEST : 0) + 4 * pad_words;

	pdu.hdr.type = NVME_TCP_C2H_DATA;
	pdu.hdr.hlen = sizeof(pdu);
	if (!peer.ready || !len)
		tcp_ctrl_taint();
	memcpy(outgoing.bytes + pdo, order_bytes(o ? o : orders, o ? at : 0), len);
	build(&pdu.hdr, len, pdo, wrong_digest);
	send_out();
}

void tcp_ctrl_r2t(const struct nvme_tcp_data *fields)
{
	struct nvme_tcp_data pdu = *fields;

	pdu.hdr.type = NVME_TCP_R2T;
	pdu.hdr.hlen = sizeof(pdu);
	if (!peer.ready)
		tcp_ctrl_taint();
	build_plain(&pdu.hdr);
}

void tcp_ctrl_term(uint16_t fes, uint32_t more)
{
	struct nvme_tcp_term pdu = {
		.hdr = { .type = NVME_TCP_C2H_TERM, .hlen = sizeof(pdu) },
		.fes = cpu_to_le16(fes),
	};

	peer.termed = true;
	build(&pdu.hdr, 0, 0, false);
	memset(outgoing.bytes + outgoing.len, 0x77, more);
	((struct nvme_tcp_hdr *)outgoing.bytes)->plen = cpu_to_le32(sizeof(pdu) + more);
	outgoing.len += more;
	if (more > NVME_TCP_TERM_DATA_MAX)
		tcp_ctrl_taint();
	send_out();
}

void tcp_ctrl_raw(const void *bytes, uint32_t len)
{
	tcp_ctrl_taint();
	peer.raw = true;
	outgoing.len = len;
	memcpy(outgoing.bytes, bytes, len);
	send_out();
}

/* --- hearing ---------------------------------------------------------------------------------- */

static void hear_icreq(const char *pdu)
{
	struct nvme_tcp_fault fault;
	struct nvme_tcp_icreq icreq;

	memcpy(&icreq, pdu, sizeof(icreq));
	must(!nvme_tcp_check_icreq(&icreq, &fault));
	must(icreq.dgst == (peer.hdgst | peer.ddgst << 1));
	peer.asked = true;
}

static void check_bytes(const struct order *o, const char *data, uint32_t at, uint32_t len)
{
	must(!memcmp(data, order_bytes(o, at), len));
}

bool tcp_ctrl_goes_in_capsule(const struct order *o)
{
	uint32_t most = o->sqe.common.opcode == NVME_FABRICS_OPCODE ? 8192 : peer.capsule;

	return order_direction(o) == NVME_DIR_TO_CTRL && o->len && o->len <= most;
}

static void hear_cmd(const char *pdu, const struct nvme_tcp_shape *shape)
{
	struct nvme_tcp_cmd cmd;
	struct order *o;
	bool inside;

	memcpy(&cmd, pdu, sizeof(cmd));
	o = order_find(le16_to_cpu(cmd.sqe.common.cid));
	must(o && !o->seen);
	o->seen = true;
	inside = tcp_ctrl_goes_in_capsule(o);
	must(cmd.sqe.common.opcode == o->sqe.common.opcode);
	must(cmd.sqe.common.flags == NVME_PSDT_SGL);
	must(le32_to_cpu(cmd.sqe.common.sgl.length) == o->len);
	must(cmd.sqe.common.sgl.type == (inside ? NVME_SGL_IN_CAPSULE : NVME_SGL_TRANSPORT));
	must(shape->data_len == (inside ? o->len : 0));
	check_bytes(o, pdu + shape->data_at, 0, shape->data_len);
}

/* The R2T that data is for. */
static struct order_r2t *find_r2t(struct order *o, const struct nvme_tcp_data *data)
{
	for (unsigned i = 0; i < o->nr2ts; i++)
		if (o->r2ts[i].left && o->r2ts[i].ttag == le16_to_cpu(data->ttag) &&
		    o->r2ts[i].at == le32_to_cpu(data->datao))
			return &o->r2ts[i];
	return NULL;
}

static void hear_h2c(const char *pdu, const struct nvme_tcp_shape *shape)
{
	struct nvme_tcp_data data;
	struct order_r2t *r2t;
	struct order *o;
	uint32_t at;

	memcpy(&data, pdu, sizeof(data));
	at = le32_to_cpu(data.datao);
	o = order_find(le16_to_cpu(data.cccid));
	must(o && o->seen && order_direction(o) == NVME_DIR_TO_CTRL &&
	     !tcp_ctrl_goes_in_capsule(o));
	must(le32_to_cpu(data.datal) == shape->data_len);
	must(at <= o->len && shape->data_len <= o->len - at);
	check_bytes(o, pdu + shape->data_at, at, shape->data_len);
	if (peer.raw)
		return; /* nobody knows what was asked for */
	r2t = find_r2t(o, &data);
	must(r2t && shape->data_len <= r2t->left);
	must(!!(data.hdr.flags & NVME_TCP_F_LAST) == (shape->data_len == r2t->left));
	r2t->at += shape->data_len;
	r2t->left -= shape->data_len;
}

static void hear_term(const char *pdu)
{
	struct nvme_tcp_term term;

	memcpy(&term, pdu, sizeof(term));
	must(peer.tainted);
	must(le16_to_cpu(term.fes) >= NVME_TCP_FES_FIELD &&
	     le16_to_cpu(term.fes) <= NVME_TCP_FES_UNSUPPORTED);
	peer.ended = true;
}

static void check_digests(const char *pdu, const struct nvme_tcp_shape *shape)
{
	uint32_t hlen = ((const uint8_t *)pdu)[offsetof(struct nvme_tcp_hdr, hlen)];
	uint32_t align = (peer.cpda + 1u) * 4;
	char crc[NVME_TCP_DIGEST];

	if (shape->header > hlen) {
		seal(crc, pdu, hlen);
		must(!memcmp(crc, pdu + hlen, sizeof(crc)));
	}
	if (shape->ddgst) {
		seal(crc, pdu + shape->data_at, shape->data_len);
		must(!memcmp(crc, pdu + shape->data_at + shape->data_len, sizeof(crc)));
	}
	must(!shape->data_len || peer.loose || shape->data_at % align == 0);
}

/* One PDU at the beginning of what has come; its length, 0: it is not all there. */
static uint32_t hear_pdu(const char *pdu, size_t have)
{
	const struct nvme_tcp_rules rules = {
		.ready = peer.asked,
		.hdgst = peer.asked && peer.hdgst,
		.ddgst = peer.asked && peer.ddgst,
		.capsule_data_max = peer.capsule > 8192 ? peer.capsule : 8192,
		.h2c_data_max = peer.loose ? UINT32_MAX : peer.h2c_max,
	};
	struct nvme_tcp_fault fault;
	struct nvme_tcp_shape shape;
	struct nvme_tcp_hdr hdr;

	if (have < sizeof(hdr))
		return 0;
	memcpy(&hdr, pdu, sizeof(hdr));
	must(!peer.ended);
	must(!nvme_tcp_check_hdr(&hdr, &rules, &shape, &fault));
	if (have < le32_to_cpu(hdr.plen))
		return 0;
	if (hdr.type == NVME_TCP_CMD || hdr.type == NVME_TCP_H2C_DATA)
		check_digests(pdu, &shape);
	if (hdr.type == NVME_TCP_ICREQ)
		hear_icreq(pdu);
	else if (hdr.type == NVME_TCP_CMD)
		hear_cmd(pdu, &shape);
	else if (hdr.type == NVME_TCP_H2C_DATA)
		hear_h2c(pdu, &shape);
	else
		hear_term(pdu);
	return le32_to_cpu(hdr.plen);
}

static void hear_all(void)
{
	size_t at = 0;
	uint32_t len;

	while ((len = hear_pdu(peer.in + at, peer.have - at)))
		at += len;
	peer.have -= at;
	memmove(peer.in, peer.in + at, peer.have);
}

bool tcp_ctrl_hear(void)
{
	ssize_t n;

	if (peer.deaf || peer.fd < 0 || peer.eof)
		return false;
	n = recv(peer.fd, peer.in + peer.have, PEER_IN_MAX - peer.have, MSG_DONTWAIT);
	if (n < 0)
		return false;
	peer.eof = !n;
	peer.have += (size_t)n;
	hear_all();
	return true;
}
