/* test_rdma_link.c - the RDMA link and a scripted controller on the fabric: how it asks, what it
 * takes for an answer, where it says the data is, how each end of it is told, and what is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "memory/region.h"
#include "fabric/manual_end.h"
#include "proto/rdma.h"
#include "transport/rdma/link.h"
#include "running.h"

#define IP "127.0.0.1"

enum {
	SETUP_MS = 1000,
	TURNS_MAX = 20000,
	DEPTH = 20, /* more than there are buffers of the largest size */
	MDTS = 1 << 20,
	MEMORY = 4 << 20,
};

/* --- the two ends ----------------------------------------------------------------------------- */

static const struct rdma_verbs *const v = &fabric_verbs;
static struct weft_reactor *r;
static uint64_t now_ns;
static struct fabric_end peer; /* the controller's */

static struct weft_link *link_;
static unsigned readies, dones, closes;
static struct weft_link_slot last; /* as done() saw it */
static struct weft_queue_stats stats;
static struct weft_err why;
static int end_rc;
static bool end_hung_up;
static char *memory; /* the caller's; undeclared, unless a case declares it */

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

static void turn(void)
{
	weft_reactor_turn(r, 0);
}

static void turns(unsigned n)
{
	while (n--)
		turn();
}

static void on_ready(struct weft_link *link)
{
	readies++;
}

static void on_done(struct weft_link *link, struct weft_link_slot *slot)
{
	dones++;
	last = *slot;
	stats = link->stats;
}

static void on_closed(struct weft_link *link)
{
	closes++;
	end_rc = link->rc;
	end_hung_up = link->peer_closed;
	why = link->err;
	stats = link->stats;
	weft_link_free(link);
	link_ = NULL;
}

static const struct weft_link_ops ops = { on_ready, on_done, on_closed };

static void begin(void)
{
	fabric_begin();
	fabric_end_open(&peer);
	memory = calloc(1, MEMORY);
	readies = dones = closes = 0;
}

static int set_up(void **state)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = clock_ns };

	weft_log_set_level(WEFT_LOG_ERROR);
	now_ns = 1000000000;
	rdma_verbs = &fabric_verbs;
	fabric_end_turn = turn;
	begin();
	return weft_reactor_create(&r, &options, NULL);
}

static void end(void)
{
	fabric_end_close(&peer);
	free(memory);
	fabric_end();
}

static int tear_down(void **state)
{
	end();
	weft_reactor_destroy(r);
	return 0;
}

static void again(void)
{
	end();
	begin();
}

static void await(const unsigned *counter, unsigned count)
{
	for (int i = 0; i < TURNS_MAX && *counter < count; i++)
		turn();
	assert_int_equal(*counter, count);
}

static void advance(uint64_t ms)
{
	now_ns += ms * 1000000;
	turns(4);
}

static int try_open(const char *ip, uint16_t port, struct weft_err *err)
{
	struct weft_link_options options = { .depth = DEPTH,
					     .qid = 3,
					     .cntlid = 9,
					     .setup_ms = SETUP_MS,
					     .retries = 7,
					     .rnr_retries = 7 };
	struct sockaddr_in *to = (struct sockaddr_in *)&options.addr;

	*to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, ip, &to->sin_addr);
	return weft_rdma_link.open(&link_, r, &options, &ops, NULL, err);
}

static void open_link(const char *ip, uint16_t port)
{
	struct weft_err err = { "" };

	if (try_open(ip, port, &err) < 0)
		fail_msg("%s", err.text);
}

/* Up to CONNECT_REQUEST, with a queue pair and receives. */
static void asked(void)
{
	fabric_end_listen(&peer, IP, 0);
	open_link(IP, fabric_end_port(&peer));
	fabric_end_request(&peer);
	fabric_end_qp(&peer);
	for (unsigned i = 0; i < END_RECVS; i++)
		fabric_end_recv(&peer, i);
}

static void connect_both(void)
{
	const struct nvme_rdma_accept answer = { .crqsize = cpu_to_le16(DEPTH) };

	asked();
	fabric_end_accept(&peer, &answer, sizeof(answer));
	await(&readies, 1);
	turns(2);
	fabric_end_expect(&peer, RDMA_CM_EVENT_ESTABLISHED);
}

static void close_link(void)
{
	weft_link_close(link_, -ESHUTDOWN, "over");
	await(&closes, 1);
}

static struct ibv_qp *link_qp(void)
{
	return fabric_peer(peer.id->qp);
}

static void check_end(int rc, const char *text)
{
	await(&closes, 1);
	if (end_rc != rc || !strstr(why.text, text))
		fail_msg("%d: %s", end_rc, why.text);
}

/* --- the controller --------------------------------------------------------------------------- */

/* A command that came: where it lies, how long it is. */
static struct nvme_keyed_sgl *sgl_of(union nvme_sqe *sqe)
{
	return (struct nvme_keyed_sgl *)&sqe->common.sgl;
}

static uint32_t hear(union nvme_sqe **sqe)
{
	struct ibv_wc wc;

	do {
		wc = fabric_end_wc(&peer);
		assert_string_equal(ibv_wc_status_str(wc.status), "success");
	} while (wc.opcode != IBV_WC_RECV);
	*sqe = (union nvme_sqe *)fabric_end_received(&peer, wc.wr_id);
	return wc.byte_len;
}

static void answer_of(uint16_t cid, uint16_t status, uint32_t len)
{
	struct nvme_cqe cqe = { .cid = cpu_to_le16(cid), .status = cpu_to_le16(status << 1) };

	memset(peer.memory, 0, 64);
	memcpy(peer.memory, &cqe, sizeof(cqe));
	assert_int_equal(fabric_end_send(&peer, 500, 0, len), 0);
}

static void answer(const union nvme_sqe *sqe)
{
	answer_of(le16_to_cpu(sqe->common.cid), 0, sizeof(struct nvme_cqe));
}

static struct weft_link_slot *submit(uint8_t opcode, const struct iovec *iov, size_t skip,
				     uint32_t len)
{
	struct weft_link_slot *slot = weft_link_get_slot(link_);

	assert_non_null(slot);
	slot->cmd.common.opcode = opcode;
	slot->data = (struct weft_iov_iter){ iov, skip };
	slot->data_len = len;
	weft_link_submit(link_, slot);
	return slot;
}

static void fill(char *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		at[i] = (char)(seed >> 16);
	}
}

/* --- setting up ------------------------------------------------------------------------------- */

static void how_it_asks(void **state)
{
	struct nvme_rdma_request request;

	asked();
	memcpy(&request, peer.data, sizeof(request));
	assert_int_equal(le16_to_cpu(request.recfmt), 0);
	assert_int_equal(le16_to_cpu(request.qid), 3);
	assert_int_equal(le16_to_cpu(request.cntlid), 9);
	/* A slot is a command that may be out; queues have one entry more. */
	assert_int_equal(le16_to_cpu(request.hsqsize), DEPTH);
	assert_int_equal(le16_to_cpu(request.hrqsize), 32);
	assert_true(peer.event.param.conn.initiator_depth > 0); /* the controller may READ */
	assert_int_equal(readies, 0);
	fabric_end_accept(&peer, NULL, 0);
	await(&readies, 1);
	/* What it promised is there. */
	assert_int_equal(fabric_receives(link_qp()), le16_to_cpu(request.hrqsize));
	assert_string_equal(link_->path.device, "fake0");
	assert_string_equal(link_->path.kind, "RoCE v2");
	assert_string_equal(link_->path.local, IP);
	assert_int_equal(link_->path.mtu, 1024);
	close_link();
	assert_int_equal(end_rc, -ESHUTDOWN);
}

struct rejection {
	uint16_t sts;
	uint8_t len;
	const char *text;
};

static const struct rejection rejections[] = {
	{ NVME_RDMA_BAD_LENGTH, 4, "length of the private data" },
	{ NVME_RDMA_BAD_RECFMT, 4, "RECFMT" },
	{ NVME_RDMA_BAD_QID, 4, "queue id" },
	{ NVME_RDMA_BAD_HSQSIZE, 4, "HSQSIZE" },
	{ NVME_RDMA_BAD_HRQSIZE, 4, "HRQSIZE" },
	{ NVME_RDMA_NO_RESOURCES, 4, "no resources" },
	{ NVME_RDMA_BAD_IRD, 4, "IRD" },
	{ NVME_RDMA_BAD_ORD, 4, "ORD" },
	{ NVME_RDMA_BAD_CNTLID, 4, "controller id" },
	{ 0x4711, 4, "unknown" },
	{ 0, 0, "connect" },
};

static void rejected(void **state)
{
	for (int iwarp = 0; iwarp < 2; iwarp++)
		for_each_named(i, rejections, text) {
			const struct rejection *c = &rejections[i];
			struct nvme_rdma_reject reject = { .sts = cpu_to_le16(c->sts) };

			if (iwarp)
				fabric_map(IP, "iwarp0");
			fabric_end_listen(&peer, IP, 0);
			open_link(IP, fabric_end_port(&peer));
			fabric_end_request(&peer);
			assert_return_code(v->reject(peer.id, &reject, c->len), errno);
			check_end(-ECONNREFUSED, c->text);
			again();
		}
}

struct way {
	const char *ip;
	enum rdma_cm_event_type fate;
	int status, rc;
	const char *text;
};

static const struct way ways[] = {
	{ IP, RDMA_CM_EVENT_ADDR_RESOLVED, 0, -ECONNREFUSED, "nobody listens" },
	{ "10.1.2.3", RDMA_CM_EVENT_ADDR_RESOLVED, 0, -ENODEV, "no RDMA adapter" },
	{ "127.0.0.9", RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, -ENODEV, "no RDMA adapter" },
	{ "127.0.0.9", RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, -EHOSTUNREACH, "no RDMA adapter" },
	{ "127.0.0.9", RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, -ETIMEDOUT, "address" },
	{ "127.0.0.9", RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, -ETIMEDOUT, "route" },
	{ "127.0.0.9", RDMA_CM_EVENT_ROUTE_ERROR, 0, -EIO, "route" },
	{ "127.0.0.9", RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, -EHOSTUNREACH, "no answer" },
	{ "127.0.0.9", RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, -EINVAL, "connect" },
};

static void no_way(void **state)
{
	for_each_named(i, ways, ip) {
		fabric_path(ways[i].ip, ways[i].fate, ways[i].status);
		open_link(ways[i].ip, 4420);
		check_end(ways[i].rc, ways[i].text);
		assert_int_equal(readies, 0);
		again();
	}
}

static void calls_that_fail(void **state)
{
	static const char *const entries[] = {
		"create_event_channel",
		"create_id",
		"resolve_addr",
		"resolve_route",
		"query_device",
		"alloc_pd",
		"create_comp_channel",
		"create_cq",
		"reg_mr",
		"create_qp",
		"post_recv",
		"connect",
	};

	for_each_row(i, entries) {
		struct weft_err err = { "" };

		fabric_end_listen(&peer, IP, 0);
		fabric_fail(entries[i], 0, 1, ENOMEM);
		if (try_open(IP, fabric_end_port(&peer), &err) < 0)
			assert_string_not_equal(err.text, "");
		else
			check_end(-ENOMEM, "");
		if (strcmp(fabric_left(), " 1 id(s) 1 event channel(s)") != 0)
			fail_msg("%s: left:%s", entries[i], fabric_left());
		again();
	}
}

static void no_answer(void **state)
{
	static const struct {
		enum rdma_cm_event_type late;
		const char *text;
	} waits[] = { { RDMA_CM_EVENT_ADDR_RESOLVED, "address" },
		      { RDMA_CM_EVENT_ROUTE_RESOLVED, "route" },
		      { RDMA_CM_EVENT_CONNECT_REQUEST, "no answer" },
		      { RDMA_CM_EVENT_ESTABLISHED, "no answer" } };

	for_each_named(i, waits, text) {
		fabric_delay(waits[i].late, false);
		fabric_delay(waits[i].late, true);
		fabric_end_listen(&peer, IP, 0);
		open_link(IP, fabric_end_port(&peer));
		turns(10);
		advance(SETUP_MS - 1);
		assert_int_equal(closes, 0);
		advance(2);
		check_end(-ETIMEDOUT, waits[i].text);
		/* What was late comes too late. */
		fabric_deliver();
		turns(4);
		again();
	}
}

/* The answer arrives at the very end of the time. */
static void late_answer(void **state)
{
	asked();
	advance(SETUP_MS - 1);
	fabric_end_accept(&peer, NULL, 0);
	await(&readies, 1);
	advance(10 * SETUP_MS);
	assert_int_equal(closes, 0);
	close_link();
}

static void wrong_format(void **state)
{
	const struct nvme_rdma_accept answer = { .recfmt = cpu_to_le16(1) };

	asked();
	fabric_end_accept(&peer, &answer, sizeof(answer));
	check_end(-EPROTO, "format 1");
	assert_int_equal(readies, 0);
}

/* Given up by its user, at every step. */
static void closed_early(void **state)
{
	for (unsigned n = 0; n < 8; n++) {
		fabric_end_listen(&peer, IP, 0);
		open_link(IP, fabric_end_port(&peer));
		turns(n);
		close_link();
		again();
	}
}

/* --- completions ------------------------------------------------------------------------------ */

static void in_time(void **state)
{
	union nvme_sqe *sqe;

	connect_both();
	for (unsigned i = 0; i < 3 * DEPTH; i++) {
		submit(nvme_cmd_flush, NULL, 0, 0);
		assert_int_equal(hear(&sqe), 64);
		assert_int_equal(sqe->common.opcode, nvme_cmd_flush);
		assert_int_equal(sqe->common.flags, NVME_PSDT_SGL);
		assert_int_equal(sgl_of(sqe)->type, NVME_SGL_KEYED);
		assert_int_equal(nvme_keyed_sgl_length(sgl_of(sqe)), 0);
		answer_of(le16_to_cpu(sqe->common.cid), 0x4281, 16);
		await(&dones, i + 1);
		assert_int_equal(le16_to_cpu(last.cqe.status) >> 1, 0x4281);
		fabric_end_recv(&peer, i % END_RECVS);
	}
	assert_int_equal(stats.completed, 3 * DEPTH);
	close_link();
}

/* All slots, answered in another order. */
static void in_any_order(void **state)
{
	union nvme_sqe *sqe[DEPTH];

	connect_both();
	for (unsigned i = 0; i < DEPTH; i++)
		submit(nvme_cmd_flush, NULL, 0, 0);
	assert_null(weft_link_get_slot(link_));
	for (unsigned i = 0; i < DEPTH; i++)
		hear(&sqe[i]);
	for (unsigned i = 0; i < DEPTH; i++)
		answer(sqe[(i * 7) % DEPTH]);
	await(&dones, DEPTH);
	assert_int_equal(fabric_counts().rnr, 0);
	close_link();
}

static const struct {
	const char *name;
	int cid; /* beside that of the command; -1: of one that is done */
	uint32_t len;
	int rc;
	const char *text;
} bad_answers[] = {
	{ "unknown", 1, 16, -EPROTO, "not in flight" },
	{ "FFFFh", 0xffff, 16, -EPROTO, "not in flight" },
	{ "for the second time", -1, 16, -EPROTO, "not in flight" },
	{ "short", 0, 15, -EPROTO, "15 bytes" },
	{ "empty", 0, 0, -EPROTO, "0 bytes" },
	{ "long", 0, 17, -ECONNRESET, "lost" },
	{ "very long", 0, 4096, -ECONNRESET, "lost" },
};

static void wrong_completions(void **state)
{
	for_each_named(i, bad_answers, name) {
		union nvme_sqe *sqe, *done;

		connect_both();
		submit(nvme_cmd_flush, NULL, 0, 0);
		hear(&done);
		answer(done);
		await(&dones, 1);
		submit(nvme_cmd_flush, NULL, 0, 0);
		hear(&sqe);
		if (bad_answers[i].cid < 0)
			answer(done);
		else
			answer_of((uint16_t)(le16_to_cpu(sqe->common.cid) + bad_answers[i].cid), 0,
				  bad_answers[i].len);
		check_end(bad_answers[i].rc, bad_answers[i].text);
		assert_int_equal(dones, 1);
		again();
	}
}

/* It offers keys that last: a controller has none to invalidate. */
static void invalidates(void **state)
{
	struct iovec iov = { memory, 8192 };
	struct ibv_sge sge = { (uintptr_t)peer.memory, sizeof(struct nvme_cqe), 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1 };
	union nvme_sqe *sqe;

	connect_both();
	submit(nvme_cmd_read, &iov, 0, 8192);
	hear(&sqe);
	assert_int_equal(sgl_of(sqe)->type, NVME_SGL_KEYED);
	memset(peer.memory, 0, sizeof(struct nvme_cqe));
	((struct nvme_cqe *)peer.memory)->cid = sqe->common.cid;
	sge.lkey = peer.mr->lkey;
	wr.invalidate_rkey = nvme_keyed_sgl_key(sgl_of(sqe));
	assert_int_equal(fabric_end_post(&peer, &wr), 0);
	check_end(-EPROTO, "invalidated");
	assert_int_equal(dones, 0);
}

/* The controller has the command, and answers, before the adapter says that it was sent. */
static void answered_before_sent(void **state)
{
	struct weft_link_slot *slot;

	connect_both();
	fabric_hold(link_qp(), 1u << IBV_WR_SEND);
	slot = submit(nvme_cmd_flush, NULL, 0, 0);
	turns(3);
	answer_of(le16_to_cpu(slot->cmd.common.cid), 0, 16);
	turns(5);
	assert_int_equal(dones, 0);
	fabric_hold(link_qp(), 0);
	await(&dones, 1);
	close_link();
}

/* --- where the data is ------------------------------------------------------------------------ */

/* The controller reads what it was told of, or writes it. */
static void move(const struct nvme_keyed_sgl *block, bool read, uint32_t offset)
{
	assert_int_equal(fabric_end_move(&peer, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 600,
					 offset, nvme_keyed_sgl_length(block),
					 le64_to_cpu(block->addr), nvme_keyed_sgl_key(block)),
			 0);
	fabric_end_done(&peer, 600, IBV_WC_SUCCESS);
}

struct layout {
	const char *name;
	struct {
		uint32_t at, len;
	} iov[6];
	unsigned iovcnt;
	uint32_t skip, len;
};

static const struct layout layouts[] = {
	{ "one piece", { { 0, 4096 } }, 1, 0, 4096 },
	{ "the end of one piece", { { 0, 8192 } }, 1, 4096, 4096 },
	{ "a byte", { { 77, 1 } }, 1, 0, 1 },
	{ "two", { { 0, 100 }, { 5000, 412 } }, 2, 0, 512 },
	{ "neighbours", { { 0, 100 }, { 100, 412 } }, 2, 0, 512 },
	{ "skipping one", { { 0, 100 }, { 5000, 1000 } }, 2, 350, 512 },
	{ "empty ones", { { 0, 0 }, { 9, 256 }, { 1, 0 }, { 2000, 256 } }, 4, 0, 512 },
	{ "six",
	  { { 0, 1000 }, { 9000, 96 }, { 4000, 1000 }, { 2, 0 }, { 7000, 1000 }, { 20000, 1000 } },
	  6,
	  0,
	  4096 },
	{ "across a granule", { { MDTS - 2048, 4096 } }, 1, 0, 4096 },
	{ "the most", { { 4096, MDTS } }, 1, 0, MDTS },
	{ "the most, in two", { { 4096, MDTS / 2 }, { 2 * MDTS, MDTS / 2 } }, 2, 0, MDTS },
};

static uint32_t copy_layout(const struct layout *l, char *to, const char *from)
{
	uint32_t skip = l->skip, left = l->len, done = 0;

	for (unsigned i = 0; i < l->iovcnt && left; i++) {
		uint32_t n = l->iov[i].len > skip ? l->iov[i].len - skip : 0;

		n = n < left ? n : left;
		if (to)
			memcpy(memory + l->iov[i].at + skip, to + done, n);
		else
			memcpy((char *)from + done, memory + l->iov[i].at + skip, n);
		skip = l->iov[i].len > skip ? 0 : skip - l->iov[i].len;
		left -= n;
		done += n;
	}
	return done;
}

static void set_iov(const struct layout *l, struct iovec *iov)
{
	for (unsigned i = 0; i < l->iovcnt; i++)
		iov[i] = (struct iovec){ memory + l->iov[i].at, l->iov[i].len };
}

/* Whatever the command says of its data: moves it, from or to peer.memory + @at. */
static void serve_data(union nvme_sqe *sqe, uint32_t capsule, bool read, uint32_t at, uint32_t len)
{
	const struct nvme_sgl *sgl = &sqe->common.sgl;
	const char *extra = (const char *)sqe + 64;
	uint32_t moved = 0;

	if (sgl->type == NVME_SGL_IN_CAPSULE) {
		assert_true(read);
		assert_int_equal(capsule, 64 + len);
		memcpy(peer.memory + at, extra + le64_to_cpu(sgl->addr), len);
		return;
	}
	if (sgl->type == NVME_SGL_LAST_IN_CAPSULE) {
		assert_int_equal(capsule, 64 + le32_to_cpu(sgl->length));
		for (uint32_t i = 0; i < le32_to_cpu(sgl->length) / 16; i++) {
			struct nvme_keyed_sgl block;

			memcpy(&block, extra + le64_to_cpu(sgl->addr) + 16 * i, 16);
			assert_int_equal(block.type, NVME_SGL_KEYED);
			move(&block, read, at + moved);
			moved += nvme_keyed_sgl_length(&block);
		}
	} else {
		assert_int_equal(capsule, 64);
		assert_int_equal(sgl_of(sqe)->type, NVME_SGL_KEYED);
		move(sgl_of(sqe), read, at);
		moved = nvme_keyed_sgl_length(sgl_of(sqe));
	}
	assert_int_equal(moved, len);
}

static void check_layout(const struct layout *l, bool write)
{
	char *theirs = peer.memory + 4096, *ours = malloc(l->len);
	struct iovec iov[6] = { 0 };
	union nvme_sqe *sqe;
	unsigned before = dones;
	uint32_t capsule;

	set_iov(l, iov);
	for (unsigned i = 0; i < l->iovcnt; i++)
		fill(iov[i].iov_base, iov[i].iov_len, i + write);
	fill(theirs, l->len, 99);
	submit(write ? nvme_cmd_write : nvme_cmd_read, iov, l->skip, l->len);
	capsule = hear(&sqe);
	fabric_end_recv(&peer, (unsigned)(((char *)sqe - peer.recvs) / END_RECV_SIZE));
	serve_data(sqe, capsule, write, 4096, l->len);
	answer(sqe);
	await(&dones, before + 1);
	assert_int_equal(last.moved, l->len);
	copy_layout(l, NULL, ours);
	if (memcmp(ours, theirs, l->len) != 0)
		fail_msg("%s: %s: wrong data", l->name, write ? "write" : "read");
	free(ours);
}

static void check_layouts(uint64_t *copied, uint64_t *moved)
{
	*moved = 0;
	for_each_named(i, layouts, name) {
		check_layout(&layouts[i], true);
		check_layout(&layouts[i], false);
		*moved += 2 * layouts[i].len;
	}
	*copied = stats.copied_bytes;
}

static const struct {
	bool iwarp;
	uint32_t capsule_max, blocks_max;
} terms[] = { { false, 0, 0 },     { false, 0, 1 },    { false, 4096, 1 },
	      { false, 4096, 16 }, { false, 8192, 2 }, { true, 4096, 16 } };

/* Memory that nobody declared goes through a buffer, all of it. */
static void undeclared(void **state)
{
	for_each_row(i, terms) {
		uint64_t copied, moved;

		if (terms[i].iwarp)
			fabric_map(IP, "iwarp0");
		connect_both();
		link_->capsule_max = terms[i].capsule_max;
		link_->blocks_max = terms[i].blocks_max;
		check_layouts(&copied, &moved);
		assert_int_equal(copied, moved);
		close_link();
		again();
	}
}

/* The controller has written some of it, and then could not go on: what came is nothing. */
static void undeclared_and_failed(void **state)
{
	struct iovec iov = { memory, 4096 };
	union nvme_sqe *sqe;
	uint32_t capsule;

	connect_both();
	memset(memory, 'o', 4096);
	memset(peer.memory + 4096, 'n', 4096);
	submit(nvme_cmd_read, &iov, 0, 4096);
	capsule = hear(&sqe);
	serve_data(sqe, capsule, false, 4096, 4096);
	answer_of(le16_to_cpu(sqe->common.cid), NVME_SC_READ_ERROR, sizeof(struct nvme_cqe));
	await(&dones, 1);
	assert_int_equal(le16_to_cpu(last.cqe.status) >> 1, NVME_SC_READ_ERROR);
	for (unsigned i = 0; i < 4096; i++)
		assert_int_equal(memory[i], 'o');
	assert_int_equal(stats.copied_bytes, 0);
	close_link();
}

/* Memory that was declared does not, where the controller takes as many descriptors. */
static void declared(void **state)
{
	for_each_row(i, terms) {
		struct weft_region *region;
		uint64_t copied, moved, registrations;

		if (terms[i].iwarp)
			fabric_map(IP, "iwarp0");
		assert_int_equal(weft_region_add(&region, memory, MEMORY, MDTS, NULL), 0);
		connect_both();
		link_->capsule_max = terms[i].capsule_max;
		link_->blocks_max = terms[i].blocks_max;
		check_layouts(&copied, &moved);
		assert_true(copied < moved);
		/* Nothing is registered for the second time. */
		registrations = fabric_counts().registrations;
		check_layouts(&copied, &moved);
		assert_int_equal(fabric_counts().registrations, registrations);
		close_link();
		weft_region_remove(region);
		again();
	}
}

/* With enough descriptors and pieces to a capsule, nothing at all is copied. */
static void no_copies(void **state)
{
	struct weft_region *region;

	assert_int_equal(weft_region_add(&region, memory, MEMORY, MDTS, NULL), 0);
	connect_both();
	link_->blocks_max = 16;
	link_->capsule_max = 256; /* room for sixteen descriptors */
	for_each_named(i, layouts, name) {
		check_layout(&layouts[i], true);
		check_layout(&layouts[i], false);
		if (stats.copied_bytes)
			fail_msg("%s: copied", layouts[i].name);
	}
	close_link();
	weft_region_remove(region);
}

static void check_pieces(const struct iovec *iov, unsigned n, uint32_t each)
{
	unsigned before = dones;
	union nvme_sqe *sqe;
	uint32_t capsule;

	fill(peer.memory + 4096, n * each, n);
	submit(nvme_cmd_read, iov, 0, n * each);
	capsule = hear(&sqe);
	assert_true(capsule <= sizeof(*sqe) + link_->capsule_max);
	fabric_end_recv(&peer, (unsigned)(((char *)sqe - peer.recvs) / END_RECV_SIZE));
	serve_data(sqe, capsule, false, 4096, n * each);
	answer(sqe);
	await(&dones, before + 1);
	for (unsigned i = 0; i < n; i++)
		assert_memory_equal(iov[i].iov_base, peer.memory + 4096 + i * each, each);
}

/* More pieces than a capsule has room for, whatever the controller would take. */
static void many_pieces(void **state)
{
	enum { MANY = 40, EACH = 100 };
	static const uint32_t rooms[] = { 2048, 64, 40, 16, 0 };
	struct iovec iov[MANY];
	struct weft_region *region;

	assert_int_equal(weft_region_add(&region, memory, MEMORY, MDTS, NULL), 0);
	connect_both();
	link_->blocks_max = 200;
	for (unsigned i = 0; i < MANY; i++)
		iov[i] = (struct iovec){ memory + 1000 * i, EACH };
	for_each_row(i, rooms) {
		link_->capsule_max = rooms[i];
		for (unsigned n = 1; n <= MANY; n++)
			check_pieces(iov, n, EACH);
	}
	close_link();
	weft_region_remove(region);
}

/* The controller writes nothing and calls it success: what earlier commands left in the buffers is
 * nobody's. */
static void less_than_was_read(void **state)
{
	struct iovec iov = { memory, 4096 };
	union nvme_sqe *sqe;

	connect_both();
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		memset(memory, 's', 4096);
		submit(i < DEPTH ? nvme_cmd_write : nvme_cmd_read, &iov, 0, 4096);
		hear(&sqe);
		fabric_end_recv(&peer, (unsigned)(((char *)sqe - peer.recvs) / END_RECV_SIZE));
		answer(sqe);
		await(&dones, i + 1);
		for (unsigned at = 0; i >= DEPTH && at < 4096; at++)
			assert_int_equal(memory[at], 0);
	}
	close_link();
}

/* The program gives its memory up and declares it again: old keys are nobody's. */
static void declared_again(void **state)
{
	struct weft_region *region;

	connect_both();
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(weft_region_add(&region, memory, MEMORY, i % 2 ? 0 : MDTS, NULL),
				 0);
		check_layout(&layouts[i % 2], i % 4 < 2);
		assert_int_equal(stats.copied_bytes, 0);
		weft_region_remove(region);
	}
	close_link();
}

/* More than there are buffers: those wait in line, and get their turn. */
static void in_line_for_a_buffer(void **state)
{
	struct iovec iov = { memory, MDTS };
	union nvme_sqe *sqe;

	connect_both();
	for (unsigned i = 0; i < DEPTH; i++)
		submit(nvme_cmd_read, &iov, 0, MDTS);
	for (unsigned i = 0; i < DEPTH; i++) {
		hear(&sqe);
		answer(sqe);
		await(&dones, i + 1);
	}
	close_link();
}

static void closed_in_line(void **state)
{
	struct iovec iov = { memory, MDTS };

	connect_both();
	for (unsigned i = 0; i < DEPTH; i++)
		submit(i % 2 ? nvme_cmd_write : nvme_cmd_read, &iov, 0, MDTS);
	turns(3);
	close_link();
	assert_int_equal(dones, 0);
}

/* An answer for a command that waits in line: the controller cannot know of it. */
static void answered_in_line(void **state)
{
	struct iovec iov = { memory, MDTS };
	struct weft_link_slot *slot = NULL;

	connect_both();
	for (unsigned i = 0; i < DEPTH; i++)
		slot = submit(nvme_cmd_read, &iov, 0, MDTS);
	turns(3);
	answer_of(le16_to_cpu(slot->cmd.common.cid), 0, 16);
	check_end(-EPROTO, "not in flight");
	assert_int_equal(dones, 0);
}

/* --- memory that the adapter refuses ---------------------------------------------------------- */

static struct rdma_verbs stingy;
static unsigned asked_for; /* the caller's memory */
static bool refuses;

static struct ibv_mr *refuse_the_callers(struct ibv_pd *pd, void *at, size_t size, int access)
{
	if ((char *)at < memory || (char *)at >= memory + MEMORY)
		return v->reg_mr(pd, at, size, access);
	asked_for++;
	errno = ENOMEM;
	return refuses ? NULL : v->reg_mr(pd, at, size, access);
}

static void read_some(void)
{
	struct iovec iov = { memory, 4096 };
	unsigned before = dones;
	union nvme_sqe *sqe;

	submit(nvme_cmd_read, &iov, 0, 4096);
	hear(&sqe);
	answer(sqe);
	await(&dones, before + 1);
}

static void reads_are_copied(struct weft_region *region, unsigned count)
{
	uint64_t copied = stats.copied_bytes;

	for (unsigned i = 0; i < count; i++)
		read_some();
	assert_int_equal(stats.copied_bytes, copied + count * 4096ull);
	assert_int_equal(region->pinned, 0);
}

/* Once asked, it is not asked for every I/O; and again when something has changed. */
static void refused_once(void **state)
{
	struct weft_region *region, *other;

	stingy = fabric_verbs;
	stingy.reg_mr = refuse_the_callers;
	rdma_verbs = &stingy;
	asked_for = 0;
	refuses = true;
	assert_int_equal(weft_region_add(&region, memory, MDTS, MDTS, NULL), 0);
	connect_both();
	reads_are_copied(region, 5);
	assert_int_equal(asked_for, 1);
	assert_int_equal(weft_region_add(&other, memory + MDTS, MDTS, MDTS, NULL), 0);
	reads_are_copied(region, 5);
	assert_int_equal(asked_for, 2);
	weft_region_remove(other);
	refuses = false;
	read_some();
	assert_int_equal(asked_for, 3);
	assert_int_equal(region->pinned, 1);
	close_link();
	assert_int_equal(region->pinned, 0);
	weft_region_remove(region);
	rdma_verbs = &fabric_verbs;
}

static void no_memory_for_data(void **state)
{
	struct iovec iov = { memory, 4096 };

	connect_both();
	fabric_fail("reg_mr", 0, 1, ENOMEM);
	submit(nvme_cmd_read, &iov, 0, 4096);
	check_end(-ENOMEM, "memory");
}

/* --- how it ends ------------------------------------------------------------------------------ */

static const enum ibv_wc_status statuses[] = {
	IBV_WC_LOC_LEN_ERR,      IBV_WC_LOC_QP_OP_ERR,     IBV_WC_LOC_PROT_ERR,
	IBV_WC_WR_FLUSH_ERR,     IBV_WC_BAD_RESP_ERR,      IBV_WC_LOC_ACCESS_ERR,
	IBV_WC_REM_INV_REQ_ERR,  IBV_WC_REM_ACCESS_ERR,    IBV_WC_REM_OP_ERR,
	IBV_WC_RETRY_EXC_ERR,    IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_FATAL_ERR,
	IBV_WC_RESP_TIMEOUT_ERR, IBV_WC_GENERAL_ERR,
};

static void bad_completions(void **state)
{
	for_each_row(i, statuses)
		for (int receive = 0; receive < 2; receive++) {
			bool timeout = statuses[i] == IBV_WC_RETRY_EXC_ERR;
			union nvme_sqe *sqe;

			connect_both();
			submit(nvme_cmd_flush, NULL, 0, 0);
			submit(nvme_cmd_flush, NULL, 0, 0);
			if (receive)
				hear(&sqe);
			fabric_fail_next(link_qp(), receive, statuses[i]);
			if (receive)
				answer(sqe);
			check_end(timeout ? -ETIMEDOUT : -ECONNRESET, "connection lost");
			assert_false(end_hung_up);
			assert_int_equal(dones, 0);
			again();
		}
}

struct event_case {
	const char *name;
	enum rdma_cm_event_type events[3];
	unsigned count;
	int rc; /* 0: it lives */
	const char *text;
};

static const struct event_case event_cases[] = {
	{ "DISCONNECTED twice",
	  { RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DISCONNECTED },
	  2,
	  -ECONNRESET,
	  "closed the connection" },
	{ "TIMEWAIT_EXIT early", { RDMA_CM_EVENT_TIMEWAIT_EXIT }, 1, 0, "" },
	{ "ESTABLISHED again", { RDMA_CM_EVENT_ESTABLISHED }, 1, 0, "" },
	{ "ROUTE_RESOLVED again", { RDMA_CM_EVENT_ROUTE_RESOLVED }, 1, 0, "" },
	{ "ADDR_RESOLVED again", { RDMA_CM_EVENT_ADDR_RESOLVED }, 1, 0, "" },
	{ "DEVICE_REMOVAL",
	  { RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_TIMEWAIT_EXIT },
	  3,
	  -ENODEV,
	  "adapter was removed" },
	{ "ADDR_CHANGE", { RDMA_CM_EVENT_ADDR_CHANGE }, 1, -EADDRNOTAVAIL, "address" },
};

static void events(void **state)
{
	for_each_named(i, event_cases, name) {
		const struct event_case *c = &event_cases[i];
		union nvme_sqe *sqe;

		connect_both();
		submit(nvme_cmd_flush, NULL, 0, 0);
		hear(&sqe);
		for (unsigned j = 0; j < c->count; j++)
			fabric_event(fabric_peer_id(peer.id), c->events[j], 0);
		turns(10);
		if (!c->rc) {
			answer(sqe);
			await(&dones, 1);
			close_link();
		} else {
			check_end(c->rc, c->text);
			assert_int_equal(end_hung_up, c->events[0] == RDMA_CM_EVENT_DISCONNECTED);
			assert_int_equal(dones, 0);
		}
		again();
	}
}

/* What the adapter says of it unasked. */
static const struct {
	const char *name;
	enum ibv_event_type type;
	bool of_device;
	int rc; /* 0: it lives */
	const char *text;
} said_cases[] = {
	{ "QP", IBV_EVENT_QP_FATAL, false, -ECONNRESET, "catastrophic" },
	{ "QP access", IBV_EVENT_QP_ACCESS_ERR, false, -ECONNRESET, "access" },
	{ "CQ", IBV_EVENT_CQ_ERR, false, -EIO, "CQ error" },
	{ "adapter", IBV_EVENT_DEVICE_FATAL, true, -ENODEV, "adapter failed" },
	{ "port down", IBV_EVENT_PORT_ERR, true, 0, "" },
	{ "port up", IBV_EVENT_PORT_ACTIVE, true, 0, "" },
};

static void said(void **state)
{
	for_each_named(i, said_cases, name) {
		union nvme_sqe *sqe;

		connect_both();
		submit(nvme_cmd_flush, NULL, 0, 0);
		hear(&sqe);
		if (said_cases[i].of_device)
			fabric_async("fake0", said_cases[i].type);
		else
			fabric_async_of(link_qp(), said_cases[i].type);
		turns(10);
		if (said_cases[i].rc) {
			check_end(said_cases[i].rc, said_cases[i].text);
			assert_false(end_hung_up);
			assert_int_equal(dones, 0);
		} else {
			answer(sqe);
			await(&dones, 1);
			close_link();
		}
		again();
	}
}

/* On iWARP one that vanished looks the same. */
static void controller_leaves(void **state)
{
	for (int iwarp = 0; iwarp < 2; iwarp++) {
		union nvme_sqe *sqe;

		if (iwarp)
			fabric_map(IP, "iwarp0");
		connect_both();
		submit(nvme_cmd_flush, NULL, 0, 0);
		hear(&sqe);
		assert_return_code(v->disconnect(peer.id), errno);
		await(&closes, 1);
		assert_int_equal(end_rc, -ECONNRESET);
		assert_int_equal(end_hung_up, !iwarp);
		again();
	}
}

static void controller_falls_silent(void **state)
{
	connect_both();
	fabric_cut(link_qp());
	submit(nvme_cmd_flush, NULL, 0, 0);
	turns(10);
	assert_int_equal(closes, 0);
	assert_true(fabric_time_out(link_qp()));
	check_end(-ETIMEDOUT, "retry");
	assert_false(end_hung_up);
	assert_int_equal(stats.retried, 1);
}

static void adapter_removed(void **state)
{
	struct iovec iov = { memory, 4096 };

	connect_both();
	submit(nvme_cmd_read, &iov, 0, 4096);
	turns(3);
	fabric_remove("fake0");
	check_end(-ENODEV, "adapter was removed");
	assert_false(end_hung_up);
	assert_int_equal(dones, 0);
}

static void posts_that_fail(void **state)
{
	static const char *const entries[] = { "post_send", "post_recv" };

	for_each_row(i, entries) {
		union nvme_sqe *sqe;

		connect_both();
		submit(nvme_cmd_flush, NULL, 0, 0);
		if (i == 0) {
			fabric_fail(entries[i], 0, 1, ENOMEM);
		} else {
			hear(&sqe);
			fabric_fail(entries[i], 0, 1, ENOMEM);
			answer(sqe);
		}
		check_end(-ENOMEM, "");
		again();
	}
}

/* After the end the caller's memory is its own: a controller that still writes hits nothing. */
static void hands_off(void **state)
{
	struct weft_region *region;
	struct iovec iov = { memory, 4096 };
	union nvme_sqe *sqe;
	struct nvme_keyed_sgl block;

	assert_int_equal(weft_region_add(&region, memory, MEMORY, MDTS, NULL), 0);
	connect_both();
	submit(nvme_cmd_read, &iov, 0, 4096);
	hear(&sqe);
	block = *sgl_of(sqe);
	memset(peer.memory, 'x', 4096);
	weft_link_close(link_, -ESHUTDOWN, "over");
	fabric_end_move(&peer, IBV_WR_RDMA_WRITE, 7, 0, 4096, le64_to_cpu(block.addr),
			nvme_keyed_sgl_key(&block));
	await(&closes, 1);
	assert_int_equal(memory[0], 0);
	weft_region_remove(region);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a pattern, only the cases of that name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(how_it_asks),
		CASE(rejected),
		CASE(no_way),
		CASE(calls_that_fail),
		CASE(no_answer),
		CASE(late_answer),
		CASE(wrong_format),
		CASE(closed_early),
		CASE(in_time),
		CASE(in_any_order),
		CASE(wrong_completions),
		CASE(invalidates),
		CASE(answered_before_sent),
		CASE(undeclared),
		CASE(undeclared_and_failed),
		CASE(declared),
		CASE(no_copies),
		CASE(many_pieces),
		CASE(less_than_was_read),
		CASE(declared_again),
		CASE(in_line_for_a_buffer),
		CASE(closed_in_line),
		CASE(answered_in_line),
		CASE(refused_once),
		CASE(no_memory_for_data),
		CASE(bad_completions),
		CASE(events),
		CASE(said),
		CASE(controller_leaves),
		CASE(controller_falls_silent),
		CASE(adapter_removed),
		CASE(posts_that_fail),
		CASE(hands_off),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
