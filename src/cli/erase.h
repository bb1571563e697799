/* erase.h - change a range of a namespace without sending data: weft zero, weft trim. */
#ifndef WEFT_CLI_ERASE_H
#define WEFT_CLI_ERASE_H

#include "cli/host_options.h"

#define WEFT_ERASE_OPTIONS                                                    \
	WEFT_CLI_SIZE("offset", struct weft_erase, offset,                    \
		      WEFT_CLI_GIVEN(struct weft_erase, has_offset)),         \
		WEFT_CLI_SIZE("length", struct weft_erase, length,            \
			      WEFT_CLI_GIVEN(struct weft_erase, has_length)), \
		WEFT_CLI_FLAG("all", 0, struct weft_erase, all),              \
		WEFT_CLI_FLAG("json", 0, struct weft_erase, json),            \
		WEFT_CLI_FLAG("quiet", 'q', struct weft_erase, quiet)

#define WEFT_ERASE_USAGE                                                          \
	"      --offset N      from this byte on, a multiple of the block size\n" \
	"      --length N      so many bytes, a multiple of the block size\n"     \
	"      --all           the whole namespace, instead of these two\n"       \
	"      --json          what was done, as JSON\n"                          \
	"  -q, --quiet         no progress, no summary\n"

struct weft_erase {
	const char *command, *uri;
	const char *doing, *did; /* "zeroing", "zeroed" */
	enum weft_op_code op;
	bool deac; /* the space may be deallocated */
	struct weft_options connect;
	uint32_t nsid;
	uint64_t offset, length;
	bool has_offset, has_length, all;
	bool json, quiet;
};

/* With the options taken: looks at them and at the words that are left, and does it. Returns the
 * exit status. */
int weft_erase(struct weft_erase *what, int argc, char **argv);

#endif
