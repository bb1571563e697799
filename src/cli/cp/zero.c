/* zero.c - find zeroes in a buffer, in runs that are worth a command of their own. */
#include <isa-l/mem_routines.h>

#include "cli/cp/internal.h"

static bool is_zero(const char *buf, size_t length)
{
	return !isal_zero_detect((void *)buf, length);
}

size_t weft_zero_run(const char *buf, size_t length, size_t grain, bool *zero)
{
	size_t step = length < grain ? length : grain, run = step;

	*zero = is_zero(buf, step);
	while (run < length) {
		step = length - run < grain ? length - run : grain;
		if (is_zero(buf + run, step) != *zero)
			break;
		run += step;
	}
	return run;
}
