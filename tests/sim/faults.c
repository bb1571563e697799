/* faults.c - several things may be broken at a time; each is mended after a while.
 *
 *   begin() ─▶ some time, in which others begin and end ─▶ end()
 *
 * One that cannot be now, such as the death of what is dead, is not counted. */
#include "faults.h"

#include <stdio.h>

#include "fault_kinds.h"

enum { AT_ONCE = 3 };

static struct active_fault troubles[AT_ONCE];

/* Mostly short; sometimes longer than anybody's patience. */
static uint64_t a_while(void)
{
	return sim_random(sim_chance(80) ? 300 * MS : sim_chance(80) ? 3000 * MS : 20000 * MS);
}

static enum fault_kind any_kind(const struct faults *f)
{
	unsigned kind;

	do {
		kind = (unsigned)sim_random(FAULT_KINDS);
	} while (!(f->kinds & 1u << kind));
	return kind;
}

static void end_trouble(const struct faults *f, struct active_fault *t)
{
	void (*end)(const struct faults *f, const struct active_fault *t) = t->end;

	t->end = NULL;
	end(f, t);
}

static struct active_fault *find_room(void)
{
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (!troubles[i].end)
			return &troubles[i];
	return NULL;
}

static bool begin_one(struct faults *f)
{
	struct active_fault *t = find_room();
	enum fault_kind kind = any_kind(f);

	if (!t || !fault_types[kind].begin(f, t))
		return false;
	t->ends_ns = sim_now() + a_while() * f->pace;
	f->count[kind]++;
	return true;
}

static void end_those_due(const struct faults *f)
{
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (troubles[i].end && troubles[i].ends_ns <= sim_now())
			end_trouble(f, &troubles[i]);
}

void faults_run(struct faults *f, unsigned n)
{
	while (n) {
		n -= begin_one(f);
		sim_run(sim_random(200 * MS) * f->pace);
		end_those_due(f);
		for (unsigned i = 0; i < f->napps; i++)
			app_look(&f->apps[i]);
	}
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (troubles[i].end)
			end_trouble(f, &troubles[i]);
	faults_start_all_nodes(f);
}

void faults_format(const unsigned count[FAULT_KINDS], char *text, size_t size)
{
	unsigned all = 0;
	int n;

	for (unsigned i = 0; i < FAULT_KINDS; i++)
		all += count[i];
	n = snprintf(text, size, "%u failures", all);
	for (unsigned i = 0, told = 0; i < FAULT_KINDS; i++)
		if (count[i])
			n += snprintf(text + n, size - (size_t)n, "%s %u %s", told++ ? "," : ":",
				      count[i], fault_types[i].name);
}
