/* test_store_locks.c - a store whose file system does not share locks, loses them, or fails to
 * lock.
 *
 * A machine is a number. Locks on members' bytes, and on the store's own, are put at bytes of each
 * machine's own, so that no machine sees another's; the file itself is everybody's. */
#include "reactor_case.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lock/ofd.h"
#include "store/file.h"
#include "store/member_locks.h"
#include "store/copies.h"
#include "store/store.h"
#include "running.h"

enum { FDS = 256, APART = 1000, JOIN_PAUSE_NS = 10000000, PATIENCE = 60000 };

static const off_t locks_at = (off_t)1 << 62;

static char path[4096], spec[4200];
static unsigned machine;            /* where a store is opened */
static atomic_uint machine_of[FDS]; /* by descriptor; members have threads of their own */
static atomic_int lock_error;       /* 0: the store's own byte can be locked */
static unsigned file_held;          /* so many times the store's own byte is another's … */
static unsigned number_held;        /* … and a member's byte, once the store's is free */
static atomic_int scan_error;       /* 0: others can see whether node 2 has its lock */
static bool eager;                  /* members look while who joins is about to look at them */
static unsigned sleeps;             /* of who joins */
static atomic_bool gated, at_gate;  /* who joins on a thread of its own waits at @gate */
static sem_t gate;
static pthread_t test;

struct member {
	struct weft_store *store;
	char lost[128];
};

static struct member *joined[WEFT_STORE_NODES_MAX]; /* and turned by this thread */

static struct file_store *file_of(struct member *m)
{
	return container_of(m->store, struct file_store, store);
}

/* --- file systems ----------------------------------------------------------------------------- */

uint64_t __real_store_lock_domain(int fd);
uint64_t __wrap_store_lock_domain(int fd);
int __real_store_member_check_lock(int fd, int witness, unsigned node, unsigned nodes);
int __wrap_store_member_check_lock(int fd, int witness, unsigned node, unsigned nodes);
int __real_weft_ofd_lock(int fd, short type, off_t start, off_t len);
int __wrap_weft_ofd_lock(int fd, short type, off_t start, off_t len);
int __real_weft_ofd_test(int fd, short type, off_t start, off_t len, off_t *at);
int __wrap_weft_ofd_test(int fd, short type, off_t start, off_t len, off_t *at);
int __real_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

uint64_t __wrap_store_lock_domain(int fd)
{
	assert_true(fd < FDS);
	machine_of[fd] = machine;
	return __real_store_lock_domain(fd) + machine;
}

int __wrap_store_member_check_lock(int fd, int witness, unsigned node, unsigned nodes)
{
	machine_of[witness] = machine_of[fd];
	return __real_store_member_check_lock(fd, witness, node, nodes);
}

int __wrap_weft_ofd_lock(int fd, short type, off_t start, off_t len)
{
	if (lock_error && start == locks_at && type != F_UNLCK)
		return lock_error;
	if (start == locks_at && type != F_UNLCK && file_held) {
		file_held--;
		return -EAGAIN;
	}
	if (start > locks_at && type != F_UNLCK && number_held) {
		number_held--;
		return -EAGAIN;
	}
	return __real_weft_ofd_lock(fd, type, start + APART * machine_of[fd], len);
}

int __wrap_weft_ofd_test(int fd, short type, off_t start, off_t len, off_t *at)
{
	if (scan_error && start == locks_at + 2)
		return scan_error;
	return __real_weft_ofd_test(fd, type, start + APART * machine_of[fd], len, at);
}

/* A visit has a thread of its own, and so has weft_store_join(). */
static int pause_elsewhere(const struct timespec *pause)
{
	const struct timespec shorter = { .tv_nsec = JOIN_PAUSE_NS / 10 };

	if (pause->tv_nsec != JOIN_PAUSE_NS)
		return 0;
	at_gate = gated;
	return gated ? sem_wait(&gate) : __real_nanosleep(&shorter, NULL);
}

static bool some_look(void)
{
	for (unsigned i = 0; i < WEFT_STORE_NODES_MAX; i++)
		if (joined[i] && file_of(joined[i])->state != STORE_FILE_IDLE)
			return true;
	return false;
}

/* Members that live are on the same thread as who joins, and look at the file on their own ones:
 * however long one takes, it is a short while for who joins. */
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
	if (!pthread_equal(pthread_self(), test))
		return pause_elsewhere(pause);
	sleeps++;
	weft_reactor_turn(r, 1);
	for (unsigned i = 0; i < PATIENCE && some_look(); i++)
		weft_reactor_turn(r, 1);
	return 0;
}

int __wrap_fdatasync(int fd)
{
	int rc = __real_fdatasync(fd);

	for (unsigned i = 0; i < 50 && eager && pthread_equal(pthread_self(), test); i++)
		weft_reactor_turn(r, 1);
	return rc;
}

/* --- helpers ---------------------------------------------------------------------------------- */

static void note_joined(struct member *m)
{
	unsigned i = 0;

	while (joined[i])
		assert_true(++i < WEFT_STORE_NODES_MAX);
	joined[i] = m;
}

static void note_left(const struct member *m)
{
	for (unsigned i = 0; i < WEFT_STORE_NODES_MAX; i++)
		if (joined[i] == m)
			joined[i] = NULL;
}

static void on_moved(void *arg)
{
	struct member *m = arg;

	weft_store_ack(m->store, weft_store_revision(m->store));
}

static void on_lost(void *arg, const char *why)
{
	struct member *m = arg;

	assert_string_equal(m->lost, "");
	snprintf(m->lost, sizeof(m->lost), "%s", why);
}

static int try_join(struct member *m, unsigned node, unsigned nodes, unsigned on,
		    struct weft_err *err)
{
	const struct weft_store_watcher watcher = { .changed = on_moved,
						    .lost = on_lost,
						    .arg = m };
	const struct weft_store_options options = {
		.control_reactor = r, .spec = spec, .node = node, .nodes = nodes
	};
	int rc;

	*m = (struct member){ 0 };
	machine = on;
	sleeps = 0;
	rc = weft_store_open(&m->store, &options, err);
	if (rc < 0)
		return rc;
	weft_store_watch(m->store, &watcher);
	on_moved(m);
	note_joined(m);
	return 0;
}

static void join(struct member *m, unsigned node, unsigned on)
{
	assert_int_equal(try_join(m, node, 2, on, NULL), 0);
}

static void set_true(void *arg)
{
	*(bool *)arg = true;
}

static void leave(struct member *m)
{
	bool over = false;

	note_left(m);
	weft_store_close(m->store, set_true, &over);
	while (!over)
		weft_reactor_turn(r, -1);
}

/* Its last words are not written. */
static void die(struct member *m)
{
	weft_store_freeze(m->store);
	leave(m);
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

static int put(struct member *m, const char *value)
{
	const struct weft_store_record *record = weft_store_get(m->store, "key");
	const struct weft_store_write write = { "key", record ? record->version : 0, value,
						(uint32_t)strlen(value) };
	struct result result = { .txn = { .writes = &write, .nwrites = 1, .done = txn_over } };

	weft_store_commit(m->store, &result.txn);
	assert_false(result.over);
	while (!result.over)
		weft_reactor_turn(r, -1);
	return result.rc;
}

/* It has no more to say by itself. */
static void rest(struct member *m)
{
	struct store_member_records lines;

	do {
		weft_reactor_turn(r, 1);
		assert_int_equal(store_member_records_read(file_of(m)->fd, &lines), 0);
	} while (lines.at[1].acked != weft_store_revision(m->store) ||
		 file_of(m)->state != STORE_FILE_IDLE);
}

static int open_case(void **state)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(path, sizeof(path), "%s/weft-locks-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(spec, sizeof(spec), "file:%s", path);
	test = pthread_self();
	lock_error = 0;
	scan_error = 0;
	file_held = number_held = 0;
	gated = at_gate = false;
	memset(joined, 0, sizeof(joined));
	sem_init(&gate, 0, 0);
	return open_engine(WEFT_ENGINE_EPOLL);
}

static int close_case(void **state)
{
	unlink(path);
	return close_engine(state);
}

/* --- joining ---------------------------------------------------------------------------------- */

static void who_joins_is_refused_where_a_member_lives_unseen(void **state)
{
	static const struct {
		unsigned node, nodes;
		const char *why;
		bool eager;
	} cases[] = {
		{ 2, 2, "node 1 lives" },       { 1, 2, "that is node 1" },
		{ 1, 1, "that is node 1" }, /* of no cluster */
		{ 2, 2, "node 1 lives", true }, { 1, 2, "that is node 1", true },
	};
	struct member a, b;

	join(&a, 1, 0);
	for_each_named(i, cases, why) {
		struct weft_err err = { "" };

		rest(&a);
		eager = cases[i].eager;
		assert_int_equal(try_join(&b, cases[i].node, cases[i].nodes, 1, &err), -EXDEV);
		eager = false;
		assert_non_null(strstr(err.text, cases[i].why));
		assert_non_null(strstr(err.text, path));
		assert_int_equal(put(&a, "1"), 0);
		assert_string_equal(a.lost, "");
	}
	rest(&a);
	join(&b, 2, 0); /* where it is seen */
	assert_int_equal(sleeps, 0);
	assert_int_equal(put(&b, "2"), 0);
	assert_string_equal(a.lost, "");
	leave(&a);
	leave(&b);
}

/* Sleeps are what an ordinary start must not pay. */
static void who_is_gone_is_watched_only_where_its_lock_would_not_show(void **state)
{
	static const struct {
		bool dies;
		unsigned node, on;
		bool watched;
	} cases[] = {
		{ true, 2, 0, false },  /* one kernel, one mount: a free lock is a proof */
		{ true, 1, 0, false },  /* the same node again */
		{ false, 2, 1, false }, /* it said that it leaves */
		{ true, 2, 1, true },   { true, 1, 1, true },
	};

	for_each_row(i, cases) {
		struct member a, b;

		join(&a, 1, 0);
		cases[i].dies ? die(&a) : leave(&a);
		join(&b, cases[i].node, cases[i].on);
		assert_int_equal(sleeps > 100, cases[i].watched);
		assert_int_equal(put(&b, "1"), 0);
		leave(&b);
		join(&b, cases[i].node, 2); /* and from elsewhere again */
		assert_int_equal(sleeps, 0);
		leave(&b);
	}
}

/* Nobody waits for one that only watches, and it becomes no member before it has. */
static void who_watches_is_no_member_yet(void **state)
{
	struct member a, b, c;
	struct store_member_record line = { .stage = STORE_JOINING,
					    .incarnation = 1,
					    .lock_domain = 1 };
	int fd;

	join(&a, 1, 0);
	join(&b, 2, 0);
	die(&b);
	join(&c, 2, 0);
	fd = file_of(&c)->fd;
	line.incarnation = file_of(&c)->cycle.own.incarnation;
	weft_store_freeze(c.store);
	assert_int_equal(store_member_record_write(fd, 2, &line), 0);
	assert_int_equal(put(&a, "1"), 0);
	while (weft_store_alive(a.store, 2))
		weft_reactor_turn(r, -1);
	leave(&c);
	leave(&a);
}

/* A member writes for a while, and then a process that was killed has our number still: each is
 * waited for as if it were alone. */
static void who_joins_waits_for_each_cause(void **state)
{
	static const struct {
		const char *name;
		unsigned file_held, number_held;
		const char *why; /* NULL: it joins */
	} cases[] = {
		{ "a killed process", 0, 100, NULL },
		{ "a process that goes on", 0, 101, "node 1" },
		{ "a busy disk", 500, 0, NULL },
		{ "a disk that hangs", 501, 0, "has locked it and does not go on" },
		{ "a killed process behind a busy disk", 100, 1, NULL },
		{ "both, as long as they may", 500, 100, NULL },
		{ "a busy disk, and a process that goes on", 500, 101, "node 1" },
	};

	for_each_named(i, cases, name) {
		struct weft_err err = { "" };
		struct member m;

		file_held = cases[i].file_held;
		number_held = cases[i].number_held;
		assert_int_equal(try_join(&m, 1, 2, 0, &err), cases[i].why ? -EBUSY : 0);
		assert_int_equal(file_held + number_held, 0);
		if (cases[i].why)
			assert_non_null(strstr(err.text, cases[i].why));
		else
			leave(&m);
	}
}

/* --- joining off the control reactor ---------------------------------------------------------------------- */

struct join {
	struct weft_store_joining *joining;
	struct member member;
	bool over;
	int rc;
	struct weft_err err;
};

static void join_over(void *arg, int rc, struct weft_store *store, const struct weft_err *err)
{
	struct join *join = arg;

	assert_false(join->over);
	assert_int_equal(!!store, !rc);
	join->over = true;
	join->rc = rc;
	join->err = *err;
	join->member.store = store;
}

static void begin_join(struct join *join, unsigned node, unsigned on)
{
	const struct weft_store_options options = {
		.control_reactor = r, .spec = spec, .node = node, .nodes = 2
	};

	*join = (struct join){ 0 };
	machine = on;
	assert_int_equal(weft_store_join(&join->joining, &options, join_over, join, NULL), 0);
	assert_false(join->over);
}

static void open_gate(void)
{
	gated = false;
	sem_post(&gate);
}

static void end_join(struct join *join)
{
	while (!join->over)
		weft_reactor_turn(r, -1);
}

static struct store_member_record line_of(unsigned node)
{
	struct store_member_records lines;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(store_member_records_read(fd, &lines), 0);
	close(fd);
	return lines.at[node];
}

static uint64_t stage_of(unsigned node)
{
	return line_of(node).stage;
}

/* In doubt: who joins looks again and again, and no further than to the gate. */
static void home_goes_on_while_another_thread_joins(void **state)
{
	const struct weft_store_options mem = {
		.control_reactor = r, .spec = "mem", .node = 1, .nodes = 1
	};
	struct member a, other = { 0 };
	struct join join_;

	join(&a, 1, 0);
	die(&a);
	assert_int_equal(weft_store_open(&other.store, &mem, NULL), 0);
	gated = true;
	begin_join(&join_, 2, 1);
	while (!at_gate)
		weft_reactor_turn(r, 1);
	assert_int_equal(stage_of(2), STORE_JOINING);
	assert_int_equal(put(&other, "1"), 0);
	assert_int_equal(put(&other, "2"), 0);
	assert_false(join_.over);
	open_gate();
	end_join(&join_);
	assert_int_equal(join_.rc, 0);
	assert_int_equal(stage_of(2), STORE_MEMBER);
	assert_int_equal(put(&join_.member, "3"), 0);
	leave(&join_.member);
	leave(&other);
}

static void what_a_join_finds_is_told_when_it_ends(void **state)
{
	struct member a;
	struct join join_;

	join(&a, 1, 0);
	rest(&a);
	gated = true;
	begin_join(&join_, 2, 1);
	while (!at_gate ||
	       line_of(1).joiners_seen != line_of(2).incarnation) /* the member answers */
		weft_reactor_turn(r, 1);
	open_gate();
	end_join(&join_);
	assert_int_equal(join_.rc, -EXDEV);
	assert_non_null(strstr(join_.err.text, "node 1 lives"));
	assert_int_equal(stage_of(2), STORE_LEFT);
	rest(&a);
	begin_join(&join_, 2, 0); /* where it is seen */
	end_join(&join_);
	assert_int_equal(join_.rc, 0);
	leave(&join_.member);
	assert_string_equal(a.lost, "");
	leave(&a);
}

static void a_join_that_is_cancelled_leaves_nothing(void **state)
{
	struct member a;
	struct join join_;

	join(&a, 1, 0);
	die(&a);
	gated = true;
	begin_join(&join_, 2, 1);
	while (!at_gate)
		sched_yield();
	weft_store_join_cancel(join_.joining);
	assert_false(join_.over);
	open_gate();
	end_join(&join_);
	assert_int_equal(join_.rc, -ECANCELED);
	assert_non_null(strstr(join_.err.text, "given up"));
	assert_int_equal(stage_of(2), STORE_LEFT);
	assert_int_equal(stage_of(1), STORE_MEMBER); /* which nobody has watched to the end */
}

/* It has joined, and the control reactor has not heard of it. */
static void a_join_that_is_cancelled_too_late_is_undone(void **state)
{
	struct join join_;
	struct member b;

	begin_join(&join_, 2, 0);
	while (stage_of(2) != STORE_MEMBER || !weft_reactor_busy(r))
		sched_yield();
	weft_store_join_cancel(join_.joining);
	end_join(&join_);
	assert_int_equal(join_.rc, -ECANCELED);
	assert_int_equal(stage_of(2), STORE_LEFT);
	join(&b, 2, 0);
	leave(&b);
}

/* --- proof that we are no member -------------------------------------------------------------- */

static void lock_lost(struct member *m)
{
	store_member_unlock(file_of(m)->fd);
}

static int taker = -1; /* of a lock */

static void lock_taken(struct member *m)
{
	store_member_unlock(file_of(m)->fd);
	taker = open(path, O_RDWR | O_CLOEXEC);
	machine_of[taker] = 0;
	assert_int_equal(store_member_lock(taker, 1, 2), 0);
}

static void own_line(struct member *m, uint64_t stage, int64_t later)
{
	struct store_member_record line = file_of(m)->cycle.own;

	line.stage = stage;
	line.incarnation += (uint64_t)later << 32;
	assert_int_equal(store_member_record_write(file_of(m)->fd, 1, &line), 0);
}

static void taken_for_gone(struct member *m)
{
	own_line(m, STORE_LEFT, 0);
}

static void joined_as_us(struct member *m)
{
	own_line(m, STORE_MEMBER, 1);
}

static void joins_as_us(struct member *m)
{
	own_line(m, STORE_JOINING, 1);
}

static void old_line(struct member *m)
{
	own_line(m, STORE_LEFT, -1);
}

static void no_line(struct member *m)
{
	char noise[64];

	memset(noise, 0x5a, sizeof(noise));
	assert_int_equal(pwrite(file_of(m)->fd, noise, sizeof(noise), STORE_MEMBERS_AT),
			 sizeof(noise));
}

static void next_session(struct member *m)
{
	struct store_records *next;
	const struct weft_store_txn nothing = { 0 };
	bool in_doubt;
	int rc;

	next = store_records_apply(m->store->records, m->store->records->revision + 1, &nothing,
				   &rc);
	next->session++;
	assert_int_equal(store_copies_save(file_of(m)->fd, next, &in_doubt), 0);
	store_records_free(next);
}

/* Whatever becomes of a file that one kernel locks is no proof: only a member does these. */
static void a_member_finds_out_that_it_is_none(void **state)
{
	static const struct {
		void (*spoil)(struct member *m);
		const char *why; /* NULL: it serves on */
	} cases[] = {
		{ lock_lost, "lost the lock" },
		{ lock_taken, "lost the lock" },
		{ taken_for_gone, "taken it for gone" },
		{ joined_as_us, "as the same node" },
		{ next_session, "the only member" },
		{ joins_as_us, NULL },
		{ old_line, NULL },
		{ no_line, NULL },
	};

	for_each_named(i, cases, why) {
		struct member a;
		struct result result = { .wait = { .revision = UINT64_MAX, .done = wait_over } };
		uint64_t revision;

		join(&a, 1, 0);
		assert_int_equal(put(&a, "1"), 0);
		rest(&a);
		revision = weft_store_revision(a.store);
		cases[i].spoil(&a);
		assert_int_equal(put(&a, "2"), cases[i].why ? -EOWNERDEAD : 0);
		assert_int_equal(!!a.lost[0], !!cases[i].why);
		if (cases[i].why) {
			assert_non_null(strstr(a.lost, cases[i].why));
			assert_int_equal(put(&a, "3"), -EOWNERDEAD);
			assert_int_equal(weft_store_revision(a.store), revision);
			weft_store_wait_settled(a.store, &result.wait);
			while (!result.over)
				weft_reactor_turn(r, -1);
			assert_int_equal(result.rc, -EOWNERDEAD);
		}
		leave(&a);
		if (taker >= 0)
			close(taker);
		taker = -1;
	}
}

/* The other machine's store is as good as any: only one of both goes on. */
static void one_that_stood_still_finds_that_another_took_its_place(void **state)
{
	struct member a, b;

	join(&a, 1, 0);
	assert_int_equal(put(&a, "1"), 0);
	weft_store_freeze(a.store);
	join(&b, 2, 1);
	assert_true(sleeps > 100);
	assert_int_equal(put(&b, "2"), 0);
	weft_store_thaw(a.store);
	while (!a.lost[0])
		weft_reactor_turn(r, -1);
	assert_int_equal(put(&a, "3"), -EOWNERDEAD);
	assert_int_equal(put(&b, "3"), 0);
	assert_string_equal(b.lost, "");
	leave(&a);
	leave(&b);
}

/* Without anybody else's doing: a look once a second is enough. */
static void a_lost_lock_shows_by_itself(void **state)
{
	struct member a;

	join(&a, 1, 0);
	lock_lost(&a);
	while (!a.lost[0])
		weft_reactor_turn(r, -1);
	leave(&a);
}

/* --- locks that fail -------------------------------------------------------------------------- */

static void what_cannot_be_locked_is_not_changed(void **state)
{
	/* A file handle that is stale is no version that is another one. */
	static const struct {
		int error, told;
	} cases[] = { { -ENOLCK, -ENOLCK }, { -EIO, -EIO }, { -ESTALE, -EIO } };
	struct member a, b;

	join(&a, 1, 0);
	join(&b, 2, 0);
	for_each_row(i, cases) {
		uint64_t revision = weft_store_revision(a.store);

		lock_error = cases[i].error;
		assert_int_equal(put(&a, "1"), cases[i].told);
		assert_int_equal(weft_store_revision(a.store), revision);
		lock_error = 0;
		assert_int_equal(put(&b, "2"), 0);
		assert_int_equal(weft_store_revision(b.store), revision + 1);
		while (weft_store_revision(a.store) == revision)
			weft_reactor_turn(r, -1);
	}
	assert_string_equal(a.lost, "");
	leave(&a);
	leave(&b);
}

/* The next visit finds it. */
static void a_visit_that_fails_behind_its_commit_leaves_doubt(void **state)
{
	struct member a;

	join(&a, 1, 0);
	assert_int_equal(put(&a, "1"), 0);
	assert_false(last_in_doubt);
	scan_error = -ENOLCK;
	assert_int_equal(put(&a, "2"), -ENOLCK);
	assert_true(last_in_doubt);
	scan_error = 0;
	while (memcmp(weft_store_get(a.store, "key")->value, "2", 1) != 0)
		weft_reactor_turn(r, -1);
	assert_int_equal(put(&a, "3"), 0);
	leave(&a);
}

#define case_(fn) cmocka_unit_test_setup_teardown(fn, open_case, close_case)

int main(void)
{
	const struct CMUnitTest tests[] = {
		case_(who_joins_is_refused_where_a_member_lives_unseen),
		case_(who_is_gone_is_watched_only_where_its_lock_would_not_show),
		case_(who_joins_waits_for_each_cause),
		case_(who_watches_is_no_member_yet),
		case_(home_goes_on_while_another_thread_joins),
		case_(what_a_join_finds_is_told_when_it_ends),
		case_(a_join_that_is_cancelled_leaves_nothing),
		case_(a_join_that_is_cancelled_too_late_is_undone),
		case_(a_member_finds_out_that_it_is_none),
		case_(one_that_stood_still_finds_that_another_took_its_place),
		case_(a_lost_lock_shows_by_itself),
		case_(what_cannot_be_locked_is_not_changed),
		case_(a_visit_that_fails_behind_its_commit_leaves_doubt),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
