/* range.c - a range that a user asks for is checked against the namespace before anything is sent, and
 * what is wrong is told in the words of the options. A range that is refused has changed nothing. */
#include "cli/range.h"

#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "cli/cp/cp.h"
#include "cli/units.h"

int weft_range_check(const char *uri, const struct weft_ns_info *info, uint64_t offset,
		     uint64_t length, struct weft_err *err)
{
	int rc = weft_cp_check_multiple("--offset", offset, info->block_size, err);

	if (rc == 0 && length != WEFT_CP_ALL)
		rc = weft_cp_check_multiple("--length", length, info->block_size, err);
	if (rc < 0)
		return rc;
	if (offset > info->size)
		return weft_fail(err, -ERANGE,
				 "--offset %" PRIu64 " is beyond the end of %s, which has %s",
				 offset, uri, weft_exact_text(info->size).s);
	if (length != WEFT_CP_ALL && length > info->size - offset)
		return weft_fail(err, -ERANGE,
				 "--offset %" PRIu64 " with --length %" PRIu64
				 " goes beyond the end of %s, which has %s",
				 offset, length, uri, weft_exact_text(info->size).s);
	return 0;
}
