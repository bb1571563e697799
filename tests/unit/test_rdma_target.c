/* test_rdma_target.c - the RDMA target and a scripted host on the fabric: what it refuses and how
 * it says so, what it survives, and that nothing is left of a connection, however it ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "rdma_session.h"
#include "running.h"

enum {
	SETUP_MS = 30000,
	HOLD_READS = 1u << IBV_WR_RDMA_READ,
	HOLD_ANSWERS = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_INV,
};

static const struct rdma_verbs *const v = &fabric_verbs;

static void fill(char *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		at[i] = (char)(seed >> 16);
	}
}

/* Writes and reads back; the connection works. */
static void check_works(struct raw *q, uint32_t len)
{
	union nvme_sqe write = raw_rw(true, 8, len / BLOCK), read = raw_rw(false, 8, len / BLOCK);

	fill(raw_data(q), len, len);
	memset(raw_data(q) + len, 0, len);
	raw_keyed(q, &write, 0, len);
	raw_keyed(q, &read, len, len);
	assert_int_equal(raw_run(q, &write, 0), 0);
	assert_int_equal(raw_run(q, &read, 0), 0);
	assert_memory_equal(raw_data(q), raw_data(q) + len, len);
}

/* --- private data ----------------------------------------------------------------------------- */

struct request {
	const char *name;
	bool iwarp;
	uint16_t recfmt, qid, hrqsize, hsqsize, cntlid;
	uint8_t len;
	enum nvme_rdma_status sts; /* OK: accepted */
};

static const struct request requests[] = {
	{ "admin", false, 0, 0, 32, 31, 0, 32, NVME_RDMA_OK },
	{ "admin, iWARP", true, 0, 0, 32, 31, 0, 32, NVME_RDMA_OK },
	{ "the least", false, 0, 0, 1, 1, 0, 32, NVME_RDMA_OK },
	{ "the most", false, 0, 0, CASE_DEPTH_MAX, CASE_DEPTH_MAX - 1, 0, 32, NVME_RDMA_OK },
	{ "longer than we know", true, 0, 0, 32, 31, 0, 56, NVME_RDMA_OK },
	{ "an admin queue's CNTLID means nothing", false, 0, 0, 32, 31, 0xffff, 32, NVME_RDMA_OK },
	{ "short", true, 0, 0, 32, 31, 0, 31, NVME_RDMA_BAD_LENGTH },
	{ "none", true, 0, 0, 32, 31, 0, 0, NVME_RDMA_BAD_LENGTH },
	{ "RECFMT", false, 1, 0, 32, 31, 0, 32, NVME_RDMA_BAD_RECFMT },
	{ "QID", false, 0, 0xffff, 32, 31, 0, 32, NVME_RDMA_BAD_QID },
	{ "HSQSIZE 0", false, 0, 0, 32, 0, 0, 32, NVME_RDMA_BAD_HSQSIZE },
	{ "none, padded", false, 0, 0, 0, 0, 0, 0, NVME_RDMA_BAD_HSQSIZE },
	{ "HSQSIZE of one too many", false, 0, 0, 32, CASE_DEPTH_MAX, 0, 32,
	  NVME_RDMA_BAD_HSQSIZE },
	{ "HSQSIZE of all ones", false, 0, 0, 32, 0xffff, 0, 32, NVME_RDMA_BAD_HSQSIZE },
	{ "HRQSIZE 0", false, 0, 0, 0, 31, 0, 32, NVME_RDMA_BAD_HRQSIZE },
	{ "CNTLID", false, 0, 1, 32, 31, 0xfff0, 32, NVME_RDMA_BAD_CNTLID },
};

static void check_refusal(struct raw *q, const char *name, uint16_t sts)
{
	struct nvme_rdma_reject reject;

	fabric_end_take(&q->end);
	if (q->end.event.event != RDMA_CM_EVENT_REJECTED)
		fail_msg("%s: %s", name, rdma_event_str(q->end.event.event));
	memcpy(&reject, q->end.data, sizeof(reject));
	assert_int_equal(le16_to_cpu(reject.recfmt), 0);
	if (le16_to_cpu(reject.sts) != sts)
		fail_msg("%s: status %u", name, le16_to_cpu(reject.sts));
}

static void private_data(void **state)
{
	for_each_named(i, requests, name) {
		const struct request *c = &requests[i];
		char data[56] = { 0 };
		struct nvme_rdma_request request = { cpu_to_le16(c->recfmt), cpu_to_le16(c->qid),
						     cpu_to_le16(c->hrqsize),
						     cpu_to_le16(c->hsqsize),
						     cpu_to_le16(c->cntlid) };
		struct raw q;

		tear_down(state);
		fabric_begin();
		if (c->iwarp)
			fabric_map(IP, "iwarp0");
		case_start(IP);
		memcpy(data, &request, sizeof(request));
		raw_open(&q, IP);
		raw_ask(&q, data, c->len);
		if (c->sts)
			check_refusal(&q, c->name, c->sts);
		else
			fabric_end_expect(&q.end, RDMA_CM_EVENT_ESTABLISHED);
		raw_close(&q);
		case_settle();
	}
}

/* Whatever it is that cannot be had: the host is told, and what could be had is given back. */
static void no_resources(void **state)
{
	static const char *const entries[] = {
		"create_event_channel",
		"migrate_id",
		"query_device",
		"alloc_pd",
		"create_comp_channel",
		"create_cq",
		"create_srq",
		"reg_mr",
		"create_qp",
		"accept",
		"post_srq_recv",
	};
	struct nvme_rdma_request request = raw_request(0, 32, 0);

	for_each_row(i, entries) {
		struct raw q;

		raw_open(&q, IP);
		fabric_fail(entries[i], 0, 1, ENOMEM);
		raw_ask(&q, &request, sizeof(request));
		check_refusal(&q, entries[i], NVME_RDMA_NO_RESOURCES);
		raw_close(&q);
		case_settle();
	}
	session_open();
	check_works(&io, BLOCK);
	session_close();
}

/* The same beside a connection that lives: it is not disturbed. */
static void no_resources_for_one_more(void **state)
{
	static const char *const entries[] = { "migrate_id", "create_qp", "accept",
					       "post_srq_recv" };
	struct nvme_rdma_request request = raw_request(0, 32, 0);

	session_open();
	for_each_row(i, entries) {
		struct raw q;

		raw_open(&q, IP);
		fabric_fail(entries[i], 0, 1, ENOMEM);
		raw_ask(&q, &request, sizeof(request));
		check_refusal(&q, entries[i], NVME_RDMA_NO_RESOURCES);
		raw_close(&q);
		check_works(&io, 4096);
	}
	session_close();
}

/* --- SGLs ------------------------------------------------------------------------------------- */

struct sgl_case {
	const char *name;
	bool write;
	uint32_t blocks;
	uint8_t type;
	uint64_t addr; /* of what is keyed: an offset in raw_data() */
	uint32_t len;
	uint32_t extra; /* bytes behind the command */
	uint16_t status;
};

#define DNR(sc) (SC_GENERIC(sc) | SC_DNR)

static const struct sgl_case sgl_cases[] = {
	{ "keyed write", true, 8, NVME_SGL_KEYED, 0, 4096, 0, 0 },
	{ "keyed read", false, 8, NVME_SGL_KEYED, 0, 4096, 0, 0 },
	{ "keyed, more than asked for", true, 8, NVME_SGL_KEYED, 0, 8192, 0, 0 },
	{ "keyed, one byte short", true, 8, NVME_SGL_KEYED, 0, 4095, 0, DNR(SGL_INVALID_DATA) },
	{ "keyed, nothing", false, 8, NVME_SGL_KEYED, 0, 0, 0, DNR(SGL_INVALID_DATA) },
	{ "keyed, MDTS", true, MDTS / BLOCK, NVME_SGL_KEYED, 0, MDTS, 0, 0 },
	{ "keyed, beyond MDTS", true, MDTS / BLOCK + 1, NVME_SGL_KEYED, 0, MDTS + BLOCK, 0,
	  DNR(INVALID_FIELD) },
	{ "keyed read, beyond MDTS", false, 0x10000, NVME_SGL_KEYED, 0, 0xffffff, 0,
	  DNR(INVALID_FIELD) },
	{ "capsule", true, 8, NVME_SGL_IN_CAPSULE, 0, 4096, 4096, 0 },
	{ "capsule, at an offset", true, 1, NVME_SGL_IN_CAPSULE, 1024, 512, 4096, 0 },
	{ "capsule, more than asked for", true, 1, NVME_SGL_IN_CAPSULE, 0, 4096, 4096, 0 },
	{ "capsule, short", true, 8, NVME_SGL_IN_CAPSULE, 0, 512, 4096, DNR(SGL_INVALID_DATA) },
	{ "capsule, offset beyond", true, 1, NVME_SGL_IN_CAPSULE, 4097, 512, 4096,
	  DNR(SGL_INVALID_OFFSET) },
	{ "capsule, end beyond", true, 1, NVME_SGL_IN_CAPSULE, 3585, 512, 4096,
	  DNR(SGL_INVALID_OFFSET) },
	{ "capsule, beyond what came", true, 1, NVME_SGL_IN_CAPSULE, 0, 512, 511,
	  DNR(SGL_INVALID_OFFSET) },
	{ "capsule, offset wraps", true, 1, NVME_SGL_IN_CAPSULE, UINT64_MAX - 10, 512, 4096,
	  DNR(SGL_INVALID_OFFSET) },
	{ "capsule, length wraps", true, 1, NVME_SGL_IN_CAPSULE, 16, UINT32_MAX, 4096,
	  DNR(SGL_INVALID_OFFSET) },
	{ "capsule, for a read", false, 1, NVME_SGL_IN_CAPSULE, 0, 512, 512,
	  DNR(SGL_INVALID_TYPE) },
	{ "a plain data block", true, 1, 0x00, 0, 512, 0, DNR(SGL_INVALID_TYPE) },
	{ "a bit bucket", false, 1, 0x10, 0, 512, 0, DNR(SGL_INVALID_TYPE) },
	{ "a segment, not the last", true, 1, 0x21, 0, 16, 16, DNR(SGL_INVALID_TYPE) },
	{ "a last segment elsewhere", true, 1, 0x30, 0, 16, 16, DNR(SGL_INVALID_TYPE) },
	{ "a transport's", true, 1, NVME_SGL_TRANSPORT, 0, 512, 0, DNR(SGL_INVALID_TYPE) },
	{ "keyed, subtype", true, 1, 0x41, 0, 512, 0, DNR(SGL_INVALID_TYPE) },
	{ "vendor's", true, 1, 0xf0, 0, 512, 0, DNR(SGL_INVALID_TYPE) },
	{ "list out of the capsule", true, 1, NVME_SGL_LAST_IN_CAPSULE, 16, 16, 16,
	  DNR(SGL_INVALID_OFFSET) },
	{ "list, its end out of the capsule", true, 1, NVME_SGL_LAST_IN_CAPSULE, 0, 32, 31,
	  DNR(SGL_INVALID_OFFSET) },
	{ "list, no whole descriptor", true, 1, NVME_SGL_LAST_IN_CAPSULE, 0, 24, 24,
	  DNR(SGL_INVALID_LAST) },
	{ "list, empty", true, 1, NVME_SGL_LAST_IN_CAPSULE, 0, 0, 0, DNR(SGL_INVALID_LAST) },
	{ "list, too many", true, 1, NVME_SGL_LAST_IN_CAPSULE, 0, 17 * 16, 17 * 16,
	  DNR(SGL_INVALID_COUNT) },
	{ "list of zeroes", true, 1, NVME_SGL_LAST_IN_CAPSULE, 0, 16, 16, DNR(SGL_INVALID_TYPE) },
};

static void sgls(void **state)
{
	session_open();
	for_each_named(i, sgl_cases, name) {
		const struct sgl_case *c = &sgl_cases[i];
		union nvme_sqe sqe = raw_rw(c->write, 0, c->blocks);
		uint16_t status;

		if (c->type == NVME_SGL_KEYED)
			raw_keyed(&io, &sqe, (uint32_t)c->addr, c->len);
		else
			sqe.common.sgl = raw_sgl(c->type, c->addr, c->len);
		memset(raw_extra(&io), 0, c->extra);
		status = raw_run(&io, &sqe, c->extra);
		if (status != c->status)
			fail_msg("%s: status %#x, not %#x", c->name, status, c->status);
	}
	check_works(&io, MDTS);
	session_close();
}

static void in_capsule(void **state)
{
	union nvme_sqe write = raw_rw(true, 100, 2), read = raw_rw(false, 100, 2);

	session_open();
	fill(raw_extra(&io) + 8, 1024, 1);
	memcpy(raw_data(&io) + 4096, raw_extra(&io) + 8, 1024);
	write.common.sgl = raw_sgl(NVME_SGL_IN_CAPSULE, 8, 1024);
	assert_int_equal(raw_run(&io, &write, 1032), 0);
	raw_keyed(&io, &read, 0, 1024);
	assert_int_equal(raw_run(&io, &read, 0), 0);
	assert_memory_equal(raw_data(&io), raw_data(&io) + 4096, 1024);
	session_close();
}

/* Pieces of the host's memory, in no order, of odd lengths. */
static const struct {
	uint32_t offset, len;
} pieces[] = { { 9000, 1 }, { 100, 511 }, { 5000, 0 }, { 20001, 3000 }, { 12, 80 }, { 2000, 504 } };

static void put_list(struct raw *q, union nvme_sqe *sqe, uint32_t at)
{
	for_each_row(i, pieces) {
		struct nvme_keyed_sgl block;

		nvme_keyed_sgl_set(&block, (uintptr_t)raw_data(q) + at + pieces[i].offset,
				   pieces[i].len, q->end.mr->rkey);
		memcpy(raw_extra(q) + i * sizeof(block), &block, sizeof(block));
	}
	sqe->common.sgl = raw_sgl(NVME_SGL_LAST_IN_CAPSULE, 0, COUNT(pieces) * 16);
}

static void lists(void **state)
{
	union nvme_sqe write = raw_rw(true, 0, 8), read = raw_rw(false, 0, 8);
	const uint32_t there = 40000;

	session_open();
	fill(raw_data(&io), there, 7);
	put_list(&io, &write, 0);
	assert_int_equal(raw_run(&io, &write, COUNT(pieces) * 16), 0);
	memset(raw_data(&io) + there, 0, there);
	put_list(&io, &read, there);
	assert_int_equal(raw_run(&io, &read, COUNT(pieces) * 16), 0);
	for_each_row(i, pieces)
		assert_memory_equal(raw_data(&io) + pieces[i].offset,
				    raw_data(&io) + there + pieces[i].offset, pieces[i].len);
	/* Nothing but the pieces was written. */
	assert_int_equal(raw_data(&io)[there + 9001], 0);
	assert_int_equal(raw_data(&io)[there + 20001 + 3000], 0);
	session_close();
}

static void turn_until_pending(struct ibv_qp *qp)
{
	for (int i = 0; i < 100 && !fabric_pending(qp); i++)
		case_turn();
}

/* A piece of no bytes moves nothing, and asks nothing of the adapter. */
static void a_request_per_piece(void **state)
{
	union nvme_sqe write = raw_rw(true, 0, 8);

	session_open();
	fabric_hold(target_qp(&io), HOLD_READS);
	put_list(&io, &write, 0);
	raw_send(&io, &write, COUNT(pieces) * 16);
	turn_until_pending(target_qp(&io));
	assert_int_equal(fabric_pending(target_qp(&io)), COUNT(pieces) - 1);
	fabric_hold(target_qp(&io), 0);
	assert_int_equal(raw_answer(&io).status, 0);
	session_close();
}

/* What soft iWARP is not asked to tell the end of, it sends with what is in its pages by then. */
static void writes_that_are_asked_about(void **state)
{
	static const struct {
		const char *device;
		unsigned signaled;
	} cases[] = { { "fake0", 0 }, { "iwarp0", IBV_SEND_SIGNALED } };

	for_each_named(i, cases, device) {
		union nvme_sqe read = raw_rw(false, 0, 8);

		tear_down(state);
		fabric_begin();
		fabric_map(IP, cases[i].device);
		case_start(IP);
		session_open();
		fabric_hold(target_qp(&io), 1u << IBV_WR_RDMA_WRITE);
		raw_keyed(&io, &read, 0, 4096);
		raw_send(&io, &read, 0);
		turn_until_pending(target_qp(&io));
		assert_int_equal(fabric_next(target_qp(&io))->opcode, IBV_WR_RDMA_WRITE);
		assert_int_equal(fabric_next(target_qp(&io))->send_flags & IBV_SEND_SIGNALED,
				 cases[i].signaled);
		fabric_hold(target_qp(&io), 0);
		assert_int_equal(raw_answer(&io).status, 0);
		session_close();
	}
}

/* A read into memory with a key of its own, that the host gives up with the command. */
static void check_invalidation(struct raw *q, bool invalidated)
{
	union nvme_sqe read = raw_rw(false, 0, 1);
	struct ibv_mr *mr = v->reg_mr(q->end.pd, raw_data(q), BLOCK, END_ALL_RIGHTS);

	raw_keyed(q, &read, 0, BLOCK);
	nvme_keyed_sgl_set((struct nvme_keyed_sgl *)&read.common.sgl, (uintptr_t)raw_data(q), BLOCK,
			   mr->rkey);
	assert_int_equal(raw_run(q, &read, 0), 0);
	assert_int_equal(q->wc.wc_flags & IBV_WC_WITH_INV, 0);
	read.common.sgl.type = NVME_SGL_KEYED_INVALIDATE;
	assert_int_equal(raw_run(q, &read, 0), 0);
	assert_int_equal(!!(q->wc.wc_flags & IBV_WC_WITH_INV), invalidated);
	if (invalidated)
		assert_int_equal(q->wc.invalidated_rkey, mr->rkey);
	else
		assert_int_equal(raw_run(q, &read, 0), 0); /* the key is good until the host acts */
	v->dereg_mr(mr);
}

/* What an adapter cannot do, the host does itself; some only say that they can. */
static const struct {
	const char *name;
	bool iwarp, capable, refuses, invalidated;
} invalidation_cases[] = {
	{ "can", false, true, false, true },
	{ "can, iWARP", true, true, false, true },
	{ "cannot", false, false, false, false },
	{ "cannot, iWARP", true, false, false, false },
	{ "says it can", false, true, true, false },
	{ "says it can, iWARP", true, true, true, false },
};

static void invalidation(void **state)
{
	for_each_named(i, invalidation_cases, name) {
		const char *name = invalidation_cases[i].iwarp ? "iwarp0" : "fake0";
		struct fabric_device *device;

		tear_down(state);
		fabric_begin();
		fabric_map(IP, name);
		device = fabric_device(name);
		if (!invalidation_cases[i].capable)
			device->attr.device_cap_flags = 0;
		device->refuses_inv = invalidation_cases[i].refuses;
		case_start(IP);
		session_open();
		check_invalidation(&io, invalidation_cases[i].invalidated);
		check_works(&io, 4096);
		session_close();
	}
}

/* --- keys that are not for the target --------------------------------------------------------- */

struct key_case {
	const char *name;
	bool write, unknown, foreign;
	int rights;
	uint32_t beyond; /* of its end */
};

static const struct key_case key_cases[] = {
	{ "unknown, to be read", true, true, false, END_ALL_RIGHTS, 0 },
	{ "unknown, to be written", false, true, false, END_ALL_RIGHTS, 0 },
	{ "no right to read", true, false, false, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	  0 },
	{ "no right to write", false, false, false, IBV_ACCESS_REMOTE_READ, 0 },
	{ "another's", false, false, true, END_ALL_RIGHTS, 0 },
	{ "past its end", true, false, false, END_ALL_RIGHTS, 1 },
};

static void keys(void **state)
{
	for_each_named(i, key_cases, name) {
		const struct key_case *c = &key_cases[i];
		union nvme_sqe sqe = raw_rw(c->write, 0, 8), good = raw_rw(false, 0, 8);
		struct ibv_mr *mr;

		session_open();
		mr = v->reg_mr(c->foreign ? admin.end.pd : io.end.pd, raw_data(&io), 4096,
			       c->rights);
		nvme_keyed_sgl_set((struct nvme_keyed_sgl *)&sqe.common.sgl,
				   (uintptr_t)raw_data(&io) + c->beyond, 4096,
				   mr->rkey + c->unknown);
		raw_send(&io, &sqe, 0);
		/* Others that are on their way go down with it. */
		raw_keyed(&io, &good, 8192, 4096);
		raw_send(&io, &good, 0);
		raw_expect_end(&io);
		check_alive(&admin);
		v->dereg_mr(mr);
		session_close();
	}
}

/* --- the host goes away ----------------------------------------------------------------------- */

static void write_held(struct raw *q, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		union nvme_sqe write = raw_rw(true, 0, 16);

		raw_keyed(q, &write, i * 8192, 8192);
		raw_send(q, &write, 0);
	}
	turn_until_pending(target_qp(q));
	assert_int_equal(fabric_next(target_qp(q))->opcode, IBV_WR_RDMA_READ);
}

enum vanishing {
	DISCONNECTS,
	DIES,
	FALLS_SILENT,
	FALLS_SILENT_AND_IS_NOTICED,
	QP_ERROR,
	COUNT_OF_WAYS
};

/* In the middle of a READ, with others behind it. */
static void vanishes(void **state)
{
	for (enum vanishing way = 0; way < COUNT_OF_WAYS; way++) {
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
		struct ibv_qp *qp;

		session_open();
		qp = target_qp(&io);
		fabric_hold(qp, HOLD_READS);
		write_held(&io, 4);
		assert_true(fabric_part(qp, 1000));
		switch (way) {
		case DISCONNECTS:
			assert_return_code(v->disconnect(io.end.id), errno);
			break;
		case DIES: /* its process: everything goes at once */
			break;
		case FALLS_SILENT:
			fabric_cut(qp);
			break;
		case FALLS_SILENT_AND_IS_NOTICED:
			fabric_cut(qp);
			assert_true(fabric_time_out(qp));
			break;
		default:
			v->modify_qp(io.end.id->qp, &attr, IBV_QP_STATE);
			assert_true(fabric_step(qp)); /* retried in vain */
		}
		if (way == FALLS_SILENT) {
			/* Its admin queue ends, so its controller does, and with that this
			 * queue. */
			raw_close(&admin);
			case_turns(50);
			raw_close(&io);
		} else {
			case_turns(50);
			raw_close(&io);
			raw_close(&admin);
		}
		case_settle();
	}
}

/* What was read before the host vanished is not written: a command is carried out whole. */
static void half_read(void **state)
{
	union nvme_sqe read = raw_rw(false, 0, 16);
	struct ibv_qp *qp;

	session_open();
	check_works(&io, 8192);
	memset(raw_data(&io), 0x5a, 8192);
	qp = target_qp(&io);
	fabric_hold(qp, HOLD_READS);
	write_held(&io, 1);
	fabric_part(qp, 4096);
	v->disconnect(io.end.id);
	case_turns(20);
	raw_close(&io);
	raw_close(&admin);
	case_settle();
	session_open();
	raw_keyed(&io, &read, 0, 8192);
	assert_int_equal(raw_run(&io, &read, 0), 0);
	assert_int_equal(raw_data(&io)[0], 0);
	session_close();
}

static void stops_with_reads_under_way(void **state)
{
	session_open();
	fabric_hold(target_qp(&io), HOLD_READS);
	write_held(&io, DEPTH - 1);
	case_stop();
	raw_close(&io);
	raw_close(&admin);
	assert_string_equal(fabric_left(), "");
	case_start(IP);
}

/* Data of different hosts comes in whatever order. */
static void reads_out_of_order(void **state)
{
	struct raw other;
	uint16_t cntlid = raw_admin(&admin, IP);
	union nvme_sqe write = raw_rw(true, 0, 8), later = raw_rw(true, 8, 8),
		       read = raw_rw(false, 0, 16);
	struct ibv_qp *first, *second;

	raw_io(&io, IP, cntlid, 1, DEPTH);
	raw_io(&other, IP, cntlid, 2, DEPTH);
	first = target_qp(&io);
	second = target_qp(&other);
	fabric_hold(first, HOLD_READS);
	fabric_hold(second, HOLD_READS);
	memset(raw_data(&io), 'a', 4096);
	memset(raw_data(&other), 'b', 4096);
	raw_keyed(&io, &write, 0, 4096);
	raw_send(&io, &write, 0);
	raw_keyed(&other, &later, 0, 4096);
	raw_send(&other, &later, 0);
	case_turns(10);
	assert_int_equal(fabric_pending(first), 1);
	assert_true(fabric_step(second));
	assert_int_equal(raw_answer(&other).status, 0);
	assert_int_equal(io.answers, 1);
	assert_true(fabric_step(first));
	assert_int_equal(raw_answer(&io).status, 0);
	raw_keyed(&io, &read, 0, 8192);
	assert_int_equal(raw_run(&io, &read, 0), 0);
	assert_int_equal(raw_data(&io)[4095], 'a');
	assert_int_equal(raw_data(&io)[4096], 'b');
	raw_close(&other);
	session_close();
}

/* --- completions with errors ------------------------------------------------------------------ */

static const enum ibv_wc_status statuses[] = {
	IBV_WC_LOC_LEN_ERR,     IBV_WC_LOC_QP_OP_ERR,     IBV_WC_LOC_PROT_ERR,
	IBV_WC_WR_FLUSH_ERR,    IBV_WC_BAD_RESP_ERR,      IBV_WC_LOC_ACCESS_ERR,
	IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR,    IBV_WC_REM_OP_ERR,
	IBV_WC_RETRY_EXC_ERR,   IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_REM_ABORT_ERR,
	IBV_WC_FATAL_ERR,       IBV_WC_RESP_TIMEOUT_ERR,  IBV_WC_GENERAL_ERR,
};

enum victim { A_READ, A_WRITE, AN_ANSWER, A_RECEIVE, VICTIMS };

static void fail_one(enum victim victim, enum ibv_wc_status status)
{
	union nvme_sqe sqe = raw_rw(victim == A_READ, 0, 16);

	if (victim == AN_ANSWER)
		sqe = (union nvme_sqe){ .common = { .opcode = nvme_cmd_flush,
						    .flags = NVME_PSDT_SGL,
						    .nsid = cpu_to_le32(1) } };
	else
		raw_keyed(&io, &sqe, 0, 8192);
	fabric_fail_next(target_qp(&io), victim == A_RECEIVE, status);
	raw_send(&io, &sqe, 0);
	raw_expect_end(&io);
}

static void bad_completions(void **state)
{
	for_each_row(i, statuses)
		for (enum victim victim = 0; victim < VICTIMS; victim++) {
			session_open();
			fail_one(victim, statuses[i]);
			check_alive(&admin);
			session_close();
		}
}

/* The target is through with the connection, and only the receives' moment has passed. */
static void check_gone(const struct raw *q)
{
	case_turns(20);
	case_advance(30);
	assert_null(target_qp(q));
}

static void sends_that_fail(void **state)
{
	for (unsigned victim = 0; victim < A_RECEIVE; victim++) {
		union nvme_sqe sqe = raw_rw(victim == A_READ, 0, 16);

		session_open();
		raw_keyed(&io, &sqe, 0, 8192);
		raw_send(&io, &sqe, 0);
		fabric_fail("post_send", 0, 1, ENOMEM);
		check_gone(&io);
		check_alive(&admin);
		session_close();
	}
}

/* Receives that the adapter does not take now, it is given later. */
static void receives_that_fail(void **state)
{
	unsigned before;

	session_open();
	case_turns(10);
	before = fabric_receives(target_qp(&io));
	for (unsigned i = 0; i < 3; i++) {
		fabric_fail("post_srq_recv", 0, 1 + i, ENOMEM);
		check_works(&io, 8192);
		for (unsigned j = 0; j < 100; j++)
			case_advance(100);
		assert_int_equal(fabric_receives(target_qp(&io)), before);
	}
	session_close();
}

/* --- events in bad orders --------------------------------------------------------------------- */

struct event_case {
	const char *name;
	enum rdma_cm_event_type events[3];
	unsigned count;
	bool lives;
};

static const struct event_case event_cases[] = {
	{ "DISCONNECTED twice",
	  { RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DISCONNECTED },
	  2,
	  false },
	{ "TIMEWAIT_EXIT early", { RDMA_CM_EVENT_TIMEWAIT_EXIT }, 1, true },
	{ "TIMEWAIT_EXIT, DISCONNECTED",
	  { RDMA_CM_EVENT_TIMEWAIT_EXIT, RDMA_CM_EVENT_DISCONNECTED },
	  2,
	  false },
	{ "ESTABLISHED again", { RDMA_CM_EVENT_ESTABLISHED }, 1, true },
	{ "ESTABLISHED when it is over",
	  { RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED },
	  2,
	  false },
	{ "UNREACHABLE", { RDMA_CM_EVENT_UNREACHABLE }, 1, false },
	{ "REJECTED", { RDMA_CM_EVENT_REJECTED }, 1, false },
	{ "CONNECT_ERROR", { RDMA_CM_EVENT_CONNECT_ERROR }, 1, false },
	{ "ADDR_CHANGE", { RDMA_CM_EVENT_ADDR_CHANGE }, 1, false },
	{ "DEVICE_REMOVAL and all the rest",
	  { RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_TIMEWAIT_EXIT },
	  3,
	  false },
	{ "an event that is not for it", { RDMA_CM_EVENT_ADDR_RESOLVED }, 1, true },
	{ "multicast", { RDMA_CM_EVENT_MULTICAST_ERROR }, 1, true },
};

static void events(void **state)
{
	for_each_named(i, event_cases, name) {
		const struct event_case *c = &event_cases[i];
		struct rdma_cm_id *id;

		session_open();
		id = fabric_peer_id(io.end.id);
		for (unsigned j = 0; j < c->count; j++)
			fabric_event(id, c->events[j], -5);
		case_turns(20);
		if (c->lives)
			check_works(&io, 4096);
		else
			raw_expect_end(&io);
		check_alive(&admin);
		session_close();
	}
}

/* Its first command is here before the connection manager says that there is a connection. */
static void established_late(void **state)
{
	fabric_delay(RDMA_CM_EVENT_ESTABLISHED, true);
	session_open();
	check_works(&io, 4096);
	fabric_deliver();
	case_turns(10);
	check_works(&io, 4096);
	session_close();
}

static void established_never(void **state)
{
	fabric_delay(RDMA_CM_EVENT_ESTABLISHED, true);
	session_open();
	check_works(&io, 4096);
	session_close();
}

static void gone_before_it_was_accepted(void **state)
{
	struct nvme_rdma_request request = raw_request(0, 32, 0);
	struct raw q;

	raw_open(&q, IP);
	raw_ask(&q, &request, sizeof(request));
	raw_close(&q);
	case_turns(20);
	case_settle();
}

static void no_connect_command(void **state)
{
	struct nvme_rdma_request request = raw_request(0, 32, 0);
	struct raw q;

	raw_open(&q, IP);
	raw_ask(&q, &request, sizeof(request));
	fabric_end_expect(&q.end, RDMA_CM_EVENT_ESTABLISHED);
	case_turns(20);
	case_advance(SETUP_MS - 1000);
	assert_true(fabric_end_quiet(&q.end));
	case_advance(2000);
	raw_expect_end(&q);
	raw_close(&q);
	case_settle();
}

/* The host waits for the answer, and may take a lost one for a lost command. */
static void disconnect_is_answered(void **state)
{
	union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
					    .rsvd1 = NVME_PSDT_SGL,
					    .fctype = NVMF_DISCONNECT } };

	session_open();
	fabric_hold(target_qp(&io), HOLD_ANSWERS);
	raw_send(&io, &sqe, 0);
	turn_until_pending(target_qp(&io));
	case_turns(10);
	assert_true(fabric_end_quiet(&io.end));
	fabric_hold(target_qp(&io), 0);
	assert_int_equal(raw_answer(&io).status, 0);
	raw_expect_end(&io);
	check_alive(&admin);
	session_close();
}

static void adapter_removed(void **state)
{
	session_open();
	fabric_hold(target_qp(&io), HOLD_READS);
	write_held(&io, 3);
	fabric_remove("fake0");
	/* It hands nothing back: that is waited for, a little. */
	case_turns(20);
	case_advance(5000);
	raw_close(&io);
	raw_close(&admin);
	case_turns(20);
	assert_int_equal(fabric_counts().ids, 0);
	assert_int_equal(fabric_counts().qps, 0);
	assert_int_equal(fabric_counts().mrs, 0);
	/* It comes back, and is listened on again. */
	fabric_restore("fake0");
	case_advance(60000);
	case_settle();
	session_open();
	check_works(&io, 4096);
	session_close();
}

/* It hands nothing back for as long as that is waited for, and then everything in the same turn. */
static void adapter_slow(void **state)
{
	struct ibv_qp *qp;

	session_open();
	qp = target_qp(&io);
	fabric_hold(qp, HOLD_READS);
	write_held(&io, 3);
	fabric_fail("disconnect", 0, 1, EIO);
	fabric_event(fabric_peer_id(io.end.id), RDMA_CM_EVENT_DISCONNECTED, 0);
	case_turns(10);
	assert_int_equal(fabric_counts().qps, 4);
	fabric_hold(qp, 0);
	case_advance(5000);
	raw_close(&io);
	raw_close(&admin);
	case_settle();
}

/* A request is on its way to its reactor when the listener goes. */
static void listener_goes(void **state)
{
	struct nvme_rdma_request request = raw_request(0, 32, 0);
	struct raw q;

	for (unsigned turns = 0; turns < 6; turns++) {
		raw_open(&q, IP);
		raw_ask(&q, &request, sizeof(request));
		case_turns(turns);
		case_listen_again();
		fabric_end_take(&q.end);
		raw_close(&q);
		case_settle();
	}
	session_open();
	check_works(&io, 4096);
	case_listen_again();
	check_works(&io, 4096);
	session_close();
}

/* The same where the reactor is another one, and slow. */
static void listener_goes_first(void **state)
{
	struct nvme_rdma_request request = raw_request(0, 32, 0);
	struct raw q;

	tear_down(state);
	fabric_begin();
	case_start_apart(IP);
	raw_open(&q, IP);
	raw_ask(&q, &request, sizeof(request));
	case_turn_control();
	case_unlisten();
	for (int i = 0; i < 10; i++)
		case_turn_control();
	case_turns(10);
	fabric_end_take(&q.end);
	raw_close(&q);
}

static void two_reactors(void **state)
{
	tear_down(state);
	fabric_begin();
	case_start_apart(IP);
	session_open();
	check_works(&io, MDTS);
	session_close();
}

/* --- more than there should be ---------------------------------------------------------------- */

static void too_many_commands(void **state)
{
	session_open();
	fabric_hold(target_qp(&io), HOLD_READS);
	write_held(&io, DEPTH);
	check_alive(&admin);
	write_held(&io, 4 * DEPTH);
	raw_expect_end(&io);
	check_alive(&admin);
	session_close();
}

static void capsule_sizes(void **state)
{
	static const struct {
		uint32_t len;
		bool lives;
	} sizes[] = { { 0, false },
		      { 1, false },
		      { 63, false },
		      { 64, true },
		      { 64 + CAPSULE_DATA, true },
		      { 64 + CAPSULE_DATA + 1, false } };

	for_each_row(i, sizes) {
		union nvme_sqe sqe = raw_rw(false, 0, 1);

		session_open();
		raw_keyed(&io, &sqe, 0, BLOCK);
		memcpy(io.end.memory, &sqe, sizeof(sqe));
		fabric_end_send(&io.end, 1, 0, sizes[i].len);
		if (sizes[i].lives)
			assert_int_equal(raw_answer(&io).status, 0);
		else
			raw_expect_end(&io);
		session_close();
	}
}

/* The host has no receive for an answer: the target waits, and does not lose it. */
static void host_not_ready(void **state)
{
	union nvme_sqe read = raw_rw(false, 0, 1);
	struct raw q = { 0 };
	struct nvme_rdma_request request = raw_request(0, 4, 0);

	fabric_end_open(&q.end);
	fabric_end_resolve(&q.end, IP, case_port());
	fabric_end_qp(&q.end);
	raw_ask(&q, &request, sizeof(request));
	fabric_end_expect(&q.end, RDMA_CM_EVENT_ESTABLISHED);
	raw_keyed(&q, &read, 0, BLOCK);
	raw_send(&q, &read, 0);
	case_turns(20);
	assert_int_equal(fabric_counts().rnr, 1);
	fabric_end_recv(&q.end, 0);
	/* Before Connect it is only an error. */
	assert_int_not_equal(raw_answer(&q).status, 0);
	raw_close(&q);
	case_settle();
}

/* Commands that nobody has looked at when their connection ends: their receives are everybody's. */
static void receives_come_back(void **state)
{
	union nvme_sqe flush = { .common = { .opcode = nvme_cmd_flush,
					     .flags = NVME_PSDT_SGL,
					     .nsid = cpu_to_le32(1) } };
	unsigned before;

	raw_io(&io, IP, raw_admin(&admin, IP), 1, CASE_DEPTH_MAX);
	case_turns(10);
	before = fabric_receives(target_qp(&admin));
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < CASE_DEPTH_MAX - 1; i++)
			raw_send(&io, &flush, 0);
		fabric_event(fabric_peer_id(io.end.id), RDMA_CM_EVENT_DISCONNECTED, 0);
		raw_expect_end(&io);
		raw_close(&io);
		case_turns(20);
		assert_int_equal(fabric_receives(target_qp(&admin)), before);
		raw_close(&admin);
		case_settle();
		raw_io(&io, IP, raw_admin(&admin, IP), 1, CASE_DEPTH_MAX);
		case_turns(10);
	}
	session_close();
}

/* --- other adapters --------------------------------------------------------------------------- */

static void on_iwarp(void **state)
{
	tear_down(state);
	fabric_begin();
	fabric_map(IP, "iwarp0");
	case_start(IP);
	session_open();
	check_works(&io, BLOCK);
	check_works(&io, MDTS);
	fabric_hold(target_qp(&io), HOLD_READS);
	write_held(&io, 5);
	v->disconnect(io.end.id);
	case_turns(20);
	session_close();
}

static void without_shared_receives(void **state)
{
	tear_down(state);
	fabric_begin();
	fabric_device("fake0")->attr.max_srq = 0;
	case_start(IP);
	session_open();
	check_works(&io, BLOCK);
	check_works(&io, MDTS);
	assert_int_equal(fabric_counts().srqs, 0);
	fabric_hold(target_qp(&io), HOLD_READS);
	write_held(&io, 5);
	v->disconnect(io.end.id);
	case_turns(20);
	session_close();
}

/* Many commands at once, of both kinds, with what the adapter does kept back a while. */
static void check_load(struct raw *q, uint32_t len)
{
	for (unsigned round = 0; round < 3; round++) {
		fabric_hold(target_qp(q), round == 1 ? HOLD_READS | HOLD_ANSWERS : 0);
		for (unsigned i = 0; i < DEPTH - 1; i++) {
			union nvme_sqe sqe = raw_rw(i % 2, i * 8, len / BLOCK);

			raw_keyed(q, &sqe, i * len, len);
			raw_send(q, &sqe, 0);
		}
		case_turns(10);
		fabric_hold(target_qp(q), 0);
		for (unsigned i = 0; i < DEPTH - 1; i++)
			assert_int_equal(raw_answer(q).status, 0);
	}
}

/* Sixteen pieces each: more work requests than there are, so that commands wait for each other. */
static void send_chains(struct raw *q)
{
	for (unsigned i = 0; i < DEPTH - 1; i++) {
		union nvme_sqe sqe = raw_rw(i % 2, i * 8, 8);

		for (unsigned j = 0; j < 16; j++) {
			struct nvme_keyed_sgl block;

			nvme_keyed_sgl_set(&block, (uintptr_t)raw_data(q) + (j * 16 + i) * 256, 256,
					   q->end.mr->rkey);
			memcpy(raw_extra(q) + j * sizeof(block), &block, sizeof(block));
		}
		sqe.common.sgl = raw_sgl(NVME_SGL_LAST_IN_CAPSULE, 0, 16 * 16);
		raw_send(q, &sqe, 16 * 16);
	}
}

static void check_chains(struct raw *q)
{
	fabric_hold(target_qp(q), HOLD_READS | HOLD_ANSWERS);
	send_chains(q);
	case_turns(10);
	fabric_hold(target_qp(q), 0);
	for (unsigned i = 0; i < DEPTH - 1; i++)
		assert_int_equal(raw_answer(q).status, 0);
}

/* In the capsules: their receives are held until they are answered. */
static void check_capsules(struct raw *q)
{
	for (unsigned i = 0; i < DEPTH - 1; i++) {
		union nvme_sqe sqe = raw_rw(true, i * 8, 8);

		sqe.common.sgl = raw_sgl(NVME_SGL_IN_CAPSULE, 0, CAPSULE_DATA);
		raw_send(q, &sqe, CAPSULE_DATA);
	}
	for (unsigned i = 0; i < DEPTH - 1; i++)
		assert_int_equal(raw_answer(q).status, 0);
}

/* What adapters differ in; 0: as usual. */
static const struct {
	const char *name;
	int max_qp_wr, max_init_rd, max_srq_wr, max_srq_sge, max_cqe, max_sge;
	bool no_inline;
} poor_ones[] = {
	{ "few work requests", .max_qp_wr = 256 },
	{ "one READ at a time", .max_init_rd = 1 },
	{ "few shared receives", .max_srq_wr = 10 },
	{ "shared receives of one piece", .max_srq_sge = 1 },
	{ "short completion queues", .max_cqe = 5000 },
	{ "two pieces at most", .max_sge = 2 },
	{ "nothing inline", .no_inline = true },
	{ "all of it", 256, 1, 10, 2, 5000, 2, true },
};

static void make_poor(unsigned i)
{
	struct fabric_device *dev = fabric_device("fake0");

	dev->attr.max_qp_wr = poor_ones[i].max_qp_wr ? poor_ones[i].max_qp_wr : dev->attr.max_qp_wr;
	dev->attr.max_qp_init_rd_atom = poor_ones[i].max_init_rd ? poor_ones[i].max_init_rd :
								   dev->attr.max_qp_init_rd_atom;
	dev->attr.max_srq_wr = poor_ones[i].max_srq_wr ? poor_ones[i].max_srq_wr :
							 dev->attr.max_srq_wr;
	dev->attr.max_srq_sge = poor_ones[i].max_srq_sge ? poor_ones[i].max_srq_sge :
							   dev->attr.max_srq_sge;
	dev->attr.max_cqe = poor_ones[i].max_cqe ? poor_ones[i].max_cqe : dev->attr.max_cqe;
	dev->attr.max_sge = poor_ones[i].max_sge ? poor_ones[i].max_sge : dev->attr.max_sge;
	dev->max_inline = poor_ones[i].no_inline ? 0 : dev->max_inline;
}

/* Answers wait for work requests when the host goes. */
static void gone_with_answers_waiting(void **state)
{
	session_open();
	fabric_hold(target_qp(&io), HOLD_READS | HOLD_ANSWERS);
	send_chains(&io);
	case_turns(10);
	v->disconnect(io.end.id);
	check_gone(&io);
	check_alive(&admin);
	session_close();
}

/* What one connection had of the completion queues, the next one gets. */
static void connections_come_and_go(void **state)
{
	unsigned cqs = 0;

	tear_down(state);
	fabric_begin();
	fabric_device("fake0")->attr.max_cqe = 4400;
	case_start(IP);
	for (unsigned i = 0; i < 30; i++) {
		if (i)
			raw_io(&io, IP, admin.cntlid, 1, DEPTH);
		else
			raw_io(&io, IP, raw_admin(&admin, IP), 1, DEPTH);
		if (i)
			assert_int_equal(fabric_counts().cqs, cqs);
		cqs = fabric_counts().cqs;
		raw_close(&io);
		case_turns(20);
		case_advance(30);
	}
	raw_close(&admin);
	case_settle();
}

static void poor_adapters(void **state)
{
	for_each_named(i, poor_ones, name) {
		tear_down(state);
		fabric_begin();
		make_poor(i);
		case_start(IP);
		session_open();
		check_works(&io, MDTS);
		check_load(&io, 4096);
		check_chains(&io);
		check_capsules(&io);
		session_close();
	}
}

/* More connections than one completion queue has room for; they go in another order. */
static void many_connections(void **state)
{
	enum { MANY = 8 };
	struct raw q[MANY];

	for (int shared = 0; shared < 2; shared++) {
		uint16_t cntlid;

		tear_down(state);
		fabric_begin();
		fabric_device("fake0")->attr.max_cqe = 4300;
		fabric_device("fake0")->attr.max_srq *= shared;
		case_start(IP);
		cntlid = raw_admin(&admin, IP);
		for (uint16_t i = 0; i < MANY; i++)
			raw_io(&q[i], IP, cntlid, (uint16_t)(i + 1), DEPTH);
		assert_true(fabric_counts().cqs > MANY + 1 + 1); /* the hosts', and not just one */
		for (unsigned i = 0; i < MANY; i++) {
			check_load(&q[i], 4096);
			check_capsules(&q[i]);
		}
		for (unsigned i = 0; i < MANY; i++)
			raw_close(&q[i * 5 % MANY]);
		check_alive(&admin);
		raw_close(&admin);
		case_settle();
	}
}

static void on_ipv6(void **state)
{
	tear_down(state);
	fabric_begin();
	case_start("::");
	raw_io(&io, "::1", raw_admin(&admin, "::1"), 1, DEPTH);
	check_works(&io, 4096);
	session_close();
}

/* --- what it costs ---------------------------------------------------------------------------- */

static void steady_state(void **state)
{
	union nvme_sqe read = raw_rw(false, 0, 8), write = raw_rw(true, 0, 8);
	struct fabric_counts before, after;

	session_open();
	check_works(&io, 4096);
	raw_keyed(&io, &read, 0, 4096);
	raw_keyed(&io, &write, 0, 4096);
	before = fabric_counts();
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(raw_run(&io, &read, 0), 0);
		assert_int_equal(raw_run(&io, &write, 0), 0);
	}
	after = fabric_counts();
	assert_int_equal(after.registrations, before.registrations);
	/* The host's two; WRITE and SEND in one; READ; SEND. */
	assert_int_equal(after.posts - before.posts, 100 * (2 + 1 + 2));
	assert_int_equal(after.writes - before.writes, 100);
	assert_int_equal(after.reads - before.reads, 100);
	assert_int_equal(after.rnr, before.rnr);
	session_close();
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a pattern, only the cases of that name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(private_data),
		CASE(no_resources),
		CASE(no_resources_for_one_more),
		CASE(sgls),
		CASE(in_capsule),
		CASE(lists),
		CASE(a_request_per_piece),
		CASE(writes_that_are_asked_about),
		CASE(invalidation),
		CASE(keys),
		CASE(vanishes),
		CASE(half_read),
		CASE(stops_with_reads_under_way),
		CASE(reads_out_of_order),
		CASE(bad_completions),
		CASE(sends_that_fail),
		CASE(receives_that_fail),
		CASE(events),
		CASE(established_late),
		CASE(established_never),
		CASE(gone_before_it_was_accepted),
		CASE(no_connect_command),
		CASE(disconnect_is_answered),
		CASE(adapter_removed),
		CASE(adapter_slow),
		CASE(listener_goes),
		CASE(listener_goes_first),
		CASE(two_reactors),
		CASE(too_many_commands),
		CASE(capsule_sizes),
		CASE(host_not_ready),
		CASE(receives_come_back),
		CASE(on_iwarp),
		CASE(without_shared_receives),
		CASE(gone_with_answers_waiting),
		CASE(connections_come_and_go),
		CASE(poor_adapters),
		CASE(many_connections),
		CASE(on_ipv6),
		CASE(steady_state),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
