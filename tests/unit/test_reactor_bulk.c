/* test_reactor_bulk.c - bulk work: in pieces, in turn, a bounded part of every turn, on both
 * engines. */
#include "reactor_case.h"

#include "run_log.h"
#include "running.h"

enum { TURN_BYTES = 1 << 20, KIB = 1 << 10, VISITS_MAX = 64, TURNS_MAX = 10000 };

/* --- work of some pieces ---------------------------------------------------------------------- */

static uint64_t bytes_of_turn;

static struct weft_bulk_flow flows[2];

struct job {
	struct weft_task task;
	struct weft_bulk_flow *flow;
	char name;
	unsigned pieces;
	uint32_t bytes; /* of each */
	struct weft_task *to_defer;
};

static void do_piece(struct weft_task *task)
{
	struct job *job = container_of(task, struct job, task);

	assert_ptr_equal(weft_reactor_self(), r);
	note(job->name);
	if (job->bytes)
		assert_true(weft_reactor_bulk_spend(r, job->bytes));
	bytes_of_turn += job->bytes;
	if (job->to_defer)
		weft_reactor_defer(r, job->to_defer);
	if (--job->pieces)
		weft_reactor_bulk_push(r, job->flow, task);
}

static struct job *start_in(struct weft_bulk_flow *flow, struct job *job, char name,
			    unsigned pieces, uint32_t bytes)
{
	*job = (struct job){ .flow = flow, .name = name, .pieces = pieces, .bytes = bytes };
	weft_task_init(&job->task, do_piece);
	weft_reactor_bulk_push(r, flow, &job->task);
	return job;
}

static struct job *start(struct job *job, char name, unsigned pieces, uint32_t bytes)
{
	return start_in(&flows[0], job, name, pieces, bytes);
}

static int init_flows(void **state)
{
	for (size_t i = 0; i < COUNT(flows); i++)
		weft_bulk_flow_init(&flows[i], NULL);
	return 0;
}

/* It has something to do, and does not wait. */
static void turn_once(void)
{
	bytes_of_turn = 0;
	weft_reactor_turn(r, -1);
}

static unsigned turns_until_rest(void)
{
	unsigned turns = 0;

	for (; weft_reactor_busy(r); turns++) {
		assert_true(turns < TURNS_MAX);
		turn_once();
	}
	return turns;
}

/* --- the line --------------------------------------------------------------------------------- */

static void pieces_come_in_turn(void **state)
{
	struct job a, b, c;

	need_reactor();
	start(&a, 'a', 3, 4 * KIB);
	start(&b, 'b', 1, 4 * KIB);
	start(&c, 'c', 2, 4 * KIB);
	turn_once();
	expect_ran("abcaca");
	assert_false(weft_reactor_busy(r));
}

static void queued_once(void **state)
{
	struct job a, b;

	need_reactor();
	start(&a, 'a', 1, 0);
	start(&b, 'b', 1, 0);
	weft_reactor_bulk_push(r, &flows[0], &a.task);
	turn_once();
	expect_ran("ab");
	start(&a, 'a', 1, 0);
	start(&b, 'b', 1, 0);
	weft_reactor_bulk_cancel(&flows[0], &a.task);
	turn_once();
	expect_ran("b");
}

/* Whoever has a flow has a piece in turn, however many tasks wait in it. */
static void flows_take_turns(void **state)
{
	struct job a, b, c, d;

	need_reactor();
	start_in(&flows[0], &a, 'a', 2, 4 * KIB);
	start_in(&flows[0], &b, 'b', 2, 4 * KIB);
	start_in(&flows[0], &c, 'c', 2, 4 * KIB);
	start_in(&flows[1], &d, 'd', 4, 4 * KIB);
	turn_once();
	expect_ran("adbdcdadbc");
	assert_false(weft_reactor_busy(r));
}

/* … and flows in one flow have its turns. */
static void flows_within_a_flow(void **state)
{
	struct weft_bulk_flow within[2];
	struct job a, b, c;

	need_reactor();
	weft_bulk_flow_init(&within[0], &flows[0]);
	weft_bulk_flow_init(&within[1], &flows[0]);
	start_in(&within[0], &a, 'a', 3, 4 * KIB);
	start_in(&within[1], &b, 'b', 2, 4 * KIB);
	start_in(&flows[1], &c, 'c', 5, 4 * KIB);
	turn_once();
	expect_ran("acbcacbcac");
	assert_false(weft_reactor_busy(r));
}

/* What could not use its turn does not wait behind others. */
static void before_all_flows(void **state)
{
	struct job a, b, c;

	need_reactor();
	start_in(&flows[0], &a, 'a', 1, 4 * KIB);
	start_in(&flows[1], &c, 'c', 2, 4 * KIB);
	b = (struct job){ .flow = &flows[0], .name = 'b', .pieces = 1 };
	weft_task_init(&b.task, do_piece);
	weft_reactor_bulk_retry(r, &b.task);
	turn_once();
	expect_ran("bacc");
	weft_reactor_bulk_retry(r, &b.task);
	assert_true(weft_reactor_busy(r));
	weft_task_cancel(&b.task);
	assert_false(weft_reactor_busy(r));
}

/* A flow that nobody waits in is nowhere: who has it may go. */
static void empty_flows_are_forgotten(void **state)
{
	struct weft_bulk_flow gone[2];
	struct job a, b, c;

	need_reactor();
	weft_bulk_flow_init(&gone[0], NULL);
	weft_bulk_flow_init(&gone[1], &gone[0]);
	start_in(&gone[1], &a, 'a', 1, 0);
	start_in(&gone[1], &b, 'b', 1, 0);
	start_in(&flows[0], &c, 'c', 1, 0);
	weft_reactor_bulk_cancel(&gone[1], &a.task);
	assert_false(weft_list_empty(&gone[1].fair.link) || weft_list_empty(&gone[0].fair.link));
	weft_reactor_bulk_cancel(&gone[1], &b.task);
	assert_true(weft_list_empty(&gone[1].fair.link) && weft_list_empty(&gone[0].fair.link));
	memset(gone, 0xff, sizeof(gone));
	turn_once();
	expect_ran("c");
	assert_true(weft_list_empty(&flows[0].fair.link));
}

/* --- pieces that storage has ------------------------------------------------------------------ */

enum { PIECES_EACH = 4, PIECES_ALL = 16 };

/* Storage has its piece until the test says otherwise. */
static void hand_out_piece(struct weft_task *task)
{
	struct job *job = container_of(task, struct job, task);

	note(job->name);
	weft_reactor_bulk_piece_begin(r, job->flow);
}

static void begin_in(struct weft_bulk_flow *flow, struct job *jobs, unsigned n, char name)
{
	for (unsigned i = 0; i < n; i++) {
		jobs[i] = (struct job){ .flow = flow, .name = name };
		weft_task_init(&jobs[i].task, hand_out_piece);
		weft_reactor_bulk_push(r, flow, &jobs[i].task);
	}
}

static void until_rest(const char *expected)
{
	turns_until_rest();
	expect_ran(expected);
}

static void pieces_end(struct weft_bulk_flow *flow, unsigned n)
{
	while (n--)
		weft_reactor_bulk_piece_end(r, flow);
}

/* A flow has so many pieces under way, and the next when one has ended; meanwhile the reactor
 * sleeps. */
static void a_flow_has_so_many_pieces(void **state)
{
	struct job a[6], b[5];

	need_reactor();
	begin_in(&flows[0], a, 6, 'a');
	begin_in(&flows[1], b, 5, 'b');
	until_rest("abababab");
	pieces_end(&flows[0], 1);
	until_rest("a");
	pieces_end(&flows[1], 1);
	until_rest("b");
	pieces_end(&flows[0], 4);
	until_rest("a");
	pieces_end(&flows[0], 1);
	pieces_end(&flows[1], 4);
	until_rest("");
}

/* Flows within a flow have its pieces together. */
static void pieces_of_flows_within(void **state)
{
	struct weft_bulk_flow within[2];
	struct job a[4], b[4];

	need_reactor();
	weft_bulk_flow_init(&within[0], &flows[0]);
	weft_bulk_flow_init(&within[1], &flows[0]);
	begin_in(&within[0], a, 4, 'a');
	begin_in(&within[1], b, 4, 'b');
	until_rest("abab");
	pieces_end(&within[0], 1);
	until_rest("a");
	pieces_end(&within[1], 2);
	until_rest("ba");
	pieces_end(&within[0], 4);
	until_rest("b");
	pieces_end(&within[1], 1);
}

/* All flows together have so many; who has none may begin one all the same: storage that never
 * answers some does not keep others waiting. */
static void all_have_so_many_pieces(void **state)
{
	struct weft_bulk_flow many[6];
	struct job jobs[6][5];

	need_reactor();
	for (unsigned i = 0; i < 6; i++)
		weft_bulk_flow_init(&many[i], NULL);
	for (unsigned i = 0; i < 4; i++)
		begin_in(&many[i], jobs[i], 5, (char)('a' + i));
	until_rest("abcdabcdabcdabcd");
	begin_in(&many[4], jobs[4], 5, 'e');
	begin_in(&many[5], jobs[5], 5, 'f');
	until_rest("ef");
	pieces_end(&many[4], 1);
	until_rest("e");
	pieces_end(&many[0], 1);
	pieces_end(&many[1], 1);
	until_rest("");
	pieces_end(&many[2], 1);
	until_rest("a");
	for (unsigned i = 0; i < 4; i++)
		pieces_end(&many[i], PIECES_EACH - (i == 1 || i == 2));
	turns_until_rest();
	assert_int_equal(strlen(ran), 3 + 3 + 3);
	ran[0] = '\0';
	for (unsigned i = 1; i < 4; i++)
		pieces_end(&many[i], 1);
	pieces_end(&many[4], 4);
	pieces_end(&many[5], 4);
	turns_until_rest();
	assert_int_equal(strlen(ran), 1);
	ran[0] = '\0';
	pieces_end(&many[5], 1);
}

/* A piece that is under way goes on, however many there are. */
static void begun_pieces_go_on(void **state)
{
	struct job a[5], again;

	need_reactor();
	begin_in(&flows[0], a, 5, 'a');
	until_rest("aaaa");
	again = (struct job){ .name = 'g', .pieces = 1 };
	weft_task_init(&again.task, do_piece);
	weft_reactor_bulk_retry(r, &again.task);
	until_rest("g");
	pieces_end(&flows[0], 4);
	until_rest("a");
	pieces_end(&flows[0], 1);
}

/* Who waits for a piece to end may go, too. */
static void who_waits_for_pieces_can_go(void **state)
{
	struct weft_bulk_flow gone;
	struct job a[5], b;

	need_reactor();
	weft_bulk_flow_init(&gone, NULL);
	begin_in(&gone, a, 5, 'a');
	until_rest("aaaa");
	weft_reactor_bulk_cancel(&gone, &a[4].task);
	pieces_end(&gone, 4);
	memset(&gone, 0xff, sizeof(gone));
	start(&b, 'b', 1, 0);
	until_rest("b");
}

/* --- bytes of a turn -------------------------------------------------------------------------- */

/* In the next turn it is its turn where the last one ended. */
static void a_turn_has_so_much(void **state)
{
	struct job a, b;

	need_reactor();
	start(&a, 'a', 9, 256 * KIB);
	start(&b, 'b', 8, 256 * KIB);
	turn_once();
	assert_int_equal(bytes_of_turn, TURN_BYTES);
	expect_ran("abab");
	assert_true(weft_reactor_busy(r));
	turn_once();
	turn_once();
	expect_ran("abababab");
	assert_int_equal(turns_until_rest(), 2);
	expect_ran("ababa");
}

static const struct {
	unsigned pieces;
	uint32_t bytes;
} sizes[] = { { 200, 128 * KIB }, { 200, 4 * KIB }, { 200, 0 }, { 20, 1 << 21 }, { 20, 1u << 31 } };

/* Whatever a piece is: a turn ends, and has done one. */
static void every_turn_gets_on(void **state)
{
	need_reactor();
	for_each_row(i, sizes) {
		unsigned left = sizes[i].pieces, turns = 0;
		struct job a;

		start(&a, 'a', left, sizes[i].bytes);
		for (; weft_reactor_busy(r); turns++) {
			turn_once();
			assert_in_range(left - a.pieces, 1, VISITS_MAX);
			assert_in_range(bytes_of_turn, 0, TURN_BYTES + (uint64_t)sizes[i].bytes);
			left = a.pieces;
		}
		assert_int_equal(left, 0);
		assert_true(turns > 1);
		ran[0] = '\0';
	}
}

/* Who comes by when the flow has had its turn has what it left. */
static bool was_left;

static void spend_the_rest(struct weft_task *task)
{
	was_left = weft_reactor_bulk_spend(r, 4 * KIB);
}

static void what_the_flow_leaves(void **state)
{
	struct weft_task late;
	struct job a;

	need_reactor();
	weft_task_init(&late, spend_the_rest);
	start(&a, 'a', 1, TURN_BYTES)->to_defer = &late;
	turn_once();
	assert_false(was_left);
	start(&a, 'a', 1, TURN_BYTES / 2)->to_defer = &late;
	turn_once();
	assert_true(was_left);
	expect_ran("aa");
}

/* --- among everything else -------------------------------------------------------------------- */

static void note_deferred(struct weft_task *task)
{
	note('d');
}

static void note_message(struct weft_msg *msg)
{
	note('m');
}

/* What it defers, such as an answer, goes out in the same turn. */
static void after_news_before_deferred(void **state)
{
	struct weft_msg msg = { .fn = note_message };
	struct weft_task deferred;
	struct job a;

	need_reactor();
	weft_task_init(&deferred, note_deferred);
	start(&a, 'a', 5, 256 * KIB)->to_defer = &deferred;
	weft_reactor_post(r, &msg);
	turn_once();
	expect_ran("maaaad");
	weft_reactor_post(r, &msg);
	turn_once();
	expect_ran("mad");
}

static void send_byte(int peer)
{
	assert_int_equal(write(peer, "x", 1), 1);
}

static void note_receive(struct weft_op *op, int res)
{
	note(res == 1 ? 'r' : '!');
}

/* Also when another socket was the only one that talked, which an engine then asks first. */
static void all_sockets_are_heard(void **state)
{
	struct weft_sock talker, quiet;
	struct weft_op op = { .done = note_receive };
	struct waited talk = { .op.done = ended };
	char byte[2];
	struct iovec iov[2] = { { &byte[0], 1 }, { &byte[1], 1 } };
	int talks, waits;
	struct job a;

	need_reactor();
	talks = open_pair(&talker);
	waits = open_pair(&quiet);
	weft_sock_recv(&quiet, &op, &iov[0], 1);
	for (int i = 0; i < 10; i++) {
		weft_sock_recv(&talker, &talk.op, &iov[1], 1);
		send_byte(talks);
		assert_int_equal(await(&talk), 1);
	}
	weft_sock_recv(&talker, &talk.op, &iov[1], 1);
	start(&a, 'a', 10, TURN_BYTES);
	turn_once();
	send_byte(waits);
	turn_once();
	expect_ran("ara");
	turns_until_rest();
	ran[0] = '\0';
	shutdown(talks, SHUT_RDWR);
	await(&talk);
	close_pair(&talker, talks);
	close_pair(&quiet, waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_both(pieces_come_in_turn),    on_both(queued_once),
		on_both(flows_take_turns),       on_both(flows_within_a_flow),
		on_both(before_all_flows),       on_both(empty_flows_are_forgotten),
		on_both(a_turn_has_so_much),     on_both(every_turn_gets_on),
		on_both(what_the_flow_leaves),   on_both(after_news_before_deferred),
		on_both(all_sockets_are_heard),  on_both(a_flow_has_so_many_pieces),
		on_both(pieces_of_flows_within), on_both(all_have_so_many_pieces),
		on_both(begun_pieces_go_on),     on_both(who_waits_for_pieces_can_go),
	};

	alarm(50);
	return cmocka_run_group_tests(tests, init_flows, NULL);
}
