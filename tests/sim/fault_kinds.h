/* fault_kinds.h - each thing that can go wrong: how it begins, and how it is mended. */
#ifndef SIM_TROUBLE_H
#define SIM_TROUBLE_H

#include "faults.h"

/* One that lasts. */
struct trouble {
	void (*end)(const struct faults *f, const struct trouble *t); /* NULL: there is none */
	uint64_t ends_ns;
	struct node *node;
	const struct process *process; /* that it was about */
	const struct sim_node *host;
	uint16_t port;
	unsigned disk;
};

extern const struct trouble_kind {
	const char *name;
	/* Sets t->end if it is to be mended. false: it cannot be, now. */
	bool (*begin)(const struct faults *f, struct trouble *t);
} trouble_kinds[FAULT_KINDS];

void trouble_start_all(const struct faults *f); /* processes that do not run */

#endif
