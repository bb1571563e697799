/* test_base.c - tables for sizes; pools, heaps and lists against a simple model of themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/debounce.h"
#include "base/heap.h"
#include "base/id_hash.h"
#include "base/list.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/size.h"
#include "base/utf8.h"
#include "running.h"

/* --- sizes ------------------------------------------------------------------------------------ */

static const struct {
	const char *text;
	int rc;
	uint64_t bytes;
} parse_cases[] = {
	{ "0", 0, 0 },
	{ "1", 0, 1 },
	{ "512", 0, 512 },
	{ "4K", 0, 4096 },
	{ "4k", 0, 4096 },
	{ "10G", 0, UINT64_C(10) << 30 },
	{ "1T", 0, UINT64_C(1) << 40 },
	{ "2p", 0, UINT64_C(2) << 50 },
	{ "0G", 0, 0 },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "16383P", 0, UINT64_C(16383) << 50 },
	{ "16384P", -ERANGE, 0 },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "17179869184G", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "K", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ " 1", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
	{ "1KB", -EINVAL, 0 },
	{ "1kB", -EINVAL, 0 },
	{ "1B", -EINVAL, 0 },
	{ "1iB", -EINVAL, 0 },
	{ "1Ki", -EINVAL, 0 },
	{ "1KiBs", -EINVAL, 0 },
	{ "1KK", -EINVAL, 0 },
	{ "4KiB", 0, 4096 },
	{ "4kib", 0, 4096 },
	{ "3TiB", 0, UINT64_C(3) << 40 },
	{ "16384PiB", -ERANGE, 0 },
	{ "1.5G", 0, UINT64_C(3) << 29 },
	{ "1.5GiB", 0, UINT64_C(3) << 29 },
	{ "0.5K", 0, 512 },
	{ "0.25T", 0, UINT64_C(1) << 38 },
	{ "1.000K", 0, 1024 },
	{ "7.0", 0, 7 },
	{ "0.001953125K", 0, 2 },
	{ "16383.999P", -EINVAL, 0 },
	{ "1.5", -EINVAL, 0 },
	{ "1.1K", -EINVAL, 0 },
	{ "1.", -EINVAL, 0 },
	{ "1.G", -EINVAL, 0 },
	{ "1.5.5G", -EINVAL, 0 },
	{ ".5G", -EINVAL, 0 },
	{ "1,5G", -EINVAL, 0 },
	{ "1.0000000000000000000G", -EINVAL, 0 },
	{ "18446744073709551615.5K", -ERANGE, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "4X", -EINVAL, 0 },
};

static void size_parse(void **state)
{
	for_each_named(i, parse_cases, text) {
		uint64_t bytes = 12345;
		int rc = weft_size_parse(parse_cases[i].text, &bytes);

		if (rc != parse_cases[i].rc || (!rc && bytes != parse_cases[i].bytes))
			fail_msg("\"%s\": rc %d, %llu bytes", parse_cases[i].text, rc,
				 (unsigned long long)bytes);
	}
}

static const struct {
	uint64_t bytes;
	const char *text;
} format_cases[] = {
	{ 0, "0" },
	{ 1, "1" },
	{ 1000, "1000" },
	{ 1023, "1023" },
	{ 1024, "1K" },
	{ 1025, "1025" },
	{ 1536, "1536" },
	{ UINT64_C(1) << 30, "1G" },
	{ UINT64_C(1536) << 20, "1536M" },
	{ UINT64_C(1) << 50, "1P" },
	{ UINT64_C(1) << 60, "1024P" },
	{ UINT64_MAX, "18446744073709551615" },
};

static void size_format(void **state)
{
	char text[32];
	uint64_t bytes;

	for_each_named(i, format_cases, text) {
		weft_size_format(format_cases[i].bytes, text, sizeof(text));
		assert_string_equal(text, format_cases[i].text);
		assert_int_equal(weft_size_parse(text, &bytes), 0);
		assert_int_equal(bytes, format_cases[i].bytes);
	}
}

/* --- signals that come twice ------------------------------------------------------------------ */

static void echo(void **state)
{
	static const struct {
		uint64_t at_ms;
		bool echo;
	} cases[] = {
		{ 5000, false }, { 5000, true }, { 5999, true },
		{ 6000, false }, { 6001, true }, { 9000, false },
	};
	weft_signal_debounce last = 0;

	for_each_row(i, cases)
		assert_int_equal(weft_signal_is_bounce(&last, cases[i].at_ms * 1000000),
				 cases[i].echo);
}

/* --- pools ------------------------------------------------------------------------------------ */

#define BUFS     4
#define BUF_SIZE 8192

static void pool_takes_and_gives(void **state)
{
	struct weft_pool pool;
	char *bufs[BUFS];

	assert_int_equal(weft_pool_init(&pool, BUF_SIZE, BUFS, NULL, NULL), 0);
	for (int i = 0; i < BUFS; i++) {
		bufs[i] = weft_pool_take(&pool);
		assert_non_null(bufs[i]);
		assert_int_equal((uintptr_t)bufs[i] % 4096, 0);
		memset(bufs[i], i, BUF_SIZE);
	}
	assert_null(weft_pool_take(&pool));
	for (int i = 0; i < BUFS; i++) {
		assert_int_equal(bufs[i][0], i); /* nobody wrote over a neighbour */
		assert_int_equal(bufs[i][BUF_SIZE - 1], i);
	}
	weft_pool_give(&pool, bufs[2]);
	assert_ptr_equal(weft_pool_take(&pool), bufs[2]); /* the warm one first */
	for (int i = 0; i < BUFS; i++)
		weft_pool_give(&pool, bufs[i]);
	weft_pool_destroy(&pool);
}

struct waiter {
	struct weft_pool_waiter wait;
	void *buf;
	int order;
};

static int served, wakes;

static void woken(void *arg)
{
	wakes++;
}

static void got(struct weft_pool_waiter *wait, void *buf)
{
	struct waiter *waiter = container_of(wait, struct waiter, wait);

	waiter->buf = buf;
	waiter->order = ++served;
}

static void pool_serves_the_line_in_order(void **state)
{
	struct waiter first = { .wait.got = got }, second = { .wait.got = got };
	struct weft_pool pool;
	void *a, *b;

	served = 0;
	assert_int_equal(weft_pool_init(&pool, 4096, 2, woken, NULL), 0);
	a = weft_pool_take(&pool);
	b = weft_pool_take(&pool);
	weft_pool_wait(&pool, NULL, &first.wait);
	weft_pool_wait(&pool, NULL, &second.wait);

	wakes = 0;
	weft_pool_give(&pool, a);
	assert_int_equal(wakes, 1);
	assert_null(first.buf);             /* not from inside give */
	assert_null(weft_pool_take(&pool)); /* nobody overtakes */
	weft_pool_serve_waiters(&pool);
	assert_ptr_equal(first.buf, a);
	assert_null(second.buf);
	weft_pool_give(&pool, b);
	weft_pool_serve_waiters(&pool);
	assert_ptr_equal(second.buf, b);
	assert_int_equal(first.order, 1);
	assert_int_equal(second.order, 2);

	weft_pool_give(&pool, a);
	weft_pool_give(&pool, b);
	weft_pool_destroy(&pool);
}

static void pool_forgets_who_left_the_line(void **state)
{
	struct waiter gone = { .wait.got = got }, stays = { .wait.got = got };
	struct weft_pool pool;
	void *a;

	assert_int_equal(weft_pool_init(&pool, 4096, 1, woken, NULL), 0);
	a = weft_pool_take(&pool);
	weft_pool_wait(&pool, NULL, &gone.wait);
	weft_pool_wait(&pool, NULL, &stays.wait);
	weft_pool_cancel_wait(&gone.wait);
	weft_pool_give(&pool, a);
	weft_pool_serve_waiters(&pool);
	assert_null(gone.buf);
	assert_ptr_equal(stays.buf, a);
	weft_pool_give(&pool, a);
	weft_pool_destroy(&pool);
}

/* A flow in which many wait has one turn of a round, as any other; and so have those without a
 * flow. */
static void pool_lines_take_turns(void **state)
{
	struct waiter many[4], other = { .wait.got = got }, none = { .wait.got = got };
	struct weft_fair_flow flows[2];
	struct weft_pool pool;
	void *a;

	served = 0;
	assert_int_equal(weft_pool_init(&pool, 4096, 1, woken, NULL), 0);
	weft_fair_flow_init(&flows[0], NULL);
	weft_fair_flow_init(&flows[1], NULL);
	a = weft_pool_take(&pool);
	for (int i = 0; i < 4; i++) {
		many[i] = (struct waiter){ .wait.got = got };
		weft_pool_wait(&pool, &flows[0], &many[i].wait);
	}
	weft_pool_wait(&pool, &flows[1], &other.wait);
	weft_pool_wait(&pool, NULL, &none.wait);
	for (int i = 0; i < 6; i++) {
		weft_pool_give(&pool, a);
		weft_pool_serve_waiters(&pool);
		assert_int_equal(served, i + 1);
	}
	assert_int_equal(many[0].order, 1);
	assert_int_equal(other.order, 2);
	assert_int_equal(none.order, 3);
	assert_int_equal(many[1].order, 4);
	weft_pool_give(&pool, a);
	weft_pool_destroy(&pool);
}

/* The owner of an empty flow may go, and nobody waits then. */
static void pool_forgets_an_empty_line(void **state)
{
	struct waiter gone = { .wait.got = got };
	struct weft_fair_flow flow;
	struct weft_pool pool;
	void *a;

	assert_int_equal(weft_pool_init(&pool, 4096, 1, woken, NULL), 0);
	weft_fair_flow_init(&flow, NULL);
	a = weft_pool_take(&pool);
	weft_pool_wait(&pool, &flow, &gone.wait);
	assert_true(weft_pool_wanted(&pool));
	weft_pool_cancel_wait(&gone.wait);
	weft_pool_cancel_wait(&gone.wait);
	assert_false(weft_pool_wanted(&pool));
	memset(&flow, 0xff, sizeof(flow));
	weft_pool_give(&pool, a);
	assert_ptr_equal(weft_pool_take(&pool), a);
	weft_pool_give(&pool, a);
	weft_pool_destroy(&pool);
}

/* --- heaps ------------------------------------------------------------------------------------ */

#define NODES 1000

static uint64_t random_state = 1;

static uint64_t random_u64(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return random_state >> 33;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* What must come out: the keys of the nodes still in, sorted. */
static size_t sorted_keys(const struct weft_heap_node *nodes, uint64_t *keys)
{
	size_t n = 0;

	for (size_t i = 0; i < NODES; i++)
		if (weft_heap_has(&nodes[i]))
			keys[n++] = nodes[i].key;
	qsort(keys, n, sizeof(*keys), compare);
	return n;
}

static void drain(struct weft_heap *heap, const uint64_t *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct weft_heap_node *top = heap->top;

		assert_non_null(top);
		assert_int_equal(top->key, keys[i]);
		weft_heap_remove(heap, top);
		assert_false(weft_heap_has(top));
	}
	assert_null(heap->top);
}

static void heap_sorts(void **state)
{
	static struct weft_heap_node nodes[NODES];
	static uint64_t keys[NODES];

	for (unsigned round = 0; round < 20; round++) {
		struct weft_heap heap = { 0 };

		/* Few distinct keys in some rounds: equals must not confuse it. */
		for (size_t i = 0; i < NODES; i++)
			weft_heap_push(&heap, &nodes[i], random_u64() % (round % 2 ? 10 : 1 << 30));
		for (size_t i = 0; i < NODES; i++) {
			struct weft_heap_node *node = &nodes[random_u64() % NODES];

			if (!weft_heap_has(node)) {
				weft_heap_push(&heap, node, random_u64());
				continue;
			}
			weft_heap_remove(&heap, node);
			if (i % 3)
				weft_heap_push(&heap, node, random_u64());
		}
		drain(&heap, keys, sorted_keys(nodes, keys));
	}
}

/* --- lists ------------------------------------------------------------------------------------ */

struct item {
	struct weft_list link;
	int value;
};

static void fill(struct weft_list *head, struct item *items, int n, int first)
{
	weft_list_init(head);
	for (int i = 0; i < n; i++) {
		items[i].value = first + i;
		weft_list_push(head, &items[i].link);
	}
}

static void expect(struct weft_list *head, const char *values)
{
	char text[32] = "";
	struct item *item;
	size_t n = 0;

	weft_list_for_each(item, head, link)
		text[n++] = (char)('0' + item->value);
	assert_string_equal(text, values);
}

static void list_keeps_order(void **state)
{
	struct item items[4], *item, *tmp;
	struct weft_list head;

	fill(&head, items, 4, 1);
	expect(&head, "1234");
	weft_list_remove(&items[1].link);
	expect(&head, "134");
	weft_list_remove(&items[1].link); /* twice is harmless */
	expect(&head, "134");
	weft_list_push(&head, &items[1].link);
	expect(&head, "1342");
	assert_ptr_equal(weft_list_pop(&head), &items[0].link);
	expect(&head, "342");
	weft_list_for_each_safe(item, tmp, &head, link)
		weft_list_remove(&item->link);
	assert_true(weft_list_empty(&head));
	assert_null(weft_list_pop(&head));
}

static void list_splices(void **state)
{
	struct weft_list to, from;
	struct item a[2], b[2];

	fill(&to, a, 2, 1);
	fill(&from, b, 2, 3);
	weft_list_splice(&to, &from);
	expect(&to, "1234");
	expect(&from, "");
	weft_list_splice(&to, &from); /* of nothing */
	expect(&to, "1234");
	weft_list_splice(&from, &to); /* into nothing */
	expect(&from, "1234");
	expect(&to, "");
}

/* --- text from outside ------------------------------------------------------------------------ */

/* @shown NULL: it is shown as it is. @copied for a field of fixed size. */
static const struct {
	const char *what, *text, *shown, *copied;
} texts[] = {
	{ "nothing", "", NULL, "" },
	{ "ASCII", "nqn.2026-11.io.weft:a b", NULL, "nqn.2026-11.io.weft:a b" },
	{ "two, three and four bytes", "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", NULL,
	  "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "the last before, the first behind C1", "~\xc2\xa0", NULL, "~\xc2\xa0" },
	{ "a backslash", "a\\x9b", "a\\x5cx9b", "a\\x9b" },
	{ "ESC", "a\x1b[2J", "a\\x1b[2J", "a?[2J" },
	{ "ends of lines", "a\r\nb", "a\\x0d\\x0ab", "a??b" },
	{ "DEL", "\x7f", "\\x7f", "?" },
	{ "U+0080", "\xc2\x80", "\\xc2\\x80", "??" },
	{ "U+009B, CSI", "\xc2\x9b", "\\xc2\\x9b", "??" },
	{ "a C1 byte alone", "\x9b", "\\x9b", "?" },
	{ "bytes that begin nothing", "\xff\xfe", "\\xff\\xfe", "??" },
	{ "cut off", "a\xe2\x82", "a\\xe2\\x82", "a??" },
	{ "cut off, and going on", "\xe2\x82z", "\\xe2\\x82z", "??z" },
	{ "overlong", "\xc0\xaf", "\\xc0\\xaf", "??" },
	{ "overlong, of three", "\xe0\x80\xaf", "\\xe0\\x80\\xaf", "???" },
	{ "a surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80", "???" },
	{ "beyond U+10FFFF", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "????" },
	{ "U+202E, right to left", "\xe2\x80\xae", "\\xe2\\x80\\xae", "???" },
	{ "U+2066, an isolate", "\xe2\x81\xa6", "\\xe2\\x81\\xa6", "???" },
	{ "U+061C, a mark of direction", "\xd8\x9c", "\\xd8\\x9c", "??" },
	{ "U+200B, no width", "\xe2\x80\x8b", "\\xe2\\x80\\x8b", "???" },
	{ "U+2028, a line's end", "\xe2\x80\xa8", "\\xe2\\x80\\xa8", "???" },
	{ "U+FEFF", "\xef\xbb\xbf", "\\xef\\xbb\\xbf", "???" },
	{ "U+E0041, a tag", "\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81", "????" },
};

static void text_is_shown(void **state)
{
	for_each_named(i, texts, what) {
		const char *shown = texts[i].shown ? texts[i].shown : texts[i].text;
		char to[64];

		print_message("#   %s\n", texts[i].what);
		assert_int_equal(weft_utf8_show(to, sizeof(to), texts[i].text), strlen(shown));
		assert_string_equal(to, shown);
		assert_true(weft_utf8_printable(to));
		weft_utf8_copy(to, texts[i].text, strlen(texts[i].text));
		assert_string_equal(to, texts[i].copied);
		if (!strchr(texts[i].text, '\\'))
			assert_int_equal(weft_utf8_printable(texts[i].text), !texts[i].shown);
	}
}

/* Where there is no room, a character or an escape is left out whole, and all behind it. */
static void text_is_cut(void **state)
{
	static const char text[] = "a\x1b\xe2\x82\xac!", *const cut[] = {
		"",
		"a",
		"a",
		"a",
		"a",
		"a\\x1b",
		"a\\x1b",
		"a\\x1b",
		"a\\x1b\xe2\x82\xac",
		"a\\x1b\xe2\x82\xac!",
	};
	char to[16];

	for (size_t size = 1; size <= COUNT(cut); size++) {
		weft_utf8_show(to, size, text);
		assert_string_equal(to, cut[size - 1]);
	}
}

/* One line, whatever is in it, from weft_log() and weft_peer_log() alike. */
static void text_in_the_log(void **state)
{
	int fds[2], err = dup(STDERR_FILENO);
	char got[65536];
	ssize_t len;

	assert_int_equal(pipe(fds), 0);
	for_each_named(i, texts, what) {
		const char *shown = texts[i].shown ? texts[i].shown : texts[i].text;
		char want[128];

		dup2(fds[1], STDERR_FILENO);
		weft_log(WEFT_LOG_ERROR, "host <%s>", texts[i].text);
		weft_peer_log(WEFT_LOG_ERROR, "host <%s>", texts[i].text);
		dup2(err, STDERR_FILENO);
		len = read(fds[0], got, sizeof(got) - 1);
		assert_true(len > 0);
		got[len] = '\0';
		snprintf(want, sizeof(want), "host <%s>\n", shown);
		assert_non_null(strstr(got, want));
		for (const char *c = got; *c; c++)
			assert_true(*c == '\n' || (unsigned char)*c >= ' ');
	}
	close(err);
	close(fds[0]);
	close(fds[1]);
}

/* --- numbers of a peer's choice --------------------------------------------------------------- */

/* All of it alike, or in steps that many a hash maps to one place. */
static const struct {
	const char *name;
	uint32_t first, step;
} numbers[] = {
	{ "in a row", 1, 1 },
	{ "even", 2, 2 },
	{ "4096 apart", 1, 4096 },
	{ "a million apart", 0, 1 << 20 },
	{ "down from the last", UINT32_MAX, UINT32_MAX },
	{ "by the golden ratio", 7, 0x9e3779b9 },
};

enum { NUMBERS = 4096, CHAIN_MAX = 20 };

static unsigned longest_chain(const struct weft_id_hash *ids)
{
	unsigned most = 0, length;

	for (size_t i = 0; i < (size_t)1 << ids->bits; i++) {
		length = 0;
		for (const struct weft_id_node *id = ids->chains[i]; id; id = id->next)
			length++;
		most = length > most ? length : most;
	}
	return most;
}

static void ids_are_found(void **state)
{
	static struct weft_id_node things[NUMBERS];
	struct weft_id_hash ids;

	for_each_named(row, numbers, name) {
		uint32_t first = numbers[row].first, step = numbers[row].step;

		weft_id_hash_init(&ids);
		assert_null(weft_id_hash_find(&ids, first));
		for (uint32_t i = 0; i < NUMBERS; i++)
			assert_int_equal(weft_id_hash_add(&ids, &things[i], first + i * step), 0);
		assert_int_equal(ids.count, NUMBERS);
		assert_in_range(longest_chain(&ids), 1, CHAIN_MAX);
		for (uint32_t i = 0; i < NUMBERS; i += 2)
			weft_id_hash_remove(&ids, &things[i]);
		for (uint32_t i = 0; i < NUMBERS; i++)
			assert_ptr_equal(weft_id_hash_find(&ids, first + i * step),
					 i % 2 ? &things[i] : NULL);
		assert_int_equal(ids.count, NUMBERS / 2);
		weft_id_hash_free(&ids);
	}
}

/* Two of them do not share a chain in both: no peer knows which do. */
static void ids_are_keyed(void **state)
{
	struct weft_id_hash one, other;

	weft_id_hash_init(&one);
	weft_id_hash_init(&other);
	assert_memory_not_equal(&one.key, &other.key, sizeof(one.key));
	weft_id_hash_free(&one);
	weft_id_hash_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_parse),
		cmocka_unit_test(size_format),
		cmocka_unit_test(echo),
		cmocka_unit_test(pool_takes_and_gives),
		cmocka_unit_test(pool_serves_the_line_in_order),
		cmocka_unit_test(pool_forgets_who_left_the_line),
		cmocka_unit_test(pool_lines_take_turns),
		cmocka_unit_test(pool_forgets_an_empty_line),
		cmocka_unit_test(heap_sorts),
		cmocka_unit_test(list_keeps_order),
		cmocka_unit_test(list_splices),
		cmocka_unit_test(text_is_shown),
		cmocka_unit_test(text_is_cut),
		cmocka_unit_test(text_in_the_log),
		cmocka_unit_test(ids_are_found),
		cmocka_unit_test(ids_are_keyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
