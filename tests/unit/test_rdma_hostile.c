/* test_rdma_hostile.c - the RDMA target between hosts and adapters at their worst: what one of them
 * keeps, refuses or hands back late costs nobody else anything.
 *
 * Where an adapter must do something at a moment that only its caller knows, an entry of the
 * fabric's table is replaced by one that looks, or waits, and then goes on to the fabric's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma_session.h"
#include "transport/rdma/rdma.h"
#include "running.h"

enum {
	GRANULE_BLOCKS = MDTS / BLOCK, /* of a namespace's memory, what one key is for */
	SETUP_MS = 30000,
	HOLD_READS = 1u << IBV_WR_RDMA_READ,
	HOLD_WRITES = 1u << IBV_WR_RDMA_WRITE,
};

static const struct rdma_verbs *const v = &fabric_verbs;

/* On an adapter that cannot share receives: every queue pair has its own. */
static int set_up_unshared(void **state)
{
	fabric_begin();
	fabric_device("fake0")->attr.max_srq = 0;
	return session_start();
}

/* On one that does not say when a queue pair has handed back the receives it shares. */
static int set_up_silent(void **state)
{
	fabric_begin();
	fabric_device("fake0")->never_last = true;
	return session_start();
}

/* On iWARP, with receives for an admin queue and one more. */
static int set_up_iwarp(void **state)
{
	fabric_begin();
	fabric_map(IP, "iwarp0");
	fabric_device("iwarp0")->attr.max_srq_wr = ADMIN_DEPTH + DEPTH;
	return session_start();
}

/* Until it is gone at the target too; others stay. */
static void close_one(struct raw *q)
{
	raw_close(q);
	case_turns(20);
	case_advance(1000);
}

/* By its key, all of it at raw_data(). */
static union nvme_sqe keyed(struct raw *q, bool write, uint64_t slba, uint32_t blocks)
{
	union nvme_sqe sqe = raw_rw(write, slba, blocks);

	raw_keyed(q, &sqe, 0, blocks * BLOCK);
	return sqe;
}

static void check_refused(struct raw *q)
{
	struct nvme_rdma_reject reject;

	fabric_end_expect(&q->end, RDMA_CM_EVENT_REJECTED);
	memcpy(&reject, q->end.data, sizeof(reject));
	assert_int_equal(le16_to_cpu(reject.sts), NVME_RDMA_NO_RESOURCES);
}

/* --- connections that do not come about ------------------------------------------------------- */

/* The queue pair is in error by then, and its receives are back: they must not find the connection
 * that is being taken apart, whose end nobody would wait for. */
static void accept_fails(void **state)
{
	struct nvme_rdma_request request = raw_request(0, ADMIN_DEPTH, 0);
	struct raw q;

	raw_open(&q, IP);
	fabric_fail("accept", 0, 1, EINVAL);
	raw_ask(&q, &request, sizeof(request));
	check_refused(&q);
	case_advance(SETUP_MS + 1);
	raw_close(&q);
	case_settle();
	raw_admin(&admin, IP);
	check_alive(&admin);
	raw_close(&admin);
	case_settle();
}

/* Receives are memory that an adapter holds. Who has not connected yet sends one capsule, however
 * deep it says that its queue will be. */
static void receives_come_with_connect(void **state)
{
	struct nvme_rdma_request request = raw_request(0, DEPTH, 0);
	const struct rdma_conn *conn;
	struct raw q;

	raw_open(&q, IP);
	raw_ask(&q, &request, sizeof(request));
	fabric_end_expect(&q.end, RDMA_CM_EVENT_ESTABLISHED);
	conn = fabric_id_of(target_qp(&q))->context;
	assert_int_equal(conn->recvs.made, RDMA_PRECONNECT_RECVS);
	raw_close(&q);
	raw_admin(&admin, IP);
	conn = fabric_id_of(target_qp(&admin))->context;
	assert_int_equal(conn->recvs.made, conn->recvs.room);
	check_alive(&admin);
	raw_close(&admin);
	case_settle();
}

/* On iWARP a command without a receive is the end of its connection: as many are promised as there
 * are, and those of a connection that has gone may be promised again. */
static void promised_once(void **state)
{
	struct nvme_rdma_request request = raw_request(2, DEPTH, 0);
	struct raw q;

	session_open();
	request.cntlid = cpu_to_le16(admin.cntlid);
	raw_open(&q, IP);
	raw_ask(&q, &request, sizeof(request));
	check_refused(&q);
	raw_close(&q);
	close_one(&io);
	raw_io(&io, IP, admin.cntlid, 2, DEPTH);
	session_close();
}

/* --- what a host keeps ------------------------------------------------------------------------ */

/* Their queues are full of large writes, and they have receives for some of the answers only. The
 * adapter tries to deliver the next one for ever, and what is behind it keeps every large
 * buffer. */
enum { LARGE_BUFFERS = 32, QUEUES = 3, EACH = LARGE_BUFFERS / QUEUES + 1 };

static struct raw greedy[QUEUES], good;

static void be_greedy(struct raw *q)
{
	for (unsigned i = 0; i < END_RECVS + EACH; i++) {
		union nvme_sqe write = keyed(q, true, 0, MDTS / BLOCK);

		raw_send(q, &write, 0);
		case_turn();
	}
}

/* Time is the test's: an hour goes by, if need be. */
static bool is_answered_in_time(struct raw *q)
{
	for (unsigned s = 0; s < 3600; s++) {
		if (raw_is_answered(q))
			return true;
		case_advance(1000);
	}
	return false;
}

static void open_greedy(uint16_t cntlid)
{
	for (unsigned i = 0; i < COUNT(greedy); i++)
		raw_io(&greedy[i], IP, cntlid, (uint16_t)(i + 1), CASE_DEPTH_MAX);
	for (unsigned i = 0; i < COUNT(greedy); i++)
		be_greedy(&greedy[i]);
	for (unsigned i = 0; i < COUNT(greedy); i++)
		assert_true(fabric_pending(target_qp(&greedy[i])));
}

static void hold_buffers(void **state)
{
	union nvme_sqe small, large;
	struct raw admin_of_good;

	open_greedy(raw_admin(&admin, IP));
	raw_io(&good, IP, raw_admin(&admin_of_good, IP), 1, DEPTH);
	small = keyed(&good, true, 0, 8);
	assert_int_equal(raw_run(&good, &small, 0), 0);
	large = keyed(&good, true, 0, MDTS / BLOCK);
	raw_send(&good, &large, 0);
	case_turns(10);
	assert_false(raw_is_answered(&good)); /* it waits in line, or this tests nothing */
	assert_true(is_answered_in_time(&good));
	for (unsigned i = 0; i < COUNT(greedy); i++) {
		raw_expect_end(&greedy[i]);
		raw_close(&greedy[i]);
	}
	raw_close(&good);
	raw_close(&admin_of_good);
	raw_close(&admin);
	case_settle();
}

/* --- receives --------------------------------------------------------------------------------- */

static unsigned answers, too_early;

/* The host may send its next command as soon as it has the answer. */
static int look_then_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (struct ibv_send_wr *at = wr; at && qp == target_qp(&io); at = at->next) {
		bool answers_one = at->opcode == IBV_WR_SEND || at->opcode == IBV_WR_SEND_WITH_INV;

		answers += answers_one;
		too_early += answers_one && !fabric_receives(qp);
	}
	return v->post_send(qp, wr, bad);
}

/* A full queue, on receives of its own: every one of them holds a command. */
static void fill_queue(void)
{
	for (unsigned i = 0; i < DEPTH; i++) {
		union nvme_sqe read = keyed(&io, false, 0, 1);

		raw_send(&io, &read, 0);
	}
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(raw_answer(&io).status, 0);
}

static void answer_first(void **state)
{
	answers = too_early = 0;
	session_open();
	replaced.post_send = look_then_send;
	rdma_verbs = &replaced;
	for (unsigned round = 0; round < 3; round++)
		fill_queue();
	rdma_verbs = v;
	assert_int_equal(answers, 3 * DEPTH);
	assert_int_equal(too_early, 0);
	session_close();
}

static int see_nothing(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	return 0;
}

/* A capsule and the end of its connection; the adapter tells of the capsule a while later. */
static void leave_behind_a_capsule(void)
{
	union nvme_sqe last = keep_alive();

	rdma_verbs = &replaced;
	raw_send(&io, &last, 0);
	v->disconnect(io.end.id);
	case_turns(20);
	rdma_verbs = v;
	close_one(&io);
}

/* The receive was everybody's, and is again. */
static void lost_receives(void **state)
{
	uint16_t cntlid = raw_admin(&admin, IP);

	replaced.poll_cq = see_nothing;
	for (unsigned i = 0; i < 3; i++) {
		unsigned before;

		raw_io(&io, IP, cntlid, 1, DEPTH);
		case_turns(4);
		before = fabric_receives(target_qp(&admin));
		leave_behind_a_capsule();
		assert_int_equal(fabric_counts().qps, 2); /* the admin queue's two ends */
		assert_int_equal(fabric_receives(target_qp(&admin)), before);
	}
	check_alive(&admin);
	raw_close(&admin);
	case_settle();
}

/* --- the log ---------------------------------------------------------------------------------- */

/* Lines of the log with @text in them, from when it is taken aside on. */
static int log_fd, stderr_fd;

static void take_log_aside(void)
{
	log_fd = memfd_create("log", MFD_CLOEXEC);
	stderr_fd = dup(STDERR_FILENO);
	assert_return_code(dup2(log_fd, STDERR_FILENO), errno);
}

static unsigned count_in_log(const char *text)
{
	static char all[1 << 16];
	unsigned n = 0;
	ssize_t len;

	dup2(stderr_fd, STDERR_FILENO);
	len = pread(log_fd, all, sizeof(all) - 1, 0);
	assert_true(len >= 0);
	all[len] = '\0';
	for (const char *at = all; (at = strstr(at, text)); at++)
		n++;
	close(log_fd);
	close(stderr_fd);
	return n;
}

static void advance(unsigned s)
{
	for (unsigned i = 0; i < 10 * s; i++)
		case_advance(100);
}

/* An adapter that takes no receives is asked ten times a second, and told of once. */
static void said_once(void **state)
{
	uint64_t posts;

	session_open();
	for (unsigned i = 0; i < 2; i++) {
		take_log_aside();
		fabric_fail("post_srq_recv", 0, 50, ENOMEM);
		check_alive(&admin);
		advance(4);
		posts = fabric_counts().srq_posts;
		assert_int_equal(count_in_log("receives: "), 1);
		advance(4);
		assert_true(fabric_counts().srq_posts > posts); /* it takes them again */
	}
	session_close();
}

static uint64_t kept; /* the wr_id of the one completion that the adapter does not hand out */

static int keep_one(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = v->poll_cq(cq, 1, wc);

	return n == 1 && wc->wr_id == kept ? v->poll_cq(cq, 1, wc) : n;
}

static void write_held(void)
{
	union nvme_sqe write = keyed(&io, true, 0, 8);

	fabric_hold(target_qp(&io), HOLD_READS);
	raw_send(&io, &write, 0);
	case_turns(4);
	assert_int_equal(fabric_pending(target_qp(&io)), 1);
}

/* A queue pair in error hands a receive back as soon as it is posted: to post it again, and again,
 * would take a CPU for as long as a READ does not come back. */
static void flush_loop(void **state)
{
	uint64_t posts;

	session_open();
	write_held();
	kept = fabric_next(target_qp(&io))->wr_id;
	replaced.poll_cq = keep_one;
	rdma_verbs = &replaced;
	posts = fabric_counts().recv_posts;
	v->disconnect(io.end.id);
	case_turns(50);
	rdma_verbs = v;
	assert_non_null(target_qp(&io)); /* the READ is waited for still, or this tests nothing */
	assert_int_equal(fabric_counts().recv_posts, posts);
	session_close();
}

/* --- keys ------------------------------------------------------------------------------------- */

/* In the capsule: the namespace's memory gets no key by it. */
static void write_in_capsule(uint64_t slba, char byte)
{
	union nvme_sqe write = raw_rw(true, slba, CAPSULE_DATA / BLOCK);

	memset(raw_extra(&io), byte, CAPSULE_DATA);
	write.common.sgl = raw_sgl(NVME_SGL_IN_CAPSULE, 0, CAPSULE_DATA);
	assert_int_equal(raw_run(&io, &write, CAPSULE_DATA), 0);
}

static void check_bytes(const char *at, char byte)
{
	char want[CAPSULE_DATA];

	memset(want, byte, sizeof(want));
	assert_memory_equal(at, want, sizeof(want));
}

/* A read over the end of a granule that has its key; the adapter refuses the next one's. */
static void second_granule(void **state)
{
	const unsigned half = CAPSULE_DATA / BLOCK;
	union nvme_sqe read;
	uint64_t before;

	session_open();
	write_in_capsule(GRANULE_BLOCKS - half, 'a');
	write_in_capsule(GRANULE_BLOCKS, 'b');
	read = keyed(&io, false, 0, half);
	assert_int_equal(raw_run(&io, &read, 0), 0);
	read = keyed(&io, false, GRANULE_BLOCKS - half, 2 * half);
	before = fabric_counts().registrations;
	fabric_fail("reg_mr", 0, 1, ENOMEM);
	assert_int_equal(raw_run(&io, &read, 0), 0);
	/* A buffer's, whose memory it went by. */
	assert_int_equal(fabric_counts().registrations, before + 1);
	check_bytes(raw_data(&io), 'a');
	check_bytes(raw_data(&io) + CAPSULE_DATA, 'b');
	session_close();
}

static const char *opened[64]; /* to be written to from outside */
static unsigned nopened;

static struct ibv_mr *note_then_register(struct ibv_pd *pd, void *at, size_t size, int access)
{
	if (access & IBV_ACCESS_REMOTE_WRITE && nopened < COUNT(opened))
		opened[nopened++] = at;
	return v->reg_mr(pd, at, size, access);
}

static bool is_sink(const struct weft_bufs *in, const char *at)
{
	for (int i = 0; i < in->classes; i++)
		if (at >= in->regions[i]->base && at < in->regions[i]->base + in->regions[i]->size)
			return true;
	return false;
}

/* On iWARP what a READ brings arrives as a write of the host's, who must have the right to it: to
 * that memory, and not to receives, answers, what is on its way out or a namespace. */
static void sinks_are_open(void **state)
{
	const struct rdma_conn *conn;
	union nvme_sqe sqe;

	nopened = 0;
	replaced.reg_mr = note_then_register;
	rdma_verbs = &replaced;
	session_open();
	for (int write = 1; write >= 0; write--) {
		sqe = keyed(&io, write, 0, MDTS / BLOCK);
		assert_int_equal(raw_run(&io, &sqe, 0), 0);
	}
	rdma_verbs = v;
	conn = fabric_id_of(target_qp(&io))->context;
	assert_in_range(nopened, 1, COUNT(opened) - 1);
	while (nopened--)
		assert_true(is_sink(&conn->qp.group->in, opened[nopened]) ||
			    is_sink(&conn->qp.group->anon_in, opened[nopened]));
	session_close();
}

/* Reads of memory that the adapter refuses take every large buffer, and the last one finds none. It
 * has waited for storage; it can wait for a buffer as well. */
static struct raw readers[QUEUES];

static void read_all_at_once(void)
{
	uint16_t cntlid = raw_admin(&admin, IP);

	for (unsigned i = 0; i < QUEUES; i++) {
		raw_io(&readers[i], IP, cntlid, (uint16_t)(i + 1), CASE_DEPTH_MAX);
		fabric_hold(target_qp(&readers[i]), HOLD_WRITES);
	}
	fabric_fail("reg_mr", 0, 1, ENOMEM);
	for (unsigned i = 0; i < QUEUES * EACH; i++) {
		struct raw *q = &readers[i % QUEUES];
		union nvme_sqe read = keyed(q, false, 0, MDTS / BLOCK);

		raw_send(q, &read, 0);
		case_turn();
	}
	case_turns(4);
}

static unsigned writes_under_way(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < QUEUES; i++)
		n += fabric_pending(target_qp(&readers[i])) / 2; /* and an answer behind each */
	return n;
}

static void read_waits(void **state)
{
	read_all_at_once();
	assert_int_equal(writes_under_way(), LARGE_BUFFERS);
	for (unsigned i = 0; i < QUEUES; i++)
		fabric_hold(target_qp(&readers[i]), 0);
	for (unsigned i = 0; i < QUEUES * EACH; i++)
		assert_int_equal(raw_answer(&readers[i % QUEUES]).status, 0);
	for (unsigned i = 0; i < QUEUES; i++)
		raw_close(&readers[i]);
	raw_close(&admin);
	case_settle();
}

/* They do not take what they have read, and keep the buffers that it is in; another host waits. */
static void hold_what_was_read(void **state)
{
	struct raw admin_of_good;
	union nvme_sqe large;

	raw_io(&good, IP, raw_admin(&admin_of_good, IP), 1, DEPTH);
	read_all_at_once();
	assert_int_equal(writes_under_way(), LARGE_BUFFERS);
	large = keyed(&good, false, 0, MDTS / BLOCK);
	raw_send(&good, &large, 0);
	case_turns(10);
	assert_false(raw_is_answered(&good)); /* it waits in line, or this tests nothing */
	assert_true(is_answered_in_time(&good));
	for (unsigned i = 0; i < QUEUES; i++) {
		raw_expect_end(&readers[i]);
		raw_close(&readers[i]);
	}
	raw_close(&good);
	raw_close(&admin_of_good);
	raw_close(&admin);
	case_settle();
}

/* Its connection ends while it waits; and while the others do that it waits for. */
static void read_waits_no_more(void **state)
{
	for (unsigned first = 0; first < QUEUES; first++) {
		read_all_at_once();
		for (unsigned i = 0; i < QUEUES; i++) {
			raw_close(&readers[(first + i) % QUEUES]);
			case_turns(20);
		}
		check_alive(&admin);
		raw_close(&admin);
		case_settle();
	}
}

#define CASE(f)     cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define UNSHARED(f) cmocka_unit_test_setup_teardown(f, set_up_unshared, tear_down)

/* With a name, or a pattern, only the cases of that name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		UNSHARED(accept_fails),
		UNSHARED(receives_come_with_connect),
		cmocka_unit_test_setup_teardown(promised_once, set_up_iwarp, tear_down),
		CASE(hold_buffers),
		UNSHARED(answer_first),
		cmocka_unit_test_setup_teardown(lost_receives, set_up_silent, tear_down),
		UNSHARED(flush_loop),
		CASE(said_once),
		CASE(second_granule),
		cmocka_unit_test_setup_teardown(sinks_are_open, set_up_iwarp, tear_down),
		CASE(read_waits),
		CASE(hold_what_was_read),
		CASE(read_waits_no_more),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
