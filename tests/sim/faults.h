/* faults.h - what goes wrong, as the seed has it. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "app.h"
#include "node.h"

struct faults {
	struct node *nodes;
	unsigned nnodes;
	struct app *apps;
	unsigned napps;
	bool silent; /* also losses that nobody is told of */
};

/* One more, and for a while what comes of it. */
void faults_next(const struct faults *f);

#endif
