/* verify.c - classify what a read returned: fine, lost, torn, corrupt, misplaced, foreign or
 * empty. */
#include "bench/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/stamp.h"

enum { CANDIDATES = 16 }; /* generations that a damaged block is compared with */

static const char *const names[BENCH_FINDINGS] = {
	[BENCH_FINE] = "fine",           [BENCH_LOST] = "lost write",
	[BENCH_TORN] = "torn write",     [BENCH_CORRUPT] = "corrupt block",
	[BENCH_MISPLACED] = "misplaced", [BENCH_FOREIGN] = "foreign data",
	[BENCH_EMPTY] = "zeroes",
};

const char *bench_finding_text(enum bench_finding what)
{
	return names[what];
}

__attribute__((format(printf, 4, 5))) static void
find(struct bench_verify_result *v, enum bench_finding what, uint64_t offset, const char *fmt, ...)
{
	va_list ap;

	v->what = what;
	v->offset = offset;
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

/* --- a block whose sum is wrong --------------------------------------------------------------- */

/* What the words of a body are: of the generation with most of them, of the next, or nobody's. */
struct parts {
	uint32_t words, most, next, zero;
	uint32_t most_of, next_of;
};

static uint32_t zero_words(const void *block, uint32_t size)
{
	uint32_t words = bench_stamp_words(size), zero = 0;
	const unsigned char *body = (const unsigned char *)block + size - 8 * words;

	for (uint32_t i = 0; i < words; i++)
		zero += !memcmp(body + 8 * i, "\0\0\0\0\0\0\0", 8);
	return zero;
}

static void count_generation(struct parts *p, uint32_t generation, uint32_t words)
{
	if (words > p->most) {
		p->next = p->most;
		p->next_of = p->most_of;
		p->most = words;
		p->most_of = generation;
	} else if (words > p->next) {
		p->next = words;
		p->next_of = generation;
	}
}

/* @hint is what the header says; the others are the last that were written. */
static struct parts split_by_generation(const struct bench_verify_case *c, const void *block,
					uint64_t offset, uint32_t hint)
{
	struct parts p = { .words = bench_stamp_words(c->block_size),
			   .zero = zero_words(block, c->block_size) };
	uint32_t last = c->high == UINT32_MAX ? hint : c->high;

	count_generation(&p, hint, bench_stamp_alike(block, c->block_size, c->run, offset, hint));
	for (uint32_t g = last, n = 0; g && n < CANDIDATES; g--, n++) {
		if (g != hint)
			count_generation(&p, g,
					 bench_stamp_alike(block, c->block_size, c->run, offset,
							   g));
	}
	return p;
}

/* false: nothing of this run's is in it. */
static bool judge_damaged(const struct bench_verify_case *c, const void *block, uint64_t offset,
			  uint32_t hint, struct bench_verify_result *v)
{
	struct parts p = split_by_generation(c, block, offset, hint);

	if (!p.most)
		return false;
	if (p.next)
		find(v, BENCH_TORN, offset,
		     "%u of %u bytes are of generation %u, %u of generation %u", 8 * p.most,
		     8 * p.words, p.most_of, 8 * p.next, p.next_of);
	else if (p.zero)
		find(v, BENCH_TORN, offset, "%u of %u bytes are of generation %u, %u are zeroes",
		     8 * p.most, 8 * p.words, p.most_of, 8 * p.zero);
	else
		find(v, BENCH_CORRUPT, offset, "generation %u, but byte %u is not as written",
		     p.most_of,
		     bench_stamp_differs(block, c->block_size, c->run, offset, p.most_of));
	return true;
}

/* --- one block -------------------------------------------------------------------------------- */

static void judge_good(const struct bench_verify_case *c, const struct bench_stamp_view *view,
		       uint64_t offset, struct bench_verify_result *v)
{
	if (view->offset != offset)
		find(v, BENCH_MISPLACED, offset,
		     "holds what was written at %" PRIu64 ", generation %u", view->offset,
		     view->generation);
	else if (view->generation > c->high)
		find(v, BENCH_FOREIGN, offset,
		     "holds generation %u, but only %u were written: an earlier run had this seed",
		     view->generation, c->high);
	else if (view->generation < c->low)
		find(v, BENCH_LOST, offset, "holds generation %u; %u was acknowledged",
		     view->generation, c->low);
}

/* No stamp of this run, or none that can be read. */
static void judge_other(const struct bench_verify_case *c, const void *block, uint64_t offset,
			const struct bench_stamp_view *view, struct bench_verify_result *v)
{
	if (!c->low) {
		v->unstamped++;
		return;
	}
	if (view->what == BENCH_STAMP_ZEROES)
		find(v, BENCH_EMPTY, offset, "generation %u was acknowledged", c->low);
	else if (view->what == BENCH_STAMP_OTHER)
		find(v, BENCH_FOREIGN, offset,
		     "a block of another run, written for offset %" PRIu64, view->offset);
	else if (!judge_damaged(c, block, offset, c->high, v))
		find(v, BENCH_FOREIGN, offset,
		     "nothing that this run wrote; generation %u was "
		     "acknowledged",
		     c->low);
}

/* Returns the generation that is there, 0 where there is none. */
static uint32_t judge_block(const struct bench_verify_case *c, const void *block, uint64_t offset,
			    struct bench_verify_result *v)
{
	struct bench_stamp_view view;

	bench_stamp_look(block, c->block_size, c->run, &view);
	switch (view.what) {
	case BENCH_STAMP_GOOD:
		judge_good(c, &view, offset, v);
		return view.generation;
	case BENCH_STAMP_DAMAGED:
		if (!judge_damaged(c, block, offset, view.generation, v))
			find(v, BENCH_CORRUPT, offset,
			     "this run's header for %" PRIu64 ", generation %u; the rest is not",
			     view.offset, view.generation);
		return 0;
	default:
		judge_other(c, block, offset, &view, v);
		return 0;
	}
}

/* An acknowledged write of which one block arrived and another did not is torn, not lost. */
static void is_torn(const struct bench_verify_case *c, uint32_t whole, uint32_t blocks,
		    struct bench_verify_result *v)
{
	char text[sizeof(v->text)];

	if ((v->what != BENCH_LOST && v->what != BENCH_EMPTY) || !whole)
		return;
	memcpy(text, v->text, sizeof(text));
	snprintf(v->text, sizeof(v->text), "%u of %u blocks of one write arrived; this one %.120s",
		 whole, blocks, text);
	v->what = BENCH_TORN;
}

void bench_verify(const struct bench_verify_case *c, struct bench_verify_result *v)
{
	uint32_t blocks = (uint32_t)(c->length / c->block_size), whole = 0;

	v->what = BENCH_FINE;
	v->unstamped = 0;
	v->text[0] = '\0';
	for (uint32_t i = 0; i < blocks; i++) {
		uint64_t at = (uint64_t)i * c->block_size;
		struct bench_verify_result one = { .what = BENCH_FINE };
		uint32_t found = judge_block(c, (const char *)c->data + at, c->offset + at, &one);

		v->unstamped += one.unstamped;
		whole += one.what == BENCH_FINE && found >= c->low && found;
		if (one.what > v->what) {
			one.unstamped = v->unstamped;
			*v = one;
		}
	}
	is_torn(c, whole, blocks, v);
}
