/* test_owners.c - who serves which group of a cluster, and what else its members tell each other:
 * tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "target/cluster/owners.h"
#include "target/cluster/ports.h"
#include "target/cluster/remote_ccr.h"
#include "running.h"

/* A table in short: "1 2>3 0", the owners of groups 1, 2, 3, and where the second goes. Groups
 * behind them belong to node 9, which lives: nobody does anything about them. */
enum { OTHERS = 9 };

static void make(struct owners *o, const char *text, uint64_t draining)
{
	unsigned i = 0;

	memset(o, 0, sizeof(*o));
	memset(o->owner, OTHERS, sizeof(o->owner));
	o->draining = draining;
	for (; *text; text++) {
		if (*text == ' ')
			i++;
		else if (*text == '>')
			o->next[i] = (uint8_t)(*++text - '0');
		else
			o->owner[i] = (uint8_t)(*text - '0');
	}
}

static void show(const struct owners *o, char *text)
{
	*text = '\0';
	for (unsigned i = 0; o->owner[i] != OTHERS; i++) {
		text += sprintf(text, "%s%u", i ? " " : "", o->owner[i]);
		if (o->next[i])
			text += sprintf(text, ">%u", o->next[i]);
	}
}

static uint64_t nodes(const char *text)
{
	uint64_t bits = 0;

	for (; *text; text++)
		bits |= 1ull << (*text - '1');
	return bits;
}

/* Storage still has something of these, in any group; of any of them, if there are some. */
static bool left(void *arg, uint32_t group, unsigned node)
{
	return node ? nodes(arg) >> (node - 1) & 1 : nodes(arg);
}

static void one_step(void **state)
{
	static const struct {
		const char *before;
		unsigned self;
		const char *alive, *draining, *left;
		const char *after;
		unsigned waits;
		bool late;
	} cases[] = {
		/* What is nobody's goes to where it belongs, if that is there */
		{ "0 0 0", 1, "1", "", "", "1 1 1", 0 },
		{ "0 0 0", 1, "12", "", "", "1 0 1", OWNERS_WAIT_SUCCESSOR },
		{ "0 0 0", 2, "12", "", "", "0 2 0", OWNERS_WAIT_SUCCESSOR },
		{ "0 0 0", 2, "123", "", "", "0 2 0", OWNERS_WAIT_SUCCESSOR },
		{ "0 0 0", 1, "1", "", "2", "0 0 0",
		  OWNERS_WAIT_STORAGE }, /* it may have been theirs */
		/* Nobody takes from who lives */
		{ "1 1 1", 2, "12", "", "", "1 1 1", 0 },
		{ "1>2", 2, "12", "", "", "1>2", 0 },
		/* The owner lets go */
		{ "1>2 1", 1, "12", "", "", "2 1", 0 },
		{ "1>2", 1, "1", "", "", "1", 0 },
		{ "1>2", 1, "12", "2", "", "1", 0 },
		/* It is gone: its successor takes it, when nothing of it is left */
		{ "1 1", 2, "2", "", "", "2 2", 0 },
		{ "1 1", 2, "2", "", "1", "1 1", OWNERS_WAIT_STORAGE },
		{ "1 3", 2, "2", "", "3", "2 3", OWNERS_WAIT_STORAGE },
		{ "1 1 1", 2, "23", "", "", "2 2 1", OWNERS_WAIT_SUCCESSOR },
		{ "1 1 1", 3, "23", "", "", "1 1 3", OWNERS_WAIT_SUCCESSOR },
		{ "1>3 1", 3, "23", "", "", "3 1", OWNERS_WAIT_SUCCESSOR },
		{ "1>3 1", 2, "23", "", "", "1>3 2", OWNERS_WAIT_SUCCESSOR },
		/* Its successor does not come: whoever is there takes it, but for who drains */
		{ "1 1 1", 3, "23", "", "", "3 3 3", 0, true },
		{ "1>2 2", 3, "23", "", "", "3 2", 0, true },
		{ "1 1", 3, "23", "3", "", "1 1", OWNERS_WAIT_SUCCESSOR, true },
		{ "1 1", 3, "23", "", "1", "1 1", OWNERS_WAIT_STORAGE, true },
		{ "0 0", 3, "3", "", "", "3 3", 0, true },
		/* Draining */
		{ "1 1 1", 1, "123", "1", "", "1>2 1>2 1>3", 0 },
		{ "1>2 1>2 1>3", 1, "123", "1", "", "2 2 3", 0 },
		{ "1", 1, "1", "1", "", "1", 0 },
		{ "1", 1, "12", "12", "", "1", 0 },
		{ "0 0", 1, "12", "1", "", "0 0", OWNERS_WAIT_SUCCESSOR },
		{ "0 0", 2, "12", "1", "", "2 2", 0 },
		{ "2 2", 1, "1", "1", "", "1 1", 0 }, /* there is nobody else */
	};

	for_each_named(i, cases, before) {
		const struct owners_view view = {
			.self = cases[i].self,
			.nodes = 3,
			.alive = nodes(cases[i].alive) | 1ull << (OTHERS - 1),
			.successor_late = cases[i].late,
		};
		char is[64];
		struct owners o;
		unsigned waits;
		bool changed;

		make(&o, cases[i].before, nodes(cases[i].draining));
		changed = owners_advance(&o, &view, left, (void *)(uintptr_t)cases[i].left, &waits);
		show(&o, is);
		if (strcmp(is, cases[i].after) || waits != cases[i].waits)
			fail_msg("case %zu: \"%s\" became \"%s\", not \"%s\", and waits for %u", i,
				 cases[i].before, is, cases[i].after, waits);
		assert_int_equal(changed, strcmp(cases[i].before, cases[i].after) != 0);
	}
}

static const struct owners_view first = { .self = 1, .nodes = 3, .alive = 3 };

static void states(void **state)
{
	static const enum owners_group_state expected[] = { GROUP_OURS,      GROUP_LEAVING,
							    GROUP_ELSEWHERE, GROUP_ELSEWHERE,
							    GROUP_ORPHANED,  GROUP_UNOWNED };
	struct owners o;

	make(&o, "1 1>2 2 2>1 3 0", 0);
	for (uint32_t group = 1; group <= sizeof(expected) / sizeof(expected[0]); group++)
		assert_int_equal(owners_group_state(&o, &first, group), expected[group - 1]);
}

/* What is let go of, or goes away, is not served. */
static void served(void **state)
{
	bool not_ours[WEFT_ANA_GROUP_MAX];
	struct owners o;

	make(&o, "1 1>2 2 0", 0);
	owners_not_ours(&o, &first, not_ours);
	assert_false(not_ours[0]);
	assert_true(not_ours[1] && not_ours[2] && not_ours[3] && not_ours[4]);
}

/* Who serves a group and finds it another's, unasked, has proof that it was taken for gone. */
static void taken_from_one_that_serves_it(void **state)
{
	static const struct {
		const char *served, *found;
		uint32_t group;
	} cases[] = {
		{ "1 1 2 0", "1 1 2 0", 0 },   { "1 1 2 0", "1>2 1 2 0", 0 }, /* asked for */
		{ "1>2 1 2 0", "2 1 2 0", 0 },                                /* handed over */
		{ "1 1 2 0", "1 1 3 3", 0 },   { "1 1 2 0", "0 1 2 0", 0 },   /* nobody's */
		{ "1 1 2 0", "2 1 2 0", 1 },   { "1 1 2 0", "1 2>1 2 0", 2 },
		{ "1>2 1 2 0", "2 3 3 3", 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool not_ours[WEFT_ANA_GROUP_MAX];
		struct owners o;

		make(&o, cases[i].served, 0);
		owners_not_ours(&o, &first, not_ours);
		make(&o, cases[i].found, 0);
		assert_int_equal(owners_lost_group(&o, &first, not_ours), cases[i].group);
	}
}

/* Whatever the order in which members act, fail and come back: at most one serves a group. */
static void never_two(void **state)
{
	char nothing[] = "";
	uint32_t random = 1;
	struct owners o;
	uint64_t alive = 7;

	make(&o, "0 0 0 0", 0);
	for (unsigned i = 0; i < 20000; i++) {
		struct owners before = o;
		struct owners_view view;
		unsigned waits;

		random = random * 1664525 + 1013904223;
		view = (struct owners_view){ .nodes = 3, .successor_late = random >> 14 & 1 };
		view.self = random >> 8 & 1 ? 1 : random >> 9 & 1 ? 2 : 3;
		if (random >> 24 < 40)
			alive ^= 1ull << (random >> 10) % 3;
		if (random >> 24 < 80)
			o.draining ^= 1ull << (random >> 12) % 3;
		view.alive = alive | 1ull << (OTHERS - 1);
		if (!(alive >> (view.self - 1) & 1))
			continue;
		owners_advance(&o, &view, left, nothing, &waits);
		for (unsigned g = 0; g < 4; g++) {
			uint8_t was = before.owner[g];
			bool lives = was && alive >> (was - 1) & 1;

			if (o.owner[g] !=
			    was) /* by its owner, which let go, or because that is gone */
				assert_true(!lives || (was == view.self && before.next[g]));
		}
	}
}

static void records_come_back(void **state)
{
	uint8_t bytes[OWNERS_RECORD];
	struct owners o, back;

	make(&o, "1 2>3 0", 5);
	owners_encode(&o, bytes);
	assert_int_equal(owners_decode(&back, bytes, sizeof(bytes)), 0);
	assert_memory_equal(&o, &back, sizeof(o));
	assert_int_equal(owners_decode(&back, bytes, sizeof(bytes) - 1), -EINVAL);
	bytes[8] = WEFT_NODES_MAX + 1;
	assert_int_equal(owners_decode(&back, bytes, sizeof(bytes)), -EINVAL);
	assert_int_equal(owners_decode(&back, NULL, 0), 0);
	assert_int_equal(back.owner[0], 0);
}

/* --- where members listen --------------------------------------------------------------------- */

static void ports_come_back(void **state)
{
	static const char *const uris[] = { "nvme+tcp://192.0.2.1:4420",
					    "nvme+rdma://[2001:db8::7]:1" };
	static struct ports ports, back;
	char bytes[PORTS_RECORD_MAX];
	struct weft_uri uri;
	size_t len;

	for (unsigned i = 0; i < PORTS_MAX; i++) {
		assert_int_equal(weft_uri_parse(uris[i % COUNT(uris)], &uri, NULL), 0);
		ports.at[i] = (struct tgt_port){ uri.trtype, (uint16_t)(65535 - i), uri.addr };
	}
	for (ports.count = 0; ports.count <= PORTS_MAX; ports.count += PORTS_MAX / 2) {
		len = ports_encode(&ports, UINT64_MAX, bytes);
		assert_true(len < sizeof(bytes));
		assert_int_equal(ports_decode(&back, UINT64_MAX, bytes, len), 0);
		assert_int_equal(back.count, ports.count);
		for (unsigned i = 0; i < ports.count; i++)
			assert_true(weft_addr_equal(&back.at[i].addr, &ports.at[i].addr) &&
				    back.at[i].trtype == ports.at[i].trtype &&
				    back.at[i].portid == ports.at[i].portid);
		assert_int_equal(ports_decode(&back, 1, bytes, len), 0); /* all were gone since */
		assert_int_equal(back.count, 0);
	}
}

static void ports_that_are_none_are_refused(void **state)
{
	static const char *const texts[] = {
		"session 1",                            /* no end */
		"session 1\nnvme+tcp://192.0.2.1:4420", /* no end */
		"session 1\nnvme+tcp://192.0.2.1:4420\n",
		"session 1\nnvme+tcp://192.0.2.1:4420?portid=0\n",
		"session 1\nnvme+tcp://192.0.2.1:4420?portid=65536\n",
		"session 1\nnvme+tcp://somewhere:4420?portid=1\n",
		"session 1\nnvme+tcp://192.0.2.1:4420?portid=1\nx\n",
		"1\n",
		"\n",
	};
	static struct ports back;
	char many[32 + 40 * (PORTS_MAX + 1)];
	size_t len;

	for_each_row(i, texts) {
		assert_int_equal(ports_decode(&back, 1, texts[i], strlen(texts[i])), -EINVAL);
		assert_int_equal(back.count, 0);
	}
	assert_int_equal(ports_decode(&back, 1, "session 1\n\0", 11), -EINVAL);
	len = (size_t)sprintf(many, "session 1\n");
	for (unsigned i = 0; i <= PORTS_MAX; i++)
		len += (size_t)sprintf(many + len, "nvme+tcp://192.0.2.1:4420?portid=1\n");
	assert_int_equal(ports_decode(&back, 1, many, len), -EINVAL);
	assert_int_equal(ports_decode(&back, 1, NULL, 0), 0);
}

/* --- controllers that are to end -------------------------------------------------------------- */

static void resets_come_back(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} damage[] = { { 0, 2 }, { 1, 0 }, { 1, 4 }, { 2, 0 }, { 2, WEFT_NODES_MAX + 1 } };
	struct remote_ccr_record reset = { REMOTE_CCR_REQUESTED, 3, 0x1234,   5,
					   0x6789abcdef,         7, { 8, 9 }, "" },
				 back;
	uint8_t bytes[REMOTE_CCR_RECORD];

	memset(reset.hostnqn, 'n', WEFT_NQN_MAX);
	remote_ccr_encode(&reset, bytes);
	assert_int_equal(remote_ccr_decode(&back, bytes, sizeof(bytes)), 0);
	assert_memory_equal(&reset, &back, sizeof(reset));
	assert_int_equal(remote_ccr_decode(&back, bytes, sizeof(bytes) - 1), -EINVAL);
	assert_int_equal(remote_ccr_decode(&back, NULL, 0), -EINVAL);
	for_each_row(i, damage) {
		remote_ccr_encode(&reset, bytes);
		bytes[damage[i].at] = damage[i].byte;
		assert_int_equal(remote_ccr_decode(&back, bytes, sizeof(bytes)), -EINVAL);
	}
	remote_ccr_encode(&reset, bytes);
	bytes[sizeof(bytes) - 1] = 'x'; /* a name without an end */
	assert_int_equal(remote_ccr_decode(&back, bytes, sizeof(bytes)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_step),
		cmocka_unit_test(states),
		cmocka_unit_test(served),
		cmocka_unit_test(taken_from_one_that_serves_it),
		cmocka_unit_test(never_two),
		cmocka_unit_test(records_come_back),
		cmocka_unit_test(ports_come_back),
		cmocka_unit_test(ports_that_are_none_are_refused),
		cmocka_unit_test(resets_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
