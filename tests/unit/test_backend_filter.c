/* test_backend_filter.c - filters: what their keys mean, and what becomes of an io. The clock is
 * the test's. */
#include "backend_case.h"
#include "running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KINDS = WEFT_IO_EXTENTS };

/* --- the grammar ------------------------------------------------------------------------------ */

/* What is saved is what was said, in the order in which it acts. */
static void filters_are_spec_keys(void **state)
{
	static const char *const table[][2] = {
		{ "mem:1M,delay=5ms", "mem:1M,delay=5ms" },
		{ "mem:1M,error=write:1%", "mem:1M,error=write:1%" },
		{ "null:1M,error=1%,ro,delay=1s", "null:1M,ro,delay=1s,error=1%" },
		{ "null:1M,delay=0ms", "null:1M,delay=0ms" },
		{ "null:1M,delay=1h,error=1%", NULL },
		{ "null:1M,delay=read:1ms+write:2ms+flush:3ms+zero:4ms+trim:5ms",
		  "null:1M,delay=read:1ms+write:2ms+flush:3ms+zero:4ms+trim:5ms" },
		{ "null:1M,delay=60m", "null:1M,delay=60m" },
		{ "null:1M,delay=trim:0ms+1s", "null:1M,delay=trim:0ms+1s" },
		{ "null:1M,error=0.0001%", "null:1M,error=0.0001%" },
		{ "null:1M,error=100%+flush:0%+seed:4294967295",
		  "null:1M,error=100%+flush:0%+seed:4294967295" },
		{ "null:1M,error=read:1/1+trim:1/4294967295",
		  "null:1M,error=read:1/1+trim:1/4294967295" },
	};
	struct weft_backend *be;
	struct weft_err err;

	for_each_row(i, table) {
		if (!table[i][1]) {
			assert_int_equal(try_open(&be, table[i][0], &err), -EINVAL);
			continue;
		}
		be = open_spec(table[i][0]);
		assert_string_equal(be->spec, table[i][1]);
		weft_backend_close(be);
		weft_backend_close(open_spec(table[i][1]));
	}
}

#define A_KIND ", of read, write, flush, zero, trim"
#define A_TIME "a time such as 5ms or 2s, or kinds with theirs, read:5ms+flush:2s" A_KIND
#define A_RATE "a rate such as 1% or 1/1000, or kinds with theirs, write:1%+flush:1/10" A_KIND

static void wrong_filters_are_refused(void **state)
{
	static const struct {
		const char *key, *value;
		int rc;
	} table[] = {
		{ "delay", "", -EINVAL },
		{ "delay", "5", -EINVAL },
		{ "delay", "ms", -EINVAL },
		{ "delay", "-5ms", -EINVAL },
		{ "delay", "1.5s", -EINVAL },
		{ "delay", "100us", -EINVAL },
		{ "delay", "5msec", -EINVAL },
		{ "delay", "61m", -ERANGE },
		{ "delay", "3601s", -ERANGE },
		{ "delay", "99999999999999999999999ms", -ERANGE },
		{ "delay", "reads:5ms", -EINVAL },
		{ "delay", "read:", -EINVAL },
		{ "delay", ":5ms", -EINVAL },
		{ "delay", "read:5ms+", -EINVAL },
		{ "delay", "read:5ms++write:5ms", -EINVAL },
		{ "delay", "read:5ms+read:5ms", -EINVAL },
		{ "delay", "5ms+6ms", -EINVAL },
		{ "delay", "extents:5ms", -EINVAL },
		{ "delay", "seed:5ms", -EINVAL },
		{ "error", "", -EINVAL },
		{ "error", "write", -EINVAL },
		{ "error", "write:1", -EINVAL },
		{ "error", "write:%", -EINVAL },
		{ "error", "write:.1%", -EINVAL },
		{ "error", "write:1.%", -EINVAL },
		{ "error", "write:0.00001%", -EINVAL },
		{ "error", "write:100.1%", -EINVAL },
		{ "error", "write:1000%", -EINVAL },
		{ "error", "write:1%%", -EINVAL },
		{ "error", "write:1/0", -EINVAL },
		{ "error", "write:1/", -EINVAL },
		{ "error", "write:2/3", -EINVAL },
		{ "error", "write:1/4294967296", -EINVAL },
		{ "error", "write:1/-1", -EINVAL },
		{ "error", "write:1%+write:2%", -EINVAL },
		{ "error", "1%+seed:", -EINVAL },
		{ "error", "seed:7", -EINVAL },
		{ "error", "1%+seed:x", -EINVAL },
		{ "error", "1%+seed:1+seed:2", -EINVAL },
	};

	for_each_named(i, table, value) {
		const char *spec = text("mem:1M,%s=%s", table[i].key, table[i].value);
		const char *expected = table[i].key[0] == 'd' ? A_TIME : A_RATE;

		if (table[i].rc == -ERANGE)
			assert_refused(spec, -ERANGE,
				       text("%s: key \"%s\": %s is too large", spec, table[i].key,
					    table[i].value));
		else
			assert_refused(spec, -EINVAL,
				       text("%s: key \"%s\" cannot be \"%s\"; expected %s", spec,
					    table[i].key, table[i].value, expected));
	}
	assert_refused("mem:1M,delay", -EINVAL,
		       "mem:1M,delay: key \"delay\" needs a value; expected " A_TIME);
	assert_refused("mem:1M,error=1%,error=2%", -EINVAL,
		       "mem:1M,error=1%,error=2%: key \"error\" is given twice");
}

/* 127 bytes are kept; who says the same in more is not understood. */
static void long_filters_are_refused(void **state)
{
	char zeroes[160];

	for (size_t length = 126; length <= 129; length++) {
		const char *spec = zeroes;
		struct weft_backend *be;
		struct weft_err err;
		int rc;

		snprintf(zeroes, sizeof(zeroes), "null:1M,delay=%0*dms", (int)length - 2, 1);
		rc = try_open(&be, spec, &err);
		assert_int_equal(rc, length < WEFT_FILTER_MAX ? 0 : -EINVAL);
		if (!rc)
			weft_backend_close(be);
	}
}

/* --- all that is not io ----------------------------------------------------------------------- */

/* A file is in the test's folder. */
static const char *placed(const char *spec)
{
	return strncmp(spec, "file:", 5) ? spec : text("file:%s/%s", dir, spec + 5);
}

static bool same(const void *one, const void *other)
{
	return !one == !other;
}

static void assert_same_ops(const struct weft_backend_ops *ops, const struct weft_backend_ops *of)
{
	assert_string_equal(ops->type, of->type);
	assert_int_equal(ops->extents, of->extents);
	assert_int_equal(ops->locks_are_local, of->locks_are_local);
	assert_true(same(ops->descriptor, of->descriptor));
	assert_true(same(ops->used, of->used));
	assert_true(same(ops->resize, of->resize));
	assert_true(same(ops->node_active, of->node_active));
	assert_true(same(ops->lock_as, of->lock_as));
	assert_true(same(ops->identity, of->identity));
}

static void assert_same_answers(struct weft_backend *be, struct weft_backend *storage)
{
	assert_int_equal(weft_backend_descriptor(be), weft_backend_descriptor(storage));
	if (be->ops->used)
		assert_int_equal(be->ops->used(be), storage->ops->used(storage));
	if (be->ops->identity)
		assert_int_equal(be->ops->identity(be), storage->ops->identity(storage));
	assert_int_equal(be->size, storage->size);
	assert_int_equal(be->align, storage->align);
	assert_int_equal(be->block_min, storage->block_min);
	assert_int_equal(be->clear_max, storage->clear_max);
	assert_int_equal(be->thin, storage->thin);
	assert_string_equal(be->spec, storage->spec);
}

/* A filter can what the storage below can, and has no way past it. */
static void filters_pass_the_rest_on(void **state)
{
	static const struct {
		const char *spec;
	} table[] = {
		{ "mem:8M" }, { "null:8M" }, { "file:rest,size=8M" }, { "file:rest,size=8M,direct" }
	};

	for_each_named(i, table, spec) {
		const char *spec = placed(table[i].spec);
		struct weft_backend *be = open_spec(text("%s,delay=5ms,error=1%%", spec));
		struct weft_backend *storage = weft_backend_storage(be);

		assert_ptr_not_equal(be, storage);
		assert_same_ops(be->ops, storage->ops);
		assert_same_answers(be, storage);
		assert_null(be->ops->map);
		assert_null(be->guard);
		weft_backend_close(be);
	}
}

/* Who takes one storage for two things is told through filters, too. */
static void filters_agree(void **state)
{
	const char *spec = text("file:%s/shared,size=1M,delay=5ms", dir);
	struct weft_backend *be[2];
	struct weft_err err = { "" };
	struct weft_spec parsed;
	uint64_t other = 0;

	assert_int_equal(weft_spec_parse(spec, &parsed, &err), 0);
	for (unsigned i = 0; i < 2; i++) {
		parsed.node = i + 1;
		assert_int_equal(weft_backend_open(&be[i], &parsed, &err), 0);
	}
	assert_true(be[0]->ops->node_active(be[0], 2));
	assert_int_equal(be[0]->ops->lock_as(be[0], 7, &other), 0);
	assert_int_equal(be[1]->ops->lock_as(be[1], 8, &other), -ENOTUNIQ);
	assert_int_equal(other, 7);
	weft_backend_close(be[1]);
	assert_false(be[0]->ops->node_active(be[0], 2));
	weft_backend_close(be[0]);
}

static void read_only_through_filters(void **state)
{
	struct weft_backend *be = open_spec("null:1M,ro,delay=5ms");
	struct weft_io io = { .kind = WEFT_IO_WRITE, .buf = data, .length = 512 };

	assert_int_equal(weft_backend_submit(be, &io), -EROFS);
	weft_backend_close(be);
}

/* Every backend of the stack has the new size, and the SPEC its filters. */
static void filters_are_resized(void **state)
{
	static const struct {
		const char *spec, *grown;
	} table[] = {
		{ "mem:8M,delay=1ms,error=1%", "mem:16M,delay=1ms,error=1%" },
		{ "null:8M,error=1%", "null:16M,error=1%" },
		{ "file:grows,size=8M,delay=1ms", "file:grows,size=16M,delay=1ms" },
	};

	for_each_named(i, table, spec) {
		struct weft_backend *be = open_spec(placed(table[i].spec));

		resize_ok(be, 16 * MIB);
		for (struct weft_backend *at = be; at; at = at->next) {
			assert_int_equal(at->size, 16 * MIB);
			assert_string_equal(at->spec, placed(table[i].grown));
		}
		resize_ok(be, 8 * MIB);
		assert_string_equal(be->spec, placed(table[i].spec));
		weft_backend_close(be);
	}
}

/* An image that was made for nobody goes; one that hosts were served from stays. */
static void filters_are_closed(void **state)
{
	char path[96];
	struct weft_backend *be;

	snprintf(path, sizeof(path), "%s/closed", dir);
	for (int served = 0; served < 2; served++) {
		be = open_spec(text("file:%s,size=1M,delay=1ms,error=1%%", path));
		be->never_served = !served;
		weft_backend_close(be);
		assert_int_equal(file_size(path) >= 0, served);
	}
}

/* --- errors ----------------------------------------------------------------------------------- */

static int ask(struct weft_backend *be, enum weft_io_kind kind)
{
	bool flush = kind == WEFT_IO_FLUSH;
	struct job job = {
		.be = be,
		.io = { .kind = kind, .buf = data, .length = flush ? 0 : 512, .done = job_done }
	};

	job_submit(&job.msg);
	assert_true(job.ended);
	return job.rc;
}

/* Of @n of a kind; the rest succeeds. */
static unsigned failures(struct weft_backend *be, enum weft_io_kind kind, unsigned n)
{
	unsigned failed = 0;
	int rc;

	while (n--) {
		rc = ask(be, kind);
		assert_true(!rc || rc == -EIO);
		failed += rc < 0;
	}
	return failed;
}

/* Of 100,000 each, what the seed says: the same in every run, and near the rate. */
static void rates_are_kept(void **state)
{
	static const struct {
		const char *error;
		unsigned failed[KINDS]; /* read, write, flush, zero, trim */
	} table[] = {
		{ "0%", { 0 } },
		{ "100%", { 100000, 100000, 100000, 100000, 100000 } },
		{ "1/1", { 100000, 100000, 100000, 100000, 100000 } },
		{ "write:100%", { 0, 100000, 0, 0, 0 } },
		{ "trim:100%", { 0, 0, 0, 0, 100000 } },
		{ "read:0%+100%", { 0, 100000, 100000, 100000, 100000 } },
		{ "1%", { 989, 972, 1013, 935, 1048 } },
		{ "1/100", { 989, 972, 1013, 935, 1048 } },
		{ "1%+seed:0", { 989, 972, 1013, 935, 1048 } },
		{ "1%+seed:1", { 976, 996, 1001, 1009, 1002 } },
		{ "0.1%", { 104, 99, 99, 92, 110 } },
		{ "1/3", { 33414, 33167, 33254, 33221, 33491 } },
	};

	for_each_named(i, table, error) {
		struct weft_backend *be = open_spec(text("null:1M,error=%s", table[i].error));

		for (unsigned kind = 0; kind < KINDS; kind++) {
			unsigned failed = failures(be, kind, 100000);

			if (failed != table[i].failed[kind])
				fail_msg("kind %u: %u failed", kind, failed);
		}
		weft_backend_close(be);
	}
}

/* One run after the other: the same writes fail, whatever else was asked for between them. */
static void runs_repeat(void **state)
{
	enum { WRITES = 2000, RUNS = 3 };
	static bool failed[RUNS][WRITES];

	for (unsigned run = 0; run < RUNS; run++) {
		struct weft_backend *be = open_spec("null:1M,error=5%");

		for (unsigned i = 0; i < WRITES; i++) {
			failed[run][i] = ask(be, WEFT_IO_WRITE) < 0;
			failures(be, WEFT_IO_READ, run * i % 3);
		}
		weft_backend_close(be);
		assert_memory_equal(failed[run], failed[0], sizeof(failed[0]));
	}
}

/* --- with a reactor whose clock is the test's ------------------------------------------------- */

static uint64_t now_ns, tick_ns; /* each look at the clock moves it by a tick */

static uint64_t test_clock(void *arg)
{
	return now_ns += tick_ns;
}

static int start_clocked(void **state, enum weft_engine engine)
{
	struct weft_reactor_options options = { .engine = engine, .cpu = -1, .clock = test_clock };
	struct weft_err err = { "" };

	if (make_dir(state) < 0)
		return -1;
	if (weft_reactor_create(&reactor, &options, &err) < 0) {
		reactor = NULL;
		print_message("skipped: %s\n", err.text);
	}
	return 0;
}

static int start_clocked_epoll(void **state)
{
	return start_clocked(state, WEFT_ENGINE_EPOLL);
}

static int start_clocked_uring(void **state)
{
	return start_clocked(state, WEFT_ENGINE_URING);
}

static int still(void **state)
{
	now_ns = 1000000000;
	tick_ns = 0;
	return 0;
}

static void later(unsigned ms)
{
	now_ns += ms * 1000000ull;
	weft_reactor_turn(reactor, 0);
}

static void begin(struct job *job, struct weft_backend *be, enum weft_io_kind kind, void *buf,
		  uint64_t offset, uint64_t length)
{
	*job = (struct job){ .msg.fn = job_submit,
			     .be = be,
			     .io = { .kind = kind,
				     .buf = buf,
				     .offset = offset,
				     .length = length,
				     .extents = 1,
				     .done = job_done } };
	weft_reactor_post(reactor, &job->msg);
	later(0);
}

static unsigned count_ended(const struct job *jobs, size_t n)
{
	unsigned ended = 0;

	while (n--)
		ended += jobs[n].ended;
	return ended;
}

/* Not before its time, and then at once. */
static void an_io_waits(void **state)
{
	static const struct {
		const char *delay;
		unsigned ms[KINDS]; /* read, write, flush, zero, trim */
	} table[] = {
		{ "5ms", { 5, 5, 5, 5, 5 } },
		{ "2s", { 2000, 2000, 2000, 2000, 2000 } },
		{ "60m", { 3600000, 3600000, 3600000, 3600000, 3600000 } },
		{ "read:1ms+write:2ms+flush:3ms+zero:4ms+trim:5ms", { 1, 2, 3, 4, 5 } },
		{ "write:7ms", { 0, 7, 0, 0, 0 } },
		{ "7ms+flush:0ms", { 7, 7, 0, 7, 7 } },
		{ "trim:1m+7ms", { 7, 7, 7, 7, 60000 } },
		{ "0ms", { 0 } },
	};

	need_reactor();
	for (int mem = 0; mem < 2; mem++) {
		for_each_named(i, table, delay) {
			struct weft_backend *be = open_spec(
				text("%s:8M,delay=%s", mem ? "mem" : "null", table[i].delay));

			for (unsigned kind = 0; kind < KINDS; kind++) {
				struct job job;

				begin(&job, be, kind, data, 0, kind == WEFT_IO_FLUSH ? 0 : 512);
				if (table[i].ms[kind]) {
					later(table[i].ms[kind] - 1);
					assert_false(job.ended);
					later(1);
				}
				assert_true(job.ended);
				assert_int_equal(job.rc, 0);
			}
			weft_backend_close(be);
		}
	}
}

/* A thousand wait as long as one does, each from when it came. */
static void each_waits_for_itself(void **state)
{
	static struct job jobs[1000];
	struct weft_backend *be;

	need_reactor();
	be = open_spec("null:8M,delay=5ms");
	for (unsigned i = 0; i < COUNT(jobs); i++) {
		begin(&jobs[i], be, WEFT_IO_READ, data, 0, 512);
		if (i % 250 == 249)
			later(1);
	}
	for (unsigned ms = 4; ms < 10; ms++) {
		assert_int_equal(count_ended(jobs, COUNT(jobs)), ms < 5 ? 0 :
								 ms > 8 ? 1000 :
									  (ms - 4) * 250);
		later(1);
	}
	weft_backend_close(be);
}

/* Whatever the order in the SPEC. */
static void what_fails_has_waited(void **state)
{
	static const char *const specs[] = { "null:1M,delay=5ms,error=100%",
					     "null:1M,error=100%,delay=5ms" };
	struct weft_backend *be;
	struct job job;

	need_reactor();
	for_each_row(i, specs) {
		be = open_spec(specs[i]);
		begin(&job, be, WEFT_IO_WRITE, data, 0, 512);
		later(4);
		assert_false(job.ended);
		later(1);
		assert_true(job.ended);
		assert_int_equal(job.rc, -EIO);
		weft_backend_close(be);
	}
}

/* What waits has not reached the storage, and what failed has not. */
static void storage_has_it_afterwards(void **state)
{
	struct weft_backend *be;
	struct job job;

	need_reactor();
	be = open_spec("mem:8M,delay=write:5ms");
	fill(512, 3);
	begin(&job, be, WEFT_IO_WRITE, data, 0, 512);
	assert_zeroes(be, 0, 512);
	later(5);
	assert_true(job.ended);
	assert_data(be, 0, 512, 3);
	weft_backend_close(be);

	be = open_spec("mem:8M,error=write:100%");
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, 512), -EIO);
	assert_zeroes(be, 0, 512);
	weft_backend_close(be);
}

/* What keeps the reactor busy has its turn after the delay, too: one large page of memory each. */
static void clears_take_turns(void **state)
{
	struct weft_backend *be;
	struct job jobs[3];

	need_reactor();
	be = open_spec("mem:8M,delay=5ms");
	for (unsigned i = 0; i < COUNT(jobs); i++)
		begin(&jobs[i], be, WEFT_IO_ZERO, NULL, 2 * i * MIB, 2 * MIB);
	later(5);
	for (unsigned turn = 1; turn <= COUNT(jobs); turn++) {
		assert_int_equal(count_ended(jobs, COUNT(jobs)), turn);
		later(0);
	}
	weft_backend_close(be);
}

static void extents_pass(void **state)
{
	struct weft_extent extent;
	struct weft_backend *be;
	struct job job;

	need_reactor();
	be = open_spec("mem:8M,delay=1m,error=100%");
	begin(&job, be, WEFT_IO_EXTENTS, &extent, 0, 8 * MIB);
	assert_true(job.ended);
	assert_int_equal(job.rc, 0);
	assert_int_equal(job.io.covered, 8 * MIB);
	weft_backend_close(be);
}

/* It fails as long as it is remembered below; one that the filter failed is not. */
static void failed_syncs_show(void **state)
{
	struct weft_backend *be;

	need_reactor();
	tick_ns = 1000000;
	be = open_spec(placed("file:synced,size=8M,delay=1ms"));
	assert_durable(be);
	atomic_store(&weft_backend_storage(be)->sync_failed, true);
	assert_not_durable(be);
	weft_backend_close(be);

	be = open_spec(placed("file:synced,size=8M,error=flush:100%"));
	assert_int_equal(do_io(be, WEFT_IO_FLUSH, 0, NULL, 0, 0), -EIO);
	assert_false(atomic_load(&weft_backend_storage(be)->sync_failed));
	assert_int_equal(do_io(be, WEFT_IO_WRITE, WEFT_IO_FUA, data, 0, 512), 0);
	weft_backend_close(be);
}

static void data_through_filters(void **state)
{
	static const char *const specs[] = { "mem:8M,delay=1ms,error=0%",
					     "file:plain,size=8M,delay=1ms",
					     "file:direct,size=8M,direct,error=0%" };

	need_reactor();
	tick_ns = 1000000;
	for_each_row(i, specs) {
		struct weft_backend *be = open_spec(placed(specs[i]));

		try_backend(be);
		weft_backend_close(be);
	}
}

/* Another process goes on with the storage, and has filters of its own. */
static void heirs_have_filters(void **state)
{
	static const char *const specs[] = { "mem:8M,delay=1ms", "file:heir,size=8M,delay=1ms" };
	struct weft_err err = { "" };

	need_reactor();
	tick_ns = 1000000;
	for_each_row(i, specs) {
		struct weft_backend *be = open_spec(placed(specs[i])), *successor;
		struct weft_spec spec;

		write_at(be, MIB, MIB, 1);
		assert_int_equal(weft_spec_parse(be->spec, &spec, &err), 0);
		strcpy(spec.error, "write:100%");
		assert_int_equal(weft_backend_adopt(&successor, &spec,
						    dup(weft_backend_descriptor(be)), &err),
				 0);
		weft_backend_close(be);
		assert_string_equal(successor->spec,
				    text("%s,error=write:100%%", placed(specs[i])));
		assert_data(successor, MIB, MIB, 1);
		assert_int_equal(do_io(successor, WEFT_IO_WRITE, 0, data, 0, 512), -EIO);
		weft_backend_close(successor);
	}
}

int main(void)
{
	const struct CMUnitTest without_engine[] = {
		cmocka_unit_test(filters_are_spec_keys),
		cmocka_unit_test(wrong_filters_are_refused),
		cmocka_unit_test(long_filters_are_refused),
		cmocka_unit_test(filters_pass_the_rest_on),
		cmocka_unit_test(filters_agree),
		cmocka_unit_test(read_only_through_filters),
		cmocka_unit_test(filters_are_resized),
		cmocka_unit_test(filters_are_closed),
		cmocka_unit_test(rates_are_kept),
		cmocka_unit_test(runs_repeat),
	};
	const struct CMUnitTest with_engine[] = {
		cmocka_unit_test_setup(an_io_waits, still),
		cmocka_unit_test_setup(each_waits_for_itself, still),
		cmocka_unit_test_setup(what_fails_has_waited, still),
		cmocka_unit_test_setup(storage_has_it_afterwards, still),
		cmocka_unit_test_setup(clears_take_turns, still),
		cmocka_unit_test_setup(extents_pass, still),
		cmocka_unit_test_setup(failed_syncs_show, still),
		cmocka_unit_test_setup(data_through_filters, still),
		cmocka_unit_test_setup(heirs_have_filters, still),
	};
	int failed = 0;

	failed += cmocka_run_group_tests_name("filters", without_engine, make_dir, remove_dir);
	failed += cmocka_run_group_tests_name("filters on epoll", with_engine, start_clocked_epoll,
					      stop);
	failed += cmocka_run_group_tests_name("filters on io_uring", with_engine,
					      start_clocked_uring, stop);
	return failed;
}
