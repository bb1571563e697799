/* errors.c - errors of a run: failed I/Os by kind, and wrong blocks. */
#include "bench/verify.h"

#include <string.h>

static struct bench_failure *find_kind(struct bench_errors *t, enum weft_op_code op, int rc,
				       uint16_t status)
{
	for (unsigned i = 0; i < t->nkinds; i++) {
		struct bench_failure *kind = &t->kinds[i];

		if (kind->op == op && kind->rc == rc && kind->status == status)
			return kind;
	}
	if (t->nkinds == BENCH_KINDS_MAX)
		return &t->kinds[BENCH_KINDS_MAX - 1];
	t->kinds[t->nkinds] = (struct bench_failure){ .op = op, .rc = rc, .status = status };
	return &t->kinds[t->nkinds++];
}

static void count_failed(struct bench_errors *t, uint64_t more)
{
	__atomic_store_n(&t->failed, t->failed + more, __ATOMIC_RELAXED);
}

void bench_errors_add_failed(struct bench_errors *t, const struct weft_cmd *cmd)
{
	struct bench_failure *kind = find_kind(t, cmd->op, cmd->rc, cmd->status);

	if (!kind->count++)
		weft_cmd_text(cmd, &kind->first);
	count_failed(t, 1);
}

static void keep_problem(struct bench_errors *t, const struct bench_problem *problem)
{
	if (t->nproblems < BENCH_PROBLEMS_MAX)
		t->problems[t->nproblems++] = *problem;
}

void bench_errors_add_bad_block(struct bench_errors *t, const struct bench_verify_result *verdict)
{
	struct bench_problem problem = { .what = verdict->what, .offset = verdict->offset };

	t->found[verdict->what]++;
	memcpy(problem.text, verdict->text, sizeof(problem.text));
	keep_problem(t, &problem);
}

void bench_errors_merge(struct bench_errors *into, const struct bench_errors *from)
{
	for (unsigned i = 0; i < from->nkinds; i++) {
		const struct bench_failure *kind = &from->kinds[i];
		struct bench_failure *same = find_kind(into, kind->op, kind->rc, kind->status);

		if (!same->count)
			same->first = kind->first;
		same->count += kind->count;
	}
	for (unsigned i = 0; i < from->nproblems; i++)
		keep_problem(into, &from->problems[i]);
	for (unsigned i = 0; i < BENCH_FINDINGS; i++)
		into->found[i] += from->found[i];
	into->unchecked += from->unchecked;
	count_failed(into, from->failed);
}

uint64_t bench_errors_bad_blocks(const struct bench_errors *t)
{
	uint64_t bad = 0;

	for (unsigned i = BENCH_FINE + 1; i < BENCH_FINDINGS; i++)
		bad += t->found[i];
	return bad;
}
