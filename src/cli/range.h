/* range.h - check a range that a user asks for against the namespace. */
#ifndef WEFT_CLI_RANGE_H
#define WEFT_CLI_RANGE_H

#include <weft/host.h>

/* "--offset 1000 is not a multiple of the block size 4096: use 0 or 4096"; @option has its
 * dashes. */
int weft_cli_check_multiple(const char *option, uint64_t value, uint32_t block,
			    struct weft_err *err);
/* Whether --offset and --length (WEFT_CLI_ALL: not given) are whole blocks, and inside of it. */
int weft_range_check(const char *uri, const struct weft_ns_info *info, uint64_t offset,
		     uint64_t length, struct weft_err *err);

#endif
