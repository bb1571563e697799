/* fault_kinds.h - each thing that can go wrong: how it begins, and how it is mended. */
#ifndef SIM_TROUBLE_H
#define SIM_TROUBLE_H

#include "faults.h"

/* One that lasts. */
struct active_fault {
	void (*end)(const struct faults *f, const struct active_fault *t); /* NULL: there is none */
	uint64_t ends_ns;
	struct node *node;
	const struct process *process; /* that it was about */
	const struct sim_node *host;
	uint16_t port;
	unsigned disk;
};

extern const struct fault_type {
	const char *name;
	/* Sets t->end if it is to be mended. false: it cannot be, now. */
	bool (*begin)(const struct faults *f, struct active_fault *t);
} fault_types[FAULT_KINDS];

void faults_start_all_nodes(const struct faults *f); /* processes that do not run */

#endif
