/* cp.h - copies bytes between files, pipes and namespaces: weft cp, weft read and weft write. */
#ifndef WEFT_CLI_CP_CP_H
#define WEFT_CLI_CP_CP_H

#include <stdbool.h>
#include <stdint.h>
#include <weft/host.h>

struct weft_cp {
	const char *command;             /* "weft cp", in front of what is said */
	const char *doing, *did, *been;  /* "writing", "wrote", "written" */
	const char *from, *to;           /* a path, "-" or a URI */
	uint32_t nsid;                   /* of the URI, where there is one; 0: not given */
	uint64_t from_offset, to_offset; /* where it begins in each */
	const char *to_option;           /* what says that of @to: "--offset" */
	uint64_t length;                 /* WEFT_CLI_ALL: what there is */
	uint32_t jobs, depth, piece;     /* threads, pieces of each in flight, bytes of one */
	bool sparse;                     /* zeroes become holes where that is possible */
	bool verify;                     /* read back and compare */
	bool force;                      /* replace a file that is there */
	bool pad;                        /* fill up the last block with zeroes */
	bool fua;                        /* every write is durable when it completes */
	bool hex;                        /* to standard output as a hexdump */
	bool silent;                     /* no summary */
	bool quiet;                      /* no summary, no progress */
	bool verbose, json;
	struct weft_options connect;
};

/* Sets the defaults. */
void weft_cp_init(struct weft_cp *what, const char *command);
/* Copies, shows progress, prints the result. Returns the exit status. */
int weft_cp(const struct weft_cp *what);

#endif
