/* test_state_file.c - state files whose checksums are right, and whose contents are not: whoever may
 * write to the file can make one. */
#include "reactor_case.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/member_record.h"
#include "store/copies.h"
#include "store/store.h"
#include "running.h"

enum { MANY = 200000, BYTES = 16 << 20 };

static char path[4096], spec[4200];
static int fd;

static struct {
	char magic[8];
	uint32_t crc, nodes;
	uint64_t revision, session, length;
	char bytes[BYTES - 40];
} slot;

static void add(const char *key, uint64_t version)
{
	struct {
		uint16_t key_len, zero;
		uint32_t len;
		uint64_t version;
	} head = { htole16((uint16_t)strlen(key)), 0, 0, htole64(version) };

	memcpy(slot.bytes + slot.length, &head, sizeof(head));
	memcpy(slot.bytes + slot.length + sizeof(head), key, strlen(key));
	slot.length += sizeof(head) + strlen(key);
}

static void write_slot(uint64_t revision)
{
	off_t at = STORE_COPIES_AT + (revision % 2 ? 0 : STORE_COPY_BYTES);
	size_t size = 40 + slot.length;

	memcpy(slot.magic, "weftslot", 8);
	slot.nodes = 1;
	slot.revision = revision;
	slot.session = 1;
	slot.crc = crc32_iscsi((unsigned char *)&slot + 12, (int)size - 12, ~0u);
	assert_int_equal(pwrite(fd, &slot, size, at), (ssize_t)size);
}

static int open_store(struct weft_store **store)
{
	const struct weft_store_options options = {
		.control_reactor = r, .spec = spec, .node = 1, .nodes = 1
	};

	return weft_store_open(store, &options, NULL);
}

static void set_true(void *arg)
{
	*(bool *)arg = true;
}

static void close_store(struct weft_store *store)
{
	bool over = false;

	weft_store_close(store, set_true, &over);
	while (!over)
		weft_reactor_turn(r, -1);
}

static int open_case(void **state)
{
	const char *dir = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/weft-state-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	snprintf(spec, sizeof(spec), "file:%s", path);
	return fd < 0 || store_copies_init(fd) < 0 ? -1 : open_engine(WEFT_ENGINE_EPOLL);
}

static int close_case(void **state)
{
	close(fd);
	unlink(path);
	return close_engine(state);
}

static void what_nobody_writes_is_refused(void **state)
{
	static const struct {
		const char *keys[2];
		uint64_t version, revision;
		int rc;
	} cases[] = {
		{ { "a", "b" }, 3, 5, 0 },
		{ { "b", "a" }, 3, 5, -EUCLEAN },          /* not in their order */
		{ { "a", "a" }, 3, 5, -EUCLEAN },          /* one of them would never go */
		{ { "a", "b" }, 0, 5, -EUCLEAN },          /* that is the version of no record */
		{ { "a", "b" }, 6, 5, -EUCLEAN },          /* nobody could wait for it */
		{ { "a", "b" }, 3, UINT64_MAX, -EUCLEAN }, /* the next one would be the first */
		{ { "a", "b" }, 3, UINT64_MAX / 2, -EUCLEAN },
	};

	for_each_row(i, cases) {
		struct weft_store *store;

		assert_int_equal(ftruncate(fd, STORE_COPIES_AT), 0);
		slot.length = 0;
		add(cases[i].keys[0], cases[i].version);
		add(cases[i].keys[1], cases[i].version);
		write_slot(cases[i].revision);
		assert_int_equal(open_store(&store), cases[i].rc);
		if (!cases[i].rc)
			close_store(store);
	}
}

static void done(struct weft_store_txn *txn, int rc)
{
	assert_int_equal(rc, 0);
	txn->done = NULL;
}

/* What takes time is in proportion to the file: otherwise the alarm ends it. */
static void a_file_full_of_records_is_read(void **state)
{
	const struct weft_store_write write = { "zz", 0, "1", 1 };
	struct weft_store_txn txn = { .writes = &write, .nwrites = 1, .done = done };
	struct weft_store *store;

	slot.length = 0;
	for (unsigned i = 0; i < MANY; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%06u", i);
		add(key, 1);
	}
	write_slot(3);
	assert_int_equal(open_store(&store), 0);
	weft_store_commit(store, &txn);
	while (txn.done)
		weft_reactor_turn(r, -1);
	assert_non_null(weft_store_get(store, "zz"));
	close_store(store);
}

/* Whose number we take has had the last incarnation that there is. */
static void an_incarnation_begins_anew(void **state)
{
	static const uint64_t last[] = { UINT64_MAX, INT64_MAX, 1, 0 };

	for_each_row(i, last) {
		const struct store_member_record line = { .stage = STORE_LEFT,
							  .incarnation = last[i] };
		struct store_member_records lines;
		struct weft_store *store;

		assert_int_equal(store_member_record_write(fd, 1, &line), 0);
		assert_int_equal(open_store(&store), 0);
		assert_int_equal(store_member_records_read(fd, &lines), 0);
		assert_true(lines.at[1].incarnation >> 32 == 1);
		close_store(store);
	}
}

#define case_(fn) cmocka_unit_test_setup_teardown(fn, open_case, close_case)

int main(void)
{
	const struct CMUnitTest tests[] = {
		case_(what_nobody_writes_is_refused),
		case_(a_file_full_of_records_is_read),
		case_(an_incarnation_begins_anew),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
