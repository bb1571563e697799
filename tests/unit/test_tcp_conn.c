/* test_tcp_conn.c - a target's connection by itself: its receiver, its timers, its end.
 *
 *   the test: a host's socket ══▶ connection ─▶ the test: a user that does as the case says
 *
 * Every wait turns the reactor, a bounded number of times; its clock is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/tcp.h"
#include "running.h"
#include "transport/tcp/state.h"
#include "transport/tcp/tcp.h"

enum {
	TURNS_MAX = 20000, /* of a millisecond: what never comes is a hang */
	STILL = 20,        /* turns in which something would have happened */
	DEPTH = 8,
	PRECONNECT_MAX = 2,
	DATA = 8192, /* of a write, not in its capsule */
};

static struct weft_reactor *r;
static struct weft_poll_group *group;
static uint64_t now_ns = 1000000000;

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

static void later(unsigned ms)
{
	now_ns += ms * 1000000ull;
}

static void turn(unsigned n)
{
	while (n--)
		weft_reactor_turn(r, 0);
}

/* --- a connection, and its user --------------------------------------------------------------- */

struct host {
	int fd;
	struct weft_qpair *qp; /* NULL: it has ended */
	char why[160];
	unsigned commands, fetched;
	bool holds;            /* the user has commands, and replies when the case says so */
	bool keeps;            /* also when the connection is lost */
	struct weft_req *held; /* the last one */
};

static void on_fetched(struct weft_req *req, uint16_t sc)
{
	struct host *h = req->qp->owner;

	h->fetched += !sc;
	if (!h->keeps)
		weft_req_reply(req, sc);
}

static void on_command(struct weft_req *req)
{
	struct host *h = req->qp->owner;

	h->commands++;
	h->held = req;
	if (h->holds || h->keeps)
		return;
	if (req->cmd.common.opcode == nvme_cmd_write)
		weft_req_fetch(req, DATA, on_fetched);
	else
		weft_req_reply(req, 0);
}

static void on_released(struct weft_req *req)
{
	(void)req;
}

static uint64_t on_awaited_since(struct weft_req *req)
{
	return 0;
}

/* The connection is lost: what the user holds comes back. */
static void on_closing(struct weft_qpair *qp)
{
	struct host *h = qp->owner;

	if (h->holds)
		for (uint32_t i = 0; i < qp->high_water; i++)
			if (weft_qpair_req(qp, i))
				weft_req_reply(weft_qpair_req(qp, i), 0);
}

static void on_closed(struct weft_qpair *qp)
{
	struct host *h = qp->owner;

	snprintf(h->why, sizeof(h->why), "%s", qp->why);
	h->qp = NULL;
	weft_qpair_free(qp);
}

/* It has none that only the user could end. */
static void on_closing_req(struct weft_req *req)
{
}

static const struct weft_qpair_ops ops = {
	.command = on_command,
	.released = on_released,
	.awaited_since = on_awaited_since,
	.closing = on_closing,
	.closing_req = on_closing_req,
	.closed = on_closed,
};

static int socket_pair(struct host *h)
{
	int ends[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
			   errno);
	*h = (struct host){ .fd = ends[0] };
	return ends[1];
}

static void accept_host(struct host *h)
{
	int fd = socket_pair(h);

	atomic_fetch_add(&group->nqpairs, 1);
	assert_int_equal(tcp_accept(group, fd, &ops), 0);
	h->qp = container_of(group->qpairs.prev, struct weft_qpair, link);
	h->qp->owner = h;
}

/* Until it has ended by itself. */
static void await_end(struct host *h)
{
	for (int i = 0; i < TURNS_MAX && h->qp; i++)
		weft_reactor_turn(r, 1);
	assert_null(h->qp);
}

/* --- what a host sends and hears -------------------------------------------------------------- */

static void say(const struct host *h, const void *bytes, size_t len)
{
	assert_int_equal(send(h->fd, bytes, len, MSG_NOSIGNAL), len);
}

static void hear(const struct host *h, void *to, size_t len)
{
	for (int i = 0; len; i++) {
		ssize_t n = recv(h->fd, to, len, MSG_DONTWAIT);

		if (!n || i == TURNS_MAX)
			fail_msg("the target sent %zu bytes less", len);
		if (n < 0) {
			weft_reactor_turn(r, 1);
			continue;
		}
		to = (char *)to + n;
		len -= (size_t)n;
	}
}

static void set_up_host(struct host *h, uint8_t dgst)
{
	const struct nvme_tcp_icreq icreq = { .hdr.type = NVME_TCP_ICREQ,
					      .hdr.hlen = sizeof(icreq),
					      .hdr.plen = cpu_to_le32(sizeof(icreq)),
					      .dgst = dgst };
	struct nvme_tcp_icresp icresp;

	accept_host(h);
	say(h, &icreq, sizeof(icreq));
	hear(h, &icresp, sizeof(icresp));
	assert_int_equal(icresp.hdr.type, NVME_TCP_ICRESP);
}

/* As if Connect had succeeded. */
static void start_host(struct host *h, uint8_t dgst)
{
	set_up_host(h, dgst);
	weft_qpair_start(h->qp, 1, DEPTH, false);
}

static void say_command(const struct host *h, uint8_t opcode, uint16_t cid)
{
	struct nvme_tcp_cmd cmd = { .hdr.type = NVME_TCP_CMD,
				    .hdr.hlen = sizeof(cmd),
				    .hdr.plen = cpu_to_le32(sizeof(cmd)) };

	cmd.sqe.common.opcode = opcode;
	cmd.sqe.common.cid = cpu_to_le16(cid);
	cmd.sqe.common.sgl.type = NVME_SGL_TRANSPORT;
	cmd.sqe.common.sgl.length = cpu_to_le32(opcode == nvme_cmd_write ? DATA : 0);
	say(h, &cmd, sizeof(cmd));
}

static void hear_r2t(const struct host *h, struct nvme_tcp_data *r2t)
{
	hear(h, r2t, sizeof(*r2t));
	assert_int_equal(r2t->hdr.type, NVME_TCP_R2T);
}

/* All that @r2t asked for; @wrong: at another offset. */
static void say_data(const struct host *h, const struct nvme_tcp_data *r2t, uint32_t wrong)
{
	static const char bytes[DATA];
	uint32_t len = le32_to_cpu(r2t->datal);
	const struct nvme_tcp_data head = {
		.hdr.type = NVME_TCP_H2C_DATA,
		.hdr.flags = NVME_TCP_F_LAST,
		.hdr.hlen = sizeof(head),
		.hdr.pdo = sizeof(head),
		.hdr.plen = cpu_to_le32((uint32_t)sizeof(head) + len),
		.cccid = r2t->cccid,
		.ttag = r2t->ttag,
		.datao = cpu_to_le32(le32_to_cpu(r2t->datao) + wrong),
		.datal = r2t->datal,
	};

	say(h, &head, sizeof(head));
	say(h, bytes, len);
}

static void hear_resp(const struct host *h, uint16_t cid)
{
	struct nvme_tcp_resp resp;

	hear(h, &resp, sizeof(resp));
	assert_int_equal(resp.hdr.type, NVME_TCP_RESP);
	assert_int_equal(le16_to_cpu(resp.cqe.cid), cid);
	assert_int_equal(resp.cqe.status, 0);
}

static void hear_term(const char *name, const struct host *h, uint16_t fes, uint32_t fei)
{
	struct nvme_tcp_term term;
	uint32_t got;

	hear(h, &term, sizeof(term));
	got = le16_to_cpu(term.feil) | (uint32_t)le16_to_cpu(term.feiu) << 16;
	if (term.hdr.type != NVME_TCP_C2H_TERM || le16_to_cpu(term.fes) != fes || got != fei)
		fail_msg("%s: PDU type %u, FES %u, FEI %u", name, term.hdr.type,
			 le16_to_cpu(term.fes), got);
}

/* --- the timers ------------------------------------------------------------------------------- */

enum { LINGER_MS = 3000 }; /* for a host to read a C2HTermReq */

/* While the group is frozen the host still owes data, and breaks a rule with it. It has as long to
 * read why, whether the group is thawed meanwhile or not, and whether it has sent Connect or not. */
static void thaw_moves_no_termination(void **state)
{
	for (int connected = 0; connected < 2; connected++) {
		struct nvme_tcp_data r2t;
		struct host h;

		if (connected)
			start_host(&h, 0);
		else
			set_up_host(&h, 0);
		say_command(&h, nvme_cmd_write, 0);
		hear_r2t(&h, &r2t);
		weft_poll_group_freeze(group);
		say_data(&h, &r2t, 4);
		hear_term("data beyond", &h, NVME_TCP_FES_RANGE, 0);
		weft_poll_group_thaw(group);
		later(LINGER_MS - 100);
		turn(STILL);
		assert_non_null(h.qp);
		later(200);
		await_end(&h);
		assert_string_equal(h.why, "terminated");
		close(h.fd);
	}
}

/* Nor does the time for Connect end one, though it is nearly over. */
static void termination_outlasts_setup(void **state)
{
	struct host h;

	set_up_host(&h, 0);
	later(TCP_SETUP_MS - 100);
	turn(STILL);
	say_command(&h, nvme_cmd_flush, 0);
	hear_resp(&h, 0);
	say(&h, &(struct nvme_tcp_hdr){ .type = 8 }, sizeof(struct nvme_tcp_hdr));
	hear_term("type 8", &h, NVME_TCP_FES_FIELD, 0);
	later(LINGER_MS - 100);
	turn(STILL);
	assert_non_null(h.qp);
	later(200);
	await_end(&h);
	assert_string_equal(h.why, "terminated");
	close(h.fd);
}

static void no_connect_in_time(void **state)
{
	struct host h;

	set_up_host(&h, 0);
	later(TCP_SETUP_MS + 100);
	await_end(&h);
	assert_string_equal(h.why, "no Connect within 30 s");
	close(h.fd);
}

/* --- the receiver ----------------------------------------------------------------------------- */

static enum tcp_rx_state rx_state(const struct host *h)
{
	return tcp_conn_of(h->qp)->rx_state;
}

static void hear_resps(const struct host *h, uint16_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		hear_resp(h, (uint16_t)(first + i));
}

static void reply_to_held(struct host *h)
{
	h->holds = false;
	for (uint32_t i = 0; i < h->qp->high_water; i++) {
		struct weft_req *req = weft_qpair_req(h->qp, i);

		if (req && req->state == WEFT_REQ_EXECUTING)
			weft_req_reply(req, 0);
	}
}

/* More commands than the queue holds wait where they are, also while the group is frozen, and are
 * done when there is room. */
static void commands_wait_for_a_slot(void **state)
{
	struct host h;

	for (int frozen = 0; frozen < 2; frozen++) {
		start_host(&h, 0);
		h.holds = true;
		for (uint16_t cid = 0; cid < DEPTH + 2; cid++)
			say_command(&h, nvme_cmd_flush, cid);
		turn(STILL);
		assert_int_equal(h.commands, DEPTH);
		assert_int_equal(rx_state(&h), TCP_RX_WAITS_SLOT);
		if (frozen) {
			weft_poll_group_freeze(group);
			weft_poll_group_thaw(group);
			assert_int_equal(rx_state(&h), TCP_RX_WAITS_SLOT);
		}
		later(TCP_SLOT_WAIT_MS - 100);
		turn(STILL);
		reply_to_held(&h);
		hear_resps(&h, 0, DEPTH + 2);
		assert_int_equal(rx_state(&h), TCP_RX_RECEIVING);
		later(TCP_SLOT_WAIT_MS + 100); /* it does not wait any more */
		turn(STILL);
		close(h.fd);
		await_end(&h);
		assert_string_equal(h.why, "closed by the host");
	}
}

static void no_slot_in_time(void **state)
{
	struct host h;

	start_host(&h, 0);
	h.holds = true;
	for (uint16_t cid = 0; cid <= DEPTH; cid++)
		say_command(&h, nvme_cmd_flush, cid);
	turn(STILL);
	later(TCP_SLOT_WAIT_MS + 100);
	await_end(&h);
	assert_string_equal(h.why, "more commands than the queue holds");
	close(h.fd);
}

/* Before Connect there is one slot, and the time is the set-up's. */
static void strangers_wait_for_a_slot(void **state)
{
	struct host h;

	set_up_host(&h, 0);
	h.holds = true;
	say_command(&h, nvme_cmd_flush, 0);
	say_command(&h, nvme_cmd_flush, 1);
	turn(STILL);
	assert_int_equal(rx_state(&h), TCP_RX_WAITS_SLOT);
	later(TCP_SLOT_WAIT_MS + 100);
	turn(STILL);
	weft_qpair_start(h.qp, 1, DEPTH, false);
	reply_to_held(&h);
	hear_resps(&h, 0, 2);
	close(h.fd);
	await_end(&h);
	assert_string_equal(h.why, "closed by the host");
}

/* What comes while the group is frozen stays in the socket. */
static void frozen_does_not_read(void **state)
{
	struct host h;

	start_host(&h, 0);
	weft_poll_group_freeze(group);
	turn(STILL);
	assert_int_equal(rx_state(&h), TCP_RX_FROZEN);
	say_command(&h, nvme_cmd_flush, 0);
	turn(STILL);
	assert_int_equal(h.commands + h.qp->parked, 0);
	weft_poll_group_thaw(group);
	hear_resp(&h, 0);
	close(h.fd);
	await_end(&h);
}

/* A write that waited for a buffer when the group was frozen gets one, and then its data. */
static void frozen_reads_what_it_asks_for(void **state)
{
	struct weft_pool *pool = weft_bufs_pool(&group->anon_in, DATA);
	struct nvme_tcp_data r2t;
	struct host h;
	void *kept[4096];
	unsigned n = 0;

	start_host(&h, 0);
	while ((kept[n] = weft_pool_take(pool)))
		assert_true(++n < sizeof(kept) / sizeof(kept[0]));
	say_command(&h, nvme_cmd_write, 0);
	turn(STILL);
	assert_int_equal(h.held->state, WEFT_REQ_NEED_BUFFER);
	weft_poll_group_freeze(group);
	turn(STILL);
	while (n)
		weft_pool_give(pool, kept[--n]);
	hear_r2t(&h, &r2t);
	say_data(&h, &r2t, 0);
	hear_resp(&h, 0);
	assert_int_equal(h.fetched, 1);
	turn(STILL);
	assert_null(h.qp->transport->busy_reason(h.qp));
	weft_poll_group_thaw(group);
	close(h.fd);
	await_end(&h);
}

static const char *busy_reason(const struct host *h)
{
	const char *reason = h->qp->transport->busy_reason(h->qp);

	return reason ? reason : "";
}

/* A host that has not read the R2T does not owe its data yet. */
static void why_it_is_busy(void **state)
{
	struct nvme_tcp_data pdu = { 0 };
	struct host h;

	start_host(&h, 0);
	for (int i = 0; i < TURNS_MAX && tcp_send_queue_idle(&tcp_conn_of(h.qp)->stream.sendq);
	     i++) {
		say_command(&h, nvme_cmd_flush, 0);
		turn(2);
	}
	say_command(&h, nvme_cmd_write, 0);
	turn(STILL);
	assert_int_equal(tcp_conn_of(h.qp)->owed, DATA);
	weft_poll_group_freeze(group);
	turn(STILL);
	assert_string_equal(busy_reason(&h), "it does not read what it is sent");
	while (pdu.hdr.type != NVME_TCP_R2T)
		hear(&h, &pdu, sizeof(pdu));
	turn(STILL);
	assert_string_equal(busy_reason(&h), "it owes the data of its writes");
	say_data(&h, &pdu, 0);
	hear_resp(&h, 0);
	turn(STILL);
	assert_string_equal(busy_reason(&h), "");
	weft_poll_group_thaw(group);
	close(h.fd);
	await_end(&h);
}

/* --- a takeover ------------------------------------------------------------------------------- */

static void import_host(struct host *h, uint32_t sqsize)
{
	struct weft_qpair_state qpair_state = { .trtype = NVMF_TRTYPE_TCP,
						.sqid = !!sqsize,
						.sqsize = sqsize };

	*tcp_conn_state(&qpair_state) = (struct tcp_conn_state){ .fd = socket_pair(h),
								 .ready = true,
								 .maxr2t = 1 };
	atomic_fetch_add(&group->nqpairs, 1);
	assert_int_equal(weft_qpair_import(&h->qp, group, &qpair_state, &ops, h), 0);
}

static unsigned strangers(void)
{
	return atomic_load(&group->preconnect.now);
}

/* A connection that has sent Connect is no stranger here either, and takes no stranger's place. */
static void import_displaces_nobody(void **state)
{
	struct host hosts[PRECONNECT_MAX], queue;

	weft_poll_group_freeze(group);
	for (unsigned i = 0; i < PRECONNECT_MAX; i++)
		import_host(&hosts[i], 0);
	assert_int_equal(strangers(), PRECONNECT_MAX);
	import_host(&queue, DEPTH);
	assert_int_equal(strangers(), PRECONNECT_MAX);
	assert_int_equal(atomic_load(&group->preconnect.displaced), 0);
	weft_poll_group_thaw(group);
	say_command(&queue, nvme_cmd_flush, 0);
	hear_resp(&queue, 0);
	for (unsigned i = 0; i < PRECONNECT_MAX; i++) {
		say_command(&hosts[i], nvme_cmd_flush, 0);
		hear_resp(&hosts[i], 0);
		close(hosts[i].fd);
		await_end(&hosts[i]);
	}
	close(queue.fd);
	await_end(&queue);
	assert_int_equal(strangers(), 0);
}

/* One stranger too many is displaced, as if it was accepted here. */
static void import_counts_strangers(void **state)
{
	struct host hosts[PRECONNECT_MAX + 1];

	weft_poll_group_freeze(group);
	for (unsigned i = 0; i <= PRECONNECT_MAX; i++)
		import_host(&hosts[i], 0);
	assert_int_equal(strangers(), PRECONNECT_MAX);
	weft_poll_group_thaw(group);
	await_end(&hosts[0]);
	for (unsigned i = 0; i <= PRECONNECT_MAX; i++) {
		close(hosts[i].fd);
		await_end(&hosts[i]);
	}
	assert_int_equal(strangers(), 0);
}

/* --- the end of a connection ------------------------------------------------------------------ */

/* A write is aborted while its connection closes and the kernel still has its buffer: others get
 * that when the socket is closed, and not before. */
static void aborted_while_the_kernel_receives(void **state)
{
	struct nvme_tcp_data r2t;
	struct host h;

	start_host(&h, 0);
	say_command(&h, nvme_cmd_write, 0);
	hear_r2t(&h, &r2t);
	say(&h,
	    &(struct nvme_tcp_data){
		    .hdr = { NVME_TCP_H2C_DATA, NVME_TCP_F_LAST, 24, 24, cpu_to_le32(24 + DATA) },
		    .cccid = r2t.cccid,
		    .ttag = r2t.ttag,
		    .datal = cpu_to_le32(DATA) },
	    24);
	turn(STILL);
	assert_true(tcp_conn_of(h.qp)->stream.payload.under_way);
	weft_qpair_close(h.qp, "by the test");
	assert_true(tcp_conn_of(h.qp)->stream.rx_busy);
	assert_true(weft_req_abort(h.held, NVME_SC_ABORT_REQ));
	assert_int_equal(h.held->state, WEFT_REQ_DRAINING);
	assert_non_null(h.held->in.at);
	await_end(&h);
	close(h.fd);
}

/* One that the user has aborted, and replies to when nobody can send its data any more. */
static void aborted_and_back_late(void **state)
{
	struct nvme_tcp_data r2t;
	struct host h;

	start_host(&h, 0);
	say_command(&h, nvme_cmd_write, 0);
	hear_r2t(&h, &r2t);
	h.keeps = true;
	assert_true(weft_req_abort(h.held, NVME_SC_ABORT_REQ));
	close(h.fd);
	turn(STILL);
	assert_int_equal(tcp_conn_of(h.qp)->stream.state, TCP_STREAM_CLOSED);
	weft_req_reply(h.held, NVME_SC_ABORT_REQ);
	await_end(&h);
}

/* What the user has when the socket is closed comes back later. */
static void closed_when_all_is_back(void **state)
{
	struct host h;

	start_host(&h, 0);
	h.keeps = true;
	say_command(&h, nvme_cmd_flush, 0);
	turn(STILL);
	close(h.fd);
	turn(STILL);
	assert_non_null(h.qp);
	assert_int_equal(tcp_conn_of(h.qp)->stream.state, TCP_STREAM_CLOSED);
	weft_req_reply(h.held, 0);
	assert_non_null(h.qp); /* never from inside this call */
	await_end(&h);
}

/* --- header digests --------------------------------------------------------------------------- */

/* A capsule with data, as far as its header digest, of which one bit is wrong. */
struct digested {
	struct nvme_tcp_cmd pdu;
	uint32_t hdgst;
};
static_assert(offsetof(struct digested, hdgst) == sizeof(struct nvme_tcp_cmd), "no gap");
enum { DIGESTED = sizeof(struct nvme_tcp_cmd) + NVME_TCP_DIGEST };

static struct digested damaged_capsule(unsigned bit)
{
	struct digested d = { .pdu.hdr = { .type = NVME_TCP_CMD,
					   .flags = NVME_TCP_F_HDGST,
					   .hlen = sizeof(d.pdu),
					   .pdo = DIGESTED,
					   .plen = cpu_to_le32(DIGESTED + 512) } };

	d.pdu.sqe.common.opcode = nvme_cmd_write;
	d.pdu.sqe.common.sgl.type = NVME_SGL_IN_CAPSULE;
	d.pdu.sqe.common.sgl.length = cpu_to_le32(512);
	d.hdgst = htole32(nvme_tcp_crc(0, &d.pdu, sizeof(d.pdu)));
	((uint8_t *)&d)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	return d;
}

/* What says whether there is a digest, and where. */
static uint32_t field_of(unsigned bit)
{
	switch (bit / 8) {
	case offsetof(struct nvme_tcp_hdr, type):
		return 0;
	case offsetof(struct nvme_tcp_hdr, flags):
		return bit % 8 ? UINT32_MAX : 1;
	case offsetof(struct nvme_tcp_hdr, hlen):
		return 2;
	default:
		return UINT32_MAX;
	}
}

/* Whatever bit a bad cable turns: the host is told that it is a digest, before data is awaited that
 * a damaged PLEN speaks of. Another type may be one that has none, or comes at another time. */
static void damage_is_a_wrong_digest(void **state)
{
	for (unsigned bit = 8; bit < 8 * DIGESTED; bit++) {
		struct digested d = damaged_capsule(bit);
		uint32_t field = field_of(bit);
		char name[32];
		struct host h;

		snprintf(name, sizeof(name), "byte %u, bit %u", bit / 8, bit % 8);
		start_host(&h, NVME_TCP_DGST_HDR);
		say(&h, &d, DIGESTED);
		if (field == UINT32_MAX)
			hear_term(name, &h, NVME_TCP_FES_HDGST, le32toh(d.hdgst));
		else
			hear_term(name, &h, NVME_TCP_FES_FIELD, field);
		assert_int_equal(h.commands, 0);
		close(h.fd);
		await_end(&h);
	}
}

/* What is wrong, and was sent so, is told as what it is; also when the digest comes later. */
static void digest_is_right(void **state)
{
	for (size_t first = sizeof(struct nvme_tcp_hdr); first <= DIGESTED; first++) {
		struct digested d = damaged_capsule(0);
		struct host h;

		d.pdu.hdr.type = NVME_TCP_CMD;
		d.pdu.hdr.pdo = 0;
		d.hdgst = htole32(nvme_tcp_crc(0, &d.pdu, sizeof(d.pdu)));
		start_host(&h, NVME_TCP_DGST_HDR);
		say(&h, &d, first);
		turn(STILL);
		say(&h, (char *)&d + first, DIGESTED - first);
		hear_term("PDO", &h, NVME_TCP_FES_FIELD, 3);
		close(h.fd);
		await_end(&h);
	}
}

/* --- the end ---------------------------------------------------------------------------------- */

static int begin(void **state)
{
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						      .cpu = -1,
						      .clock = clock_ns };

	weft_log_set_level(WEFT_LOG_ERROR);
	assert_int_equal(weft_reactor_create(&r, &options, NULL), 0);
	assert_int_equal(weft_poll_group_create(&group, r, 0, DEPTH, 8, PRECONNECT_MAX), 0);
	group->control = r;
	return 0;
}

static int end(void **state)
{
	assert_int_equal(atomic_load(&group->nqpairs), 0);
	weft_poll_group_destroy(group);
	weft_reactor_destroy(r);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(thaw_moves_no_termination),
		cmocka_unit_test(termination_outlasts_setup),
		cmocka_unit_test(no_connect_in_time),
		cmocka_unit_test(commands_wait_for_a_slot),
		cmocka_unit_test(no_slot_in_time),
		cmocka_unit_test(strangers_wait_for_a_slot),
		cmocka_unit_test(frozen_does_not_read),
		cmocka_unit_test(frozen_reads_what_it_asks_for),
		cmocka_unit_test(why_it_is_busy),
		cmocka_unit_test(import_displaces_nobody),
		cmocka_unit_test(import_counts_strangers),
		cmocka_unit_test(aborted_while_the_kernel_receives),
		cmocka_unit_test(aborted_and_back_late),
		cmocka_unit_test(closed_when_all_is_back),
		cmocka_unit_test(damage_is_a_wrong_digest),
		cmocka_unit_test(digest_is_right),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
