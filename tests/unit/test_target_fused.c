/* test_target_fused.c - fused pairs of one host leave the namespace to others.
 *
 * A host has hundreds of pairs under way on a namespace, through several queues. What comes then
 * waits for a few of them. A quiesce of the namespace and its end are a round of all reactors each:
 * rounds are counted. */
#include <stdio.h>

#include "running.h"
#include "target/internal.h"
#include "world/stepped.h"

enum {
	NS = 2,
	BLOCK = 512,
	QUEUES = 4,
	PAIRS_EACH = STEPPED_DEPTH / 2 - 1,
	PAIRS = QUEUES * PAIRS_EACH,
	ROUNDS = 2, /* of a pair */
	TURNS_MAX = 10000,
	FLOODERS_ADDRESS = 3,
	OTHERS_ADDRESS = 7,
	DELETED = SC_GENERIC(INVALID_NS) | SC_DNR,
};

static struct raw_host *flood_admin, *flood[QUEUES], *admin, *other;
static unsigned rounds;

void __real_tgt_barrier_start(void *round);
void __wrap_tgt_barrier_start(void *round);
void __wrap_tgt_barrier_start(void *round)
{
	rounds++;
	__real_tgt_barrier_start(round);
}

/* --- hosts ------------------------------------------------------------------------------------ */

static void send_half(struct raw_host *raw, uint8_t opcode, uint8_t fuse)
{
	static const char zeroes[BLOCK];
	union nvme_sqe sqe = { .rw = { .opcode = opcode, .flags = fuse, .nsid = cpu_to_le32(NS) } };

	raw_host_send(raw, &sqe, zeroes, sizeof(zeroes));
}

static void send_pair(struct raw_host *raw)
{
	send_half(raw, nvme_cmd_compare, NVME_FUSE_FIRST);
	send_half(raw, nvme_cmd_write, NVME_FUSE_SECOND);
}

static unsigned pairs_answered(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < QUEUES; i++)
		sum += flood[i]->answered;
	return (sum - 2 * QUEUES) / 2; /* ICReq and Connect are no pairs */
}

static void begin_flood(uint8_t others_address)
{
	uint16_t cntlid;

	stepped_ns_add(NS, BLOCK, stepped_backend("mem:1M"));
	stepped_source = FLOODERS_ADDRESS;
	flood_admin = stepped_admin(STEPPED_NQN, FLOODER, 1, &cntlid);
	for (unsigned i = 0; i < QUEUES; i++)
		flood[i] = stepped_io(FLOODER, 1, cntlid, (uint16_t)(1 + i));
	stepped_source = others_address;
	admin = stepped_admin(STEPPED_NQN, OTHER, 2, &cntlid);
	other = stepped_io(OTHER, 2, cntlid, 1);
	for (unsigned n = 0; n < PAIRS_EACH; n++)
		for (unsigned i = 0; i < QUEUES; i++)
			send_pair(flood[i]);
	stepped_others();
	rounds = 0;
	stepped_control(); /* pairs wait for the namespace */
}

/* Returns the status of its last command. */
static uint16_t wait_for_flood(void)
{
	uint16_t sc = 0;

	for (unsigned i = 0; i < QUEUES; i++)
		sc |= raw_host_wait(flood[i]);
	assert_int_equal(pairs_answered(), PAIRS);
	return sc;
}

static void gone(void *arg)
{
	*(bool *)arg = true;
}

static void begin_removal(bool *removed)
{
	struct weft_err err;

	*removed = false;
	assert_int_equal(weft_ns_remove(stepped_subsys, NS, gone, removed, &err), 0);
}

static void until(const bool *happened)
{
	for (unsigned turns = 0; !*happened; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_once();
	}
}

/* @queues of the flood are open. */
static void end_flood(unsigned queues)
{
	bool removed;

	begin_removal(&removed);
	until(&removed);
	while (queues)
		raw_host_close(flood[--queues]);
	raw_host_close(flood_admin);
	raw_host_close(other);
	raw_host_close(admin);
	for (int i = 0; i < 100; i++)
		stepped_control();
}

/* --- what waits for few of them --------------------------------------------------------------- */

static void pair_beside_a_flood(uint8_t address)
{
	begin_flood(address);
	send_pair(other);
	assert_int_equal(raw_host_wait(other), 0);
	assert_in_range(rounds, ROUNDS, ROUNDS * (TGT_PAIRS_MAX + 4));
	assert_true(pairs_answered() < PAIRS);
	assert_int_equal(wait_for_flood(), 0);
	end_flood(QUEUES);
}

static void a_pair_waits_for_few(void **state)
{
	pair_beside_a_flood(OTHERS_ADDRESS);
}

/* Both hosts are one tenant, whose flows take turns. */
static void a_pair_from_the_same_address_waits_for_few(void **state)
{
	pair_beside_a_flood(FLOODERS_ADDRESS);
}

static void a_resize_waits_for_one(void **state)
{
	struct stepped_end end = { 0 };
	struct weft_err err;

	begin_flood(OTHERS_ADDRESS);
	assert_int_equal(weft_ns_resize(stepped_subsys, NS, 2 << 20, false, stepped_ended, &end,
					&err),
			 0);
	until(&end.over);
	assert_int_equal(end.rc, 0);
	assert_in_range(rounds, ROUNDS, ROUNDS * 2);
	assert_int_equal(wait_for_flood(), 0);
	end_flood(QUEUES);
}

/* Resizes happen in the order in which they were asked for: the last one has its way. */
static void resizes_keep_their_order(void **state)
{
	struct stepped_end first = { 0 }, second = { 0 };
	struct weft_err err;

	begin_flood(OTHERS_ADDRESS);
	assert_int_equal(weft_ns_resize(stepped_subsys, NS, 2 << 20, false, stepped_ended, &first,
					&err),
			 0);
	assert_int_equal(weft_ns_resize(stepped_subsys, NS, 3 << 20, false, stepped_ended, &second,
					&err),
			 0);
	until(&second.over);
	assert_true(first.over && !first.rc && !second.rc);
	assert_int_equal(tgt_ns_find(stepped_subsys, NS)->be->size, 3 << 20);
	assert_int_equal(wait_for_flood(), 0);
	end_flood(QUEUES);
}

static void a_removal_waits_for_one(void **state)
{
	bool removed;

	begin_flood(OTHERS_ADDRESS);
	begin_removal(&removed);
	until(&removed);
	assert_in_range(rounds, 1, ROUNDS * 2 + 2);
	assert_true(wait_for_flood());
	stepped_ns_add(NS, BLOCK, stepped_backend("mem:1M"));
	end_flood(QUEUES);
}

/* --- the end of pairs that wait for their tenant's others ------------------------------------- */

/* Those that were in the namespace's queue already are carried out; the others are not. */
static void a_connection_takes_its_pairs_along(void **state)
{
	begin_flood(OTHERS_ADDRESS);
	for (unsigned i = 1; i < QUEUES; i++)
		raw_host_close(flood[i]);
	assert_int_equal(raw_host_wait(flood[0]), 0);
	assert_in_range(rounds, ROUNDS * PAIRS_EACH, ROUNDS * (PAIRS_EACH + TGT_PAIRS_MAX + 4));
	end_flood(1);
}

static uint64_t abort_command(uint16_t qid, uint16_t cid)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_abort_cmd,
					   .cdw10 = cpu_to_le32(qid | (uint32_t)cid << 16) } };

	raw_host_send(flood_admin, &sqe, NULL, 0);
	assert_int_equal(raw_host_wait(flood_admin), 0);
	return le64_to_cpu(flood_admin->last.result);
}

/* Its second half ends with it. */
static void a_pair_that_waits_can_be_aborted(void **state)
{
	struct raw_host *raw;

	begin_flood(OTHERS_ADDRESS);
	raw = flood[QUEUES - 1];
	assert_int_equal(abort_command(QUEUES, (uint16_t)(raw->cid - 2)), 0);
	assert_in_range(rounds, 0, ROUNDS * TGT_PAIRS_MAX * 2);
	assert_int_equal(wait_for_flood(), 0);
	/* The end of the last quiesce may come after the answer. */
	assert_in_range(rounds, ROUNDS * (PAIRS - 1) - 1, ROUNDS * (PAIRS - 1));
	end_flood(QUEUES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_waits_for_few),
		cmocka_unit_test(a_pair_from_the_same_address_waits_for_few),
		cmocka_unit_test(a_resize_waits_for_one),
		cmocka_unit_test(resizes_keep_their_order),
		cmocka_unit_test(a_removal_waits_for_one),
		cmocka_unit_test(a_connection_takes_its_pairs_along),
		cmocka_unit_test(a_pair_that_waits_can_be_aborted),
	};
	int rc;

	stepped_start();
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	stepped_stop();
	return rc;
}
