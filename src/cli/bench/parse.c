/* parse.c - numbers as people write them for a bench: 10k I/Os, 500ms, 2m. */
#include "cli/bench/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	double factor;
};

static const struct unit counts[] = { { "", 1 }, { "k", 1e3 }, { "m", 1e6 }, {} };
static const struct unit times[] = {
	{ "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "m", 6e10 }, { "h", 3.6e12 }, {},
};

/* Only digits and one point: strtod() alone would take "inf", "0x1p3" and "-1". */
static int parse_with_unit(const char *text, const struct unit *units, uint64_t *result)
{
	size_t digits = strspn(text, "0123456789.");
	double value;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	value = strtod(text, &end);
	if (end != text + digits)
		return -EINVAL;
	while (units->name && strcasecmp(units->name, end))
		units++;
	value *= units->factor;
	if (!units->name || value > 1e18)
		return -EINVAL;
	*result = (uint64_t)llround(value);
	return 0;
}

int bench_parse_count(const char *text, uint64_t *count)
{
	return parse_with_unit(text, counts, count);
}

int bench_parse_time(const char *text, uint64_t *ns)
{
	return parse_with_unit(text, times, ns);
}
