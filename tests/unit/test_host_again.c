/* test_host_again.c - commands that may not be done twice, while their group goes and comes back: a
 * refusal is not a deed, so they are sent again, and done once.
 *
 * The host learns of a group's state from an event. Until then what it sends is refused. */
#include "host_case.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "proto/nvme.h"
#include "proto/status.h"

enum { TURNS = 60, BLOCK = 512 };

static atomic_bool more;
static atomic_uint turns;

static void *turn(void *arg)
{
	static const char *const states[] = { "inaccessible", "optimized" };

	for (unsigned i = 0; atomic_load(&more) || i % 2; i++) {
		target_ana_wait(target_ana_start(1, states[i % 2]));
		atomic_fetch_add(&turns, 1);
		usleep(1000);
	}
	return NULL;
}

/* Runs @body, on a namespace of a group that comes and goes. */
static void while_it_turns(void (*body)(struct host *h))
{
	struct host h = host_open("", NS_512);
	pthread_t thread;

	atomic_store(&more, true);
	atomic_store(&turns, 0);
	need(!pthread_create(&thread, NULL, turn, NULL));
	while (atomic_load(&turns) < TURNS)
		body(&h);
	atomic_store(&more, false);
	pthread_join(thread, NULL);
	host_close(&h);
}

static void run(struct host *h, struct weft_cmd *cmd)
{
	struct weft_err err = { "" };

	if (weft_run(h->queue, cmd, &err) < 0)
		fail_msg("%s", err.text);
}

/* --- compare and write ------------------------------------------------------------------------ */

static char pair[2 * BLOCK];
static uint64_t counter;

/* Done twice, the second would not find what it expects. */
static void count_once(struct host *h)
{
	struct iovec iov = { pair, sizeof(pair) };
	struct weft_cmd cmd = {
		.op = WEFT_COMPARE_AND_WRITE, .ns = h->ns, .length = BLOCK, .iov = &iov, .iovcnt = 1
	};

	memcpy(pair, &counter, sizeof(counter));
	counter++;
	memcpy(pair + BLOCK, &counter, sizeof(counter));
	run(h, &cmd);
}

static void compare_and_write(void **state)
{
	while_it_turns(count_once);
}

/* --- copy ------------------------------------------------------------------------------------- */

static void copy_once(struct host *h)
{
	struct weft_cmd cmd = { .op = WEFT_COPY,
				.ns = h->ns,
				.offset = 1 << 20,
				.copy_from = 2 << 20,
				.length = BLOCK };

	run(h, &cmd);
}

static void copy(void **state)
{
	while_it_turns(copy_once);
}

/* --- raw -------------------------------------------------------------------------------------- */

static void make_raw(struct host *h, unsigned flags, struct weft_cmd *cmd)
{
	static char data[BLOCK];
	static struct iovec iov = { data, sizeof(data) };
	static union nvme_sqe sqe;

	sqe = (union nvme_sqe){ .common = { .opcode = nvme_cmd_read,
					    .nsid = cpu_to_le32(NS_512) } };
	*cmd = (struct weft_cmd){ .op = WEFT_RAW,
				  .flags = flags,
				  .ns = h->ns,
				  .sqe = &sqe,
				  .iov = &iov,
				  .iovcnt = 1,
				  .length = BLOCK };
}

static int run_raw(struct host *h, unsigned flags, struct weft_cmd *cmd)
{
	make_raw(h, flags, cmd);
	return weft_run(h->queue, cmd, NULL);
}

static void read_once(struct host *h)
{
	struct weft_cmd cmd;

	if (run_raw(h, WEFT_IDEMPOTENT, &cmd) < 0)
		fail_msg("a raw command: status 0x%x, %d", cmd.status, cmd.rc);
}

static void raw_that_may(void **state)
{
	while_it_turns(read_once);
}

static unsigned refusals;

/* What its program has not said may be done twice is given back as it came. */
static void read_as_it_is(struct host *h)
{
	struct weft_cmd cmd;
	int rc = run_raw(h, 0, &cmd);

	if (rc < 0 && cmd.status != SC_PATH(ANA_INACCESSIBLE) &&
	    cmd.status != SC_PATH(ANA_TRANSITION))
		fail_msg("a raw command: status 0x%x, %d", cmd.status, rc);
	refusals += rc < 0;
}

static void raw_as_it_is(void **state)
{
	while (!refusals)
		while_it_turns(read_as_it_is);
}

static void note_end(struct weft_cmd *cmd)
{
	*(bool *)cmd->user = true;
}

/* An event that is not of its group is no reason to have it refused. */
static void raw_waits_for_its_group(void **state)
{
	static const char *const states[] = { "non-optimized", "optimized" };
	struct weft_cmd cmd;
	bool over = false;
	struct host h;

	target_ana_wait(target_ana_start(1, "inaccessible"));
	h = host_open("", NS_512);
	make_raw(&h, 0, &cmd);
	cmd.done = note_end;
	cmd.user = &over;
	assert_int_equal(weft_submit(h.queue, &cmd), 0);
	for (unsigned i = 0; i < TURNS; i++) {
		target_ana_wait(target_ana_start(2, states[i % 2]));
		weft_queue_poll(h.queue, 1);
	}
	target_ana_wait(target_ana_start(1, "optimized"));
	while (!over)
		weft_queue_poll(h.queue, -1);
	assert_int_equal(cmd.status, 0);
	assert_int_equal(cmd.rc, 0);
	host_close(&h);
}

static int target_with_namespace(void **state)
{
	target_start();
	target_ns_add(NS_512, "mem:16M", BLOCK, NULL);
	return 0;
}

static int target_end(void **state)
{
	target_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compare_and_write),
		cmocka_unit_test(copy),
		cmocka_unit_test(raw_that_may),
		cmocka_unit_test(raw_as_it_is),
		cmocka_unit_test(raw_waits_for_its_group),
	};

	return cmocka_run_group_tests(tests, target_with_namespace, target_end);
}
