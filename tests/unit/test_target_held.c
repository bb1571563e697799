/* test_target_held.c - commands that storage has in hand, while the target changes around them.
 *
 * Storage keeps operations until the case lets them go. What must wait for them is looked at while
 * they are held, after the target has answered something else: it had its chance. */
#include "held_case.h"
#include "running.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { NS_HELD = 9, GROUP = 3, LID_ANA = 0x0c, INACCESSIBLE = 3, CHANGE = 15, OPTIMIZED = 1 };

static int with_held(void **state)
{
	target_ns_add_on(NS_HELD, held_open(), GROUP);
	return 0;
}

static int without_held(void **state)
{
	held_hold(false);
	held_let_go();
	target_ana_wait(target_ana_start(GROUP, "optimized"));
	target_ns_remove(NS_HELD);
	return 0;
}

/* What @ctrl shows of the group, and how often its log page changed. */
static unsigned shown(struct weft_ctrl *ctrl, uint64_t *count)
{
	struct weft_err err = { "" };
	uint8_t page[1024];
	uint32_t at = 16, group, nsids;

	if (weft_log_page(ctrl, LID_ANA, 0, 0, page, sizeof(page), &err))
		fail_msg("%s", err.text);
	if (count)
		memcpy(count, page, sizeof(*count));
	for (;; at += 32 + 4 * nsids) {
		assert_true(at + 32 < sizeof(page));
		memcpy(&group, page + at, 4);
		memcpy(&nsids, page + at + 4, 4);
		if (group == GROUP)
			return page[at + 16];
	}
}

/* Others of the same queue, behind it, are answered: it had its chance. */
static bool is_answered(struct host *h, struct inflight_io *f)
{
	for (int times = 0; times < 20 && !f->done; times++)
		assert_int_equal(weft_flush(h->queue, h->ns, NULL), 0);
	return f->done;
}

/* --- ANA -------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum weft_op_code op;
	uint64_t length;
} held_ops[] = {
	{ "write", WEFT_WRITE, 512 },
	{ "read", WEFT_READ, 512 },
	{ "compare and write", WEFT_COMPARE_AND_WRITE, 1024 },
	{ "verify", WEFT_VERIFY, 512 },
	{ "zero", WEFT_ZERO, 512 },
};

/* A group is in "change" while a command is at work in it, and what it does is done before the
 * group is told to be out of reach. */
static void ana_waits_for_storage(void **state)
{
	struct host h = host_open("", NS_HELD);
	uint64_t before, during, after;

	for_each_named(i, held_ops, name) {
		struct inflight_io f = { .done = false };
		struct target_ana *ana;

		memset(f.data, 0, 512);
		memset(f.data + (held_ops[i].op == WEFT_COMPARE_AND_WRITE ? 512 : 0), 'x', 512);
		held_hold(true);
		inflight_submit(&h, &f, held_ops[i].op, held_ops[i].length);
		wait_until_held(&h, 1);
		assert_int_equal(shown(h.ctrl, &before), OPTIMIZED);
		ana = target_ana_start(GROUP, "inaccessible");
		while (shown(h.ctrl, &during) == OPTIMIZED)
			;
		assert_int_equal(shown(h.ctrl, NULL), CHANGE);
		assert_true(!target_ana_over(ana) && during > before);
		held_hold(false);
		held_let_go();
		target_ana_wait(ana);
		assert_int_equal(shown(h.ctrl, &after), INACCESSIBLE);
		assert_true(after > during);
		inflight_wait(&h, &f);
		target_ana_wait(target_ana_start(GROUP, "optimized"));
		assert_int_equal(weft_zero(h.queue, h.ns, 1024, 0, 0, NULL), 0);
	}
	host_close(&h);
}

/* The connection is gone, its write is not. */
static void ana_waits_for_a_lost_connection(void **state)
{
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD),
		    other = host_open("", NS_HELD);
	struct inflight_io f = { .data = "late" };
	struct target_ana *ana;

	held_hold(true);
	inflight_submit(&lost, &f, WEFT_WRITE, 512);
	wait_until_held(&lost, 1);
	weft_ctrl_reset(lost.ctrl);
	ana = target_ana_start(GROUP, "inaccessible");
	while (shown(other.ctrl, NULL) == OPTIMIZED)
		;
	assert_int_equal(shown(other.ctrl, NULL), CHANGE);
	assert_false(target_ana_over(ana));
	assert_string_equal(held_bytes(), "");
	held_hold(false);
	held_let_go();
	target_ana_wait(ana);
	assert_string_equal(held_bytes(), "late");
	target_ana_wait(target_ana_start(GROUP, "optimized"));
	inflight_wait(&lost, &f);
	host_close(&lost);
	host_close(&other);
}

/* One that comes in between lets nobody in where the others stop to. */
static void ana_of_a_new_controller(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct inflight_io f = { .done = false };
	struct weft_ctrl *young;
	struct target_ana *ana;

	held_hold(true);
	inflight_submit(&h, &f, WEFT_WRITE, 512);
	wait_until_held(&h, 1);
	ana = target_ana_start(GROUP, "inaccessible");
	while (shown(h.ctrl, NULL) == OPTIMIZED)
		;
	young = connect_with("");
	assert_int_equal(shown(young, NULL), CHANGE);
	held_hold(false);
	held_let_go();
	target_ana_wait(ana);
	assert_int_equal(shown(young, NULL), INACCESSIBLE);
	inflight_wait(&h, &f);
	weft_disconnect(young);
	host_close(&h);
}

/* The second waits for the first, and both end. */
static void ana_in_line(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct inflight_io f = { .done = false };
	struct target_ana *first, *second;

	held_hold(true);
	inflight_submit(&h, &f, WEFT_WRITE, 512);
	wait_until_held(&h, 1);
	first = target_ana_start(GROUP, "inaccessible");
	second = target_ana_start(GROUP, "non-optimized");
	while (shown(h.ctrl, NULL) == OPTIMIZED)
		;
	assert_true(!target_ana_over(first) && !target_ana_over(second));
	held_hold(false);
	held_let_go();
	target_ana_wait(first);
	target_ana_wait(second);
	assert_int_equal(shown(h.ctrl, NULL), 2);
	inflight_wait(&h, &f);
	host_close(&h);
}

/* A fused pair stands in line for the namespace behind a write. When its turn has come, the group
 * is out of reach: it is refused, and storage hears nothing of it. */
static void ana_of_a_pair_in_line(void **state)
{
	struct host h = host_open("", NS_HELD), other = host_open("", NS_HELD);
	struct inflight_io first = { .data = "first" }, pair = { .done = false };
	struct target_ana *ana;

	held_hold(true);
	inflight_submit(&h, &first, WEFT_WRITE, 512);
	wait_until_held(&h, 1);
	inflight_submit(&other, &pair, WEFT_COMPARE_AND_WRITE, 1024);
	ana = target_ana_start(GROUP, "inaccessible");
	while (shown(h.ctrl, NULL) == OPTIMIZED)
		;
	held_let_go();
	target_ana_wait(ana);
	for (int i = 0; i < 50; i++)
		shown(h.ctrl, NULL);
	assert_int_equal(held_count(), 0);
	assert_string_equal(held_bytes(), "first");
	held_hold(false);
	target_ana_wait(target_ana_start(GROUP, "optimized"));
	inflight_wait(&h, &first);
	while (!pair.done)
		weft_queue_poll(other.queue, -1);
	assert_true(pair.cmd.rc !=
		    0); /* refused, or sent again: it compares with what was there before */
	host_close(&h);
	host_close(&other);
}

/* Groups that nobody works in do not wait for those in which somebody does. */
static void ana_of_another_group(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct inflight_io f = { .done = false };

	held_hold(true);
	inflight_submit(&h, &f, WEFT_WRITE, 512);
	wait_until_held(&h, 1);
	target_ana_wait(target_ana_start(1, "inaccessible"));
	target_ana_wait(target_ana_start(1, "optimized"));
	held_hold(false);
	held_let_go();
	inflight_wait(&h, &f);
	host_close(&h);
}

/* --- Connect ---------------------------------------------------------------------------------- */

/* The host is there again at once, and is not let in before its lost write has landed. */
static void connect_waits_for_storage(void **state)
{
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD),
		    other = host_open("", NS_HELD);
	struct inflight_io late = { .data = "late" };

	held_hold(true);
	inflight_submit(&lost, &late, WEFT_WRITE, 512);
	wait_until_held(&lost, 1);
	weft_ctrl_reset(lost.ctrl);
	while (weft_ctrl_state(lost.ctrl, NULL) == WEFT_LIVE)
		usleep(100);
	for (int i = 0; i < 50; i++) {
		shown(other.ctrl, NULL);
		usleep(1000);
	}
	assert_int_not_equal(weft_ctrl_state(lost.ctrl, NULL), WEFT_LIVE);
	assert_string_equal(held_bytes(), "");
	held_hold(false);
	held_let_go();
	inflight_wait(&lost, &late);
	assert_string_equal(held_bytes(), "late");
	host_close(&lost);
	host_close(&other);
}

/* A host that was told a controller's number may still ask for its reset, and must not hit
 * another. */
static void number_of_an_ending_controller(void **state)
{
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD);
	struct inflight_io late = { .data = "late" };
	uint16_t cntlid = instance_of(lost.ctrl).cntlid;
	struct weft_ctrl *young;

	held_hold(true);
	inflight_submit(&lost, &late, WEFT_WRITE, 512);
	wait_until_held(&lost, 1);
	weft_ctrl_reset(lost.ctrl);
	while (weft_ctrl_state(lost.ctrl, NULL) == WEFT_LIVE)
		usleep(100);
	target_next_cntlid(cntlid);
	young = connect_with("?hostid=33333333-3333-3333-3333-333333333333");
	assert_int_equal(instance_of(young).cntlid, cntlid + 1);
	held_hold(false);
	held_let_go();
	inflight_wait(&lost, &late);
	weft_disconnect(young);
	host_close(&lost);
}

/* --- Cross-Controller Reset ------------------------------------------------------------------- */

/* The write of a controller that its host gave up is on the storage before the host hears that the
 * controller is over: what it writes then over another path is newer, and stays. */
static void reset_waits_for_storage(void **state)
{
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD),
		    other = host_open("", NS_HELD);
	struct inflight_io late = { .data = "late" };
	char newer[512] = "newer";
	struct reset reset;

	reset_with_held(&reset, other.ctrl, &lost, &late);
	shown(other.ctrl, NULL);
	assert_false(atomic_load(&reset.over));
	assert_string_equal(held_bytes(), "");
	held_hold(false);
	held_let_go();
	pthread_join(reset.thread, NULL);
	assert_true(reset.rc == 0 && reset.result == 1);
	assert_string_equal(held_bytes(), "late");
	assert_int_equal(weft_write(other.queue, other.ns, newer, 512, 0, 0, NULL), 0);
	assert_string_equal(held_bytes(), "newer");
	inflight_wait(&lost, &late); /* which the host sends again, by itself */
	host_close(&lost);
	host_close(&other);
}

/* The connection was lost, and the target knows: it is waited for all the same. */
static void reset_of_a_lost_connection(void **state)
{
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD),
		    other = host_open("", NS_HELD);
	struct inflight_io late = { .data = "late" };
	struct reset reset;

	held_hold(true);
	inflight_submit(&lost, &late, WEFT_WRITE, 512);
	wait_until_held(&lost, 1);
	reset.what = instance_of(lost.ctrl);
	weft_ctrl_reset(lost.ctrl);
	while (weft_ctrl_state(lost.ctrl, NULL) == WEFT_LIVE)
		usleep(100);
	reset.through = other.ctrl;
	atomic_init(&reset.over, false);
	assert_int_equal(pthread_create(&reset.thread, NULL, reset_in_background, &reset), 0);
	shown(other.ctrl, NULL);
	assert_false(atomic_load(&reset.over));
	held_hold(false);
	held_let_go();
	pthread_join(reset.thread, NULL);
	assert_true(reset.rc == 0 && reset.result == 1);
	assert_string_equal(held_bytes(), "late");
	inflight_wait(&lost, &late);
	host_close(&lost);
	host_close(&other);
}

enum { LID_CCR = 0x1e, RMC = 1, IN_PROGRESS = 0, SUCCESS = 1, FEATURE_EVENTS = 0x0b };

/* How many entries the log has; the status of the last one. */
static unsigned resets_logged(struct weft_ctrl *ctrl, unsigned lsp, unsigned *status)
{
	uint8_t page[512], sqe[64] = { 0x02 };
	uint32_t dw10 = LID_CCR | lsp << 8 | (sizeof(page) / 4 - 1) << 16;
	unsigned n;

	memcpy(sqe + 40, &dw10, sizeof(dw10));
	assert_int_equal(weft_admin(ctrl, sqe, page, sizeof(page), NULL, NULL), 0);
	n = page[0];
	if (status && n)
		*status = page[8 * n + 6];
	return n;
}

static void ask_for_reset_events(struct weft_ctrl *ctrl)
{
	uint8_t sqe[64] = { 0x09, [40] = FEATURE_EVENTS };
	uint32_t events = 1u << 20;

	memcpy(sqe + 44, &events, sizeof(events));
	assert_int_equal(weft_admin(ctrl, sqe, NULL, 0, NULL, NULL), 0);
}

static bool told_of_reset(struct weft_ctrl *ctrl)
{
	struct weft_event event;

	while (weft_ctrl_next_event(ctrl, &event))
		if (event.kind == WEFT_EVENT_OTHER && (event.result >> 8 & 0xff) == 0xf4)
			return true;
	return false;
}

/* Storage needs longer than a host should wait for an answer: it is told that the reset is under
 * way, and later, by an event, that it is over. */
static void reset_that_takes_long(void **state)
{
	struct host lost = host_open("?kato=0&reconnect_delay=1ms", NS_HELD),
		    other = host_open("?kato=0", NS_HELD);
	struct inflight_io late = { .data = "late" };
	struct reset reset;
	unsigned status;

	ask_for_reset_events(other.ctrl);
	reset_with_held(&reset, other.ctrl, &lost, &late);
	assert_int_equal(resets_logged(other.ctrl, 0, NULL), 0);
	target_time_passes(10000);
	pthread_join(reset.thread, NULL);
	assert_true(reset.rc == 0 && reset.result == 0);
	assert_int_equal(resets_logged(other.ctrl, RMC, &status), 1);
	assert_int_equal(status, IN_PROGRESS);
	assert_true(reset_now(other.ctrl, &reset.what, NULL) > 0); /* one at a time */
	assert_false(told_of_reset(other.ctrl));
	held_hold(false);
	held_let_go();
	while (!told_of_reset(other.ctrl))
		usleep(100);
	assert_string_equal(held_bytes(), "late");
	assert_int_equal(resets_logged(other.ctrl, RMC, &status), 1);
	assert_int_equal(status, SUCCESS);
	assert_int_equal(resets_logged(other.ctrl, 0, NULL), 0);
	inflight_wait(&lost, &late);
	host_close(&lost);
	host_close(&other);
}

/* Who asked is lost itself, and storage keeps its controller, before the time is over. */
static void reset_whose_asker_is_lost(void **state)
{
	struct host lost = host_open("?kato=0&reconnect_delay=1ms", NS_HELD),
		    other = host_open("?kato=0&reconnect_delay=1ms", NS_HELD);
	struct inflight_io late = { .data = "late" }, later = { .data = "late" };
	struct reset reset;

	held_hold(true);
	inflight_submit(&lost, &late, WEFT_WRITE, 512);
	wait_until_held(&lost, 1);
	inflight_submit(&other, &later, WEFT_WRITE, 512);
	wait_until_held(&other, 2);
	reset_start(&reset, other.ctrl, lost.ctrl);
	while (weft_ctrl_state(lost.ctrl, NULL) == WEFT_LIVE)
		usleep(100);
	weft_ctrl_reset(other.ctrl);
	pthread_join(reset.thread, NULL);
	assert_true(reset.rc < 0);
	target_time_passes(10000);
	held_hold(false);
	held_let_go();
	inflight_wait(&lost, &late);
	inflight_wait(&other, &later);
	host_close(&lost);
	host_close(&other);
}

/* Two that reset each other do not wait for each other. */
static void reset_of_each_other(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct weft_ctrl *a = connect_with(""), *b = connect_with("");
		struct reset by_a, by_b;

		reset_start(&by_a, a, b);
		reset_start(&by_b, b, a);
		pthread_join(by_a.thread, NULL);
		pthread_join(by_b.thread, NULL);
		weft_disconnect(a);
		weft_disconnect(b);
	}
}

/* --- standing still --------------------------------------------------------------------------- */

static void freeze_waits_for_storage(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct inflight_io late = { .data = "late" };

	for_each_named(i, held_ops, name) {
		struct inflight_io f = { .done = false };

		held_hold(true);
		inflight_submit(&h, &f, held_ops[i].op, held_ops[i].length);
		wait_until_held(&h, 1);
		if (target_freeze(0) != -ETIMEDOUT)
			fail_msg("it stands still while storage has a %s", held_ops[i].name);
		held_hold(false);
		held_let_go();
		inflight_wait(&h, &f);
	}
	assert_int_equal(target_freeze(60000), 0);
	inflight_submit(&h, &late, WEFT_WRITE, 512);
	for (int i = 0; i < 20; i++)
		weft_queue_poll(h.queue, 1);
	assert_false(late.done);
	assert_string_equal(held_bytes(), "");
	target_thaw();
	inflight_wait(&h, &late);
	assert_string_equal(held_bytes(), "late");
	host_close(&h);
}

/* All that hosts send to a target that stands still is run when it goes on, of every kind. */
static void freeze_holds_up_commands(void **state)
{
	static const enum weft_op_code ops[] = { WEFT_FLUSH, WEFT_READ,   WEFT_FLUSH,
						 WEFT_WRITE, WEFT_VERIFY, WEFT_FLUSH };
	struct inflight_io f[sizeof(ops) / sizeof(ops[0])] = { 0 };
	struct host h = host_open("", NS_HELD);

	assert_int_equal(weft_flush(h.queue, h.ns, NULL), 0);
	assert_int_equal(target_freeze(60000), 0);
	for_each_row(i, ops)
		inflight_submit(&h, &f[i], ops[i], ops[i] == WEFT_FLUSH ? 0 : 512);
	for (int i = 0; i < 20; i++)
		weft_queue_poll(h.queue, 1);
	target_thaw();
	for_each_row(i, ops)
		inflight_wait(&h, &f[i]);
	host_close(&h);
}

/* As on a machine whose threads wait for a CPU for longer than the limit: nothing is under way. */
static void freeze_looks_before_it_gives_up(void **state)
{
	struct host h = host_open("", NS_HELD);

	for (int i = 0; i < 20; i++) {
		assert_int_equal(target_freeze(0), 0);
		target_thaw();
	}
	host_close(&h);
}

/* --- connections that nobody lets in ---------------------------------------------------------- */

enum { SETUP_MS = 30000, ICREQ = 128 };

/* Set up, and without Connect. */
static int set_up_socket(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	uint8_t pdu[ICREQ] = { 0, 0, ICREQ, 0, ICREQ };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)atoi(strrchr(target_address(), ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(send(fd, pdu, sizeof(pdu), 0), sizeof(pdu));
	assert_int_equal(recv(fd, pdu, sizeof(pdu), MSG_WAITALL), sizeof(pdu));
	return fd;
}

/* Connections are spread over the reactors: each has some, be they of I/O queues or admin
 * queues. */
static void turn_every_reactor(struct host *hosts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(weft_flush(hosts[i].queue, hosts[i].ns, NULL), 0);
		instance_of(hosts[i].ctrl);
	}
}

/* It has its time and no more, also where the target stood still meanwhile. */
static void setup_ends_in_time(void **state)
{
	struct host hosts[4];
	int fd;

	for (unsigned i = 0; i < 4; i++)
		hosts[i] = host_open("?kato=0", NS_HELD);
	for (int freeze = 0; freeze <= 1; freeze++) {
		ssize_t n = -1;
		char byte;

		fd = set_up_socket();
		if (freeze) {
			assert_int_equal(target_freeze(60000), 0);
			target_thaw();
		}
		turn_every_reactor(hosts, 4);
		assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
		target_time_passes(SETUP_MS);
		for (int times = 0; n && times < 1000; times++) {
			turn_every_reactor(hosts, 4);
			n = recv(fd, &byte, 1, MSG_DONTWAIT);
		}
		if (n)
			fail_msg("it stays for longer%s", freeze ? " after a standstill" : "");
		close(fd);
	}
	for (unsigned i = 0; i < 4; i++)
		host_close(&hosts[i]);
}

/* --- removal ---------------------------------------------------------------------------------- */

static atomic_bool removed;

static void *remove_in_background(void *arg)
{
	target_ns_remove(NS_HELD);
	atomic_store(&removed, true);
	return NULL;
}

/* Storage is closed when it has nothing of the namespace in hand: held_close() sees to that. */
static void removal_waits_for_storage(void **state)
{
	for_each_named(i, held_ops, name) {
		struct host h = host_open("", NS_HELD);
		struct inflight_io f = { .done = false };
		pthread_t thread;

		held_hold(true);
		inflight_submit(&h, &f, held_ops[i].op, held_ops[i].length);
		wait_until_held(&h, 1);
		atomic_store(&removed, false);
		assert_int_equal(pthread_create(&thread, NULL, remove_in_background, NULL), 0);
		for (int times = 0; times < 50; times++)
			instance_of(h.ctrl);
		if (atomic_load(&removed))
			fail_msg("removed while storage has a %s", held_ops[i].name);
		held_hold(false);
		held_let_go();
		pthread_join(thread, NULL);
		inflight_wait(&h, &f);
		host_close(&h);
		with_held(state);
	}
}

/* --- a fused pair ----------------------------------------------------------------------------- */

enum { PASSERS = 4 }; /* queues that came one after the other: on both reactors */

/* What a pair compared is what it replaces: from the one to the other nobody writes, by whatever
 * command, through whatever reactor. Who does not write goes on meanwhile. */
static void writers_wait_for_a_pair(void **state)
{
	static const struct {
		const char *name;
		enum weft_op_code op;
		uint64_t length;
		bool waits;
		const char *data, *then; /* on the storage, when all is over */
	} cases[] = {
		{ "write", WEFT_WRITE, 512, true, "after", "after" },
		{ "zero", WEFT_ZERO, 512, true, "", "" },
		{ "trim", WEFT_TRIM, 512, true, "", "" },
		{ "copy", WEFT_COPY, 512, true, "", "pair" },
		{ "another pair", WEFT_COMPARE_AND_WRITE, 1024, true, "pair", "pair" },
		{ "read", WEFT_READ, 512, false, "", "pair" },
		{ "compare", WEFT_COMPARE, 512, false, "", "pair" },
		{ "verify", WEFT_VERIFY, 512, false, "", "pair" },
	};
	struct host h = host_open("", NS_HELD), others[PASSERS];

	for (unsigned j = 0; j < PASSERS; j++)
		others[j] = (struct host){ h.ctrl, h.ns, open_queue(h.ctrl) };
	for_each_named(i, cases, name) {
		struct inflight_io pair = { .done = false }, f[PASSERS] = { 0 };

		strcpy(pair.data + 512, "pair");
		held_hold(true);
		inflight_submit(&h, &pair, WEFT_COMPARE_AND_WRITE, 1024);
		wait_until_held(&h, 1);
		held_hold(false);
		for (unsigned j = 0; j < PASSERS; j++) {
			strcpy(f[j].data, cases[i].data);
			strcpy(f[j].data + 512, cases[i].data);
			inflight_submit(&others[j], &f[j], cases[i].op, cases[i].length);
			if (is_answered(&others[j], &f[j]) == cases[i].waits)
				fail_msg("a %s %s a pair", cases[i].name,
					 cases[i].waits ? "passed" : "waits for");
		}
		held_let_go();
		inflight_wait(&h, &pair);
		for (unsigned j = 0; j < PASSERS; j++)
			inflight_wait(&others[j], &f[j]);
		assert_string_equal(held_bytes(), cases[i].then);
		assert_int_equal(weft_zero(h.queue, h.ns, 512, 0, 0, NULL), 0);
	}
	for (unsigned j = 0; j < PASSERS; j++)
		weft_queue_close(others[j].queue);
	host_close(&h);
}

/* --- reservations ----------------------------------------------------------------------------- */

enum { REGISTER = 0x0d, ACQUIRE = 0x11, WERO = 3, PREEMPT = 1, PREEMPT_AND_ABORT = 2 };

static void resv_start(struct host *h, struct inflight_io *f, uint8_t opcode, uint32_t cdw10,
		       uint64_t crkey, uint64_t key)
{
	static uint32_t sqe[2][16];
	uint32_t *raw = sqe[opcode == ACQUIRE];

	raw[0] = opcode;
	raw[1] = NS_HELD;
	raw[10] = cdw10;
	memcpy(f->data, &crkey, 8);
	memcpy(f->data + 8, &key, 8);
	f->iov = (struct iovec){ f->data, 16 };
	f->cmd = (struct weft_cmd){ .op = WEFT_RAW,
				    .sqe = raw,
				    .length = 16,
				    .iov = &f->iov,
				    .iovcnt = 1,
				    .done = on_inflight_done,
				    .user = f };
	assert_int_equal(weft_submit(h->queue, &f->cmd), 0);
	weft_queue_poll(h->queue, 0);
}

static void resv(struct host *h, uint8_t opcode, uint32_t cdw10, uint64_t crkey, uint64_t key)
{
	struct inflight_io f = { .done = false };

	resv_start(h, &f, opcode, cdw10, crkey, key);
	inflight_wait(h, &f);
}

/* What storage has begun for a host that is preempted is waited for, and only by who asked that it
 * be aborted. Data that was under way is on the storage when the preempter hears of it, not
 * later. */
static void preempt_waits_for_storage(void **state)
{
	static const struct {
		const char *name;
		uint32_t action;
		enum weft_op_code op;
		uint64_t length;
		const char *then; /* on the storage */
	} cases[] = {
		{ "write", PREEMPT, WEFT_WRITE, 512, "late" },
		{ "write", PREEMPT_AND_ABORT, WEFT_WRITE, 512, "late" },
		{ "copy", PREEMPT_AND_ABORT, WEFT_COPY, 512, "late" },
		{ "zero", PREEMPT_AND_ABORT, WEFT_ZERO, 512, "" },
		{ "pair", PREEMPT_AND_ABORT, WEFT_COMPARE_AND_WRITE, 1024, "new" },
	};
	struct host us = host_open("?hostid=11111111-1111-1111-1111-111111111111", NS_HELD);
	struct host victim = host_open("?hostid=22222222-2222-2222-2222-222222222222", NS_HELD);

	resv(&us, REGISTER, 0, 0, 1);
	resv(&us, ACQUIRE, WERO << 8, 1, 0);
	for_each_named(i, cases, name) {
		struct inflight_io f = { .done = false }, preempt = { .done = false };

		strcpy(f.data, cases[i].op == WEFT_WRITE ? "late" : "");
		strcpy(f.data + 512, "new"); /* of the pair, where there is nothing */
		resv(&victim, REGISTER, 0, 0, 2);
		held_hold(true);
		inflight_submit(&victim, &f, cases[i].op, cases[i].length);
		wait_until_held(&victim, 1);
		held_hold(false);
		resv_start(&us, &preempt, ACQUIRE, cases[i].action | WERO << 8, 1, 2);
		if (is_answered(&us, &preempt) != (cases[i].action == PREEMPT))
			fail_msg("Preempt%s a %s",
				 preempt.done ? " and Abort did not wait for" : " waited for",
				 cases[i].name);
		held_let_go();
		inflight_wait(&us, &preempt);
		if (cases[i].action == PREEMPT_AND_ABORT)
			assert_string_equal(held_bytes(), cases[i].then);
		inflight_wait(&victim, &f);
		assert_true(weft_write(victim.queue, victim.ns, f.data, 512, 0, 0, NULL) < 0);
	}
	host_close(&victim);
	host_close(&us);
}

/* --- CC.EN ------------------------------------------------------------------------------------ */

enum { CC_OFFSET = 0x14, CSTS_OFFSET = 0x1c, FABRICS = 0x7f, PROPERTY_SET = 0, PROPERTY_GET = 4 };

static uint64_t property(struct weft_ctrl *ctrl, uint8_t fctype, uint32_t offset, uint64_t value)
{
	uint8_t sqe[64] = { [0] = FABRICS, [4] = fctype };
	struct weft_err err = { "" };
	uint64_t result = 0;

	memcpy(sqe + 44, &offset, sizeof(offset));
	memcpy(sqe + 48, &value, sizeof(value));
	if (weft_admin(ctrl, sqe, NULL, 0, &result, &err) < 0)
		fail_msg("%s", err.text);
	return result;
}

/* A host that has cleared CC.EN may write elsewhere when CSTS.RDY is 0. Until then the controller
 * takes no new queue: it would be one of the time before. The host's own queue is not polled, so it
 * does not know that it is lost. */
static void disable_waits_for_storage(void **state)
{
	struct host h = host_open("?reconnect_delay=1ms", NS_HELD);
	struct inflight_io f = { .data = "late" };
	struct weft_err err = { "" };
	struct weft_queue *queue;

	held_hold(true);
	inflight_submit(&h, &f, WEFT_WRITE, 512);
	wait_until_held(&h, 1);
	property(h.ctrl, PROPERTY_SET, CC_OFFSET, 0);
	for (unsigned times = 0; times < 20; times++)
		assert_int_equal(property(h.ctrl, PROPERTY_GET, CSTS_OFFSET, 0), 1);
	assert_true(weft_queue_open(h.ctrl, &queue, &err) < 0);
	assert_non_null(strstr(err.text, "NVMe status 0xc"));
	assert_string_equal(held_bytes(), "");
	held_hold(false);
	held_let_go();
	while (property(h.ctrl, PROPERTY_GET, CSTS_OFFSET, 0))
		usleep(100);
	assert_string_equal(held_bytes(), "late");
	weft_ctrl_reset(h.ctrl);
	inflight_wait(&h, &f);
	host_close(&h);
}

/* --- CC.SHN ----------------------------------------------------------------------------------- */

enum { CC_ENABLE = 0x460001, SHN_NORMAL = 1 << 14, SHN_ABRUPT = 2 << 14, SHST_COMPLETE = 2 << 2 };

struct shutdown {
	pthread_t thread;
	struct weft_ctrl *ctrl;
	uint32_t shn;
	atomic_bool over;
};

static void *shut_down(void *arg)
{
	struct shutdown *shutdown = arg;

	property(shutdown->ctrl, PROPERTY_SET, CC_OFFSET, CC_ENABLE | shutdown->shn);
	atomic_store(&shutdown->over, true);
	return NULL;
}

static void shutdown_start(struct shutdown *shutdown, struct weft_ctrl *ctrl, uint32_t shn)
{
	*shutdown = (struct shutdown){ .ctrl = ctrl, .shn = shn };
	assert_int_equal(pthread_create(&shutdown->thread, NULL, shut_down, shutdown), 0);
}

static void write_text(struct host *h, const char *text, unsigned flags)
{
	char data[512] = "";

	strcpy(data, text);
	assert_int_equal(weft_write(h->queue, h->ns, data, sizeof(data), 0, flags, NULL), 0);
}

/* With a flush in the storage's hands. */
static void shutdown_with_held(struct shutdown *shutdown, struct host *h)
{
	write_text(h, "cached", 0);
	held_hold(true);
	shutdown_start(shutdown, h->ctrl, SHN_NORMAL);
	while (!held_count() && !atomic_load(&shutdown->over))
		usleep(100);
	assert_int_equal(held_count(), 1);
}

/* A host turns the power off when it reads that the shutdown is complete: not before what was
 * written is durable, and not sooner because it asked again. */
static void shutdown_waits_for_storage(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct shutdown first, again;

	shutdown_with_held(&first, &h);
	shutdown_start(&again, h.ctrl, SHN_ABRUPT);
	for (unsigned times = 0; times < 50; times++)
		assert_int_equal(property(h.ctrl, PROPERTY_GET, CSTS_OFFSET, 0), 1);
	assert_false(atomic_load(&first.over) || atomic_load(&again.over));
	held_hold(false);
	held_let_go();
	pthread_join(first.thread, NULL);
	pthread_join(again.thread, NULL);
	assert_int_equal(property(h.ctrl, PROPERTY_GET, CSTS_OFFSET, 0), SHST_COMPLETE | 1);
	host_close(&h);
}

/* A reset takes the shutdown back. What storage had in hand then ends later, and completes
 * nothing. */
static void reset_ends_a_shutdown(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct shutdown shutdown;

	shutdown_with_held(&shutdown, &h);
	property(h.ctrl, PROPERTY_SET, CC_OFFSET, 0);
	property(h.ctrl, PROPERTY_SET, CC_OFFSET, CC_ENABLE);
	assert_int_equal(property(h.ctrl, PROPERTY_GET, CSTS_OFFSET, 0), 1);
	held_hold(false);
	held_let_go();
	pthread_join(shutdown.thread, NULL);
	assert_int_equal(property(h.ctrl, PROPERTY_GET, CSTS_OFFSET, 0), 1);
	host_close(&h);
}

static const struct {
	const char *name;
	const char *ops;     /* r: read, w: write, d: durable write, f: flush, F: one that fails */
	const char *flushes; /* what the shutdown asks of storage */
} before_shutdown[] = {
	{ "nothing", "", "" },
	{ "a host that reads", "r", "" },
	{ "a write", "w", "F" },
	{ "a durable write", "d", "" },
	{ "a flush", "wf", "" },
	{ "a write after it", "wfw", "F" },
	{ "a flush that fails", "wF", "F" },
	{ "a durable write after another", "wd", "F" },
};

static void do_before_shutdown(struct host *h, char op)
{
	char data[512];

	switch (op) {
	case 'r':
		assert_int_equal(weft_read(h->queue, h->ns, data, sizeof(data), 0, NULL), 0);
		return;
	case 'w':
		write_text(h, "cached", 0);
		return;
	case 'd':
		write_text(h, "durable", WEFT_FUA);
		return;
	case 'f':
		assert_int_equal(weft_flush(h->queue, h->ns, NULL), 0);
		return;
	default:
		held_fail("F", -EIO);
		assert_int_equal(weft_flush(h->queue, h->ns, NULL), -EIO);
		held_fail(NULL, 0);
	}
}

/* Storage may be slow: a host does not wait for a flush that makes nothing durable. */
static void shutdown_flushes_what_was_written(void **state)
{
	for_each_named(i, before_shutdown, name) {
		struct host h = host_open("", NS_HELD);
		struct shutdown shutdown;

		for (const char *op = before_shutdown[i].ops; *op; op++)
			do_before_shutdown(&h, *op);
		held_asked();
		shutdown_start(&shutdown, h.ctrl, SHN_NORMAL);
		pthread_join(shutdown.thread, NULL);
		assert_string_equal(held_asked(), before_shutdown[i].flushes);
		host_close(&h);
	}
}

/* Another host has written, and its flush is under way: nothing is durable yet. */
static void shutdown_waits_for_a_flush(void **state)
{
	struct host h = host_open("", NS_HELD), other = host_open("", NS_HELD);
	struct inflight_io flush = { .done = false };
	struct shutdown shutdown;

	write_text(&other, "theirs", 0);
	held_hold(true);
	inflight_submit(&other, &flush, WEFT_FLUSH, 0);
	wait_until_held(&other, 1);
	shutdown_start(&shutdown, h.ctrl, SHN_NORMAL);
	while (held_count() < 2 && !atomic_load(&shutdown.over))
		usleep(100);
	assert_int_equal(held_count(), 2);
	assert_false(atomic_load(&shutdown.over));
	held_hold(false);
	held_let_go();
	pthread_join(shutdown.thread, NULL);
	inflight_wait(&other, &flush);
	host_close(&h);
	host_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ana_waits_for_storage, with_held, without_held),
		cmocka_unit_test_setup_teardown(ana_waits_for_a_lost_connection, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(ana_of_a_new_controller, with_held, without_held),
		cmocka_unit_test_setup_teardown(ana_in_line, with_held, without_held),
		cmocka_unit_test_setup_teardown(ana_of_a_pair_in_line, with_held, without_held),
		cmocka_unit_test_setup_teardown(ana_of_another_group, with_held, without_held),
		cmocka_unit_test_setup_teardown(connect_waits_for_storage, with_held, without_held),
		cmocka_unit_test_setup_teardown(number_of_an_ending_controller, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(reset_waits_for_storage, with_held, without_held),
		cmocka_unit_test_setup_teardown(reset_of_a_lost_connection, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(reset_that_takes_long, with_held, without_held),
		cmocka_unit_test_setup_teardown(reset_whose_asker_is_lost, with_held, without_held),
		cmocka_unit_test(reset_of_each_other),
		cmocka_unit_test_setup_teardown(freeze_waits_for_storage, with_held, without_held),
		cmocka_unit_test_setup_teardown(freeze_holds_up_commands, with_held, without_held),
		cmocka_unit_test_setup_teardown(freeze_looks_before_it_gives_up, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(setup_ends_in_time, with_held, without_held),
		cmocka_unit_test_setup_teardown(removal_waits_for_storage, with_held, without_held),
		cmocka_unit_test_setup_teardown(disable_waits_for_storage, with_held, without_held),
		cmocka_unit_test_setup_teardown(writers_wait_for_a_pair, with_held, without_held),
		cmocka_unit_test_setup_teardown(shutdown_waits_for_storage, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(reset_ends_a_shutdown, with_held, without_held),
		cmocka_unit_test_setup_teardown(shutdown_flushes_what_was_written, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(shutdown_waits_for_a_flush, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(preempt_waits_for_storage, with_held, without_held),
	};

	return cmocka_run_group_tests(tests, start_target, end_target);
}
