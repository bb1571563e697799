/* test_resv.c - the rules of reservations, as tables: who may do what, and what becomes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/status.h"
#include "target/resv/resv.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { OK = 0, CONFLICT = NVME_SC_RESERVATION_CONFLICT, INVALID = NVME_SC_INVALID_FIELD };
enum { WE = 1, EA, WERO, EARO, WEAR, EAAR };
enum { KEY_A = 0xa, KEY_B = 0xb, KEY_C = 0xc, KEY_NEW = 0xd };

/* --- a state in short: "A* B" are registrants with their keys, A holds ------------------------------ */

static void put_host(uint8_t host[RESV_HOST_BYTES], char name)
{
	memset(host, 0, RESV_HOST_BYTES);
	host[0] = 0x40; /* in front of what tells them apart, or behind */
	host[RESV_HOST_BYTES - 1] = (uint8_t)name;
}

static uint64_t key_of(char name)
{
	return (uint64_t)(name - 'A') + KEY_A;
}

static void make(struct resv_state *st, uint8_t rtype, const char *text)
{
	memset(st, 0, sizeof(*st));
	st->rtype = rtype;
	for (; *text; text++) {
		struct resv_reg *reg = &st->regs[st->nregs];

		if (*text == ' ')
			continue;
		if (*text == '*') {
			st->regs[st->nregs - 1].holder = true;
			continue;
		}
		put_host(reg->host, *text);
		reg->key = key_of(*text);
		st->nregs++;
	}
}

/* "A* B=d": with a key that is not the host's first one. */
static void show(const struct resv_state *st, char *text)
{
	*text = '\0';
	for (unsigned i = 0; i < st->nregs; i++) {
		const struct resv_reg *reg = &st->regs[i];
		char name = (char)reg->host[RESV_HOST_BYTES - 1];

		text += sprintf(text, "%s%c%s", i ? " " : "", name, reg->holder ? "*" : "");
		if (reg->key != key_of(name))
			text += sprintf(text, "=%x", (unsigned)reg->key);
	}
}

/* "B1 C1!": host B is told of type 1, and so is C, whose commands are aborted. */
static void show_notices(const struct resv_state *st, char *text)
{
	*text = '\0';
	for (unsigned i = 0; i < st->nnotices; i++)
		text += sprintf(text, "%s%c%u%s", i ? " " : "",
				st->notices[i].host[RESV_HOST_BYTES - 1], st->notices[i].type,
				st->notices[i].abort ? "!" : "");
}

struct rule {
	uint8_t rtype;      /* before … */
	const char *before; /* … and its registrants */
	char who;
	uint8_t action, asked; /* @asked: RTYPE of the command */
	uint64_t crkey, key;
	int iekey; /* also CPTPL, from bit 4 on */
	uint16_t status;
	uint8_t rtype_after;
	const char *after, *notices;
	int generation; /* grows */
};

static void check_rule(enum resv_kind kind, const struct rule *rule, size_t index)
{
	struct resv_request rq = {
		.kind = kind,
		.action = rule->action,
		.rtype = rule->asked,
		.crkey = rule->crkey,
		.key = rule->key,
		.iekey = rule->iekey & 1,
		.cptpl = (uint8_t)(rule->iekey >> 4),
		.can_persist = true,
	};
	static struct resv_state st;
	char is[4096], told[4096];
	bool changed;
	uint16_t sc;

	put_host(rq.host, rule->who);
	make(&st, rule->rtype, rule->before);
	sc = resv_run(&st, &rq, &changed);
	show(&st, is);
	show_notices(&st, told);
	if ((sc & 0x7ff) != rule->status || strcmp(is, rule->after) ||
	    strcmp(told, rule->notices) || st.rtype != rule->rtype_after ||
	    st.generation != (uint32_t)rule->generation)
		fail_msg("rule %zu: \"%s\" type %u by %c: status %#x, \"%s\" type %u, told \"%s\", "
			 "generation %u",
			 index, rule->before, rule->rtype, rule->who, sc, is, st.rtype, told,
			 st.generation);
	assert_true(!sc || (sc & NVME_SC_DNR));
	if (sc || !changed)
		assert_true(!strcmp(rule->before, is) && st.rtype == rule->rtype);
}

#define check_rules(kind, rules)                     \
	for (size_t i_ = 0; i_ < COUNT(rules); i_++) \
	check_rule(kind, &(rules)[i_], i_)

/* --- Register ---------------------------------------------------------------------------------------- */

static void registering(void **state)
{
	enum { REG, UNREG, REPLACE };
	static const struct rule rules[] = {
		/* Register: CRKEY and IEKEY do not matter. */
		{ 0, "", 'A', REG, 0, 0, KEY_A, 0, OK, 0, "A", "", 1 },
		{ 0, "", 'A', REG, 0, 99, KEY_A, 0, OK, 0, "A", "", 1 },
		{ 0, "B", 'A', REG, 0, 0, KEY_B, 0, OK, 0, "B A=b", "", 1 },
		{ EA, "B*", 'A', REG, 0, 0, KEY_A, 0, OK, EA, "B* A", "", 1 },
		{ 0, "A", 'A', REG, 0, 0, KEY_A, 0, OK, 0, "A", "", 1 },
		{ 0, "A", 'A', REG, 0, KEY_A, KEY_NEW, 0, CONFLICT, 0, "A", "", 0 },
		{ 0, "A", 'A', REG, 0, KEY_A, KEY_NEW, 1, CONFLICT, 0, "A", "", 0 },
		{ 0, "", 'A', REG, 0, 0, 0, 0, INVALID, 0, "", "", 0 },
		/* Unregister */
		{ 0, "", 'A', UNREG, 0, KEY_A, 0, 0, CONFLICT, 0, "", "", 0 },
		{ 0, "", 'A', UNREG, 0, KEY_A, 0, 1, CONFLICT, 0, "", "", 0 },
		{ 0, "A B", 'A', UNREG, 0, KEY_A, 0, 0, OK, 0, "B", "", 1 },
		{ 0, "A B", 'A', UNREG, 0, KEY_B, 0, 0, CONFLICT, 0, "A B", "", 0 },
		{ 0, "A B", 'A', UNREG, 0, KEY_B, 0, 1, OK, 0, "B", "", 1 },
		{ WE, "A* B", 'B', UNREG, 0, KEY_B, 0, 0, OK, WE, "A*", "", 1 },
		{ WE, "A* B", 'A', UNREG, 0, KEY_A, 0, 0, OK, 0, "B", "", 1 },
		{ EA, "A* B", 'A', UNREG, 0, KEY_A, 0, 0, OK, 0, "B", "", 1 },
		{ WERO, "A* B C", 'A', UNREG, 0, KEY_A, 0, 0, OK, 0, "B C", "B2 C2", 1 },
		{ EARO, "A* B C", 'A', UNREG, 0, KEY_A, 0, 0, OK, 0, "B C", "B2 C2", 1 },
		{ EARO, "A* B C", 'B', UNREG, 0, KEY_B, 0, 0, OK, EARO, "A* C", "", 1 },
		{ WEAR, "A* B", 'A', UNREG, 0, KEY_A, 0, 0, OK, WEAR, "B", "", 1 },
		{ EAAR, "A* B", 'B', UNREG, 0, KEY_B, 0, 0, OK, EAAR, "A*", "", 1 },
		{ WEAR, "A*", 'A', UNREG, 0, KEY_A, 0, 0, OK, 0, "", "", 1 },
		{ EAAR, "B", 'B', UNREG, 0, KEY_B, 0, 0, OK, 0, "", "", 1 },
		/* Replace: who ignores keys need not have one */
		{ 0, "", 'A', REPLACE, 0, KEY_A, KEY_NEW, 0, CONFLICT, 0, "", "", 0 },
		{ 0, "", 'A', REPLACE, 0, 0, KEY_NEW, 1, OK, 0, "A=d", "", 1 },
		{ 0, "A", 'A', REPLACE, 0, KEY_A, KEY_NEW, 0, OK, 0, "A=d", "", 1 },
		{ 0, "A", 'A', REPLACE, 0, KEY_B, KEY_NEW, 0, CONFLICT, 0, "A", "", 0 },
		{ 0, "A", 'A', REPLACE, 0, KEY_B, KEY_NEW, 1, OK, 0, "A=d", "", 1 },
		{ WE, "A*", 'A', REPLACE, 0, KEY_A, KEY_NEW, 0, OK, WE, "A*=d", "", 1 },
		{ 0, "A", 'A', REPLACE, 0, KEY_A, 0, 0, INVALID, 0, "A", "", 0 },
		/* No such action, no such CPTPL */
		{ 0, "A", 'A', 3, 0, KEY_A, KEY_NEW, 0, INVALID, 0, "A", "", 0 },
		{ 0, "A", 'A', 7, 0, KEY_A, KEY_NEW, 0, INVALID, 0, "A", "", 0 },
		{ 0, "", 'A', REG, 0, 0, KEY_A, 1 << 4, INVALID, 0, "", "", 0 },
	};

	check_rules(RESV_REGISTER, rules);
}

static void registrants_have_a_limit(void **state)
{
	struct resv_request rq = { .kind = RESV_REGISTER, .key = 1 };
	static struct resv_state st;
	bool changed;

	memset(&st, 0, sizeof(st));
	for (unsigned i = 0; i < RESV_REGS_MAX; i++) {
		rq.host[0] = (uint8_t)i;
		rq.host[1] = (uint8_t)(i >> 8);
		assert_int_equal(resv_run(&st, &rq, &changed), 0);
	}
	rq.host[2] = 1;
	assert_int_equal(resv_run(&st, &rq, &changed), NVME_SC_INTERNAL);
	assert_int_equal(st.nregs, RESV_REGS_MAX);
}

static void persistence(void **state)
{
	static const struct {
		enum resv_kind kind;
		uint8_t cptpl;
		bool ptpl, can, before, after;
		uint16_t status;
	} cases[] = {
		{ RESV_REGISTER, 0, false, true, true, true, OK },
		{ RESV_REGISTER, 2, false, true, true, false, OK },
		{ RESV_REGISTER, 3, false, true, false, true, OK },
		{ RESV_REGISTER, 3, false, false, false, false, INVALID },
		{ RESV_REGISTER, 2, false, false, false, false, OK },
		{ RESV_PERSIST, 0, true, true, false, true, OK },
		{ RESV_PERSIST, 0, false, true, true, false, OK },
		{ RESV_PERSIST, 0, true, false, false, false, INVALID },
		{ RESV_PERSIST, 0, false, false, false, false, OK },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct resv_request rq = { .kind = cases[i].kind,
					   .key = KEY_A,
					   .cptpl = cases[i].cptpl,
					   .ptpl = cases[i].ptpl,
					   .can_persist = cases[i].can };
		static struct resv_state st;
		bool changed;

		make(&st, 0, "");
		st.ptpl = cases[i].before;
		assert_int_equal(resv_run(&st, &rq, &changed) & 0x7ff, cases[i].status);
		assert_int_equal(st.ptpl, cases[i].after);
	}
}

/* --- Acquire -------------------------------------------------------------------------------------------- */

static void acquiring(void **state)
{
	static const struct rule rules[] = {
		{ 0, "", 'A', 0, WE, KEY_A, 0, 0, CONFLICT, 0, "", "", 0 },
		{ 0, "B", 'A', 0, WE, KEY_B, 0, 0, CONFLICT, 0, "B", "", 0 },
		{ 0, "A", 'A', 0, WE, KEY_B, 0, 0, CONFLICT, 0, "A", "", 0 },
		{ 0, "A", 'A', 0, WE, KEY_A, 0, 1, INVALID, 0, "A", "", 0 },
		{ 0, "A", 'A', 0, 0, KEY_A, 0, 0, INVALID, 0, "A", "", 0 },
		{ 0, "A", 'A', 0, 7, KEY_A, 0, 0, INVALID, 0, "A", "", 0 },
		{ 0, "A", 'A', 3, WE, KEY_A, 0, 0, INVALID, 0, "A", "", 0 },
		/* Another than the holder */
		{ WE, "A* B", 'B', 0, WE, KEY_B, 0, 0, CONFLICT, WE, "A* B", "", 0 },
		{ EARO, "A* B", 'B', 0, EARO, KEY_B, 0, 0, CONFLICT, EARO, "A* B", "", 0 },
		/* Where all hold it, all may say so again */
		{ WEAR, "A* B", 'B', 0, WEAR, KEY_B, 0, 0, OK, WEAR, "A* B", "", 0 },
		{ EAAR, "A* B", 'B', 0, EAAR, KEY_B, 0, 0, OK, EAAR, "A* B", "", 0 },
		{ EAAR, "A* B", 'B', 0, WEAR, KEY_B, 0, 0, CONFLICT, EAAR, "A* B", "", 0 },
	};

	check_rules(RESV_ACQUIRE, rules);
	for (uint8_t type = WE; type <= EAAR; type++) {
		uint8_t other = type % EAAR + 1;
		const struct rule each[] = {
			{ 0, "A B", 'A', 0, type, KEY_A, 0, 0, OK, type, "A* B", "", 0 },
			{ type, "A*", 'A', 0, type, KEY_A, 0, 0, OK, type, "A*", "", 0 },
			{ type, "A*", 'A', 0, other, KEY_A, 0, 0, CONFLICT, type, "A*", "", 0 },
		};

		check_rules(RESV_ACQUIRE, each);
	}
}

static void preempting(void **state)
{
	static const struct rule rules[] = {
		{ WE, "A* B", 'C', 1, WE, KEY_C, KEY_A, 0, CONFLICT, WE, "A* B", "", 0 },
		{ WE, "A* B", 'B', 1, WE, KEY_A, KEY_A, 0, CONFLICT, WE, "A* B", "", 0 },
		/* The holder's key: its reservation becomes ours, and it is told */
		{ WE, "A* B C", 'B', 1, WE, KEY_B, KEY_A, 0, OK, WE, "B* C", "A1", 1 },
		{ WE, "A* B C", 'B', 1, EA, KEY_B, KEY_A, 0, OK, EA, "B* C", "A1 C2", 1 },
		{ EARO, "A* B C", 'B', 1, WEAR, KEY_B, KEY_A, 0, OK, WEAR, "B* C", "A1 C2", 1 },
		{ WE, "A* B C", 'B', 2, WE, KEY_B, KEY_A, 0, OK, WE, "B* C", "A1!", 1 },
		/* Another's key: it is no registrant any more, the rest stays */
		{ WERO, "A* B C", 'A', 1, WERO, KEY_A, KEY_B, 0, OK, WERO, "A* C", "B1", 1 },
		{ WERO, "A* B C", 'A', 1, EA, KEY_A, KEY_B, 0, OK, WERO, "A* C", "B1", 1 },
		{ WERO, "A* B C", 'C', 2, WERO, KEY_C, KEY_B, 0, OK, WERO, "A* C", "B1!", 1 },
		{ WERO, "A* B C", 'C', 1, WERO, KEY_C, 99, 0, CONFLICT, WERO, "A* B C", "", 0 },
		{ WERO, "A* B C", 'C', 1, WERO, KEY_C, 0, 0, INVALID, WERO, "A* B C", "", 0 },
		{ WERO, "A* B", 'B', 1, WERO, KEY_B, KEY_B, 0, OK, WERO, "A*", "", 1 },
		/* The holder's own: another type */
		{ WERO, "A* B", 'A', 1, EARO, KEY_A, KEY_A, 0, OK, EARO, "A* B", "B2", 1 },
		{ WERO, "A* B", 'A', 1, WERO, KEY_A, KEY_A, 0, OK, WERO, "A* B", "", 1 },
		/* Nobody has reserved it */
		{ 0, "A B C", 'A', 1, WE, KEY_A, KEY_B, 0, OK, 0, "A C", "B1", 1 },
		{ 0, "A B", 'A', 1, WE, KEY_A, KEY_A, 0, OK, 0, "B", "", 1 },
		{ 0, "A B", 'A', 1, WE, KEY_A, 99, 0, CONFLICT, 0, "A B", "", 0 },
		{ 0, "A B", 'A', 1, WE, KEY_A, 0, 0, CONFLICT, 0, "A B", "", 0 },
		/* All hold it: key 0 stands for all the others */
		{ WEAR, "A* B C", 'B', 1, EA, KEY_B, 0, 0, OK, EA, "B*", "C1 A1", 1 },
		{ EAAR, "A* B C", 'B', 2, EAAR, KEY_B, 0, 0, OK, EAAR, "B*", "C1! A1!", 1 },
		{ WEAR, "A* B C", 'B', 1, EA, KEY_B, KEY_A, 0, OK, WEAR, "B C", "A1", 1 },
		{ WEAR, "A* B", 'B', 1, EA, KEY_B, 99, 0, CONFLICT, WEAR, "A* B", "", 0 },
		{ EAAR, "A*", 'A', 1, EAAR, KEY_A, KEY_A, 0, OK, 0, "", "", 1 },
		{ EAAR, "A*", 'A', 1, WE, KEY_A, 0, 0, OK, WE, "A*", "", 1 },
	};

	check_rules(RESV_ACQUIRE, rules);
}

/* --- Release -------------------------------------------------------------------------------------------- */

static void releasing(void **state)
{
	enum { RELEASE, CLEAR };
	static const struct rule rules[] = {
		{ WE, "A*", 'B', RELEASE, WE, KEY_B, 0, 0, CONFLICT, WE, "A*", "", 0 },
		{ WE, "A*", 'A', RELEASE, WE, KEY_B, 0, 0, CONFLICT, WE, "A*", "", 0 },
		{ WE, "A*", 'A', RELEASE, WE, KEY_A, 0, 1, INVALID, WE, "A*", "", 0 },
		{ WE, "A*", 'A', RELEASE, EA, KEY_A, 0, 0, INVALID, WE, "A*", "", 0 },
		{ WE, "A*", 'A', 2, WE, KEY_A, 0, 0, INVALID, WE, "A*", "", 0 },
		/* Nothing to release is no error */
		{ 0, "A", 'A', RELEASE, WE, KEY_A, 0, 0, OK, 0, "A", "", 0 },
		{ WE, "A* B", 'B', RELEASE, WE, KEY_B, 0, 0, OK, WE, "A* B", "", 0 },
		{ WERO, "A* B", 'B', RELEASE, EA, KEY_B, 0, 0, OK, WERO, "A* B", "", 0 },
		{ WE, "A* B C", 'A', RELEASE, WE, KEY_A, 0, 0, OK, 0, "A B C", "", 0 },
		{ EA, "A* B C", 'A', RELEASE, EA, KEY_A, 0, 0, OK, 0, "A B C", "", 0 },
		{ WERO, "A* B C", 'A', RELEASE, WERO, KEY_A, 0, 0, OK, 0, "A B C", "B2 C2", 0 },
		{ EARO, "A* B C", 'A', RELEASE, EARO, KEY_A, 0, 0, OK, 0, "A B C", "B2 C2", 0 },
		{ WEAR, "A* B C", 'B', RELEASE, WEAR, KEY_B, 0, 0, OK, 0, "A B C", "A2 C2", 0 },
		{ EAAR, "A* B C", 'A', RELEASE, EAAR, KEY_A, 0, 0, OK, 0, "A B C", "B2 C2", 0 },
		/* Clear: any registrant may, and the type does not matter */
		{ 0, "A B", 'B', CLEAR, 0, KEY_B, 0, 0, OK, 0, "", "A3", 1 },
		{ WE, "A* B C", 'B', CLEAR, EA, KEY_B, 0, 0, OK, 0, "", "A3 C3", 1 },
		{ EAAR, "A* B", 'A', CLEAR, 0, KEY_A, 0, 0, OK, 0, "", "B3", 1 },
		{ WE, "A*", 'B', CLEAR, WE, KEY_B, 0, 0, CONFLICT, WE, "A*", "", 0 },
		{ WE, "A*", 'A', CLEAR, WE, 99, 0, 0, CONFLICT, WE, "A*", "", 0 },
	};

	check_rules(RESV_RELEASE, rules);
}

/* --- I/O: every type, holder A, registrant B, anybody C ---------------------------------------------------- */

static void access_by_type(void **state)
{
	static const struct {
		uint8_t rtype;
		const char *read, *write; /* who may */
	} types[] = {
		{ WE, "ABC", "A" },   { EA, "A", "A" },      { WERO, "ABC", "AB" },
		{ EARO, "AB", "AB" }, { WEAR, "ABC", "AB" }, { EAAR, "AB", "AB" },
	};

	for (size_t i = 0; i < COUNT(types); i++) {
		static struct resv_state st;
		struct resv_view *view;

		make(&st, types[i].rtype, "B A*");
		assert_int_equal(tgt_resv_view_new(&st, &view), 0);
		for (char who = 'A'; who <= 'C'; who++) {
			uint8_t host[RESV_HOST_BYTES];

			put_host(host, who);
			assert_int_equal(tgt_resv_view_allows(view, host, false),
					 !!strchr(types[i].read, who));
			assert_int_equal(tgt_resv_view_allows(view, host, true),
					 !!strchr(types[i].write, who));
		}
		free(view);
	}
}

static void without_a_reservation_there_is_no_view(void **state)
{
	static struct resv_state st;
	struct resv_view *view;

	make(&st, 0, "A B");
	assert_int_equal(tgt_resv_view_new(&st, &view), 0);
	assert_null(view);
}

/* --- as the store has it -------------------------------------------------------------------------------------- */

static void records_come_back(void **state)
{
	static struct resv_state st, back;
	char bytes[WEFT_STORE_VALUE_MAX];
	size_t size;

	make(&st, EARO, "A B* C");
	st.ptpl = true;
	st.generation = 77;
	st.noticed = 5;
	st.nnotices = 1;
	put_host(st.notices[0].host, 'D');
	st.notices[0].type = 1;
	st.notices[0].abort = true;
	size = resv_record_size(&st);
	resv_record_encode(&st, 9, bytes);
	assert_int_equal(resv_record_decode(&back, 9, bytes, size), 0);
	assert_memory_equal(&st, &back, sizeof(st));
	assert_int_equal(resv_record_decode(&back, 10, bytes, size), 0); /* power was lost */
	assert_memory_equal(&st, &back, sizeof(st));
	st.ptpl = false;
	resv_record_encode(&st, 9, bytes);
	assert_int_equal(resv_record_decode(&back, 10, bytes, size), 0);
	assert_int_equal(back.nregs + back.rtype + back.generation + back.nnotices, 0);
	assert_int_equal(back.noticed, 5);
}

static void records_that_are_none_are_refused(void **state)
{
	static const struct {
		size_t at;
		char byte;
	} damage[] = { { 0, 2 }, { 1, 7 }, { 24, 2 }, { 24, 4 }, { 25, 3 }, { 28, 1 }, { 30, 1 } };
	static struct resv_state st, back;
	char bytes[WEFT_STORE_VALUE_MAX];
	size_t size;

	make(&st, WE, "A B* C");
	size = resv_record_size(&st);
	for (size_t i = 0; i < COUNT(damage); i++) {
		resv_record_encode(&st, 1, bytes);
		bytes[damage[i].at] = damage[i].byte;
		assert_int_equal(resv_record_decode(&back, 1, bytes, size), -EINVAL);
	}
	resv_record_encode(&st, 1, bytes);
	for (size_t cut = 1; cut < size; cut++)
		assert_int_equal(resv_record_decode(&back, 1, bytes, cut), -EINVAL);
	assert_int_equal(resv_record_decode(&back, 1, NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registering),
		cmocka_unit_test(registrants_have_a_limit),
		cmocka_unit_test(persistence),
		cmocka_unit_test(acquiring),
		cmocka_unit_test(preempting),
		cmocka_unit_test(releasing),
		cmocka_unit_test(access_by_type),
		cmocka_unit_test(without_a_reservation_there_is_no_view),
		cmocka_unit_test(records_come_back),
		cmocka_unit_test(records_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
