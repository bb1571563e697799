/* test_target_fairness.c - one host must not starve another: the control reactor works in bounded
 * turns.
 *
 * One host floods the control reactor with a command, through many controllers with full queues;
 * another sends one Keep Alive behind all of that. What a turn of the control reactor has answered
 * is counted, and how many turns it took until the Keep Alive was answered. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "proto/tcp.h"
#include "target/takeover/takeover.h"
#include "target/internal.h"
#include "world/stepped.h"
#include "running.h"

enum {
	CTRLS = 8,
	FLOOD = STEPPED_DEPTH - 1, /* of one queue */
	TURN_MAX = 64,             /* answers that one turn of the control reactor may cause */
	KEEP_ALIVE_TURNS = 2,
	TURNS_MAX = 10000,
};

static struct raw_host *other;
static struct raw_host *flooders[4 * CTRLS];
static uint16_t cntlids[4 * CTRLS];
static unsigned nflooders;

/* --- what is counted: runs of the rules of reservations, controllers that may have to be told,
 * rounds of reactors, connections looked at, addresses written, accepted ------------------------------------------------------------------ */

static unsigned rules_run, looked_at, addresses_written, accepted;

int __real_accept4(int fd, void *addr, void *len, int flags);
int __wrap_accept4(int fd, void *addr, void *len, int flags);
int __wrap_accept4(int fd, void *addr, void *len, int flags)
{
	int got = __real_accept4(fd, addr, len, flags);

	accepted += got >= 0;
	return got;
}

uint16_t __real_resv_execute(void *st, const void *rq, bool *changed);
uint16_t __wrap_resv_execute(void *st, const void *rq, bool *changed);
uint16_t __wrap_resv_execute(void *st, const void *rq, bool *changed)
{
	rules_run++;
	return __real_resv_execute(st, rq, changed);
}

static unsigned rounds, walked;

void __real_tgt_barrier_start(void *round);
void __wrap_tgt_barrier_start(void *round);
void __wrap_tgt_barrier_start(void *round)
{
	rounds++;
	__real_tgt_barrier_start(round);
}

void *__real_weft_qpair_iter_next(void *group, void *walk);
void *__wrap_weft_qpair_iter_next(void *group, void *walk);
void *__wrap_weft_qpair_iter_next(void *group, void *walk)
{
	void *qp = __real_weft_qpair_iter_next(group, walk);

	walked += !!qp;
	return qp;
}

static unsigned compared; /* hosts of queues with a host that connects */

bool __real_tgt_ctrl_is_of_host(const void *ctrl, const char *hostnqn, const uint8_t *hostid);
bool __wrap_tgt_ctrl_is_of_host(const void *ctrl, const char *hostnqn, const uint8_t *hostid);
bool __wrap_tgt_ctrl_is_of_host(const void *ctrl, const char *hostnqn, const uint8_t *hostid)
{
	compared++;
	return __real_tgt_ctrl_is_of_host(ctrl, hostnqn, hostid);
}

static unsigned names_compared;

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b)
{
	names_compared++;
	return __real_strcmp(a, b);
}

static bool hold_commits;
static void *held_txn;

void __real_weft_store_commit(void *store, void *txn);
void __wrap_weft_store_commit(void *store, void *txn);
void __wrap_weft_store_commit(void *store, void *txn)
{
	if (hold_commits)
		held_txn = txn;
	else
		__real_weft_store_commit(store, txn);
}

unsigned __real_tgt_resv_dispatch_to_ctrl(const void *telling, void *ctrl);
unsigned __wrap_tgt_resv_dispatch_to_ctrl(const void *telling, void *ctrl);
unsigned __wrap_tgt_resv_dispatch_to_ctrl(const void *telling, void *ctrl)
{
	looked_at++;
	return __real_tgt_resv_dispatch_to_ctrl(telling, ctrl);
}

void __real_weft_addr_format(const void *addr, char *text, size_t size);
void __wrap_weft_addr_format(const void *addr, char *text, size_t size);
void __wrap_weft_addr_format(const void *addr, char *text, size_t size)
{
	addresses_written++;
	__real_weft_addr_format(addr, text, size);
}

/* --- the flood -------------------------------------------------------------------------------- */

static unsigned answers(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < nflooders; i++)
		sum += flooders[i]->answered;
	return sum;
}

static unsigned sent(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < nflooders; i++)
		sum += flooders[i]->sent;
	return sum;
}

static void send_keep_alive(void)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_keep_alive } };

	raw_host_send(other, &sqe, NULL, 0);
}

/* Everything is on its way to the control reactor, the Keep Alive last. @held are answered
 * never. */
static void flow_off(unsigned turn_max, unsigned held)
{
	unsigned before, turns = 0;

	stepped_others();
	send_keep_alive();
	stepped_others();
	for (; other->answered < other->sent; turns++) {
		before = answers();
		assert_true(turns < KEEP_ALIVE_TURNS);
		stepped_control();
		assert_in_range(answers() - before, 0, turn_max);
	}
	for (turns = 0; answers() < sent() - held; turns++) {
		before = answers();
		assert_true(turns < TURNS_MAX);
		stepped_control();
		assert_in_range(answers() - before, 0, turn_max);
	}
}

static void close_flooders(void)
{
	while (nflooders)
		raw_host_close(flooders[--nflooders]);
	for (int i = 0; i < 100; i++)
		stepped_control();
}

static void open_ctrls(const char *subnqn, unsigned n)
{
	for (; nflooders < n; nflooders++)
		flooders[nflooders] = stepped_admin(subnqn, FLOODER, 1, &cntlids[nflooders]);
}

/* --- commands that a controller takes --------------------------------------------------------- */

enum { CC = NVME_REG_CC, IDENTIFY_BYTES = 4096 };

#define LOG_CDW10(lid, bytes) ((lid) | ((bytes) / 4 - 1) << 16)
#define LOG(lid, bytes)       .cdw10 = LOG_CDW10(lid, bytes)
#define FEATURE(fid)          .cdw10 = (fid)
#define LSI(id)               .cdw11 = (id) << 16
#define LBA_STATUS(atype)     .cdw12 = 1023, .cdw13 = (uint32_t)(atype) << 24
#define PROPERTY(fctype_, offset_, value_) \
	.opcode = NVME_FABRICS_OPCODE, .nsid = (fctype_), .cdw11 = (offset_), .cdw12 = (value_)

/* Numbers in our byte order. A fabrics command has its FCTYPE where others have the NSID. */
static const struct flood {
	const char *name;
	uint8_t opcode;
	uint32_t nsid, cdw10, cdw11, cdw12, cdw13;
	size_t bytes; /* that it returns */
	unsigned held;
	bool on_discovery;
} floods[] = {
	{ "Keep Alive", nvme_admin_keep_alive },
	{ "Identify Controller", nvme_admin_identify, 0, 1, .bytes = 4096 },
	{ "Identify Namespace", nvme_admin_identify, 1, 0, .bytes = 4096 },
	{ "Identify, namespaces", nvme_admin_identify, 0, 2, .bytes = 4096 },
	{ "Identify, descriptors", nvme_admin_identify, 1, 3, .bytes = 4096 },
	{ "Identify, controllers of a namespace", nvme_admin_identify, 1, 0x12, .bytes = 4096 },
	{ "Identify, controllers", nvme_admin_identify, 0, 0x13, .bytes = 4096 },
	{ "Identify, refused", nvme_admin_identify, 0, 0xff, .bytes = 4096 },
	{ "Log: supported", nvme_admin_get_log_page, 0, LOG(0, 1024), .bytes = 1024 },
	{ "Log: errors", nvme_admin_get_log_page, 0, LOG(1, 4096), .bytes = 4096 },
	{ "Log: SMART", nvme_admin_get_log_page, 0, LOG(2, 512), .bytes = 512 },
	{ "Log: firmware", nvme_admin_get_log_page, 0, LOG(3, 512), .bytes = 512 },
	{ "Log: changed namespaces", nvme_admin_get_log_page, 0, LOG(4, 4096), .bytes = 4096 },
	{ "Log: effects", nvme_admin_get_log_page, 0, LOG(5, 4096), .bytes = 4096 },
	{ "Log: endurance", nvme_admin_get_log_page, 0, LOG(9, 512), LSI(1), .bytes = 512 },
	{ "Log: ANA", nvme_admin_get_log_page, 0, LOG(12, 4096), .bytes = 4096 },
	{ "Log: resets", nvme_admin_get_log_page, 0, LOG(0x1e, 512), .bytes = 512 },
	{ "Log: feature effects", nvme_admin_get_log_page, 0, LOG(0x12, 1024), .bytes = 1024 },
	{ "Log: reservations", nvme_admin_get_log_page, 0, LOG(0x80, 64), .bytes = 64 },
	{ "Set Features, timeout", nvme_admin_set_features, 0, FEATURE(0x0f), 0 },
	{ "Set Features, events", nvme_admin_set_features, 0, FEATURE(0x0b), 0 },
	{ "Set Features, persistence", nvme_admin_set_features, 1, FEATURE(0x83), 0 },
	{ "Get Features", nvme_admin_get_features, 0, FEATURE(0x0b) },
	{ "Get Features, refused", nvme_admin_get_features, 0, FEATURE(0xfe) },
	{ "Asynchronous Event Request", nvme_admin_async_event, .held = 4 * CTRLS },
	{ "Abort", nvme_admin_abort_cmd, 0, 0x12340000 },
	{ "Get LBA Status", nvme_admin_get_lba_status, 1, LBA_STATUS(2), .bytes = 4096 },
	{ "Get LBA Status, refused", nvme_admin_get_lba_status, 1, LBA_STATUS(0x10),
	  .bytes = 4096 },
	{ "Cross-Controller Reset of nobody", NVME_ADMIN_CROSS_CTRL_RESET, 0, 0xffee },
	{ "an opcode that is none", 0xc0 },
	{ "Property Get", PROPERTY(NVMF_PROPERTY_GET, CC, 0) },
	{ "Property Set", PROPERTY(NVMF_PROPERTY_SET, CC, 0x460001) },
	{ "Disconnect, refused", PROPERTY(NVMF_DISCONNECT, 0, 0) },
	{ "Log: discovery", nvme_admin_get_log_page, 0, LOG(0x70, 4096), .bytes = 4096,
	  .on_discovery = true },
};

static void send_flood(const struct flood *flood)
{
	for (unsigned i = 0; i < nflooders; i++)
		for (unsigned n = 0; n < FLOOD; n++) {
			union nvme_sqe sqe = { .common = { .opcode = flood->opcode,
							   .nsid = cpu_to_le32(flood->nsid),
							   .cdw10 = cpu_to_le32(flood->cdw10),
							   .cdw11 = cpu_to_le32(flood->cdw11),
							   .cdw12 = cpu_to_le32(flood->cdw12),
							   .cdw13 = cpu_to_le32(flood->cdw13) } };

			raw_host_send(flooders[i], &sqe, NULL, flood->bytes);
		}
}

static void admin_floods(void **state)
{
	for_each_named(i, floods, name) {
		print_message("#   %s\n", floods[i].name);
		open_ctrls(floods[i].on_discovery ? NVME_NQN_DISCOVERY : STEPPED_NQN, CTRLS);
		send_flood(&floods[i]);
		flow_off(TURN_MAX, floods[i].held);
		if (floods[i].held || floods[i].on_discovery ||
		    (i + 1 < COUNT(floods) && floods[i + 1].on_discovery))
			close_flooders();
	}
}

/* --- reservations ----------------------------------------------------------------------------- */

enum {
	REGISTER = nvme_cmd_resv_register,
	REPORT = nvme_cmd_resv_report,
	ACQUIRE = nvme_cmd_resv_acquire,
	RELEASE = nvme_cmd_resv_release,
	REPLACE = 2,
	IEKEY = 8,
};

/* Changes that have settled are answered together. */
enum { RESV_TURN_MAX = 4 * TURN_MAX };

static const struct {
	const char *name;
	uint8_t opcode;
	uint32_t cdw10;
} changes[] = {
	{ "Register", REGISTER, 0 | IEKEY }, { "Register, replace", REGISTER, REPLACE | IEKEY },
	{ "Acquire", ACQUIRE, 1 << 8 },      { "Release", RELEASE, 1 << 8 },
	{ "Preempt", ACQUIRE, 1 | 1 << 8 },
};

static void send_change(struct raw_host *raw, uint8_t opcode, uint32_t cdw10)
{
	raw_host_send_keys(raw, 1, opcode, cdw10, 1, 1);
}

static void open_queues(void)
{
	open_ctrls(STEPPED_NQN, CTRLS);
	for (; nflooders < 2 * CTRLS; nflooders++)
		flooders[nflooders] = stepped_io(FLOODER, 1, cntlids[nflooders - CTRLS], 1);
}

/* Every change runs through the rules once: none is run again because another one was faster. */
static void reservation_floods(void **state)
{
	unsigned runs;

	open_queues();
	for_each_named(i, changes, name) {
		print_message("#   %s\n", changes[i].name);
		rules_run = 0;
		for (unsigned q = CTRLS; q < nflooders; q++)
			for (unsigned n = 0; n < FLOOD; n++)
				send_change(flooders[q], changes[i].opcode, changes[i].cdw10);
		runs = CTRLS * FLOOD;
		flow_off(RESV_TURN_MAX, 0);
		assert_int_equal(rules_run, runs);
	}
	close_flooders();
}

static void report_flood(void **state)
{
	open_queues();
	for (unsigned q = CTRLS; q < nflooders; q++)
		for (unsigned n = 0; n < FLOOD; n++) {
			union nvme_sqe sqe = { .common = { .opcode = REPORT,
							   .nsid = cpu_to_le32(1),
							   .cdw10 = cpu_to_le32(1023),
							   .cdw11 = cpu_to_le32(1) } };

			raw_host_send(flooders[q], &sqe, NULL, 4096);
		}
	flow_off(TURN_MAX, 0);
	close_flooders();
}

/* I/O that fails is answered by way of the control reactor, which keeps the error log. */
static void failing_io_flood(void **state)
{
	open_queues();
	for (unsigned q = CTRLS; q < nflooders; q++)
		for (unsigned n = 0; n < FLOOD; n++) {
			union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_read,
						       .nsid = cpu_to_le32(7) } };

			raw_host_send(flooders[q], &sqe, NULL, 512);
		}
	flow_off(TURN_MAX, 0);
	close_flooders();
}

/* Another host's change of the same namespace does not wait for the whole flood either. */
static void reservations_are_fair(void **state)
{
	uint16_t cntlid;
	struct raw_host *admin = stepped_admin(STEPPED_NQN, OTHER, 3, &cntlid);
	struct raw_host *io = stepped_io(OTHER, 3, cntlid, 1);
	unsigned turns = 0;

	open_queues();
	for (unsigned q = CTRLS; q < nflooders; q++)
		for (unsigned n = 0; n < FLOOD; n++)
			send_change(flooders[q], REGISTER, REPLACE | IEKEY);
	stepped_others();
	send_change(io, REGISTER, IEKEY);
	stepped_others();
	for (; io->answered < io->sent; turns++)
		stepped_control();
	assert_in_range(turns, 0, 8);
	flow_off(RESV_TURN_MAX, 0);
	close_flooders();
	raw_host_close(io);
	raw_host_close(admin);
}

/* --- Connect, Disconnect, connections --------------------------------------------------------- */

enum { CROWD = 400 };

static struct raw_host *crowd[CROWD];

static unsigned crowd_answers(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < CROWD; i++)
		sum += crowd[i]->answered;
	return sum;
}

static void crowd_flows_off(void)
{
	unsigned before, turns = 0, all = 0;

	for (unsigned i = 0; i < CROWD; i++)
		all += crowd[i]->sent;
	stepped_others();
	send_keep_alive();
	stepped_others();
	for (; crowd_answers() < all || other->answered < other->sent; turns++) {
		before = crowd_answers();
		assert_true(turns < TURNS_MAX);
		assert_true(turns < KEEP_ALIVE_TURNS || other->answered == other->sent);
		stepped_control();
		assert_in_range(crowd_answers() - before, 0, TURN_MAX);
	}
}

static void close_crowd(void)
{
	for (unsigned i = 0; i < CROWD; i++)
		raw_host_close(crowd[i]);
	for (int i = 0; i < 100; i++)
		stepped_control();
}

/* As many as there are come at once: each turn of the control reactor accepts its share of them. */
static void open_crowd(void)
{
	unsigned turns = 0, before;

	for (unsigned i = 0; i < CROWD; i++)
		crowd[i] = raw_host_open();
	send_keep_alive();
	stepped_others();
	for (; crowd_answers() < CROWD; turns++) {
		before = accepted;
		assert_true(turns < TURNS_MAX);
		assert_true(turns < KEEP_ALIVE_TURNS || other->answered == other->sent);
		stepped_control();
		assert_in_range(accepted - before, 0, TURN_MAX);
	}
}

static void connect_flood(void **state)
{
	char hostnqn[64];

	open_crowd();
	for (unsigned i = 0; i < CROWD; i++) {
		struct nvmf_connect_data data;

		snprintf(hostnqn, sizeof(hostnqn), "nqn.2026-11.io.weft:host-%u", i);
		data = stepped_connect_data(NVME_NQN_DISCOVERY, hostnqn, i + 100,
					    NVME_CNTLID_DYNAMIC);
		raw_host_connect_send(crowd[i], &data, 0, 0);
	}
	crowd_flows_off();
	close_crowd();
}

/* --- who counts as one ------------------------------------------------------------------------ */

/* A crowd of controllers, each with a name or an identifier of its own. */
static void crowd_connects(const char *name, bool names)
{
	char hostnqn[64];

	open_crowd();
	for (unsigned i = 0; i < CROWD; i++) {
		struct nvmf_connect_data data;

		snprintf(hostnqn, sizeof(hostnqn), "%s-%u", name, i);
		data = stepped_connect_data(STEPPED_NQN, names ? hostnqn : name, i + 100,
					    NVME_CNTLID_DYNAMIC);
		raw_host_connect_send(crowd[i], &data, 0, 0);
	}
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(raw_host_wait(crowd[i]), 0);
}

/* … and commands that wait. */
static void crowd_sends(const char *name, bool names)
{
	crowd_connects(name, names);
	for (unsigned i = 0; i < CROWD; i++)
		for (unsigned n = 0; n < 4; n++) {
			union nvme_sqe sqe = { .common = { .opcode = nvme_admin_keep_alive } };

			raw_host_send(crowd[i], &sqe, NULL, 0);
		}
}

/* Whoever may choose its identifier as it likes is one host, by its name. */
static void identifiers_buy_no_turns(void **state)
{
	crowd_sends(FLOODER, false);
	crowd_flows_off();
	close_crowd();
}

/* Where any host may connect, names cost nothing: those of one address have one turn together,
 * beside a host that its subsystem names. */
static void names_buy_no_turns(void **state)
{
	const struct weft_subsys_options options = { .nqn = "nqn.2026-11.io.weft:listed" };
	struct raw_host *unnamed = other;
	struct weft_subsys *s;
	uint16_t cntlid;

	assert_int_equal(weft_subsys_add(stepped_target, &options, &s, NULL), 0);
	assert_int_equal(weft_subsys_allow(s, "nqn.2026-11.io.weft:named", NULL), 0);
	other = stepped_admin(options.nqn, "nqn.2026-11.io.weft:named", 3, &cntlid);
	crowd_sends("nqn.2026-11.io.weft:made-up", true);
	crowd_flows_off();
	close_crowd();
	raw_host_close(other);
	other = unnamed;
}

static unsigned names_compared_by_connect(const char *subnqn, const char *hostnqn)
{
	struct raw_host *raw;
	uint16_t cntlid;
	unsigned compared_now;

	names_compared = 0;
	raw = stepped_admin(subnqn, hostnqn, 3, &cntlid);
	compared_now = names_compared;
	raw_host_close(raw);
	for (int i = 0; i < 100; i++)
		stepped_control();
	return compared_now;
}

/* However many names others have made up, a Connect compares its own with a few. */
static void names_cost_no_walks(void **state)
{
	enum { A_FEW = 16 };
	static const struct {
		const char *subnqn, *hostnqn;
	} cases[] = {
		{ "nqn.2026-11.io.weft:listed", "nqn.2026-11.io.weft:named" },
		{ STEPPED_NQN, "nqn.2026-11.io.weft:made-up" },
		{ STEPPED_NQN, "nqn.2026-11.io.weft:made-up-7" }, /* one of the crowd */
		{ NVME_NQN_DISCOVERY, "nqn.2026-11.io.weft:made-up-7" },
	};

	crowd_connects("nqn.2026-11.io.weft:made-up", true);
	for_each_named(i, cases, hostnqn)
		assert_in_range(names_compared_by_connect(cases[i].subnqn, cases[i].hostnqn), 0,
				A_FEW);
	close_crowd();
}

/* Connects that come while connections are checked for lost ones share the next check, of three
 * rounds. */
static void connects_share_their_checks(void **state)
{
	rounds = compared = 0;
	crowd_sends(FLOODER, false);
	assert_in_range(rounds, 3, 3 * (CROWD / TURN_MAX + 4));
	assert_in_range(compared, 0, CROWD);
	close_crowd();
}

static void connect_refused_flood(void **state)
{
	const struct nvmf_connect_data data = stepped_connect_data("nqn.2026-11.io.weft:none",
								   FLOODER, 1, NVME_CNTLID_DYNAMIC);

	open_crowd();
	for (unsigned i = 0; i < CROWD; i++)
		raw_host_connect_send(crowd[i], &data, 0, 0);
	crowd_flows_off();
	close_crowd();
}

static void connect_io(struct raw_host *raw, uint16_t cntlid, uint16_t qid)
{
	const struct nvmf_connect_data data = stepped_connect_data(STEPPED_NQN, FLOODER, 1, cntlid);

	raw_host_connect_send(raw, &data, qid, 0);
}

static void disconnect_flood(void **state)
{
	open_ctrls(STEPPED_NQN, CTRLS);
	open_crowd();
	for (unsigned i = 0; i < CROWD; i++)
		connect_io(crowd[i], cntlids[i % CTRLS], (uint16_t)(1 + i / CTRLS));
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(raw_host_wait(crowd[i]), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
						    .fctype = NVMF_DISCONNECT } };

		raw_host_send(crowd[i], &sqe, NULL, 0);
	}
	crowd_flows_off();
	close_crowd();
	close_flooders();
}

/* --- the end, in the middle of it ------------------------------------------------------------- */

/* Commands that wait on the control reactor for their turn come back when their connection is gone,
 * also those that the control reactor would have kept for an event. */
static void flooders_leave(void **state)
{
	static const struct flood events = { .opcode = nvme_admin_async_event },
				  identify = { .opcode = nvme_admin_identify, .bytes = 4096 };

	open_ctrls(STEPPED_NQN, CTRLS);
	send_flood(&events);
	stepped_others();
	stepped_control();
	close_flooders();
	assert_int_equal(stepped_ctrls(), 1);
	open_queues();
	for (unsigned q = CTRLS; q < nflooders; q++)
		for (unsigned n = 0; n < FLOOD; n++)
			send_change(flooders[q], REGISTER, REPLACE | IEKEY);
	nflooders = CTRLS;
	send_flood(&identify);
	nflooders = 2 * CTRLS;
	stepped_others();
	stepped_control();
	close_flooders();
	assert_int_equal(stepped_ctrls(), 1);
}

/* A target that is to stand still answers what waits on the control reactor first. */
static void freeze_in_a_flood(void **state)
{
	static const struct flood identify = { .opcode = nvme_admin_identify,
					       .cdw10 = 1,
					       .bytes = 4096 };
	struct stepped_end freeze = { false, 0 };

	open_ctrls(STEPPED_NQN, CTRLS);
	send_flood(&identify);
	stepped_others();
	stepped_control();
	weft_target_freeze(stepped_target, 1000, stepped_ended, &freeze);
	for (int i = 0; i < TURNS_MAX && !freeze.over; i++)
		stepped_control();
	assert_true(freeze.over && !freeze.rc);
	weft_target_thaw(stepped_target);
	for (unsigned i = 0; i < nflooders; i++)
		assert_int_equal(raw_host_wait(flooders[i]), 0);
	close_flooders();
}

/* --- what one command costs ------------------------------------------------------------------- */

enum { MANY = 200, HEAD = 1024, ENTRY = 1024, SKIPPED = 4100 };

static unsigned read_discovery(struct raw_host *raw, uint32_t offset, uint32_t bytes)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_get_log_page,
					   .cdw10 = cpu_to_le32(LOG_CDW10(0x70, bytes)),
					   .cdw12 = cpu_to_le32(offset) } };

	addresses_written = 0;
	raw_host_send(raw, &sqe, NULL, bytes);
	assert_int_equal(raw_host_wait(raw), 0);
	assert_int_equal(raw->data_len, bytes);
	return addresses_written;
}

static void gone(void *arg)
{
	++*(unsigned *)arg;
}

/* Who reads the discovery log piece by piece has the pieces written, not the whole for each; and
 * pieces of any size are of the same page. */
static void discovery_in_pieces(void **state)
{
	static const uint32_t pieces[] = { 16, 1500, 4096 };
	const uint32_t size = HEAD + (1 + 1 + MANY) * ENTRY;
	struct weft_subsys *many[MANY];
	uint8_t *whole = malloc(size);
	unsigned removed = 0;
	struct raw_host *raw;
	uint16_t cntlid;
	char nqn[64];

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(nqn, sizeof(nqn), "nqn.2026-11.io.weft:many-%u", i);
		many[i] = stepped_subsys_add(nqn);
	}
	raw = stepped_admin(NVME_NQN_DISCOVERY, OTHER, 2, &cntlid);
	for (uint32_t at = 0; at < size; at += ENTRY) {
		assert_in_range(read_discovery(raw, at, ENTRY), 0, 1);
		memcpy(whole + at, raw->data, ENTRY);
	}
	assert_int_equal(whole[8] | whole[9] << 8, MANY + 2); /* NUMREC */
	for_each_row(i, pieces)
		for (uint32_t at = 0; at + pieces[i] <= size; at += pieces[i] + SKIPPED) {
			assert_in_range(read_discovery(raw, at, pieces[i]), 0,
					pieces[i] / ENTRY + 2);
			assert_memory_equal(raw->data, whole + at, pieces[i]);
		}
	raw_host_close(raw);
	for (unsigned i = 0; i < MANY; i++)
		weft_subsys_remove(many[i], gone, &removed);
	for (int i = 0; i < TURNS_MAX && removed < MANY; i++)
		stepped_control();
	assert_int_equal(removed, MANY);
	free(whole);
}

/* --- lists of controllers --------------------------------------------------------------------- */

enum { LIST_MAX = 2047, CTRLS_MANY = LIST_MAX + 60, HIGH = 50, AT_ONCE = 100 };

static struct raw_host *many[CTRLS_MANY];
static uint16_t many_ids[CTRLS_MANY];

static unsigned list_ctrls(uint8_t cns, uint16_t from, uint16_t ids[LIST_MAX + 1])
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_identify,
					   .nsid = cpu_to_le32(cns == 0x12 ? 1 : 0),
					   .cdw10 = cpu_to_le32(cns | (uint32_t)from << 16) } };

	raw_host_send(other, &sqe, NULL, 4096);
	assert_int_equal(raw_host_wait(other), 0);
	memcpy(ids, other->data, 4096);
	return ids[0];
}

/* The commands that all of them were sent. */
static void wait_for_many(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		assert_int_equal(raw_host_wait(many[i]), 0);
}

static void connect_many(unsigned from, unsigned to, unsigned id, unsigned step)
{
	for (unsigned i = from; i < to; i++) {
		const struct nvmf_connect_data data = stepped_connect_data(STEPPED_NQN, FLOODER,
									   id + i * step,
									   NVME_CNTLID_DYNAMIC);

		raw_host_wait(many[i]);
		raw_host_connect_send(many[i], &data, 0, 0);
	}
	wait_for_many(from, to);
	for (unsigned i = from; i < to; i++)
		many_ids[i] = (uint16_t)le64_to_cpu(many[i]->last.result);
}

/* Controllers of one host, whose identifier is @id, or grows from there. */
static void open_many(unsigned n, unsigned id, unsigned step)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned from = 0, to; from < n; from = to) {
		to = from + AT_ONCE < n ? from + AT_ONCE : n;
		for (unsigned i = from; i < to; i++)
			many[i] = raw_host_open();
		connect_many(from, to, id, step);
	}
}

static void enable_many(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		union nvme_sqe sqe = { .property = { .opcode = NVME_FABRICS_OPCODE,
						     .fctype = NVMF_PROPERTY_SET,
						     .offset = cpu_to_le32(NVME_REG_CC),
						     .value = cpu_to_le64(0x460001) } };

		raw_host_send(many[i], &sqe, NULL, 0);
	}
	wait_for_many(0, n);
}

static void close_many(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		raw_host_close(many[i]);
	for (int i = 0; i < 100; i++)
		stepped_control();
}

/* More than one list holds: the lowest come first, whenever they came, and who asks on behind the
 * last gets the others. */
static void lists_of_controllers(void **state)
{
	static const uint8_t cnss[] = { 0x12, 0x13 };
	uint16_t ids[LIST_MAX + 1];

	stepped_subsys->cntlid_next = stepped_subsys->cntlid_last - HIGH;
	open_many(CTRLS_MANY, 1, 0);
	for_each_row(c, cnss) {
		unsigned seen = 0, n = 0;
		uint32_t last = 0;

		while ((n = list_ctrls(cnss[c], (uint16_t)(last + 1), ids))) {
			assert_true(seen || n == LIST_MAX);
			for (unsigned i = 1; i <= n; last = ids[i++])
				assert_true(ids[i] > last);
			seen += n;
		}
		assert_int_equal(seen, CTRLS_MANY + 1);
		assert_int_equal(last, stepped_subsys->cntlid_last);
	}
	close_many(CTRLS_MANY);
}

/* --- queues that drain ------------------------------------------------------------------------- */

enum { DRAINING = 60, BYSTANDERS = 300, NS_SLOW = 9, STORAGE_MS = 2000, DRAINING_ID = 5000 };

static void read_slowly(struct raw_host *raw)
{
	union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_read, .nsid = cpu_to_le32(NS_SLOW) } };

	raw_host_send(raw, &sqe, NULL, 512);
}

/* A host has lost many queues whose commands are in storage, and connects many times meanwhile: each
 * Connect waits for all of these queues, one after the other. What that costs does not grow with the
 * controllers that the host still has. */
static void connects_wait_for_many_queues(void **state)
{
	static struct raw_host *lost[DRAINING];
	struct nvmf_connect_data data;

	stepped_ns_add(NS_SLOW, 512, stepped_backend("mem:1M,delay=read:2s"));
	open_many(DRAINING + BYSTANDERS, DRAINING_ID, 0);
	enable_many(DRAINING);
	for (unsigned i = 0; i < DRAINING; i++)
		lost[i] = stepped_io(FLOODER, DRAINING_ID, many_ids[i], 1);
	for (unsigned i = 0; i < DRAINING; i++)
		read_slowly(lost[i]);
	stepped_others();
	open_crowd();
	for (unsigned i = 0; i < DRAINING; i++)
		raw_host_close(lost[i]);
	for (unsigned i = 0; i < CROWD; i++) {
		data = stepped_connect_data(STEPPED_NQN, FLOODER, DRAINING_ID, NVME_CNTLID_DYNAMIC);
		raw_host_connect_send(crowd[i], &data, 0, 0);
	}
	compared = 0;
	for (int i = 0; i < 50; i++)
		stepped_control();
	assert_int_equal(crowd_answers(), CROWD); /* ICReq alone: they all wait */
	stepped_later(STORAGE_MS);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(raw_host_wait(crowd[i]), 0);
	assert_in_range(compared, CROWD, (DRAINING + 1) * CROWD);
	close_crowd();
	close_many(DRAINING + BYSTANDERS);
}

static unsigned asked;

bool __real_weft_sock_has_ended(const void *sock);
bool __wrap_weft_sock_has_ended(const void *sock);
bool __wrap_weft_sock_has_ended(const void *sock)
{
	asked++;
	return __real_weft_sock_has_ended(sock);
}

enum { ITS_OWN = 200, ITS_ID = 7000, ASKED_MAX = 32 };

/* A host's Connect asks the kernel about each connection that the host has, of some in a turn. */
static void a_connect_asks_about_some_in_a_turn(void **state)
{
	const struct nvmf_connect_data data = stepped_connect_data(STEPPED_NQN, FLOODER, ITS_ID,
								   NVME_CNTLID_DYNAMIC);
	unsigned before, all = 0;
	struct raw_host *raw;

	open_many(ITS_OWN, ITS_ID, 0);
	raw = raw_host_open();
	raw_host_wait(raw);
	raw_host_connect_send(raw, &data, 0, 0);
	for (unsigned turns = 0; raw->answered < raw->sent; turns++) {
		assert_true(turns < TURNS_MAX);
		before = asked;
		stepped_once();
		assert_in_range(asked - before, 0, ASKED_MAX);
		all += asked - before;
	}
	assert_int_equal(all, ITS_OWN);
	raw_host_close(raw);
	close_many(ITS_OWN);
}

/* --- a host that makes up identifiers --------------------------------------------------------- */

enum { EACH = 4, FIRST_ID = 1000, BATCH_MAX = 64 };

static void open_io_queues(void)
{
	open_crowd();
	for (unsigned i = 0; i < CROWD; i++) {
		const struct nvmf_connect_data data = stepped_connect_data(STEPPED_NQN, FLOODER,
									   FIRST_ID + i,
									   many_ids[i]);

		raw_host_connect_send(crowd[i], &data, 1, 0);
	}
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(raw_host_wait(crowd[i]), 0);
}

static void flood_with_changes(void)
{
	for (unsigned i = 0; i < CROWD * EACH; i++)
		send_change(crowd[i % CROWD], REGISTER, REPLACE | IEKEY);
}

static void wait_for_crowd(void)
{
	for (unsigned i = 0; i < CROWD; i++)
		raw_host_wait(crowd[i]);
}

/* Another host's change comes behind all of theirs. */
static void change_beside_a_flood(struct raw_host *io)
{
	unsigned turns = 0;

	flood_with_changes();
	stepped_others();
	send_change(io, REGISTER, REPLACE | IEKEY);
	stepped_others();
	for (; io->answered < io->sent; turns++)
		stepped_control();
	assert_in_range(turns, 0, 8);
	wait_for_crowd();
}

/* While a commit takes its time all that comes waits in line; that change is in the next batch. */
static void change_beside_a_flood_in_line(struct raw_host *io)
{
	hold_commits = true;
	flood_with_changes();
	for (int i = 0; i < 100; i++)
		stepped_control();
	send_change(io, REGISTER, REPLACE | IEKEY);
	stepped_control();
	assert_non_null(held_txn);
	rules_run = 0;
	hold_commits = false;
	__real_weft_store_commit(stepped_subsys->store, held_txn);
	raw_host_wait(io);
	assert_in_range(rules_run, 1, 2 * BATCH_MAX);
	wait_for_crowd();
	assert_true(rules_run > 4 * BATCH_MAX); /* or this tests nothing */
}

static void made_up_identifiers_reserve(void **state)
{
	struct raw_host *admin, *io;
	uint16_t cntlid;

	open_many(CROWD, FIRST_ID, 1);
	enable_many(CROWD);
	open_io_queues();
	admin = stepped_admin(STEPPED_NQN, OTHER, 3, &cntlid);
	io = stepped_io(OTHER, 3, cntlid, 1);
	change_beside_a_flood(io);
	change_beside_a_flood_in_line(io);
	raw_host_close(io);
	raw_host_close(admin);
	close_crowd();
	close_many(CROWD);
}

/* --- one Preempt, of a host with very many controllers ---------------------------------------- */

enum { VICTIMS = 1000, VICTIM_KEY = 101, OTHER_KEY = 102, PREEMPT = 1, CLEAR = 1 };
enum { TOLD_MAX = 300, LOOKS_MAX = 600 }; /* in one turn of the control reactor */

static unsigned many_answers(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < VICTIMS; i++)
		sum += many[i]->answered;
	return sum;
}

static void ask_for_events(void)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_async_event } };

	for (unsigned i = 0; i < VICTIMS; i++)
		raw_host_send(many[i], &sqe, NULL, 0);
	for (int i = 0; i < 100; i++)
		stepped_control();
}

/* Answered, in turns of which each has a share of it, and others are heard meanwhile. */
static void change_in_turns(struct raw_host *io)
{
	unsigned answers, looks, turns = 0;

	stepped_others();
	send_keep_alive();
	stepped_others();
	for (; io->answered < io->sent; turns++) {
		answers = many_answers();
		looks = looked_at;
		assert_true(turns < TURNS_MAX);
		assert_true(turns < KEEP_ALIVE_TURNS || other->answered == other->sent);
		stepped_control();
		assert_in_range(many_answers() - answers, 0, TOLD_MAX);
		assert_in_range(looked_at - looks, 0, LOOKS_MAX);
	}
	assert_int_equal(raw_host_wait(io), 0);
}

/* All of them are told; and each controller is looked at once, for however many hosts there is
 * news. */
static void notices_of_many_controllers(void **state)
{
	struct raw_host *victim, *admin, *io;
	uint16_t cntlid;
	unsigned begun;

	open_many(VICTIMS, 1, 0);
	enable_many(VICTIMS);
	victim = stepped_io(FLOODER, 1, many_ids[0], 1);
	raw_host_send_keys(victim, 1, REGISTER, REPLACE | IEKEY, 0, VICTIM_KEY);
	assert_int_equal(raw_host_wait(victim), 0);
	admin = stepped_admin(STEPPED_NQN, OTHER, 3, &cntlid);
	io = stepped_io(OTHER, 3, cntlid, 1);
	raw_host_send_keys(io, 1, REGISTER, REPLACE | IEKEY, 0, OTHER_KEY);
	assert_int_equal(raw_host_wait(io), 0);
	ask_for_events();
	begun = many_answers();
	looked_at = 0;
	raw_host_send_keys(io, 1, ACQUIRE, PREEMPT | 1 << 8, OTHER_KEY, VICTIM_KEY);
	change_in_turns(io);
	assert_int_equal(many_answers() - begun, VICTIMS);
	assert_int_equal(looked_at, stepped_ctrls());
	looked_at = 0;
	raw_host_send_keys(io, 1, RELEASE, CLEAR, OTHER_KEY,
			   0); /* others have registered in other cases */
	change_in_turns(io);
	assert_int_equal(looked_at, stepped_ctrls());
	raw_host_close(victim);
	raw_host_close(io);
	raw_host_close(admin);
	close_many(VICTIMS);
}

/* --- one Preempt and Abort, while storage has a command --------------------------------------- */

enum { PREEMPT_ABORT = 2, SLOW = 2, WALKED_MAX = 512, STEPS = 25, STEP_MS = 8, ROUNDS_MAX = 12 };

static struct weft_io *kept;

static int slow_submit(struct weft_backend *be, struct weft_io *io)
{
	kept = io;
	return 0;
}

static struct weft_io *answered_io;

static void slow_answer(struct weft_msg *msg)
{
	answered_io->done(answered_io, 0);
}

static void answer_slow(struct weft_io *io)
{
	static struct weft_msg msg = { .fn = slow_answer };

	answered_io = io;
	weft_reactor_post(stepped_target->poll_groups[0]->reactor, &msg);
	stepped_others();
}

static void slow_close(struct weft_backend *be)
{
	free(be->spec);
	free(be);
}

static struct weft_backend *open_slow(void)
{
	static const struct weft_backend_ops ops = { .type = "slow",
						     .submit = slow_submit,
						     .close = slow_close };
	struct weft_backend *be = calloc(1, sizeof(*be));

	*be = (struct weft_backend){
		.ops = &ops,
		.size = 1 << 20,
		.align = 1,
		.block_min = 512,
		.spec = strdup("null:1M"),
	};
	return be;
}

static void begin_slow_write(struct raw_host *raw)
{
	static char block[512];
	union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_write, .nsid = cpu_to_le32(SLOW) } };

	raw_host_send(raw, &sqe, block, sizeof(block));
	for (unsigned turns = 0; !kept; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_once();
	}
}

/* In another namespace: it waits for data that never comes. */
static struct raw_host *begin_other_write(uint16_t cntlid)
{
	union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_write, .nsid = cpu_to_le32(1) } };
	struct raw_host *raw = stepped_io(FLOODER, 1, cntlid, 2);

	raw->stalls = true;
	raw_host_send(raw, &sqe, NULL, 512);
	return raw;
}

static void assert_only_asked_for_data(const struct raw_host *raw)
{
	char bytes[1024];

	assert_int_equal(recv(raw->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT),
			 sizeof(struct nvme_tcp_data)); /* an R2T */
}

static void register_key(struct raw_host *raw, uint64_t key)
{
	raw_host_send_keys(raw, SLOW, REGISTER, REPLACE | IEKEY, 0, key);
	assert_int_equal(raw_host_wait(raw), 0);
}

/* A turn looks at some of the connections, and they are all looked at less and less often. */
static void an_abort_waits_for_storage(void **state)
{
	struct raw_host *victim, *goes_on, *admin, *io;
	unsigned before, all = 0;
	uint16_t cntlid;

	stepped_ns_add(SLOW, 512, open_slow());
	open_many(VICTIMS, 1, 0);
	enable_many(VICTIMS);
	victim = stepped_io(FLOODER, 1, many_ids[0], 1);
	admin = stepped_admin(STEPPED_NQN, OTHER, 3, &cntlid);
	io = stepped_io(OTHER, 3, cntlid, 1);
	register_key(victim, VICTIM_KEY);
	register_key(io, OTHER_KEY);
	goes_on = begin_other_write(many_ids[0]);
	begin_slow_write(victim);
	rounds = 0;
	raw_host_send_keys(io, SLOW, ACQUIRE, PREEMPT_ABORT | 1 << 8, OTHER_KEY, VICTIM_KEY);
	for (unsigned turns = 0; all < VICTIMS; turns++) {
		assert_true(turns < TURNS_MAX);
		before = walked;
		stepped_once();
		assert_in_range(walked - before, 0, WALKED_MAX);
		all += walked - before;
	}
	for (unsigned step = 0; step < STEPS; step++)
		stepped_later(STEP_MS);
	assert_in_range(rounds, 4, ROUNDS_MAX);
	assert_true(io->answered < io->sent);
	answer_slow(kept);
	for (unsigned step = 0; io->answered < io->sent; step++) {
		assert_true(step < STEPS);
		stepped_later(STEP_MS);
	}
	assert_int_equal(raw_host_wait(io), 0);
	assert_int_equal(raw_host_wait(victim), 0);
	assert_only_asked_for_data(goes_on);
	raw_host_close(goes_on);
	raw_host_close(victim);
	raw_host_close(io);
	raw_host_close(admin);
	close_many(VICTIMS);
}

static void until_storage_has_another(struct weft_io *first)
{
	for (unsigned turns = 0; kept == first; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_once();
	}
}

/* Nobody has reserved the namespace, so a host that has lost its registration goes on. A Preempt and
 * Abort waits for what it had begun before, and not for what comes later. */
static void an_abort_leaves_later_commands(void **state)
{
	struct raw_host *victim_admin, *victim, *admin, *io;
	struct weft_io *first, *later;
	uint16_t cntlid;

	victim_admin = stepped_admin(STEPPED_NQN, FLOODER, 1, &cntlid);
	victim = stepped_io(FLOODER, 1, cntlid, 1);
	admin = stepped_admin(STEPPED_NQN, OTHER, 3, &cntlid);
	io = stepped_io(OTHER, 3, cntlid, 1);
	register_key(victim, VICTIM_KEY);
	register_key(io, OTHER_KEY);
	kept = NULL;
	begin_slow_write(victim);
	first = kept;
	raw_host_send_keys(io, SLOW, ACQUIRE, PREEMPT_ABORT | 1 << 8, OTHER_KEY, VICTIM_KEY);
	for (unsigned step = 0; step < STEPS; step++)
		stepped_later(STEP_MS);
	begin_slow_write(victim);
	until_storage_has_another(first);
	later = kept;
	answer_slow(first);
	for (unsigned step = 0; io->answered < io->sent; step++) {
		assert_true(step < STEPS);
		stepped_later(STEP_MS);
	}
	assert_int_equal(raw_host_wait(io), 0);
	assert_int_equal(victim->answered, victim->sent - 1);
	answer_slow(later);
	assert_int_equal(raw_host_wait(victim), 0);
	raw_host_close(victim);
	raw_host_close(victim_admin);
	raw_host_close(io);
	raw_host_close(admin);
	for (int i = 0; i < 100; i++)
		stepped_control();
}

/* Connections that go meanwhile are none that a walk comes to. */
static void a_walk_steps_over(void **state)
{
	struct weft_poll_group *group = stepped_target->poll_groups[0];
	unsigned before = atomic_load(&group->nqpairs);
	struct raw_host *late[3];
	struct weft_qpair_iter walk;

	for (unsigned i = 0; i < 3; i++) {
		late[i] = raw_host_open();
		raw_host_wait(late[i]);
	}
	weft_qpair_iter_begin(group, &walk);
	for (unsigned i = 0; i < before; i++)
		assert_non_null(weft_qpair_iter_next(group, &walk));
	for (unsigned i = 0; i < 3; i++)
		raw_host_close(late[i]);
	for (unsigned turns = 0; atomic_load(&group->nqpairs) > before; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_once();
	}
	assert_null(weft_qpair_iter_next(group, &walk));
}

/* --- a report of a reservation ---------------------------------------------------------------- */

enum { REPORT_BYTES = 1 << 20, TOUCHED_MAX = 64 << 10, MARK = 0x5a };

static bool marks_reports;

/* What the control reactor clears or writes of a report loses the mark. */
void __real_tgt_post_control(struct weft_req *req, void (*fn)(struct weft_msg *msg));
void __wrap_tgt_post_control(struct weft_req *req, void (*fn)(struct weft_msg *msg));
void __wrap_tgt_post_control(struct weft_req *req, void (*fn)(struct weft_msg *msg))
{
	if (marks_reports && req->cmd.common.opcode == REPORT) {
		for (size_t i = 0; i < req->data_len; i++)
			assert_false(((uint8_t *)req->data)[i]);
		memset(req->data, MARK, req->data_len);
	}
	__real_tgt_post_control(req, fn);
}

static void send_report(struct raw_host *raw)
{
	union nvme_sqe sqe = { .common = { .opcode = REPORT,
					   .nsid = cpu_to_le32(1),
					   .cdw10 = cpu_to_le32(REPORT_BYTES / 4 - 1),
					   .cdw11 = cpu_to_le32(1) } };

	raw_host_send(raw, &sqe, NULL, REPORT_BYTES);
	assert_int_equal(raw_host_wait(raw), 0);
	assert_int_equal(raw->data_len, REPORT_BYTES);
}

/* A host may ask for 1 MiB of a report that has less. The rest is cleared on its queue's reactor, like
 * data that it reads, and not in a turn of the control reactor. */
static void reports_cost_what_they_say(void **state)
{
	size_t touched = 0;

	open_queues();
	send_report(flooders[CTRLS]); /* whoever has this buffer next finds bytes in it */
	marks_reports = true;
	send_report(flooders[CTRLS]);
	send_report(flooders[CTRLS]);
	marks_reports = false;
	for (size_t i = 0; i < REPORT_BYTES; i++)
		touched += flooders[CTRLS]->data[i] != MARK;
	assert_in_range(touched, 1, TOUCHED_MAX);
	close_flooders();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(admin_floods),
		cmocka_unit_test(reservation_floods),
		cmocka_unit_test(report_flood),
		cmocka_unit_test(failing_io_flood),
		cmocka_unit_test(reservations_are_fair),
		cmocka_unit_test(connect_flood),
		cmocka_unit_test(connects_share_their_checks),
		cmocka_unit_test(connect_refused_flood),
		cmocka_unit_test(disconnect_flood),
		cmocka_unit_test(flooders_leave),
		cmocka_unit_test(freeze_in_a_flood),
		cmocka_unit_test(discovery_in_pieces),
		cmocka_unit_test(lists_of_controllers),
		cmocka_unit_test(connects_wait_for_many_queues),
		cmocka_unit_test(a_connect_asks_about_some_in_a_turn),
		cmocka_unit_test(identifiers_buy_no_turns),
		cmocka_unit_test(names_buy_no_turns),
		cmocka_unit_test(names_cost_no_walks),
		cmocka_unit_test(made_up_identifiers_reserve),
		cmocka_unit_test(notices_of_many_controllers),
		cmocka_unit_test(an_abort_waits_for_storage),
		cmocka_unit_test(an_abort_leaves_later_commands),
		cmocka_unit_test(a_walk_steps_over),
		cmocka_unit_test(reports_cost_what_they_say),
	};
	uint16_t cntlid;
	int rc;

	stepped_start();
	other = stepped_admin(STEPPED_NQN, OTHER, 2, &cntlid);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	stepped_stop();
	return rc;
}
