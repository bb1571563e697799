/* range.h - a range of a namespace that somebody asks for, against the namespace that is there. */
#ifndef WEFT_CLI_RANGE_H
#define WEFT_CLI_RANGE_H

#include <weft/host.h>

/* Whether --offset and --length (WEFT_CP_ALL: not given) are whole blocks, and inside of it. */
int weft_range_check(const char *uri, const struct weft_ns_info *info, uint64_t offset,
		     uint64_t length, struct weft_err *err);

#endif
