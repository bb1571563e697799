/* range.c - check a range that a user asks for against the namespace, before anything is sent.
 * Errors name the options. A refused range has changed nothing. */
#include "cli/host_options.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/units.h"
#include "cli/cli.h"

int weft_cli_check_multiple(const char *option, uint64_t value, uint32_t block,
			    struct weft_err *err)
{
	uint64_t below = value - value % block;

	if (value == below)
		return 0;
	/* A length of 0 is no advice: one block is. */
	if (!below && !strstr(option, "offset"))
		return weft_fail(err, -EINVAL,
				 "%s %" PRIu64 " is not a multiple of the block size %" PRIu32
				 ": use %" PRIu32,
				 option, value, block, block);
	return weft_fail(err, -EINVAL,
			 "%s %" PRIu64 " is not a multiple of the block size %" PRIu32
			 ": use %" PRIu64 " or %" PRIu64,
			 option, value, block, below, below + block);
}

int weft_range_check(const char *uri, const struct weft_ns_info *info, uint64_t offset,
		     uint64_t length, struct weft_err *err)
{
	int rc = weft_cli_check_multiple("--offset", offset, info->block_size, err);

	if (rc == 0 && length != WEFT_CLI_ALL)
		rc = weft_cli_check_multiple("--length", length, info->block_size, err);
	if (rc < 0)
		return rc;
	if (offset > info->size)
		return weft_fail(err, -ERANGE,
				 "--offset %" PRIu64 " is beyond the end of %s, which has %s",
				 offset, uri, weft_exact_text(info->size).s);
	if (length != WEFT_CLI_ALL && length > info->size - offset)
		return weft_fail(err, -ERANGE,
				 "--offset %" PRIu64 " with --length %" PRIu64
				 " goes beyond the end of %s, which has %s",
				 offset, length, uri, weft_exact_text(info->size).s);
	return 0;
}
