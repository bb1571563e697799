/* erase.h - change a range of a namespace without sending data: weft zero, weft trim. */
#ifndef WEFT_CLI_ERASE_H
#define WEFT_CLI_ERASE_H

#include "cli/host_options.h"

enum { ERASE_OFFSET = 256, ERASE_LENGTH, ERASE_ALL, ERASE_JSON, ERASE_DEAC };

#define WEFT_ERASE_OPTIONS                                           \
	{ "offset", required_argument, NULL, ERASE_OFFSET },         \
		{ "length", required_argument, NULL, ERASE_LENGTH }, \
		{ "all", no_argument, NULL, ERASE_ALL },             \
		{ "json", no_argument, NULL, ERASE_JSON },           \
	{                                                            \
		"quiet", no_argument, NULL, 'q'                      \
	}

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
	unsigned flags; /* of weft_cmd */
	struct weft_options connect;
	uint32_t nsid;
	uint64_t offset, length;
	bool has_offset, has_length, all;
	bool json, quiet;
};

/* For weft_cli_options(); @arg is a struct weft_erase. */
int weft_erase_option(void *arg, int option);
/* With the options taken: looks at them and at the words that are left, and does it. Returns the
 * exit status. */
int weft_erase(struct weft_erase *what, int argc, char **argv);

#endif
