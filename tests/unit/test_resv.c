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
#include "running.h"

enum { OK = 0, CONFLICT = NVME_SC_RESERVATION_CONFLICT, INVALID = NVME_SC_INVALID_FIELD };
enum { WE = 1, EA, WERO, EARO, WEAR, EAAR };
enum { KEY_A = 0xa, KEY_B, KEY_C, KEY_D, KEY_NEW };

/* --- a state in short: "A* B=c" are registrants, A with its key and the holder, B with C's ---- */

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
		if (*text == '=') {
			st->regs[st->nregs - 1].key = key_of((char)(*++text - 'a' + 'A'));
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

/* "B1 C2": host B is told of type 1, C of type 2. */
static void show_notices(const struct resv_state *st, char *text)
{
	*text = '\0';
	for (unsigned i = 0; i < st->nnotices; i++)
		text += sprintf(text, "%s%c%u", i ? " " : "",
				st->notices[i].host[RESV_HOST_BYTES - 1], st->notices[i].type);
}

/* --- every type × action × holder, registrant, anybody ---------------------------------------- */

/* The types that the rules tell apart: none, one holder, registrants only, all registrants. */
enum { NONE, ONE, RO, AR, CLASSES };

static const uint8_t class_of[] = { NONE, ONE, ONE, RO, RO, AR, AR };

/* Hosts A (the holder, if there is a reservation), B and C are registrants with the keys a, b, c; D
 * is not. Every row is run with every type before and every type asked for.
 *
 * What becomes of it, by class: "conflict", "invalid", "same": nothing changed, or
 *   [+] the generation grows   = the type stays, - there is none, > it is the one asked for
 *   registrants   | notices
 * "X/Y": X where the type asked for is that of the reservation, else Y. */
struct rule {
	const char *says; /* NVMe base 2.0, 8.19 and the commands' own sections */
	char who;
	uint8_t action;
	uint64_t crkey, key;
	bool iekey;
	const char *becomes[CLASSES];
};

#define ALL(what)                      \
	{                              \
		what, what, what, what \
	}
#define HELD(a, b)         \
	{                  \
		a, b, b, b \
	}

static bool is_refused(const char *becomes, uint16_t sc)
{
	return !strcmp(becomes, "conflict") ? sc == (CONFLICT | NVME_SC_DNR) :
					      sc == (INVALID | NVME_SC_DNR);
}

static void pick(char *to, const char *becomes, bool matches)
{
	const char *other = strchr(becomes, '/');

	if (!other)
		strcpy(to, becomes);
	else if (matches)
		sprintf(to, "%.*s", (int)(other - becomes), becomes);
	else
		strcpy(to, other + 1);
}

/* The state in the words of the table. */
static void describe(char *to, const struct resv_state *before, const struct resv_state *st,
		     uint8_t asked, bool stays)
{
	char regs[256], notices[256];

	show(st, regs);
	show_notices(st, notices);
	sprintf(to, "%s%c%s%s%s", st->generation != before->generation ? "+" : "",
		!st->rtype && before->rtype         ? '-' :
		st->rtype == before->rtype && stays ? '=' :
		st->rtype == asked                  ? '>' :
						      '?',
		regs, *notices ? "|" : "", notices);
}

static void run_rule(enum resv_kind kind, const struct rule *rule, uint8_t type, uint8_t asked)
{
	struct resv_request rq = { .kind = kind,
				   .action = rule->action,
				   .rtype = asked,
				   .crkey = rule->crkey,
				   .key = rule->key,
				   .iekey = rule->iekey,
				   .can_persist = true };
	static struct resv_state before, st;
	char want[256], got[600];
	bool changed;
	uint16_t sc;

	pick(want, rule->becomes[class_of[type]], asked == type);
	put_host(rq.host, rule->who);
	make(&before, type, type ? "A* B C" : "A B C");
	st = before;
	sc = resv_execute(&st, &rq, &changed);
	describe(got, &before, &st, asked, *want == '=' || want[1] == '=');
	if (sc || !changed)
		assert_memory_equal(&st, &before, sizeof(st));
	if (sc ? !is_refused(want, sc) : strcmp(changed ? got : "same", want))
		fail_msg("%s: %c, type %u, asks for %u: status %#x, \"%s\", not \"%s\"", rule->says,
			 rule->who, type, asked, sc, got, want);
	for (unsigned i = 0; i < st.nnotices; i++)
		assert_int_equal(st.notices[i].abort, st.notices[i].type == 1 &&
							      kind == RESV_ACQUIRE &&
							      rule->action == 2);
}

static void run_rules(enum resv_kind kind, const struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (uint8_t type = 0; type <= EAAR; type++)
			for (uint8_t asked = WE; asked <= EAAR; asked++)
				run_rule(kind, &rules[i], type, asked);
}

static void registering(void **state)
{
	enum { REG, UNREG, REPLACE };
	static const struct rule rules[] = {
		{ "the same key again is no error", 'A', REG, 0, KEY_A, false,
		  HELD("+=A B C", "+=A* B C") },
		{ "another key is", 'A', REG, KEY_A, KEY_NEW, false, ALL("conflict") },
		{ "also for who ignores keys", 'B', REG, 0, KEY_NEW, true, ALL("conflict") },
		{ "a new registrant; its current key is not looked at", 'D', REG, 99, KEY_D, false,
		  HELD("+=A B C D", "+=A* B C D") },
		{ "keys need not differ", 'D', REG, 0, KEY_A, false,
		  HELD("+=A B C D=a", "+=A* B C D=a") },
		{ "key 0 stands for all in Preempt", 'D', REG, 0, 0, false, ALL("invalid") },

		{ "the holder's end is the reservation's, unless all hold it; others are told where "
		  "they gain by it",
		  'A',
		  UNREG,
		  KEY_A,
		  0,
		  false,
		  { "+=B C", "+-B C", "+-B C|B2 C2", "+=B C" } },
		{ "a registrant's is not", 'B', UNREG, KEY_B, 0, false, HELD("+=A C", "+=A* C") },
		{ "with its key", 'A', UNREG, KEY_B, 0, false, ALL("conflict") },
		{ "or with any", 'B', UNREG, 99, 0, true, HELD("+=A C", "+=A* C") },
		{ "who has none cannot give it back", 'D', UNREG, KEY_A, 0, false,
		  ALL("conflict") },
		{ "nor by ignoring that", 'D', UNREG, 0, 0, true, ALL("conflict") },

		{ "a new key changes nothing else", 'A', REPLACE, KEY_A, KEY_NEW, false,
		  HELD("+=A=e B C", "+=A*=e B C") },
		{ "nor a registrant's", 'B', REPLACE, KEY_B, KEY_NEW, false,
		  HELD("+=A B=e C", "+=A* B=e C") },
		{ "with its key", 'A', REPLACE, KEY_B, KEY_NEW, false, ALL("conflict") },
		{ "or with any", 'A', REPLACE, 99, KEY_NEW, true, HELD("+=A=e B C", "+=A*=e B C") },
		{ "who has none", 'D', REPLACE, KEY_A, KEY_NEW, false, ALL("conflict") },
		{ "has one by ignoring that", 'D', REPLACE, 0, KEY_D, true,
		  HELD("+=A B C D", "+=A* B C D") },
		{ "key 0 is none: as Unregister", 'B', REPLACE, KEY_B, 0, false,
		  HELD("+=A C", "+=A* C") },
		{ "also of the holder",
		  'A',
		  REPLACE,
		  KEY_A,
		  0,
		  false,
		  { "+=B C", "+-B C", "+-B C|B2 C2", "+=B C" } },
		{ "with its key", 'A', REPLACE, KEY_B, 0, false, ALL("conflict") },
		{ "who has none does not get it so", 'D', REPLACE, 0, 0, true, ALL("invalid") },
		{ "no such action", 'A', 3, KEY_A, KEY_NEW, false, ALL("invalid") },
		{ "no such action", 'A', 7, KEY_A, KEY_NEW, false, ALL("invalid") },
	};

	run_rules(RESV_REGISTER, rules, COUNT(rules));
}

static void acquiring(void **state)
{
	static const struct rule rules[] = {
		{ "what nobody has; what one has already, if it is the same", 'A', 0, KEY_A, 0,
		  false, HELD(">A* B C", "same/conflict") },
		{ "what another has; where all have it, all may say so",
		  'B',
		  0,
		  KEY_B,
		  0,
		  false,
		  { ">A B* C", "conflict", "conflict", "same/conflict" } },
		{ "with its key", 'A', 0, KEY_B, 0, false, ALL("conflict") },
		{ "as a registrant", 'D', 0, KEY_A, 0, false, ALL("conflict") },
		{ "IEKEY is not for this command", 'A', 0, KEY_A, 0, true, ALL("invalid") },
		{ "no such action", 'A', 3, KEY_A, 0, false, ALL("invalid") },
	};

	run_rules(RESV_ACQUIRE, rules, COUNT(rules));
}

static void preempting(void **state)
{
	struct rule rules[] = {
		{ "another registrant's key: it is none any more, the rest stays", 'A', 1, KEY_A,
		  KEY_B, false, HELD("+=A C|B1", "+=A* C|B1") },
		{ "and by another registrant", 'B', 1, KEY_B, KEY_C, false,
		  HELD("+=A B|C1", "+=A* B|C1") },
		{ "the holder's: the reservation is ours, of the type asked for; who stays is told "
		  "of another type; where all hold it, it stays theirs",
		  'B',
		  1,
		  KEY_B,
		  KEY_A,
		  false,
		  { "+=B C|A1", "+=B* C|A1/+>B* C|A1 C2", "+=B* C|A1/+>B* C|A1 C2", "+=B C|A1" } },
		{ "the holder's own: another type",
		  'A',
		  1,
		  KEY_A,
		  KEY_A,
		  false,
		  { "+=B C", "+=A* B C/+>A* B C|B2 C2", "+=A* B C/+>A* B C|B2 C2", "+=B C" } },
		{ "a registrant's own: it is none any more", 'B', 1, KEY_B, KEY_B, false,
		  HELD("+=A C", "+=A* C") },
		{ "0: all others, where all hold it; else it is nobody's",
		  'A',
		  1,
		  KEY_A,
		  0,
		  false,
		  { "conflict", "invalid", "invalid", "+=A*|C1 B1/+>A*|C1 B1" } },
		{ "0, by one that did not acquire it",
		  'B',
		  1,
		  KEY_B,
		  0,
		  false,
		  { "conflict", "invalid", "invalid", "+=B*|C1 A1/+>B*|C1 A1" } },
		{ "a key that nobody has", 'A', 1, KEY_A, 99, false, ALL("conflict") },
		{ "with its key", 'B', 1, KEY_A, KEY_A, false, ALL("conflict") },
		{ "as a registrant", 'D', 1, KEY_A, KEY_A, false, ALL("conflict") },
		{ "IEKEY is not for this command", 'A', 1, KEY_A, KEY_B, true, ALL("invalid") },
	};

	for (uint8_t action = 1; action <= 2; action++) {
		for (size_t i = 0; i < COUNT(rules); i++)
			rules[i].action = action;
		run_rules(RESV_ACQUIRE, rules, COUNT(rules));
	}
}

static void releasing(void **state)
{
	enum { RELEASE, CLEAR };
	static const struct rule rules[] = {
		{ "the holder: of its type; who gains by it is told",
		  'A',
		  RELEASE,
		  KEY_A,
		  0,
		  false,
		  { "same", "-A B C/invalid", "-A B C|B2 C2/invalid", "-A B C|B2 C2/invalid" } },
		{ "who does not hold it has nothing to release, which is no error",
		  'B',
		  RELEASE,
		  KEY_B,
		  0,
		  false,
		  { "same", "same", "same", "-A B C|A2 C2/invalid" } },
		{ "with its key", 'A', RELEASE, KEY_B, 0, false, ALL("conflict") },
		{ "as a registrant", 'D', RELEASE, KEY_A, 0, false, ALL("conflict") },
		{ "IEKEY is not for this command", 'A', RELEASE, KEY_A, 0, true, ALL("invalid") },

		{ "Clear: no registrant is left, and others are told",
		  'A',
		  CLEAR,
		  KEY_A,
		  0,
		  false,
		  { "+=|B3 C3", "+-|B3 C3", "+-|B3 C3", "+-|B3 C3" } },
		{ "any registrant may",
		  'B',
		  CLEAR,
		  KEY_B,
		  0,
		  false,
		  { "+=|A3 C3", "+-|A3 C3", "+-|A3 C3", "+-|A3 C3" } },
		{ "with its key", 'A', CLEAR, KEY_B, 0, false, ALL("conflict") },
		{ "as a registrant", 'D', CLEAR, KEY_A, 0, false, ALL("conflict") },
		{ "IEKEY is not for this command", 'A', CLEAR, KEY_A, 0, true, ALL("invalid") },
		{ "no such action", 'A', 2, KEY_A, 0, false, ALL("invalid") },
	};

	run_rules(RESV_RELEASE, rules, COUNT(rules));
}

/* --- what the table above has no hosts for ---------------------------------------------------- */

static void last_registrants_and_shared_keys(void **state)
{
	static const struct {
		const char *says;
		uint8_t type;
		const char *before; /* A's key is a, wherever "=" does not say another */
		enum resv_kind kind;
		uint8_t action, asked;
		uint64_t crkey, key;
		uint16_t sc;
		const char *after; /* as describe() has it */
	} cases[] = {
		{ "the last of all who hold it", WEAR, "A*", RESV_REGISTER, 1, WE, KEY_A, 0, OK,
		  "+-" },
		{ "also if it was not the first", EAAR, "A", RESV_REGISTER, 1, WE, KEY_A, 0, OK,
		  "+-" },
		{ "preempts itself", EAAR, "A*", RESV_ACQUIRE, 1, WE, KEY_A, KEY_A, OK, "+-" },
		{ "or all others", EAAR, "A*", RESV_ACQUIRE, 1, WE, KEY_A, 0, OK, "+>A*" },
		{ "the holder's key is also ours: others with it go", WE, "A B*=a C=a",
		  RESV_ACQUIRE, 1, EA, KEY_A, KEY_A, OK, "+>A*|C1 B1" },
		{ "all with one key", WERO, "A* B=c C", RESV_ACQUIRE, 1, WERO, KEY_A, KEY_C, OK,
		  "+=A*|C1 B1" },
		{ "of no type", 0, "A", RESV_ACQUIRE, 0, 0, KEY_A, 0, INVALID, "=A" },
		{ "of no known type", 0, "A", RESV_ACQUIRE, 0, 7, KEY_A, 0, INVALID, "=A" },
		{ "nor by Preempt", WE, "A* B", RESV_ACQUIRE, 1, 7, KEY_A, KEY_B, INVALID,
		  "=A* B" },
	};

	for_each_named(i, cases, says) {
		struct resv_request rq = { .kind = cases[i].kind,
					   .action = cases[i].action,
					   .rtype = cases[i].asked,
					   .crkey = cases[i].crkey,
					   .key = cases[i].key };
		static struct resv_state before, st;
		char got[600];
		bool changed;
		uint16_t sc;

		put_host(rq.host, 'A');
		make(&before, cases[i].type, cases[i].before);
		st = before;
		sc = resv_execute(&st, &rq, &changed);
		describe(got, &before, &st, cases[i].asked,
			 cases[i].after[cases[i].after[0] == '+'] == '=');
		if ((sc & 0x7ff) != cases[i].sc || strcmp(got, cases[i].after))
			fail_msg("%s: status %#x, \"%s\"", cases[i].says, sc, got);
	}
}

/* Host @number, of the name @name. */
static uint16_t enter(struct resv_state *st, unsigned number, uint8_t name, uint8_t action)
{
	struct resv_request rq = {
		.kind = RESV_REGISTER, .action = action, .key = 1, .iekey = true
	};
	bool changed;

	memcpy(rq.host, &number, sizeof(number));
	rq.name[RESV_NAME_BYTES - 1] = name;
	return resv_execute(st, &rq, &changed);
}

static void registrants_have_a_limit(void **state)
{
	static struct resv_state st;
	unsigned n = 0;

	memset(&st, 0, sizeof(st));
	for (; n < RESV_REGS_MAX; n++)
		assert_int_equal(enter(&st, n, (uint8_t)(1 + n / RESV_REGS_OF_NAME), 0), 0);
	assert_int_equal(enter(&st, n, 99, 0), NVME_SC_INTERNAL);
	assert_int_equal(st.nregs, RESV_REGS_MAX);
}

/* However it registers. It loses nothing of what it has, and others lose nothing at all. */
static void registrants_of_one_name_have_a_limit(void **state)
{
	enum { REGISTER, UNREGISTER, REPLACE };
	static struct resv_state st;
	unsigned n = 0;

	memset(&st, 0, sizeof(st));
	for (; n < RESV_REGS_OF_NAME; n++)
		assert_int_equal(enter(&st, n, 1, n % 2 ? REGISTER : REPLACE), 0);
	assert_int_equal(enter(&st, n, 1, REGISTER), NVME_SC_INTERNAL);
	assert_int_equal(enter(&st, n, 1, REPLACE), NVME_SC_INTERNAL);
	assert_int_equal(st.nregs, RESV_REGS_OF_NAME);
	assert_int_equal(st.generation, RESV_REGS_OF_NAME);
	assert_int_equal(enter(&st, 0, 1, REPLACE), 0);
	assert_int_equal(enter(&st, n, 2, REGISTER), 0);
	assert_int_equal(enter(&st, 0, 1, UNREGISTER), 0);
	assert_int_equal(enter(&st, n + 1, 1, REGISTER), 0);
}

/* From a time when names were not kept. */
static void registrants_without_a_name_are_nobodys(void **state)
{
	static struct resv_state st;
	unsigned n = 0;

	memset(&st, 0, sizeof(st));
	for (; n < 2 * RESV_REGS_OF_NAME; n++) {
		assert_int_equal(enter(&st, n, 1 + n % 2, 0), 0);
		memset(st.regs[n].name, 0, RESV_NAME_BYTES);
	}
	for (; n < 3 * RESV_REGS_OF_NAME; n++)
		assert_int_equal(enter(&st, n, 1, 0), 0);
	assert_int_equal(enter(&st, n, 1, 0), NVME_SC_INTERNAL);
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
		{ RESV_REGISTER, 1, false, true, true, true, INVALID },
		{ RESV_REGISTER, 3, false, false, false, false, INVALID },
		{ RESV_REGISTER, 2, false, false, false, false, OK },
		{ RESV_PERSIST, 0, true, true, false, true, OK },
		{ RESV_PERSIST, 0, false, true, true, false, OK },
		{ RESV_PERSIST, 0, true, false, false, false, INVALID },
		{ RESV_PERSIST, 0, false, false, false, false, OK },
	};

	for_each_row(i, cases) {
		struct resv_request rq = { .kind = cases[i].kind,
					   .key = KEY_A,
					   .cptpl = cases[i].cptpl,
					   .ptpl = cases[i].ptpl,
					   .can_persist = cases[i].can };
		static struct resv_state st;
		bool changed;

		make(&st, 0, "");
		st.ptpl = cases[i].before;
		assert_int_equal(resv_execute(&st, &rq, &changed) & 0x7ff, cases[i].status);
		assert_int_equal(st.ptpl, cases[i].after);
	}
}

/* --- I/O: every type, holder A, registrant B, anybody C --------------------------------------- */

static void access_by_type(void **state)
{
	static const struct {
		uint8_t rtype;
		const char *read, *write; /* who may */
	} types[] = {
		{ WE, "ABC", "A" },   { EA, "A", "A" },      { WERO, "ABC", "AB" },
		{ EARO, "AB", "AB" }, { WEAR, "ABC", "AB" }, { EAAR, "AB", "AB" },
	};
	static const struct {
		uint8_t opcode;
		bool write;
	} commands[] = {
		{ nvme_cmd_read, false },       { nvme_cmd_compare, false },
		{ nvme_cmd_verify, false },     { nvme_cmd_write, true },
		{ nvme_cmd_write_uncor, true }, { nvme_cmd_write_zeroes, true },
		{ nvme_cmd_dsm, true },         { nvme_cmd_copy, true },
		{ nvme_cmd_flush, true },       { 0x80, true }, /* nobody knows what it does */
	};

	for (size_t i = 0; i < COUNT(types) * COUNT(commands); i++) {
		size_t t = i / COUNT(commands), c = i % COUNT(commands);
		const char *may = commands[c].write ? types[t].write : types[t].read;
		static struct resv_state st;
		struct resv_view *view;

		make(&st, types[t].rtype, "B A*");
		assert_int_equal(tgt_resv_view_new(&st, &view), 0);
		for (char who = 'A'; who <= 'C'; who++) {
			uint8_t host[RESV_HOST_BYTES];

			put_host(host, who);
			if (tgt_resv_view_allows(view, host, commands[c].opcode) !=
			    !!strchr(may, who))
				fail_msg("type %u, command %#x, host %c", types[t].rtype,
					 commands[c].opcode, who);
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

/* --- telling ---------------------------------------------------------------------------------- */

/* As show_notices() has them. */
static unsigned read_notices(struct resv_notice *notices, const char *text)
{
	unsigned n = 0;

	for (; *text; text += text[2] ? 3 : 2, n++) {
		put_host(notices[n].host, text[0]);
		notices[n].type = (uint8_t)(text[1] - '0');
	}
	return n;
}

/* Each host hears of what is for it, in the order in which it happened. */
static void hosts_are_told_in_order(void **state)
{
	static const struct {
		const char *notices;
		char host;
		const char *told; /* types */
	} cases[] = {
		{ "A1", 'A', "1" },
		{ "A1", 'B', "" },
		{ "B1 C2", 'A', "" },
		{ "B1 C2", 'D', "" },
		{ "B2 A1 B1 C3 B3 A2", 'A', "12" },
		{ "B2 A1 B1 C3 B3 A2", 'B', "213" },
		{ "B2 A1 B1 C3 B3 A2", 'C', "3" },
		{ "D3 D2 D1 D1 D2 D3", 'D', "321123" },
	};
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL, .cpu = -1 };
	struct weft_subsys *s = calloc(1, sizeof(*s));
	struct tgt_ns ns = { .nsid = 7 };
	struct weft_target t;

	assert_int_equal(weft_reactor_create(&t.control, &options, NULL), 0);
	s->target = &t;
	for_each_row(i, cases) {
		struct tgt_ctrl *ctrl = calloc(1, sizeof(*ctrl));
		struct resv_notice notices[8] = { 0 };
		struct resv_dispatch telling = { 0 };
		unsigned n = read_notices(notices, cases[i].notices);

		ctrl->subsys = s;
		weft_list_init(&ctrl->aers);
		put_host(ctrl->hostid, cases[i].host);
		assert_int_equal(tgt_resv_dispatch_begin(&telling, &ns, notices, n), 0);
		assert_int_equal(tgt_resv_dispatch_to_ctrl(&telling, ctrl), strlen(cases[i].told));
		assert_int_equal(ctrl->resv_log.n, strlen(cases[i].told));
		for (unsigned k = 0; k < ctrl->resv_log.n; k++) {
			assert_int_equal(ctrl->resv_log.pages[k].rnlpt, cases[i].told[k] - '0');
			assert_int_equal(le32_to_cpu(ctrl->resv_log.pages[k].nsid), 7);
		}
		tgt_resv_dispatch_end(&telling);
		free(ctrl);
	}
	weft_reactor_destroy(t.control);
	free(s);
}

/* --- as the store has it ---------------------------------------------------------------------- */

static void records_come_back(void **state)
{
	static struct resv_state st, back;
	char bytes[WEFT_STORE_VALUE_MAX];
	size_t size;

	make(&st, EARO, "A B* C");
	memcpy(st.regs[1].name, "\1name\2", RESV_NAME_BYTES);
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
	for_each_row(i, damage) {
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
		cmocka_unit_test(registrants_of_one_name_have_a_limit),
		cmocka_unit_test(registrants_without_a_name_are_nobodys),
		cmocka_unit_test(persistence),
		cmocka_unit_test(acquiring),
		cmocka_unit_test(preempting),
		cmocka_unit_test(releasing),
		cmocka_unit_test(last_registrants_and_shared_keys),
		cmocka_unit_test(access_by_type),
		cmocka_unit_test(without_a_reservation_there_is_no_view),
		cmocka_unit_test(hosts_are_told_in_order),
		cmocka_unit_test(records_come_back),
		cmocka_unit_test(records_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
