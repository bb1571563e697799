/* program.h - an input as a program: a beginning, then a harness's operations, one after the other.
 *
 *   input: what begin() reads │ operation, its arguments │ operation, its arguments │ …
 *
 * An operation is a byte; its bit 7 says: then let everybody take their turns. What is missing at
 * the end of the input reads as zeroes. */
#ifndef WEFT_FUZZ_PROGRAM_H
#define WEFT_FUZZ_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define PROGRAM_OPS(table) .ops = (table), .nops = sizeof(table) / sizeof((table)[0])

struct program {
	void (*create)(void); /* once, before the first run */
	bool (*begin)(void);  /* a run; false: there is nothing that operations could work on */
	void (*const *ops)(void);
	size_t nops;
	unsigned ops_max;     /* in a run */
	bool (*settle)(void); /* everybody's turn; true: something moved */
	void (*finish)(void); /* those that kept the rules got what they are owed */
	void (*end)(void);    /* nothing may be left */
};

/* The harness's. */
extern const struct program program;

#endif
