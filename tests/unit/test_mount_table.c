/* test_mount_table.c - table.c: the directory follows what a controller lists. What it asks of the
 * controller is counted, and how it finds a file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/mount/ns_table.h"
#include "running.h"

/* --- the controller: what table.c would reach through volume_conn.c and volume.c ------------------- */

enum { MOST = 2 * WEFT_MOUNT_NODES_MAX };

static uint32_t listed[MOST];
static unsigned count;      /* of them */
static uint8_t kinds[MOST]; /* by nsid: which namespace is there; 0: it cannot be opened */
static unsigned lists, opens, volumes, finds;

struct weft_volume {
	uint32_t nsid;
	uint8_t kind;
	void *user;
};

struct weft_volume_conn {
	struct weft_ctrl_info first_info;
};

const struct weft_ctrl_info *weft_volume_conn_info(const struct weft_volume_conn *conn)
{
	return &conn->first_info;
}

int weft_volume_conn_list_ns(struct weft_volume_conn *conn, uint32_t *nsids, unsigned max,
			     struct weft_err *err)
{
	lists++;
	memcpy(nsids, listed, (count < max ? count : max) * sizeof(*nsids));
	return (int)count;
}

int weft_volume_open(struct weft_volume_conn *conn, uint32_t nsid, struct weft_volume **out,
		     struct weft_err *err)
{
	struct weft_volume *volume;

	opens++;
	if (!kinds[nsid])
		return -EIO;
	volume = calloc(1, sizeof(*volume));
	assert_non_null(volume);
	volume->nsid = nsid;
	volume->kind = kinds[nsid];
	volumes++;
	*out = volume;
	return 0;
}

void weft_volume_close(struct weft_volume *volume)
{
	volumes--;
	free(volume);
}

void weft_volume_set_user(struct weft_volume *volume, void *user)
{
	volume->user = user;
}

bool weft_volume_is_visible(struct weft_volume *volume)
{
	return kinds[volume->nsid] == volume->kind;
}

bool weft_volume_is_same(struct weft_volume *volume, const struct weft_volume *other)
{
	return volume->kind == other->kind;
}

struct weft_id_node *__real_weft_id_hash_find(const struct weft_id_hash *ids, uint32_t number);
struct weft_id_node *__wrap_weft_id_hash_find(const struct weft_id_hash *ids, uint32_t number);

struct weft_id_node *__wrap_weft_id_hash_find(const struct weft_id_hash *ids, uint32_t number)
{
	finds++;
	return __real_weft_id_hash_find(ids, number);
}

/* --- cases ------------------------------------------------------------------------------------ */

/* "1 2:3": namespaces 1 and 2, the second another one than before, of kind 3. */
static void list_these(const char *text)
{
	char *end;

	count = 0;
	memset(kinds, 1, sizeof(kinds));
	while (*text) {
		listed[count++] = (uint32_t)strtoul(text, &end, 10);
		if (*end == ':')
			kinds[listed[count - 1]] = (uint8_t)strtoul(end + 1, &end, 10);
		text = end + strspn(end, " ");
	}
}

static void list_many(unsigned n)
{
	memset(kinds, 1, sizeof(kinds));
	for (count = 0; count < n; count++)
		listed[count] = count + 1;
}

/* In their order, with what is not of the first kind. */
static void show(struct weft_mount_table *table, char *text)
{
	struct weft_mount_node *node;
	uint32_t nsid = 0;

	*text = '\0';
	while ((node = weft_mount_table_next(table, nsid))) {
		text += sprintf(text, "%s%u", nsid ? " " : "", node->nsid);
		if (node->volume->kind != 1)
			text += sprintf(text, ":%u", node->volume->kind);
		nsid = node->nsid;
		weft_mount_node_put(table, node, 1);
	}
}

static const struct {
	const char *before, *now, *after;
	unsigned opens;
	int rc;
} scans[] = {
	{ "", "", "", 0, 0 },
	{ "", "1 2 7", "1 2 7", 3, 0 },
	{ "1 2 7", "1 2 7", "1 2 7", 0, 0 },
	{ "1 2 7", "", "", 0, 0 },
	{ "1 2 7", "2", "2", 0, 0 },
	{ "2 7", "1 2 5 7 9", "1 2 5 7 9", 3, 0 },
	{ "1 3 5", "2 4 6", "2 4 6", 3, 0 },
	{ "1 2 3", "1 2:2 3", "1 2:2 3", 1, 0 },
	{ "1 2 3", "1:2 2:3 3:4", "1:2 2:3 3:4", 3, 0 },
	{ "1 2 3", "1 2:0 3 4", "1 2 3 4", 2, -EIO }, /* it stays: who knows */
	{ "1", "1 2:0 3:0 4", "1 4", 3, -EIO },
};

static void test_scan(void **state)
{
	struct weft_volume_conn conn = {};
	struct weft_mount_table table;
	char text[64];

	for_each_named(i, scans, now) {
		weft_mount_table_init(&table, &conn);
		list_these(scans[i].before);
		assert_int_equal(weft_mount_table_rescan(&table, NULL), 0);
		list_these(scans[i].now);
		opens = 0;
		assert_int_equal(weft_mount_table_rescan(&table, NULL), scans[i].rc);
		show(&table, text);
		assert_string_equal(text, scans[i].after);
		assert_int_equal(opens, scans[i].opens);
		weft_mount_table_destroy(&table);
		assert_int_equal(volumes, 0);
	}
}

/* One that is open outlives its name, and another has that at once. */
static void test_held(void **state)
{
	struct weft_volume_conn conn = {};
	struct weft_mount_table table;
	struct weft_mount_node *old, *new;

	weft_mount_table_init(&table, &conn);
	list_these("4 5");
	weft_mount_table_rescan(&table, NULL);
	old = weft_mount_table_find(&table, "ns5");
	list_these("4 5:2");
	weft_mount_table_rescan(&table, NULL);
	new = weft_mount_table_find(&table, "ns5");
	assert_ptr_not_equal(old, new);
	assert_int_equal(old->volume->kind, 1);
	assert_int_equal(new->volume->kind, 2);
	assert_int_equal(volumes, 3);
	weft_mount_node_put(&table, old, 1);
	assert_int_equal(volumes, 2);
	weft_mount_node_put(&table, new, 1);
	weft_mount_table_destroy(&table);
}

static void test_names(void **state)
{
	static const char *const none[] = { "",     "ns",   "ns0", "ns6",  "ns01", "ns 1",
					    "ns+1", "ns1 ", "NS1", "ns-1", "1",    "ns4294967297" };
	struct weft_volume_conn conn = {};
	struct weft_mount_node *node;
	struct weft_mount_table table;

	weft_mount_table_init(&table, &conn);
	list_these("1 5");
	weft_mount_table_rescan(&table, NULL);
	for_each_row(i, none)
		assert_null(weft_mount_table_find(&table, none[i]));
	node = weft_mount_table_find(&table, "ns5");
	assert_int_equal(node->nsid, 5);
	weft_mount_node_put(&table, node, 1);
	node = weft_mount_table_next(&table, 2); /* where somebody is who saw 2 before it went */
	assert_int_equal(node->nsid, 5);
	weft_mount_node_put(&table, node, 1);
	weft_mount_table_destroy(&table);
}

static const unsigned sizes[] = { 10, 1000, 10000 };

/* What a change costs does not depend on how many there are; a listing costs each of them once. */
static void test_many(void **state)
{
	struct weft_volume_conn conn = {};
	struct weft_mount_table table;
	struct weft_mount_node *node;
	uint32_t nsid = 0;

	for_each_row(i, sizes) {
		weft_mount_table_init(&table, &conn);
		list_many(sizes[i]);
		weft_mount_table_rescan(&table, NULL);
		lists = opens = finds = 0;
		kinds[3] = 2;
		weft_mount_table_rescan(&table, NULL);
		assert_int_equal(lists, 1);
		assert_int_equal(opens, 1);
		assert_int_equal(finds, 0);
		for (nsid = 0; (node = weft_mount_table_next(&table, nsid)); nsid = node->nsid)
			weft_mount_node_put(&table, node, 1);
		assert_int_equal(nsid, sizes[i]);
		assert_int_equal(finds, sizes[i]);
		weft_mount_table_destroy(&table);
	}
}

/* There is room for so many; who comes when one has gone gets its place. */
static void test_full(void **state)
{
	struct weft_volume_conn conn = {};
	struct weft_mount_table table;

	weft_mount_table_init(&table, &conn);
	list_many(WEFT_MOUNT_NODES_MAX + 3);
	assert_int_equal(weft_mount_table_rescan(&table, NULL), 0);
	assert_int_equal(volumes, WEFT_MOUNT_NODES_MAX);
	assert_int_equal(table.left_out, 3);
	list_many(WEFT_MOUNT_NODES_MAX + 1);
	memmove(listed, listed + 1, --count * sizeof(*listed));
	assert_int_equal(weft_mount_table_rescan(&table, NULL), 0);
	assert_int_equal(volumes, WEFT_MOUNT_NODES_MAX);
	assert_int_equal(table.left_out, 0);
	weft_mount_table_destroy(&table);
}

/* Also if it is beyond those that a directory has room for. */
static void test_only(void **state)
{
	struct weft_volume_conn conn = { .first_info.nsid = WEFT_MOUNT_NODES_MAX + 2 };
	struct weft_mount_table table;
	char text[64];

	weft_mount_table_init(&table, &conn);
	list_many(WEFT_MOUNT_NODES_MAX + 3);
	opens = 0;
	assert_int_equal(weft_mount_table_rescan(&table, NULL), 0);
	show(&table, text);
	assert_string_equal(text, "16386");
	assert_int_equal(opens, 1);
	assert_int_equal(table.left_out, 0);
	list_many(2);
	assert_int_equal(weft_mount_table_rescan(&table, NULL), 0);
	assert_int_equal(volumes, 0);
	weft_mount_table_destroy(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan),  cmocka_unit_test(test_held),
		cmocka_unit_test(test_names), cmocka_unit_test(test_many),
		cmocka_unit_test(test_full),  cmocka_unit_test(test_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
