#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char units[] = "KMGTP";

int weft_size_parse(const char *text, uint64_t *bytes)
{
	unsigned long long value;
	const char *unit;
	char *end;
	int shift = 0;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return -errno;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return -EINVAL;
		shift = 10 * (int)(unit - units + 1);
	}
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = (uint64_t)value << shift;
	return 0;
}

void weft_size_format(uint64_t bytes, char *text, size_t size)
{
	int unit = -1;

	while (bytes && bytes % 1024 == 0 && unit < (int)sizeof(units) - 2) {
		bytes /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(text, size, "%" PRIu64, bytes);
	else
		snprintf(text, size, "%" PRIu64 "%c", bytes, units[unit]);
}
