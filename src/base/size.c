/* size.c - sizes as people write them: 512, 4K, 10GiB, 1.5T. */
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char units[] = "KMGTP";

#define FRACTION_MAX 18 /* digits that fit a number */

/* Bits of "K", "MiB" …; 0: no unit; -EINVAL: another word. */
static int parse_unit(const char *text)
{
	const char *unit;

	if (!*text)
		return 0;
	unit = strchr(units, toupper((unsigned char)*text));
	if (!unit || (text[1] && strcasecmp(text + 1, "iB")))
		return -EINVAL;
	return 10 * (int)(unit - units + 1);
}

/* Digits behind the point, in units of 2^shift bytes: a long division, which must leave nothing. */
static int parse_fraction(const char *digits, size_t count, int shift, uint64_t *bytes)
{
	uint64_t rest = 0, whole = 1;

	if (!count || count > FRACTION_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		rest = rest * 10 + (uint64_t)(digits[i] - '0');
		whole *= 10;
	}
	for (*bytes = 0; shift; shift--) {
		*bytes = *bytes << 1 | (rest << 1 >= whole);
		rest = (rest << 1) % whole;
	}
	return rest ? -EINVAL : 0;
}

int weft_size_parse(const char *text, uint64_t *bytes)
{
	size_t count = 0;
	unsigned long long value;
	uint64_t fraction = 0;
	char *end, *digits;
	int shift, rc = 0;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return -errno;
	digits = end + 1;
	if (*end == '.')
		count = strspn(digits, "0123456789");
	shift = parse_unit(*end == '.' ? digits + count : end);
	if (shift < 0)
		return shift;
	if (*end == '.')
		rc = parse_fraction(digits, count, shift, &fraction);
	if (rc < 0)
		return rc;
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = ((uint64_t)value << shift) + fraction;
	return 0;
}

bool weft_size_is_ambiguous(const char *text, struct weft_err *why)
{
	size_t length = strlen(text);
	char plain[32];
	uint64_t bytes;

	if (length < 3 || length >= sizeof(plain) ||
	    toupper((unsigned char)text[length - 1]) != 'B')
		return false;
	snprintf(plain, sizeof(plain), "%.*s", (int)length - 1, text);
	if (!isalpha((unsigned char)plain[length - 2]) || weft_size_parse(plain, &bytes) < 0)
		return false;
	weft_fail(why, -EINVAL,
		  "\"%s\" may count in 1000s or in 1024s; write %s, which is in 1024s", text,
		  plain);
	return true;
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
