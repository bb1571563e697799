/* test_host_retry.c - commands that may not be done twice.
 *
 * While their group goes and comes back they are refused. A refusal is not a deed, so the host
 * sends them again, and they are done once. (The host learns of a group's state from an event.
 * Until then what it sends is refused.) When their connection is cut after the target has done
 * them, and before the answer arrives, the host must not send them again: it reports that it does
 * not know. Nor does it know, whatever comes of the next try, of a write that may be sent again. */
#include "host_case.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "peer/relay.h"
#include "proto/nvme.h"
#include "proto/status.h"
#include "running.h"

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
static void while_it_turns(const char *words, void (*body)(struct host *h))
{
	struct host h = host_open(words, NS_512);
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

/* --- in many pieces --------------------------------------------------------------------------- */

enum { PIECES_BYTES = 3 << 20 };

/* More pieces than the queue takes at once: when it starts over, some were never sent. */
static void write_and_read_back(struct host *h)
{
	static char out[PIECES_BYTES], in[PIECES_BYTES];
	static uint64_t number;
	struct weft_err err = { "" };
	int rc;

	for (size_t i = 0; i < sizeof(out); i += sizeof(number)) {
		number++;
		memcpy(out + i, &number, sizeof(number));
	}
	memset(in, 0, sizeof(in));
	rc = weft_write(h->queue, h->ns, out, sizeof(out), PIECES_BYTES, 0, &err);
	if (!rc)
		rc = weft_read(h->queue, h->ns, in, sizeof(in), PIECES_BYTES, &err);
	if (rc == -EIO) /* on a slow machine the group goes too often while it is at it */
		return;
	if (rc < 0)
		fail_msg("%s", err.text);
	assert_memory_equal(in, out, sizeof(in));
}

static void many_pieces(void **state)
{
	while_it_turns("?depth=2", write_and_read_back);
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
	while_it_turns("", count_once);
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
	while_it_turns("", copy_once);
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
	while_it_turns("", read_once);
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
		while_it_turns("", read_as_it_is);
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

/* --- the connection is cut behind the deed ---------------------------------------------------- */

enum { OLD = 'o', SOURCE = 's', NEW = 'n', AFTER = 'a', SOURCE_AT = 4 * BLOCK };

static const struct {
	const char *name;
	struct weft_cmd cmd;
	bool again; /* the host may send it a second time */
	char done;  /* what the block has in it then */
} deeds[] = {
	{ "Write", { .op = WEFT_WRITE, .iovcnt = 1 }, true, NEW },
	{ "Write Zeroes", { .op = WEFT_ZERO }, true, 0 },
	{ "Deallocate", { .op = WEFT_TRIM }, true, 0 },
	{ "Compare and Write", { .op = WEFT_COMPARE_AND_WRITE, .iovcnt = 1 }, false, NEW },
	{ "Copy", { .op = WEFT_COPY, .copy_from = SOURCE_AT }, false, SOURCE },
	{ "raw", { .op = WEFT_RAW, .iovcnt = 1 }, false, NEW },
	{ "raw that may", { .op = WEFT_RAW, .flags = WEFT_IDEMPOTENT, .iovcnt = 1 }, true, NEW },
};

static void fill(struct host *h, uint64_t at, char with)
{
	char data[BLOCK];

	memset(data, with, sizeof(data));
	assert_int_equal(weft_write(h->queue, h->ns, data, sizeof(data), at, 0, NULL), 0);
}

static char first_byte(struct host *h)
{
	char data[BLOCK];

	assert_int_equal(weft_read(h->queue, h->ns, data, sizeof(data), 0, NULL), 0);
	return data[0];
}

/* Submits @cmd through the relay, which lets no answer pass, and cuts it off when the target has
 * done it. Something else is written before the host can send it again. */
static void cut_behind(struct host *h, struct host *direct, struct relay *relay,
		       struct weft_cmd *cmd, char done)
{
	first_byte(h); /* it is connected */
	relay_mode(relay, RELAY_NO_ANSWERS);
	assert_int_equal(weft_submit(h->queue, cmd), 0);
	while (first_byte(direct) != done)
		weft_queue_poll(h->queue, 1);
	fill(direct, 0, AFTER);
	relay_cut_then(relay, RELAY_PASS);
}

/* @never: nothing that writes is sent a second time. */
static void cut_behind_all(bool never)
{
	static char data[2 * BLOCK];
	static union nvme_sqe sqe;
	struct relay *relay = relay_start(target_address());
	struct host direct = host_open("", NS_512), h;

	h.ctrl = connect_at(relay_address(relay),
			    never ? "?reconnect_delay=1ms&reconnect_delay_max=5ms&resend=never" :
				    "?reconnect_delay=1ms&reconnect_delay_max=5ms");
	h.ns = open_ns(h.ctrl, NS_512);
	h.queue = open_queue(h.ctrl);
	sqe = (union nvme_sqe){ .common = { .opcode = nvme_cmd_write,
					    .nsid = cpu_to_le32(NS_512) } };
	for_each_named(i, deeds, name) {
		bool fused = deeds[i].cmd.op == WEFT_COMPARE_AND_WRITE, over = false;
		struct iovec iov = { data, fused ? sizeof(data) : BLOCK };
		bool again = deeds[i].again && !never;
		struct weft_cmd cmd = deeds[i].cmd;
		struct weft_err why;

		memset(data, NEW, sizeof(data));
		memset(data, OLD, fused ? BLOCK : 0);
		cmd.ns = h.ns;
		cmd.length = BLOCK;
		cmd.iov = cmd.iovcnt ? &iov : NULL;
		cmd.sqe = cmd.op == WEFT_RAW ? &sqe : NULL;
		cmd.done = note_end;
		cmd.user = &over;
		fill(&direct, 0, OLD);
		fill(&direct, SOURCE_AT, SOURCE);
		cut_behind(&h, &direct, relay, &cmd, deeds[i].done);
		while (!over)
			weft_queue_poll(h.queue, -1);
		weft_cmd_text(&cmd, &why);
		if (cmd.rc != (again ? 0 : -ECONNRESET))
			fail_msg("%s: %d, %s", deeds[i].name, cmd.rc, why.text);
		if (!again && !strstr(why.text, "whether it was carried out is not known"))
			fail_msg("%s: %s", deeds[i].name, why.text);
		if (!strstr(why.text, "resend=never") != !(deeds[i].again && never))
			fail_msg("%s: %s", deeds[i].name, why.text);
		if (first_byte(&direct) != (again ? deeds[i].done : AFTER))
			fail_msg("%s: the block has %02x", deeds[i].name, first_byte(&direct));
	}
	host_close(&h);
	host_close(&direct);
	relay_stop(relay);
}

static void cut_behind_the_deed(void **state)
{
	cut_behind_all(false);
}

static void cut_behind_what_is_shared(void **state)
{
	cut_behind_all(true);
}

/* --- … and there is no second time ------------------------------------------------------------ */

#define NS_UUID    "6a4f2c9e-1f0b-4c1d-9a51-0a6f5b1d7e01"
#define OTHER_UUID "6a4f2c9e-1f0b-4c1d-9a51-0a6f5b1d7e02"

enum { SHORT = 1 << 20, LAST = SHORT - BLOCK };

static void do_nothing(void)
{
}

static void replace_it(void)
{
	target_ns_remove(NS_4K);
	target_ns_add(NS_4K, "mem:1M", BLOCK, OTHER_UUID);
}

static void remove_it(void)
{
	target_ns_remove(NS_4K);
}

static void cut_it_short(void)
{
	target_ns_resize(NS_4K, SHORT / 2);
}

/* What a write gets that was in flight when the connection was lost, and one that was not. */
static const struct {
	const char *name, *words;
	void (*change)(void); /* while there is no connection */
	enum relay_mode mode; /* after it */
	const char *lost;     /* of the sentence */
	int unsent;
} second_times[] = {
	{ "given up", "&loss_timeout=100ms", do_nothing, RELAY_REFUSE, "connection was lost",
	  -ENOTCONN },
	{ "another one", "", replace_it, RELAY_PASS, "connection was lost", -ESTALE },
	{ "gone", "", remove_it, RELAY_PASS, "connection was lost", -ENODEV },
	{ "too short", "", cut_it_short, RELAY_PASS, "LBA out of range", -ERANGE },
	{ "nothing changed", "", do_nothing, RELAY_PASS, NULL, 0 },
};

struct last_write {
	struct weft_cmd cmd;
	char data[BLOCK];
	struct iovec iov;
	bool over;
};

static void start_write(struct host *h, struct last_write *w, char with)
{
	memset(w->data, with, sizeof(w->data));
	w->iov = (struct iovec){ w->data, sizeof(w->data) };
	w->over = false;
	w->cmd = (struct weft_cmd){ .op = WEFT_WRITE,
				    .ns = h->ns,
				    .offset = LAST,
				    .length = BLOCK,
				    .iov = &w->iov,
				    .iovcnt = 1,
				    .done = note_end,
				    .user = &w->over };
	assert_int_equal(weft_submit(h->queue, &w->cmd), 0);
}

static void check_end(const char *name, const struct weft_cmd *cmd, int rc, const char *words)
{
	struct weft_err why;

	weft_cmd_text(cmd, &why);
	if (cmd->rc != rc || (words && !strstr(why.text, words)) ||
	    !strstr(why.text, "is not known") != (rc != -ECONNRESET))
		fail_msg("%s: %d, %s", name, cmd->rc, why.text);
}

/* It is done, and no answer comes; then the connection breaks, and the second write waits. */
static void lose_first(struct host *h, struct relay *relay, struct last_write writes[2])
{
	struct host direct = host_open("", NS_4K);
	char data[BLOCK] = "";

	relay_mode(relay, RELAY_NO_ANSWERS);
	start_write(h, &writes[0], NEW);
	while (data[0] != NEW) {
		weft_queue_poll(h->queue, 1);
		assert_int_equal(weft_read(direct.queue, direct.ns, data, BLOCK, LAST, NULL), 0);
	}
	relay_cut_then(relay, RELAY_REFUSE);
	while (weft_ctrl_state(h->ctrl, NULL) == WEFT_LIVE)
		weft_queue_poll(h->queue, 1);
	start_write(h, &writes[1], AFTER);
	host_close(&direct);
}

static void no_second_time(void **state)
{
	static struct last_write writes[2];

	for_each_named(i, second_times, name) {
		struct relay *relay = relay_start(target_address());
		struct host h;
		char words[128];

		snprintf(words, sizeof(words), "?reconnect_delay=1ms&reconnect_delay_max=5ms%s",
			 second_times[i].words);
		target_ns_add(NS_4K, "mem:1M", BLOCK, NS_UUID);
		h.ctrl = connect_at(relay_address(relay), words);
		h.ns = open_ns(h.ctrl, NS_4K);
		h.queue = open_queue(h.ctrl);
		lose_first(&h, relay, writes);
		second_times[i].change();
		relay_mode(relay, second_times[i].mode);
		while (!writes[0].over || !writes[1].over)
			weft_queue_poll(h.queue, -1);
		check_end(second_times[i].name, &writes[0].cmd,
			  second_times[i].lost ? -ECONNRESET : 0, second_times[i].lost);
		check_end(second_times[i].name, &writes[1].cmd, second_times[i].unsent, NULL);
		host_close(&h);
		relay_stop(relay);
		if (second_times[i].change != remove_it)
			target_ns_remove(NS_4K);
	}
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
		cmocka_unit_test(many_pieces),
		cmocka_unit_test(compare_and_write),
		cmocka_unit_test(copy),
		cmocka_unit_test(raw_that_may),
		cmocka_unit_test(raw_as_it_is),
		cmocka_unit_test(raw_waits_for_its_group),
		cmocka_unit_test(cut_behind_the_deed),
		cmocka_unit_test(cut_behind_what_is_shared),
		cmocka_unit_test(no_second_time),
	};

	return cmocka_run_group_tests(tests, target_with_namespace, target_end);
}
