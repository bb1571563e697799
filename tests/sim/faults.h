/* faults.h - what goes wrong, as the seed has it. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "app.h"
#include "node.h"

/* Bits, for what may happen in a story. */
enum fault_kind {
	FAULT_RESET, /* a connection: both ends are told */
	FAULT_CUT,   /* a way: nobody is */
	FAULT_STILL, /* a target's process stands still */
	FAULT_BUSY,  /* all processes get the CPU late, each for itself */
	FAULT_KILL,  /* it is killed, and started anew */
	FAULT_CRASH, /* the same with its machine: silently */
	FAULT_STOP,  /* it is stopped, in order */
	FAULT_POWER, /* all targets and disks at once */
	FAULT_ERROR, /* a disk refuses operations */
	FAULT_ANA,   /* a group is reached in another way through a port */
	FAULT_MOVE,  /* a group is served by another member */
	FAULT_DRAIN, /* all groups of a member are */
	FAULT_KINDS,
};

struct faults {
	struct node *nodes;
	unsigned nnodes;
	struct app *apps;
	unsigned napps;
	unsigned kinds; /* bits */
	unsigned pace;  /* how much longer all of it takes */
	unsigned count[FAULT_KINDS];
};

/* @n of them, one after the other, each for a while; everything is whole again then. What they did to
 * those who were using it goes on. */
void faults_run(struct faults *f, unsigned n);
/* "12 failures: 3 kills, …" */
void faults_format(const unsigned count[FAULT_KINDS], char *text, size_t size);

#endif
