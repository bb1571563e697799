/* test_store.c - the store: commits, members, and what a loss of power leaves. */
#include "reactor_case.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "store/cycle.h"
#include "store/file.h"
#include "store/store.h"
#include "running.h"

static char path[4096], spec[4200];

/* --- a disk that fails when told to ----------------------------------------------------------- */

ssize_t __real_pwrite64(int fd, const void *buf, size_t size, off_t at);
int __real_fdatasync(int fd);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t size, off_t at);
int __wrap_fdatasync(int fd);

static struct {
	unsigned writes_left, syncs_left; /* 0: from now on they fail; counted down */
	bool failing;
	int error;
	bool noting; /* the write that was longest: that of a slot */
	char bytes[8192];
	size_t size;
	off_t at;
} disk;

static atomic_uint syncs, visits;

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t size, off_t at)
{
	if (disk.failing && !disk.writes_left--) {
		disk.writes_left = 0;
		errno = disk.error;
		return -1;
	}
	if (disk.noting && size > disk.size && size <= sizeof(disk.bytes)) {
		memcpy(disk.bytes, buf, size);
		disk.size = size;
		disk.at = at;
	}
	return __real_pwrite64(fd, buf, size, at);
}

int __wrap_fdatasync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	if (disk.failing && !disk.syncs_left--) {
		disk.syncs_left = 0;
		errno = disk.error;
		return -1;
	}
	return __real_fdatasync(fd);
}

/* --- a file system of another kind ------------------------------------------------------------ */

int __real_fstatfs64(int fd, struct statfs *fs);
int __wrap_fstatfs64(int fd, struct statfs *fs);

static uint32_t fs_type; /* 0: what it is */

int __wrap_fstatfs64(int fd, struct statfs *fs)
{
	int rc = __real_fstatfs64(fd, fs);

	if (fs_type)
		fs->f_type = fs_type;
	return rc;
}

/* --- visits to the file ----------------------------------------------------------------------- */

int __real_store_cycle_run(struct store_cycle *cycle);
int __wrap_store_cycle_run(struct store_cycle *cycle);

int __wrap_store_cycle_run(struct store_cycle *cycle)
{
	atomic_fetch_add(&visits, 1);
	return __real_store_cycle_run(cycle);
}

/* --- helpers ---------------------------------------------------------------------------------- */

static int open_node(struct weft_store **store, const char *what, unsigned node, unsigned nodes)
{
	struct weft_store_options options = {
		.control_reactor = r, .spec = what, .node = node, .nodes = nodes
	};

	return weft_store_open(store, &options, NULL);
}

static struct weft_store *opened(const char *what, unsigned node, unsigned nodes)
{
	struct weft_store *store;

	assert_int_equal(open_node(&store, what, node, nodes), 0);
	return store;
}

static void was_closed(void *arg)
{
	*(bool *)arg = true;
}

static void closed(struct weft_store *store)
{
	bool over = false;

	weft_store_close(store, was_closed, &over);
	while (!over)
		weft_reactor_turn(r, -1);
}

struct result {
	struct weft_store_txn txn;
	struct weft_store_wait wait;
	bool over;
	int rc;
};

static bool last_in_doubt; /* transaction */

static void txn_over(struct weft_store_txn *txn, int rc)
{
	struct result *result = container_of(txn, struct result, txn);

	result->over = true;
	result->rc = rc;
	last_in_doubt = txn->in_doubt;
}

static void wait_over(struct weft_store_wait *wait, int rc)
{
	struct result *result = container_of(wait, struct result, wait);

	result->over = true;
	result->rc = rc;
}

static int commit(struct weft_store *store, const struct weft_store_write *writes, unsigned n)
{
	struct result result = { .txn = { .writes = writes, .nwrites = n, .done = txn_over } };

	weft_store_commit(store, &result.txn);
	assert_false(result.over);
	while (!result.over)
		weft_reactor_turn(r, -1);
	return result.rc;
}

static uint64_t version_of(struct weft_store *store, const char *key)
{
	const struct weft_store_record *record = weft_store_get(store, key);

	return record ? record->version : 0;
}

static int put(struct weft_store *store, const char *key, const char *value)
{
	struct weft_store_write write = { key, version_of(store, key), value,
					  (uint32_t)strlen(value) };

	return commit(store, &write, 1);
}

static void expect(struct weft_store *store, const char *key, const char *value)
{
	const struct weft_store_record *record = weft_store_get(store, key);

	if (!value) {
		assert_null(record);
		return;
	}
	assert_non_null(record);
	assert_int_equal(record->len, strlen(value));
	assert_memory_equal(record->value, value, record->len);
}

static int open_case(void **state)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(path, sizeof(path), "%s/weft-store-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(spec, sizeof(spec), "file:%s", path);
	memset(&disk, 0, sizeof(disk));
	return open_engine(WEFT_ENGINE_EPOLL);
}

static int close_case(void **state)
{
	unlink(path);
	return close_engine(state);
}

/* --- commits ---------------------------------------------------------------------------------- */

static void check_commits(const char *what)
{
	static char large[WEFT_STORE_VALUE_MAX];
	static const struct {
		struct weft_store_write writes[2];
		unsigned n;
		int rc;
		const char *a, *b; /* afterwards */
	} cases[] = {
		{ { { "a", 0, "1", 1 } }, 1, 0, "1", NULL },
		{ { { "a", 0, "2", 1 } }, 1, -ESTALE, "1", NULL }, /* it is there */
		{ { { "a", 99, "2", 1 } }, 1, -ESTALE, "1", NULL },
		{ { { "b", 7, "2", 1 } }, 1, -ESTALE, "1", NULL }, /* it is not there */
		{ { { "a", 2, "3", 1 }, { "b", 5, "3", 1 } }, 2, -ESTALE, "1", NULL },
		{ { { "a", 2, "4", 1 }, { "b", 0, "4", 1 } }, 2, 0, "4", "4" },
		{ { { "a", 2, "5", 1 } }, 1, -ESTALE, "4", "4" }, /* it has moved on */
		{ { { "a", 3, NULL, 0 } }, 1, 0, NULL, "4" },
		{ { { "a", 3, "6", 1 } }, 1, -ESTALE, NULL, "4" },
		{ { { "a", 0, "", 0 } }, 1, 0, "", "4" }, /* empty is not gone */
		{ { { "b", 3, large, sizeof(large) } }, 1, 0, "", NULL },
	};
	struct weft_store *store = opened(what, 1, 1);
	uint64_t revision = weft_store_revision(store);

	assert_int_equal(revision, 1);
	for_each_named(i, cases, a) {
		revision += !cases[i].rc;
		assert_int_equal(commit(store, cases[i].writes, cases[i].n), cases[i].rc);
		assert_int_equal(weft_store_revision(store), revision);
		expect(store, "a", cases[i].a);
		if (i + 1 < COUNT(cases))
			expect(store, "b", cases[i].b);
	}
	assert_int_equal(weft_store_get(store, "b")->len, sizeof(large));
	closed(store);
}

static void commits_compare_versions_in_memory(void **state)
{
	check_commits("mem");
}

static void commits_compare_versions_in_a_file(void **state)
{
	check_commits(spec);
}

static void what_was_committed_is_there_later(void **state)
{
	struct weft_store *store = opened(spec, 1, 1);

	assert_true(weft_store_persistent(store));
	assert_int_equal(weft_store_session(store), 1);
	assert_int_equal(put(store, "key", "value"), 0);
	closed(store);
	store = opened(spec, 1, 1);
	expect(store, "key", "value");
	assert_int_equal(weft_store_session(store), 2);
	closed(store);
}

/* 16 at a time, each with its head: the sixteenth sixteen do not fit. */
static int put_many(struct weft_store *store, unsigned round)
{
	static char large[WEFT_STORE_VALUE_MAX];
	struct weft_store_write writes[16];
	char keys[16][16];

	for (unsigned i = 0; i < 16; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%u/%u", round, i);
		writes[i] = (struct weft_store_write){ keys[i], 0, large, sizeof(large) };
	}
	return commit(store, writes, 16);
}

static void more_than_fits_is_refused(void **state)
{
	struct weft_store *store = opened(spec, 1, 1);

	for (unsigned round = 0; round < 15; round++)
		assert_int_equal(put_many(store, round), 0);
	assert_int_equal(put_many(store, 15), -ENOSPC);
	closed(store);
	store = opened(spec, 1, 1);
	assert_non_null(weft_store_get(store, "14/15"));
	assert_null(weft_store_get(store, "15/0"));
	closed(store);
}

/* Of one turn: what each does is its own, and all of it is written at once. */
static void what_comes_together_is_one_revision(void **state)
{
	static const struct {
		struct weft_store_write first, second;
		int rc[2];
		const char *a, *b; /* afterwards */
	} cases[] = {
		{ { "a", 0, "1", 1 }, { "b", 0, "1", 1 }, { 0, 0 }, "1", "1" },
		{ { "a", 2, "2", 1 }, { "a", 2, "3", 1 }, { 0, -ESTALE }, "2", "1" },
		{ { "a", 9, "4", 1 }, { "b", 2, "4", 1 }, { -ESTALE, 0 }, "2", "4" },
		{ { "a", 3, NULL, 0 }, { "a", 0, "5", 1 }, { 0, 0 }, "5", "4" },
	};
	struct weft_store *store = opened(spec, 1, 1);

	for_each_named(i, cases, a) {
		struct result results[] = {
			{ .txn = { &cases[i].first, 1, txn_over } },
			{ .txn = { &cases[i].second, 1, txn_over } },
		};

		atomic_store(&syncs, 0);
		weft_store_commit(store, &results[0].txn);
		weft_store_commit(store, &results[1].txn);
		while (!results[0].over || !results[1].over)
			weft_reactor_turn(r, -1);
		assert_int_equal(atomic_load(&syncs), 1);
		assert_int_equal(weft_store_revision(store), i + 2);
		for (unsigned j = 0; j < 2; j++) {
			assert_int_equal(results[j].rc, cases[i].rc[j]);
			if (!results[j].rc)
				assert_int_equal(results[j].txn.revision, i + 2);
		}
		expect(store, "a", cases[i].a);
		expect(store, "b", cases[i].b);
	}
	closed(store);
}

/* --- power ------------------------------------------------------------------------------------ */

static void write_at(const void *bytes, size_t size, off_t at)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(__real_pwrite64(fd, bytes, size, at), size);
	close(fd);
}

static void read_at(void *bytes, size_t size, off_t at)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = pread(fd, bytes, size, at);
	assert_true(n >= 0);
	memset((char *)bytes + n, 0, size - (size_t)n);
	close(fd);
}

static void cut_to(off_t size)
{
	assert_int_equal(truncate(path, size), 0);
}

enum { SLOT_0 = 64 << 10, SLOT_1 = SLOT_0 + (16 << 20), SLOT_PART = 4096 };

/* All of the file that these cases use. */
struct contents {
	char head[SLOT_0], slots[2][SLOT_PART];
};

static void take_contents(struct contents *c)
{
	read_at(c->head, sizeof(c->head), 0);
	read_at(c->slots[0], SLOT_PART, SLOT_0);
	read_at(c->slots[1], SLOT_PART, SLOT_1);
}

static void put_contents(const struct contents *c)
{
	write_at(c->head, sizeof(c->head), 0);
	write_at(c->slots[0], SLOT_PART, SLOT_0);
	write_at(c->slots[1], SLOT_PART, SLOT_1);
}

static void expect_in(const struct contents *c, const char *value)
{
	struct weft_store *store;

	put_contents(c);
	store = opened(spec, 1, 1);
	expect(store, "key", value);
	closed(store);
}

/* The write of @made to slot @slot of what was there before, @old. */
static void check_cuts(const struct contents *old, unsigned slot, const char *made, size_t size)
{
	static struct contents torn;

	for (size_t cut = 0; cut < size; cut++) {
		torn = *old; /* its beginning reached the disk … */
		memcpy(torn.slots[slot], made, cut);
		expect_in(&torn, "old");
		torn = *old; /* … or its end alone */
		memcpy(torn.slots[slot] + cut + 1, made + cut + 1, size - cut - 1);
		if (memcmp(torn.slots[slot], made, size)) /* that byte is the same in both */
			expect_in(&torn, "old");
	}
	memcpy(torn.slots[slot], made, size);
	expect_in(&torn, "new");
	torn.slots[slot][size - 1] ^= 1;
	expect_in(&torn, "old");
}

/* Whichever of the slots it goes to. */
static void a_write_cut_anywhere_leaves_the_old_or_the_new(void **state)
{
	static const off_t slots[] = { SLOT_0, SLOT_1 };
	static struct contents old;
	char made[200];

	for (unsigned slot = 0; slot < COUNT(slots); slot++) {
		struct weft_store *store;

		cut_to(0);
		store = opened(spec, 1, 1);
		for (unsigned i = 0; i <= slot; i++)
			assert_int_equal(put(store, "key", "old"), 0);
		take_contents(&old);
		disk.size = 0;
		disk.noting = true;
		assert_int_equal(put(store, "key", "new"), 0);
		disk.noting = false;
		closed(store);
		assert_int_equal(disk.at, slots[slot]);
		assert_in_range(disk.size, 40, sizeof(made));
		memcpy(made, disk.bytes, disk.size);
		check_cuts(&old, slot, made, disk.size);
	}
}

/* Without anybody's asking, and what it finds is durable. */
static void look_again(struct weft_store *store)
{
	atomic_store(&visits, 0);
	atomic_store(&syncs, 0);
	while (!atomic_load(&visits) ||
	       container_of(store, struct file_store, store)->state != STORE_FILE_IDLE)
		weft_reactor_turn(r, -1);
	assert_int_equal(atomic_load(&syncs), 1);
}

static void a_failing_or_full_disk_is_told(void **state)
{
	static const struct {
		const char *name;
		unsigned writes, syncs; /* that succeed */
		int error;
		bool in_doubt;
		const char *later;
	} cases[] = {
		{ "not written", 0, 9, EIO, false, "old" },
		{ "wiped", 9, 0, EIO, true, "old" },     /* and that is not synced */
		{ "not wiped", 1, 0, EIO, true, "new" }, /* it is found whole, and holds */
		{ "no space", 0, 9, ENOSPC, false, "old" },
		{ "no space when synced", 9, 0, ENOSPC, true, "old" },
	};

	for_each_named(i, cases, name) {
		struct weft_store *store = opened(spec, 1, 1);

		assert_int_equal(put(store, "key", "old"), 0);
		disk.writes_left = cases[i].writes;
		disk.syncs_left = cases[i].syncs;
		disk.error = cases[i].error;
		disk.failing = true;
		assert_int_equal(put(store, "key", "new"), -cases[i].error);
		assert_int_equal(last_in_doubt, cases[i].in_doubt);
		expect(store, "key", "old");
		disk.failing = false;
		if (cases[i].in_doubt)
			look_again(store);
		expect(store, "key", cases[i].later);
		assert_int_equal(put(store, "other", "x"), 0); /* and it goes on */
		closed(store);
		store = opened(spec, 1, 1);
		expect(store, "key", cases[i].later);
		closed(store);
	}
}

static bool tell(int out, uint32_t n)
{
	return write(out, &n, sizeof(n)) == sizeof(n);
}

/* A child commits one number after the other and tells each that is done; we kill it. */
static void child_counts(int out)
{
	struct weft_store *store = opened(spec, 1, 1);
	const struct weft_store_record *record = weft_store_get(store, "n");
	uint32_t n = 0;

	if (record)
		memcpy(&n, record->value, sizeof(n));
	for (;;) {
		struct weft_store_write write = { "n", version_of(store, "n"), &n, sizeof(n) };

		n++;
		if (commit(store, &write, 1) || !tell(out, n))
			_exit(1);
	}
}

static uint32_t last_told(int in)
{
	uint32_t n = 0, next;

	while (read(in, &next, sizeof(next)) == sizeof(next))
		n = next;
	return n;
}

static void a_killed_process_loses_nothing_it_told(void **state)
{
	uint32_t last = 0;

	for (int round = 0; round < 10; round++) {
		const struct weft_store_record *record;
		struct weft_store *store;
		uint32_t n, told;
		int ends[2];
		pid_t pid;

		assert_int_equal(pipe(ends), 0);
		close_engine(NULL);
		pid = fork();
		if (!pid) {
			open_engine(WEFT_ENGINE_EPOLL);
			child_counts(ends[1]);
		}
		close(ends[1]);
		assert_int_equal(read(ends[0], &n, sizeof(n)), sizeof(n));
		usleep((useconds_t)(round * 731));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		told = last_told(ends[0]);
		told = told > n ? told : n;
		close(ends[0]);
		open_engine(WEFT_ENGINE_EPOLL);
		store = opened(spec, 1, 1);
		record = weft_store_get(store, "n");
		assert_non_null(record);
		memcpy(&n, record->value, sizeof(n));
		assert_true(told > last && (n == told || n == told + 1));
		last = told;
		closed(store);
	}
}

/* --- files that are not ours ------------------------------------------------------------------ */

static void other_files_are_refused(void **state)
{
	struct weft_store *store = opened(spec, 1, 1);
	char damage[64];

	assert_int_equal(put(store, "key", "old"), 0);
	closed(store);
	memset(damage, 0x55, sizeof(damage));
	write_at(damage, sizeof(damage), 64 << 10);
	store = opened(spec, 1, 1); /* the other slot is whole */
	expect(store, "key", "old");
	closed(store);
	write_at(damage, sizeof(damage), (64 << 10) + 41);
	write_at(damage, sizeof(damage), (64 << 10) + (16 << 20) + 41);
	assert_int_equal(open_node(&store, spec, 1, 1), -EUCLEAN);
	write_at("#!/bin/sh\n", 10, 0);
	assert_int_equal(open_node(&store, spec, 1, 1), -EMEDIUMTYPE);
	assert_int_equal(open_node(&store, "file:/dev/null", 1, 1), -EINVAL);
	assert_int_equal(open_node(&store, "file:/nowhere/at/all", 1, 1), -ENOENT);
	assert_int_equal(open_node(&store, "etcd:x", 1, 1), -EINVAL);
}

/* Cut anywhere, with nobody there who knows more: what is left counts, or it is refused. Only what
 * has lost all of its slots cannot be told from a new one. */
static void a_cut_file_is_not_taken_for_a_new_one(void **state)
{
	static const struct {
		off_t size;
		int rc;
		const char *value;
	} cases[] = {
		{ SLOT_1 + 48, 0, "2" }, /* of the second, but for the first */
		{ SLOT_1 + 20, 0, "2" },
		{ SLOT_1, 0, "2" },
		{ SLOT_0 + 48, -EUCLEAN, NULL },
		{ SLOT_0 + 40, -EUCLEAN, NULL },
		{ SLOT_0, 0, NULL },
	};

	for_each_named(i, cases, value) {
		struct weft_store *store;
		int rc;

		cut_to(0);
		store = opened(spec, 1, 1);
		assert_int_equal(put(store, "key", "1"), 0);
		assert_int_equal(put(store, "key", "2"), 0);
		closed(store);
		cut_to(cases[i].size);
		rc = open_node(&store, spec, 1, 1);
		assert_int_equal(rc, cases[i].rc);
		if (rc < 0)
			continue;
		expect(store, "key", cases[i].value);
		closed(store);
	}
}

/* --- members ---------------------------------------------------------------------------------- */

struct member {
	struct weft_store *store;
	unsigned moved, gone, joined, let_go;
	const char *lost;
	bool mute; /* does not acknowledge */
};

static void on_moved(void *arg)
{
	struct member *member = arg;

	member->moved++;
	if (!member->mute)
		weft_store_ack(member->store, weft_store_revision(member->store));
}

static void on_gone(void *arg, unsigned node)
{
	struct member *member = arg;

	member->gone |= 1u << node;
}

static void on_joined(void *arg, unsigned node)
{
	struct member *member = arg;

	assert_true(weft_store_alive(member->store, node));
	member->joined |= 1u << node;
}

static void on_let_go(void *arg)
{
	struct member *member = arg;

	member->let_go++;
}

static void on_lost(void *arg, const char *why)
{
	struct member *member = arg;

	assert_null(member->lost);
	member->lost = why;
}

static void watch(struct member *member)
{
	const struct weft_store_watcher watcher = { on_moved,  on_gone, on_joined,
						    on_let_go, on_lost, member };

	weft_store_watch(member->store, &watcher);
}

static void join(struct member *member, unsigned node)
{
	member->store = opened(spec, node, 2);
	watch(member);
	weft_store_ack(member->store, weft_store_revision(member->store));
}

static void settle_begin(struct member *member, struct result *result)
{
	*result = (struct result){ .wait = { .revision = weft_store_revision(member->store),
					     .done = wait_over } };
	weft_store_wait_settled(member->store, &result->wait);
	assert_false(result->over);
}

static void members_see_each_others_commits(void **state)
{
	struct member a = { 0 }, b = { 0 };
	struct result result;

	join(&a, 1);
	join(&b, 2);
	assert_int_equal(weft_store_session(a.store), weft_store_session(b.store));
	assert_int_equal(put(a.store, "key", "1"), 0);
	assert_int_equal(a.moved, 1);
	while (!b.moved)
		weft_reactor_turn(r, -1);
	expect(b.store, "key", "1");
	settle_begin(&a, &result);
	while (!result.over)
		weft_reactor_turn(r, -1);
	assert_int_equal(result.rc, 0);
	assert_int_equal(put(b.store, "key", "2"), 0);
	settle_begin(&b, &result);
	while (!result.over)
		weft_reactor_turn(r, -1);
	expect(a.store, "key", "2");
	closed(a.store);
	closed(b.store);
}

/* Somebody who is killed between a write and its sync leaves what others can read and a loss of
 * power undoes. Who reads it syncs it first, or does not act by it. */
static void what_is_read_is_made_durable(void **state)
{
	struct member a = { 0 }, b = { 0 };
	struct weft_store *store;

	join(&a, 1);
	settle();
	disk.writes_left = UINT_MAX;
	disk.syncs_left = 0;
	disk.error = EIO;
	disk.failing = true;
	assert_int_equal(open_node(&store, spec, 2, 2), -EIO);
	disk.failing = false;
	join(&b, 2);
	settle();
	atomic_store(&syncs, 0);
	assert_int_equal(put(a.store, "key", "1"), 0);
	while (!b.moved)
		weft_reactor_turn(r, -1);
	assert_int_equal(atomic_load(&syncs), 2); /* who wrote it and who read it */
	closed(a.store);
	closed(b.store);
}

/* One visit commits, one acknowledges; neither makes another. A member looks once a second
 * anyway, which the number of writes outweighs. */
static void own_writes_are_no_news(void **state)
{
	enum { WRITES = 40 };
	struct member a = { 0 };
	uint64_t began, seconds;

	join(&a, 1);
	settle();
	atomic_store(&visits, 0);
	began = weft_reactor_now_ns(r);
	for (unsigned i = 0; i < WRITES; i++) {
		assert_int_equal(put(a.store, "key", i % 2 ? "1" : "2"), 0);
		settle();
	}
	seconds = (weft_reactor_now_ns(r) - began) / 1000000000;
	assert_in_range(atomic_load(&visits), WRITES, 2 * WRITES + seconds + 1);
	closed(a.store);
}

static void who_lets_go_of_a_watched_file_is_noticed(void **state)
{
	struct member a = { 0 };
	char other[sizeof(path) + 8];
	int fd, theirs;

	snprintf(other, sizeof(other), "%s-other", path);
	fd = open(other, O_RDWR | O_CREAT, 0600);
	theirs = open(other, O_RDONLY);
	assert_true(fd >= 0 && theirs >= 0);
	join(&a, 1);
	weft_store_watch_file(a.store, fd);
	weft_store_watch_file(a.store, fd);
	assert_int_equal(write(fd, "1", 1), 1);
	assert_int_equal(put(a.store, "key", "1"), 0); /* whose visit takes news, too */
	settle();
	assert_int_equal(a.let_go, 0);
	close(theirs);
	while (!a.let_go)
		weft_reactor_turn(r, -1);
	assert_int_equal(a.let_go, 1);
	closed(a.store);
	close(fd);
	unlink(other);
}

static void a_change_waits_for_who_lives(void **state)
{
	struct member a = { 0 }, b = { .mute = true };
	struct result result;

	join(&a, 1);
	join(&b, 2);
	assert_int_equal(put(a.store, "key", "1"), 0);
	settle_begin(&a, &result);
	while (!b.moved)
		weft_reactor_turn(r, -1);
	settle();
	assert_false(result.over);
	assert_true(weft_store_alive(a.store, 2));
	closed(b.store);
	while (!result.over)
		weft_reactor_turn(r, -1);
	assert_int_equal(result.rc, 0);
	assert_int_equal(a.gone, 1u << 2);
	assert_false(weft_store_alive(a.store, 2));
	closed(a.store);
}

/* Also when who commits has not noticed yet that the other one is there, or gone. */
static void a_commit_can_count_on_who_is_absent(void **state)
{
	static const struct {
		uint64_t absent;
		bool there;
		int rc;
	} cases[] = {
		{ 0, true, 0 }, { 2, true, -ESTALE }, { 6, true, -ESTALE },
		{ 4, true, 0 }, { 2, false, 0 },      { 6, false, 0 },
	};
	struct member a = { 0 }, b = { 0 };

	for_each_row(i, cases) {
		struct weft_store_write write = { "key", 0, "1", 1 };
		struct result result = { .txn = { &write, 1, txn_over, cases[i].absent } };

		join(&a, 1);
		if (cases[i].there)
			join(&b, 2);
		write.version = version_of(a.store, "key");
		weft_store_commit(a.store, &result.txn);
		while (!result.over)
			weft_reactor_turn(r, -1);
		assert_int_equal(result.rc, cases[i].rc);
		assert_int_equal(weft_store_alive(a.store, 2), cases[i].there);
		if (cases[i].there)
			closed(b.store);
		closed(a.store);
	}
}

static void what_is_left_at_the_end_is_cancelled(void **state)
{
	struct member a = { 0 }, b = { .mute = true };
	struct weft_store_write write = { "key", 0, "1", 1 };
	struct result result, txn = { .txn = { .writes = &write, .nwrites = 1, .done = txn_over } };

	join(&a, 1);
	join(&b, 2);
	assert_int_equal(put(a.store, "first", "1"), 0);
	settle_begin(&a, &result);
	weft_store_commit(a.store, &txn.txn);
	closed(a.store);
	assert_true(result.over && txn.over);
	assert_int_equal(result.rc, -ECANCELED);
	closed(b.store);
}

static void a_number_is_taken_once(void **state)
{
	struct weft_store *store, *other;

	store = opened(spec, 1, 2);
	assert_int_equal(open_node(&other, spec, 1, 2), -EBUSY);
	assert_int_equal(open_node(&other, spec, 1, 1), -EBUSY);  /* one that would be alone */
	assert_int_equal(open_node(&other, spec, 2, 3), -EPROTO); /* one of more than we know of */
	other = opened(spec, 2, 2);
	assert_int_equal(weft_store_session(other), weft_store_session(store));
	closed(store);
	closed(other);
	store = opened(spec, 1, 1);
	assert_int_equal(open_node(&other, spec, 2, 2), -EBUSY);
	closed(store);
	store = opened(spec, 3, 3);
	assert_int_equal(open_node(&other, spec, 1, 2), -EPROTO); /* one of fewer */
	closed(store);
}

/* --- why it cannot be opened ------------------------------------------------------------------ */

static int held = -1; /* somebody else's descriptor */

static void nothing_is_wrong(void)
{
}

static void is_something_else(void)
{
	write_at("#!/bin/sh\n", 10, 0);
}

static void has_lost_its_slots(void)
{
	cut_to(SLOT_0 + 48);
}

static void hold_lock(off_t at)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = at, .l_len = 1 };

	held = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fcntl(held, F_OFD_SETLK, &lock), 0);
}

static void is_being_changed(void)
{
	hold_lock((off_t)1 << 62);
}

static void has_a_node_1(void)
{
	hold_lock(((off_t)1 << 62) + 1);
}

static void has_a_node_3(void)
{
	hold_lock(((off_t)1 << 62) + 3);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		void (*spoil)(void);
		unsigned nodes;
		const char *spec; /* NULL: the file */
		const char *words;
	} cases[] = {
		{ nothing_is_wrong, 1, "file:/dev/null", "it is not a regular file" },
		{ nothing_is_wrong, 1, "file:/nowhere/at/all", "there is no folder /nowhere;" },
		{ nothing_is_wrong, 1, "etcd:x", "expected file:PATH" },
		{ is_something_else, 1, NULL, "it is not a state file of Weft" },
		{ has_lost_its_slots, 1, NULL, "both copies of the state in it are damaged" },
		{ is_being_changed, 2, NULL, "has locked it and does not go on" },
		{ has_a_node_1, 1, NULL,
		  "another process has it open, and this subsystem is of no" },
		{ has_a_node_1, 2, NULL, "another process has it open as node 1, or by itself" },
		{ has_a_node_3, 2, NULL, "do not agree on how many they are" },
	};

	for_each_named(i, cases, spec) {
		struct weft_store_options options = { .control_reactor = r,
						      .spec = cases[i].spec ? cases[i].spec : spec,
						      .node = 1,
						      .nodes = cases[i].nodes };
		struct weft_store *store;
		struct weft_err err = { "" };

		cut_to(0);
		store = opened(spec, 1, 3);
		assert_int_equal(put(store, "key", "1"), 0);
		assert_int_equal(put(store, "key", "2"), 0);
		closed(store);
		cases[i].spoil();
		assert_in_range(-weft_store_open(&store, &options, &err), 1, 4095);
		if (!strstr(err.text, cases[i].words))
			fail_msg("%s: %s", cases[i].words, err.text);
		if (held >= 0)
			close(held);
		held = -1;
	}
}

static void other_machines_are_told_by_the_file_system(void **state)
{
	static const struct {
		uint32_t type;
		bool reaches;
	} cases[] = {
		{ 0, false },       { 0xef53, false },    { 0x58465342, false },
		{ 0x6969, true },   { 0xff534d42, true }, { 0xfe534d42, true },
		{ 0xc36400, true }, { 0x01161970, true }, { 0x7461636f, true },
	};
	struct weft_store *store = opened(spec, 1, 2), *memory = opened("mem", 1, 1);

	for_each_row(i, cases) {
		fs_type = cases[i].type;
		assert_int_equal(weft_store_on_shared_fs(store), cases[i].reaches);
		assert_false(weft_store_on_shared_fs(memory));
	}
	fs_type = 0;
	closed(store);
	closed(memory);
}

/* --- members, and somebody who spoils their file ---------------------------------------------- */

static void write_over(off_t from, size_t size)
{
	static char noise[SLOT_PART];

	memset(noise, 0x55, sizeof(noise));
	for (size_t at = 0; at < size; at += sizeof(noise))
		write_at(noise, sizeof(noise), from + (off_t)at);
}

static void spoil_nothing(void)
{
}

static void spoil_all(void)
{
	cut_to(0);
}

static void spoil_slots(void)
{
	cut_to(SLOT_0);
}

static void spoil_second_slot(void)
{
	cut_to(SLOT_1);
}

/* The head of the newest is there, what it promises is not. */
static void spoil_ends(void)
{
	write_over(SLOT_0 + 48, SLOT_PART);
	cut_to(SLOT_1 + 48);
}

static void spoil_members(void)
{
	write_over(4096, SLOT_PART);
}

static void spoil_with_noise(void)
{
	write_over(0, SLOT_0 + SLOT_PART);
	write_over(SLOT_1, SLOT_PART);
}

static void a_spoilt_file_is_mended_by_who_lives(void **state)
{
	static void (*const spoils[])(void) = { spoil_nothing,     spoil_all,  spoil_slots,
						spoil_second_slot, spoil_ends, spoil_members,
						spoil_with_noise };
	struct member a = { 0 }, b = { 0 };
	uint64_t incarnations = 0;

	join(&a, 1);
	join(&b, 2);
	for (size_t i = 0; i < 2 * COUNT(spoils); i++) { /* either slot is the newer one */
		char value[8];
		struct result result;

		snprintf(value, sizeof(value), "%zu", i);
		spoils[i / 2]();
		assert_int_equal(put(a.store, "key", value), 0);
		settle_begin(&a, &result);
		while (!result.over)
			weft_reactor_turn(r, -1);
		expect(b.store, "key", value);
		incarnations += a.gone + b.gone;
	}
	assert_int_equal(incarnations, 0); /* nobody was taken for gone */
	spoil_all();
	assert_int_equal(put(b.store, "other", "x"), 0);
	closed(a.store);
	closed(b.store);
	a.store = opened(spec, 1, 2);
	expect(a.store, "key", "13");
	expect(a.store, "other", "x");
	closed(a.store);
}

/* Also when nobody changes anything: who joins finds it. Both slots have their turn to be the
 * newest. */
static void a_spoilt_file_is_mended_in_time(void **state)
{
	static void (*const spoils[])(void) = { spoil_all, spoil_all, spoil_ends, spoil_ends };
	struct member a = { 0 };
	struct weft_store *late;
	static struct contents was, is;

	join(&a, 1);
	for (size_t i = 0; i < COUNT(spoils); i++) {
		char value[8];
		unsigned newest;

		snprintf(value, sizeof(value), "%zu", i);
		assert_int_equal(put(a.store, "key", value), 0);
		take_contents(&was);
		newest = weft_store_revision(a.store) % 2 ? 0 : 1;
		spoils[i]();
		do {
			weft_reactor_turn(r, -1);
			take_contents(&is);
		} while (memcmp(is.head, was.head, 16) ||
			 memcmp(is.slots[newest], was.slots[newest], SLOT_PART));
		late = opened(spec, 2, 2);
		expect(late, "key", value);
		assert_int_equal(weft_store_session(late), weft_store_session(a.store));
		closed(late);
	}
	closed(a.store);
}

static void what_nobody_will_find_is_not_committed(void **state)
{
	struct weft_store *store = opened(spec, 1, 1), *other;
	char away[4200];

	snprintf(away, sizeof(away), "%s.away", path);
	assert_int_equal(put(store, "key", "old"), 0);
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(put(store, "key", "new"), -EIDRM);
	other = opened(spec, 1, 1); /* another file, and another state */
	expect(other, "key", NULL);
	assert_int_equal(put(store, "key", "new"), -EIDRM);
	expect(store, "key", "old");
	closed(other);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(put(store, "key", "new"), 0);
	closed(store);
	store = opened(spec, 1, 1);
	expect(store, "key", "new");
	closed(store);
}

/* The child joins as node 2 and never acknowledges. */
static void child_joins(int out)
{
	opened(spec, 2, 2);
	if (!tell(out, 1))
		_exit(1);
	for (;;)
		pause();
}

static void a_killed_member_is_gone(void **state)
{
	struct member a = { 0 };
	struct result result;
	uint32_t here;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	close_engine(NULL);
	pid = fork();
	if (!pid) {
		open_engine(WEFT_ENGINE_EPOLL);
		child_joins(ends[1]);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &here, sizeof(here)), sizeof(here));
	open_engine(WEFT_ENGINE_EPOLL);
	join(&a, 1);
	assert_true(weft_store_alive(a.store, 2));
	assert_int_equal(put(a.store, "key", "1"), 0);
	settle_begin(&a, &result);
	settle();
	assert_false(result.over);
	kill(pid, SIGKILL);
	while (!result.over)
		weft_reactor_turn(r, -1);
	assert_int_equal(a.gone, 1u << 2);
	waitpid(pid, NULL, 0);
	close(ends[0]);
	closed(a.store);
}

/* --- another process goes on ------------------------------------------------------------------ */

/* Node 1's as another process gets it: the descriptor is another one of the same open file. */
static void export_member(struct member *member, struct weft_store_state *state)
{
	weft_store_freeze(member->store);
	while (!weft_store_is_quiesced(member->store))
		weft_reactor_turn(r, -1);
	assert_int_equal(weft_store_export(member->store, state), 0);
	if (state->has_fd)
		state->fd = dup(state->fd);
}

static struct weft_store *heir_of(const char *what, unsigned nodes)
{
	const struct weft_store_options options = {
		.control_reactor = r, .spec = what, .node = 1, .nodes = nodes, .successor = true
	};
	struct weft_store *store;

	assert_int_equal(weft_store_open(&store, &options, NULL), 0);
	return store;
}

static void import_member(struct member *successor, const char *what,
			  struct weft_store_state *state)
{
	successor->store = heir_of(what, state->nodes);
	watch(successor);
	assert_int_equal(weft_store_import(successor->store, state, NULL), 0);
	weft_store_state_free(state);
}

static void the_heir_is_the_same_member(void **state)
{
	struct member a = { 0 }, b = { 0 }, successor = { 0 };
	struct weft_store_state given;
	struct result result;

	join(&a, 1);
	join(&b, 2);
	assert_int_equal(put(a.store, "key", "1"), 0);
	settle_begin(&a, &result);
	while (!result.over)
		weft_reactor_turn(r, -1);
	export_member(&a, &given);
	import_member(&successor, spec, &given);
	expect(successor.store, "key", "1");
	assert_int_equal(version_of(successor.store, "key"), version_of(a.store, "key"));
	assert_int_equal(weft_store_session(successor.store), weft_store_session(b.store));
	assert_true(weft_store_alive(successor.store, 2));
	closed(a.store);
	assert_int_equal(put(b.store, "key", "2"), 0);
	settle_begin(&b, &result);
	settle();
	assert_false(result.over || successor.moved); /* it stands still, and is waited for */
	weft_store_thaw(successor.store);
	while (!result.over)
		weft_reactor_turn(r, -1);
	expect(successor.store, "key", "2");
	assert_int_equal(put(successor.store, "key", "3"), 0);
	assert_int_equal(b.gone, 0);
	closed(successor.store);
	while (!b.gone)
		weft_reactor_turn(r, -1);
	closed(b.store);
}

static void one_that_thaws_goes_on(void **state)
{
	struct member a = { 0 }, b = { 0 };
	struct weft_store_state given;

	join(&a, 1);
	join(&b, 2);
	export_member(&a, &given);
	assert_int_equal(put(b.store, "key", "1"), 0);
	settle();
	assert_int_equal(a.moved, 0);
	close(given.fd);
	weft_store_state_free(&given);
	weft_store_thaw(a.store);
	while (!a.moved)
		weft_reactor_turn(r, -1);
	assert_int_equal(put(a.store, "key", "2"), 0);
	assert_int_equal(b.gone, 0);
	closed(a.store);
	closed(b.store);
}

/* At once, and not when it would look anyway. */
static void one_that_thaws_looks(void **state)
{
	struct member a = { 0 };

	join(&a, 1);
	settle();
	weft_store_freeze(a.store);
	while (!weft_store_is_quiesced(a.store))
		weft_reactor_turn(r, -1);
	weft_store_thaw(a.store);
	weft_reactor_turn(r, 0);
	weft_store_freeze(a.store);
	assert_false(weft_store_is_quiesced(a.store));
	while (!weft_store_is_quiesced(a.store))
		weft_reactor_turn(r, -1);
	weft_store_thaw(a.store);
	closed(a.store);
}

/* Whoever it was that held it before, its commands ended with it. */
static void who_came_back_meanwhile_was_gone(void **state)
{
	struct member a = { 0 }, b = { 0 };

	join(&a, 1);
	join(&b, 2);
	while (!weft_store_alive(a.store, 2))
		weft_reactor_turn(r, -1);
	weft_store_freeze(a.store);
	while (!weft_store_is_quiesced(a.store))
		weft_reactor_turn(r, -1);
	closed(b.store);
	join(&b, 2);
	assert_int_equal(a.gone, 0);
	weft_store_thaw(a.store);
	assert_int_equal(put(a.store, "key", "1"), 0); /* a visit that has looked at members */
	assert_int_equal(a.gone, 1u << 2);
	assert_true(weft_store_alive(a.store, 2));
	closed(a.store);
	closed(b.store);
}

/* One visit finds a member and what it has committed: whoever judges a record by its writer learns
 * that the writer is there, too. */
static void who_has_joined_and_committed_is_there(void **state)
{
	struct member a = { 0 }, b = { 0 };

	join(&a, 1);
	weft_store_freeze(a.store);
	while (!weft_store_is_quiesced(a.store))
		weft_reactor_turn(r, -1);
	join(&b, 2);
	assert_int_equal(put(b.store, "key", "1"), 0);
	assert_int_equal(a.joined, 0);
	weft_store_thaw(a.store);
	while (!a.moved || !weft_store_alive(a.store, 2))
		weft_reactor_turn(r, -1);
	assert_int_equal(a.joined, 1u << 2);
	assert_int_equal(a.gone, 0);
	closed(a.store);
	closed(b.store);
}

static void the_heir_misses_who_went_meanwhile(void **state)
{
	struct member a = { 0 }, b = { 0 }, successor = { 0 };
	struct weft_store_state given;

	join(&a, 1);
	join(&b, 2);
	while (!weft_store_alive(a.store, 2))
		weft_reactor_turn(r, -1);
	export_member(&a, &given);
	closed(b.store);
	import_member(&successor, spec, &given);
	closed(a.store);
	assert_int_equal(successor.gone, 0);
	weft_store_thaw(successor.store);
	while (!successor.gone)
		weft_reactor_turn(r, -1);
	assert_int_equal(successor.gone, 1u << 2);
	closed(successor.store);
}

/* As where a power loss would not be survived: what is in memory goes along, the session goes
 * on. */
static void one_alone_is_handed_over(void **state)
{
	const char *const specs[] = { "mem", spec };

	for_each_row(i, specs) {
		struct member a = { .store = opened(specs[i], 1, 1) }, successor = { 0 };
		struct weft_store_state given;
		uint64_t session = weft_store_session(a.store), revision;

		assert_int_equal(put(a.store, "key", "1"), 0);
		revision = weft_store_revision(a.store);
		export_member(&a, &given);
		import_member(&successor, specs[i], &given);
		closed(a.store);
		weft_store_thaw(successor.store);
		expect(successor.store, "key", "1");
		assert_int_equal(weft_store_session(successor.store), session);
		assert_int_equal(weft_store_revision(successor.store), revision);
		assert_int_equal(put(successor.store, "key", "2"), 0);
		closed(successor.store);
	}
}

/* --- a successor that is told something wrong */

static void be_member(struct weft_store_state *state, uint32_t node)
{
	struct weft_store_member_state *only = state->members.at;

	*only = (struct weft_store_member_state){ node, 1, 1 };
	state->members.count = 1;
}

static void no_revision(struct weft_store_state *state)
{
	state->revision = 0;
}

static void acked_the_future(struct weft_store_state *state)
{
	state->acked = state->revision + 1;
}

static void of_more_nodes(struct weft_store_state *state)
{
	state->nodes = 3;
}

static void member_nobody(struct weft_store_state *state)
{
	be_member(state, 0);
}

static void member_self(struct weft_store_state *state)
{
	be_member(state, 1);
}

static void member_too_many(struct weft_store_state *state)
{
	be_member(state, 3);
}

static void records_cut(struct weft_store_state *state)
{
	state->records.count--;
}

static void no_descriptor(struct weft_store_state *state)
{
	state->has_fd = false;
}

static void not_that_member(struct weft_store_state *state)
{
	close(state->fd);
	state->fd = open(path, O_RDWR);
}

static void wrong_states_refused(void **state)
{
	static const struct {
		void (*spoil)(struct weft_store_state *state);
		int rc;
	} cases[] = {
		{ no_revision, -EINVAL },    { acked_the_future, -EINVAL },
		{ of_more_nodes, -EINVAL },  { member_nobody, -EINVAL },
		{ member_self, -EINVAL },    { member_too_many, -EINVAL },
		{ records_cut, -EINVAL },    { no_descriptor, -EINVAL },
		{ not_that_member, -EBUSY },
	};
	struct member a = { 0 };

	join(&a, 1);
	assert_int_equal(put(a.store, "key", "1"), 0);
	for_each_row(i, cases) {
		struct weft_store *successor = heir_of(spec, 2);
		struct weft_store_state given;

		export_member(&a, &given);
		cases[i].spoil(&given);
		assert_int_equal(weft_store_import(successor, &given, NULL), cases[i].rc);
		assert_int_equal(given.fd, -1);
		weft_store_state_free(&given);
		closed(successor);
		weft_store_thaw(a.store);
	}
	assert_int_equal(put(a.store, "key", "2"), 0);
	closed(a.store);
}

/* A relative path, and another working directory; or it was removed. What it changed nobody would
 * find. */
static void an_heir_must_find_the_file(void **state)
{
	struct member a = { 0 }, successor = { 0 };
	struct weft_store_state given;
	struct weft_store *lost;
	char away[4200];

	snprintf(away, sizeof(away), "%s.away", path);
	join(&a, 1);
	for (unsigned other = 0; other < 2; other++) {
		assert_int_equal(rename(path, away), 0);
		if (other)
			close(open(path, O_WRONLY | O_CREAT, 0600));
		export_member(&a, &given);
		lost = heir_of(spec, 2);
		assert_int_equal(weft_store_import(lost, &given, NULL), -EIDRM);
		weft_store_state_free(&given);
		closed(lost);
		assert_int_equal(rename(away, path), 0);
		weft_store_thaw(a.store);
	}
	export_member(&a, &given);
	import_member(&successor, spec, &given);
	closed(a.store);
	weft_store_thaw(successor.store);
	assert_int_equal(put(successor.store, "key", "1"), 0);
	closed(successor.store);
}

/* --- many at once ----------------------------------------------------------------------------- */

enum { ADDS = 100 };

struct adder {
	struct member member;
	struct weft_store_txn txn;
	struct weft_store_write write;
	uint32_t n, done;
};

static void add_next(struct adder *adder)
{
	const struct weft_store_record *record = weft_store_get(adder->member.store, "n");

	adder->n = 0;
	if (record)
		memcpy(&adder->n, record->value, sizeof(adder->n));
	adder->n++;
	adder->write = (struct weft_store_write){ "n", record ? record->version : 0, &adder->n,
						  sizeof(adder->n) };
	weft_store_commit(adder->member.store, &adder->txn);
}

static void added(struct weft_store_txn *txn, int rc)
{
	struct adder *adder = container_of(txn, struct adder, txn);

	assert_true(rc == 0 || rc == -ESTALE);
	adder->done += !rc;
	if (adder->done < ADDS)
		add_next(adder);
}

static void two_who_count_miss_nothing(void **state)
{
	struct adder adders[2] = { 0 };
	uint32_t n;

	for (unsigned i = 0; i < 2; i++) {
		join(&adders[i].member, i + 1);
		adders[i].txn = (struct weft_store_txn){ .writes = &adders[i].write,
							 .nwrites = 1,
							 .done = added };
		add_next(&adders[i]);
	}
	while (adders[0].done < ADDS || adders[1].done < ADDS)
		weft_reactor_turn(r, -1);
	closed(adders[0].member.store);
	closed(adders[1].member.store);
	adders[0].member.store = opened(spec, 1, 1);
	memcpy(&n, weft_store_get(adders[0].member.store, "n")->value, sizeof(n));
	assert_int_equal(n, 2 * ADDS);
	closed(adders[0].member.store);
}

#define case_(test)                                                        \
	(struct CMUnitTest)                                                \
	{                                                                  \
		.name = #test, .test_func = test, .setup_func = open_case, \
		.teardown_func = close_case,                               \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		case_(commits_compare_versions_in_memory),
		case_(commits_compare_versions_in_a_file),
		case_(what_was_committed_is_there_later),
		case_(more_than_fits_is_refused),
		case_(what_comes_together_is_one_revision),
		case_(a_write_cut_anywhere_leaves_the_old_or_the_new),
		case_(a_failing_or_full_disk_is_told),
		case_(a_killed_process_loses_nothing_it_told),
		case_(other_files_are_refused),
		case_(a_cut_file_is_not_taken_for_a_new_one),
		case_(members_see_each_others_commits),
		case_(what_is_read_is_made_durable),
		case_(own_writes_are_no_news),
		case_(who_lets_go_of_a_watched_file_is_noticed),
		case_(a_change_waits_for_who_lives),
		case_(a_commit_can_count_on_who_is_absent),
		case_(what_is_left_at_the_end_is_cancelled),
		case_(a_number_is_taken_once),
		case_(what_is_wrong_is_said),
		case_(other_machines_are_told_by_the_file_system),
		case_(a_spoilt_file_is_mended_by_who_lives),
		case_(a_spoilt_file_is_mended_in_time),
		case_(what_nobody_will_find_is_not_committed),
		case_(a_killed_member_is_gone),
		case_(the_heir_is_the_same_member),
		case_(one_that_thaws_goes_on),
		case_(one_that_thaws_looks),
		case_(who_came_back_meanwhile_was_gone),
		case_(who_has_joined_and_committed_is_there),
		case_(the_heir_misses_who_went_meanwhile),
		case_(one_alone_is_handed_over),
		case_(wrong_states_refused),
		case_(an_heir_must_find_the_file),
		case_(two_who_count_miss_nothing),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
