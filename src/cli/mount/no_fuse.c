/* no_fuse.c - weft mount without libfuse: an error. */
#include <errno.h>

#include "base/err.h"
#include "cli/mount/mount.h"

int weft_mount_run(const struct weft_mount_options *options, struct weft_err *err)
{
	return weft_fail(err, -EOPNOTSUPP,
			 "this weft was built without libfuse; install libfuse3-dev and build it "
			 "again");
}
