/* test_host_extents.c - what the host makes of an answer to Get LBA Status: what can be believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "host/internal.h"
#include "running.h"

enum { DESCS = 5, FOUND = 8, SLBA = 1000, BLOCKS = 100, MAX = FOUND };

#define HOLE(n)            \
	{                  \
		(n), false \
	}
#define DATA(n)           \
	{                 \
		(n), true \
	}
#define LAST UINT64_MAX

struct desc {
	uint64_t dslba;
	uint32_t nlb;
};

/* Of blocks 1000 to 1099: NLSD, CMPC and descriptors; what is found, up to one without length. */
static const struct {
	const char *name;
	uint32_t nlsd;
	uint8_t cmpc;
	struct desc descs[DESCS];
	unsigned max;
	struct weft_ns_extent found[FOUND];
} rows[] = {
	{ "nothing is allocated", 0, 2, {}, MAX, { HOLE(100) } },
	{ "all is", 1, 2, { { 1000, 100 } }, MAX, { DATA(100) } },
	{ "the first block", 1, 2, { { 1000, 1 } }, MAX, { DATA(1), HOLE(99) } },
	{ "the last block", 1, 2, { { 1099, 1 } }, MAX, { HOLE(99), DATA(1) } },
	{ "two",
	  2,
	  2,
	  { { 1010, 10 }, { 1030, 10 } },
	  MAX,
	  { HOLE(10), DATA(10), HOLE(10), DATA(10), HOLE(60) } },
	{ "two side by side",
	  2,
	  2,
	  { { 1010, 10 }, { 1020, 10 } },
	  MAX,
	  { HOLE(10), DATA(20), HOLE(70) } },

	/* The end is not told. */
	{ "incomplete: up to the last descriptor",
	  1,
	  1,
	  { { 1010, 10 } },
	  MAX,
	  { HOLE(10), DATA(10) } },
	{ "no word of it: the same", 1, 0, { { 1010, 10 } }, MAX, { HOLE(10), DATA(10) } },
	{ "a word that is none: the same", 1, 3, { { 1010, 10 } }, MAX, { HOLE(10), DATA(10) } },
	{ "incomplete, and nothing is told", 0, 1, {}, MAX, {} },
	{ "no word, and nothing is told", 0, 0, {}, MAX, {} },
	{ "incomplete, and what is told is before the range", 1, 1, { { 10, 10 } }, MAX, {} },

	/* Room. */
	{ "room for one: a hole", 1, 2, { { 1010, 10 } }, 1, { HOLE(10) } },
	{ "room for one: data", 1, 2, { { 1000, 10 } }, 1, { DATA(10) } },
	{ "room for two", 2, 2, { { 1010, 10 }, { 1030, 10 } }, 2, { HOLE(10), DATA(10) } },

	/* Descriptors that reach beyond the range. */
	{ "it begins before", 1, 2, { { 990, 20 } }, MAX, { DATA(10), HOLE(90) } },
	{ "it ends behind", 1, 2, { { 1090, 20 } }, MAX, { HOLE(90), DATA(10) } },
	{ "it is larger", 1, 2, { { 0, UINT32_MAX } }, MAX, { DATA(100) } },
	{ "it is before", 1, 2, { { 10, 10 } }, MAX, { HOLE(100) } },
	{ "it is behind", 1, 1, { { 5000, 10 } }, MAX, { HOLE(100) } },
	{ "it ends with the numbers", 1, 2, { { LAST - 10, 10 } }, MAX, { HOLE(100) } },

	/* What cannot be: nothing of it is believed. */
	{ "more descriptors than there is room for", DESCS + 1, 2, {}, MAX, {} },
	{ "as many as there are numbers", UINT32_MAX, 2, {}, MAX, {} },
	{ "one of no blocks", 1, 2, { { 1000, 0 } }, MAX, {} },
	{ "one of no blocks, later", 2, 2, { { 1000, 10 }, { 1010, 0 } }, MAX, {} },
	{ "not in order", 2, 2, { { 1030, 10 }, { 1010, 10 } }, MAX, {} },
	{ "twice the same", 2, 2, { { 1010, 10 }, { 1010, 10 } }, MAX, {} },
	{ "overlapping", 2, 2, { { 1010, 10 }, { 1019, 10 } }, MAX, {} },
	{ "beyond the last number", 1, 2, { { LAST, 1 } }, MAX, {} },
	{ "beyond the last number, by far", 1, 2, { { LAST - 1, UINT32_MAX } }, MAX, {} },
};

static void answers(void **state)
{
	for_each_named(i, rows, name) {
		union {
			struct nvme_lba_status status;
			char bytes[sizeof(struct nvme_lba_status) +
				   DESCS * sizeof(struct nvme_lba_status_desc)];
		} answer = { .status = { .nlsd = cpu_to_le32(rows[i].nlsd),
					 .cmpc = rows[i].cmpc } };
		struct weft_ns_extent got[FOUND];
		int want = 0, n;

		for (unsigned d = 0; d < DESCS; d++) {
			answer.status.descs[d].dslba = cpu_to_le64(rows[i].descs[d].dslba);
			answer.status.descs[d].nlb = cpu_to_le32(rows[i].descs[d].nlb);
		}
		memset(got, 0xee, sizeof(got));
		n = host_extents_parse(&answer.status, sizeof(answer), SLBA, BLOCKS, got,
				       rows[i].max);
		for (; want < FOUND && rows[i].found[want].length; want++) {
			assert_int_equal(got[want].length, rows[i].found[want].length);
			assert_int_equal(got[want].data, rows[i].found[want].data);
		}
		assert_int_equal(n, want ? want : -EPROTO);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(answers) };

	return cmocka_run_group_tests_name("extents", tests, NULL, NULL);
}
