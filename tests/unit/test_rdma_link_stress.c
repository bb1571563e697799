/* test_rdma_link_stress.c - the RDMA link and a controller that does anything, on a fabric that
 * does anything, as a seed says. Expected of the link: every command is done once or not at all,
 * closed() comes once and is the last that is heard of it, and nothing is left. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "memory/region.h"
#include "fabric/manual_end.h"
#include "proto/rdma.h"
#include "stress.h"
#include "transport/rdma/link.h"
#include "running.h"

#define IP "127.0.0.1"

enum {
	ACTS = 400,
	DEPTH = 12,
	SETUP_MS = 1000,
	TURNS_MAX = 20000,
	MDTS = 1 << 20,
	MEMORY = 8 << 20, /* the first half is declared */
};

static const struct rdma_verbs *const v = &fabric_verbs;
static struct weft_reactor *r;
static uint64_t now_ns;
static char *memory;
static struct weft_region *region;

/* --- the link's user -------------------------------------------------------------------------- */

static struct weft_link *link_;
static bool ready;
static unsigned out; /* commands submitted and not done */
static struct iovec iovs[DEPTH][3];

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

static void turn(void)
{
	weft_reactor_turn(r, 0);
}

static void on_ready(struct weft_link *link)
{
	assert_false(ready);
	ready = true;
}

static void submit(void);

static void on_done(struct weft_link *link, struct weft_link_slot *slot)
{
	assert_ptr_equal(link, link_);
	assert_true(ready && out > 0);
	out--;
	slot->user = NULL;
	if (!stress_random(4))
		submit();
	if (!stress_random(100))
		weft_link_close(link, -ESHUTDOWN, "from inside");
}

static void on_closed(struct weft_link *link)
{
	assert_ptr_equal(link, link_);
	assert_true(link->rc < 0);
	assert_string_not_equal(link->err.text, "");
	weft_link_free(link);
	link_ = NULL;
	ready = false;
	out = 0;
}

static const struct weft_link_ops ops = { on_ready, on_done, on_closed };

static void open_link(uint16_t port)
{
	struct weft_link_options options = { .depth = DEPTH,
					     .qid = 1,
					     .setup_ms = SETUP_MS,
					     .retries = 7,
					     .rnr_retries = stress_random(8),
					     .inline_bytes = stress_random(2) ? 64 : 0 };
	struct sockaddr_in *to = (struct sockaddr_in *)&options.addr;
	struct weft_err err = { "" };

	*to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, IP, &to->sin_addr);
	if (weft_rdma_link.open(&link_, r, &options, &ops, NULL, &err) < 0)
		link_ = NULL;
	else
		out = 0;
}

static void submit(void)
{
	uint32_t len = stress_random(2) ? stress_random(8192) : stress_random(MDTS + 1), left = len;
	struct weft_link_slot *slot = link_ && ready && !link_->closing ?
					      weft_link_get_slot(link_) :
					      NULL;
	struct iovec *iov;

	if (!slot)
		return;
	link_->capsule_max = stress_random(2) * 4096;
	link_->blocks_max = 1 + stress_random(16);
	iov = iovs[((char *)slot - link_->slots) / link_->transport->slot_size];
	for (int i = 0; i < 3; i++) {
		uint32_t n = i == 2 ? left : stress_random(left + 1);

		iov[i] = (struct iovec){ memory + stress_random(MEMORY - MDTS), n };
		left -= n;
	}
	slot->cmd.common.opcode = (uint8_t[]){ nvme_cmd_read, nvme_cmd_write,
					       nvme_cmd_flush }[stress_random(3)];
	slot->data.iov = iov;
	slot->data_len = slot->cmd.common.opcode == nvme_cmd_flush ? 0 : len;
	out++;
	weft_link_submit(link_, slot);
}

/* --- the controller --------------------------------------------------------------------------- */

static struct fabric_end peer;
static uint16_t cids[64]; /* heard, not answered */
static unsigned ncids;

static void leave(void)
{
	if (!peer.id)
		return;
	if (peer.id->qp)
		fabric_end_drop_qp(&peer);
	v->destroy_id(peer.id);
	peer.id = NULL;
	ncids = 0;
}

static void on_request(struct rdma_cm_id *id)
{
	struct nvme_rdma_accept yes = { .recfmt = cpu_to_le16(!stress_random(20)) };
	struct nvme_rdma_reject no = { .sts = cpu_to_le16((uint16_t)stress_random(12)) };

	if (peer.id || !stress_random(6)) {
		if (stress_random(2))
			v->reject(id, &no, (uint8_t)stress_random(5));
		v->destroy_id(id);
		return;
	}
	peer.id = id;
	fabric_end_qp(&peer);
	for (unsigned i = 0; i < END_RECVS; i++)
		fabric_end_recv(&peer, i);
	if (stress_random(8))
		fabric_end_accept(&peer, &yes, stress_random(3) ? sizeof(yes) : 0);
}

static void hear_events(void)
{
	struct rdma_cm_event *event;

	while (!v->get_cm_event(peer.channel, &event)) {
		enum rdma_cm_event_type type = event->event;
		struct rdma_cm_id *id = event->id;

		v->ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			on_request(id);
	}
}

/* Moves something of what it was told of, or nearby. */
static void move(const struct nvme_keyed_sgl *sgl, bool read)
{
	uint32_t len = nvme_keyed_sgl_length(sgl);

	if (!len || sgl->type != NVME_SGL_KEYED || !stress_random(3))
		return;
	len = stress_random(4) ? len : stress_random(len);
	fabric_end_move(&peer, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 600, 4096,
			len + !stress_random(100), le64_to_cpu(sgl->addr), nvme_keyed_sgl_key(sgl));
}

static void hear_command(const struct ibv_wc *wc)
{
	const union nvme_sqe *sqe = (const void *)fabric_end_received(&peer, wc->wr_id);
	const struct nvme_keyed_sgl *sgl = (const void *)&sqe->common.sgl;

	assert_true(wc->byte_len >= 64);
	assert_int_equal(sqe->common.flags & 0xc0, NVME_PSDT_SGL);
	move(sgl, sqe->common.opcode == nvme_cmd_write);
	if (ncids < COUNT(cids))
		cids[ncids++] = le16_to_cpu(sqe->common.cid);
	fabric_end_recv(&peer, (unsigned)wc->wr_id);
}

static void hear(void)
{
	struct ibv_wc wc;

	hear_events();
	while (peer.id && peer.id->qp && v->poll_cq(peer.cq, 1, &wc) == 1)
		if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV)
			hear_command(&wc);
}

static void answer(void)
{
	struct nvme_cqe cqe = { .status = cpu_to_le16(
					(uint16_t)(stress_random(4) ? 0 : stress_random(0x8000))) };
	unsigned which = ncids ? stress_random(ncids) : 0;
	static uint32_t place;

	if (!peer.id || !peer.id->qp || !ncids)
		return;
	cqe.cid = cpu_to_le16(cids[which]);
	if (stress_random(80))
		cids[which] = cids[--ncids]; /* else it may come again */
	if (!stress_random(150))
		cqe.cid = cpu_to_le16((uint16_t)stress_random(0x10000));
	place = (place + 64) % 4096;
	memcpy(peer.memory + place, &cqe, sizeof(cqe));
	fabric_end_send(&peer, 500, place, stress_random(100) ? sizeof(cqe) : stress_random(100));
}

/* --- what happens ----------------------------------------------------------------------------- */

static const char *const entries[] = {
	"resolve_route", "query_device", "alloc_pd",      "create_comp_channel",
	"create_cq",     "reg_mr",       "create_qp",     "post_recv",
	"connect",       "post_send",    "query_qp",      "query_port",
	"query_gid",     "disconnect",   "req_notify_cq",
};

static void fail_calls(void)
{
	fabric_fail(entries[stress_random(COUNT(entries))], stress_random(3), 1 + stress_random(2),
		    stress_random(2) ? ENOMEM : EIO);
	for (uint32_t i = stress_random(8); i; i--)
		turn();
	fabric_fail_no_more();
}

static struct ibv_qp *link_qp(void)
{
	return peer.id && peer.id->qp ? fabric_peer(peer.id->qp) : NULL;
}

static void break_one(void)
{
	struct ibv_qp *qp = link_qp();

	if (!qp)
		return;
	switch (stress_random(4)) {
	case 0:
		fabric_time_out(qp);
		break;
	case 1:
		fabric_cut(qp);
		break;
	default:
		fabric_fail_next(qp, stress_random(2),
				 (enum ibv_wc_status)(1 + stress_random(IBV_WC_GENERAL_ERR)));
	}
}

static void event(void)
{
	struct rdma_cm_id *id = peer.id ? fabric_peer_id(peer.id) : NULL;

	if (id)
		fabric_event(id,
			     (enum rdma_cm_event_type)stress_random(RDMA_CM_EVENT_TIMEWAIT_EXIT +
								    1),
			     -(int)stress_random(130));
}

static void disturb(void)
{
	struct ibv_qp *qp = link_qp();

	switch (stress_random(8)) {
	case 0:
		break_one();
		break;
	case 1:
		event();
		break;
	case 2:
		fail_calls();
		break;
	case 3:
		leave();
		break;
	case 4:
		if (link_)
			weft_link_close(link_, -ESHUTDOWN, "enough");
		break;
	case 5:
		now_ns += stress_random(2 * SETUP_MS) * 1000000ull;
		break;
	default:
		if (qp)
			fabric_hold(qp, stress_random(2) ? 1u << IBV_WR_SEND : 0);
	}
}

static void act(void)
{
	uint32_t what = stress_random(100);

	if (!link_)
		open_link(fabric_end_port(&peer));
	else if (what < 35)
		submit();
	else if (what < 65)
		answer();
	else if (what < 70)
		disturb();
	else
		turn();
	hear();
}

/* --- a round ---------------------------------------------------------------------------------- */

static void begin(void)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = clock_ns };

	now_ns = 1000000000;
	weft_log_set_level(WEFT_LOG_ERROR);
	fabric_begin();
	rdma_verbs = &fabric_verbs;
	if (stress_random(3) == 0)
		fabric_map(IP, "iwarp0");
	fabric_end_open(&peer);
	fabric_end_listen(&peer, IP, 0);
	memory = malloc(MEMORY);
	assert_int_equal(weft_region_add(&region, memory, MEMORY / 2, MDTS, NULL), 0);
	assert_int_equal(weft_reactor_create(&r, &options, NULL), 0);
	ncids = 0;
}

static void end(void)
{
	if (link_)
		weft_link_close(link_, -ESHUTDOWN, "the end");
	for (int i = 0; i < TURNS_MAX && link_; i++)
		turn();
	assert_null(link_);
	leave();
	hear_events();
	leave();
	weft_region_remove(region);
	free(memory);
	fabric_end_close(&peer);
	weft_reactor_destroy(r);
	fabric_end();
}

void stress_round(void)
{
	begin();
	for (int i = 0; i < ACTS; i++)
		act();
	end();
}
