/* error.c - a filter: storage that fails. Some io ends with EIO, and is not done.
 *
 *   error=[KIND:]RATE[+[KIND:]RATE…][+seed:N]        error=write:1%    error=1/1000+seed:7
 *
 * Which io fails depends on the seed, the kind, and the number of ios of that kind since the
 * backend was opened: the same io of the same run fails again. If several reactors submit, it
 * depends on them which one gets the number that fails.
 *
 * A failed io leaves the storage as it was. A failed flush has lost nothing here, and is not
 * remembered as one that failed in disk.c: the next flush makes everything durable.
 *
 * Invariant: the draw depends on nothing that differs between runs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "backend/filter/filter.h"

#define ALWAYS (UINT64_C(1) << 63) /* a rate of 1 */

enum { SEED = WEFT_FILTER_KINDS };

struct error {
	struct weft_filter filter;
	uint64_t rates[WEFT_FILTER_KINDS + 1]; /* of ALWAYS; the last is the seed */
	_Atomic uint64_t asked[WEFT_FILTER_KINDS];
};

static struct error *error_of(struct weft_backend *be)
{
	return container_of(be, struct error, filter.be);
}

/* --- io --------------------------------------------------------------------------------------- */

/* splitmix64: spreads every bit of @x over all of the result. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static bool error_due(struct error *error, enum weft_io_kind kind)
{
	uint64_t number;

	if (kind >= WEFT_FILTER_KINDS || !error->rates[kind])
		return false;
	number = atomic_fetch_add_explicit(&error->asked[kind], 1, memory_order_relaxed);
	return mix(mix(error->rates[SEED] * WEFT_FILTER_KINDS + kind) + number) >> 1 <
	       error->rates[kind];
}

static int error_submit(struct weft_backend *be, struct weft_io *io)
{
	if (error_due(error_of(be), io->kind))
		return -EIO;
	return weft_backend_submit(be->next, io);
}

/* --- the SPEC --------------------------------------------------------------------------------- */

static uint64_t rate_of(uint64_t part, uint64_t whole)
{
	return (uint64_t)((unsigned __int128)ALWAYS * part / whole);
}

/* Digits alone, from @min to @max. */
static int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	size_t len = strlen(text);

	if (!len || len > 10 || strspn(text, "0123456789") != len)
		return -EINVAL;
	*number = strtoull(text, NULL, 10);
	return *number < min || *number > max ? -EINVAL : 0;
}

/* "1%", "0.1%"; four digits behind the point. */
static int parse_percent(const char *text, uint64_t *rate)
{
	uint64_t value = 0, whole = 100;
	const char *at = text;

	if (!isdigit((unsigned char)*at))
		return -EINVAL;
	for (; isdigit((unsigned char)*at) && value <= 100; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (*at == '.' && isdigit((unsigned char)at[1]))
		for (at++; isdigit((unsigned char)*at) && whole < 1000000; at++, whole *= 10)
			value = value * 10 + (uint64_t)(*at - '0');
	if (strcmp(at, "%") || value > whole)
		return -EINVAL;
	*rate = rate_of(value, whole);
	return 0;
}

static int parse_rate(unsigned kind, const char *text, uint64_t *rate)
{
	uint64_t number;
	int rc;

	if (kind == SEED)
		return parse_number(text, 0, UINT32_MAX, rate);
	if (strncmp(text, "1/", 2))
		return parse_percent(text, rate);
	rc = parse_number(text + 2, 1, UINT32_MAX, &number);
	if (!rc)
		*rate = rate_of(1, number);
	return rc;
}

int weft_error_set(struct weft_spec *spec, const char *value)
{
	uint64_t rates[WEFT_FILTER_KINDS + 1];
	int rc = weft_filter_values(value, "seed", parse_rate, rates);

	if (!rc && !strncmp(value, "seed:", 5) && !strchr(value, '+')) /* and no rate */
		return -EINVAL;
	if (!rc)
		strcpy(spec->error, value);
	return rc;
}

int weft_error_push(struct weft_backend **be, const struct weft_spec *spec)
{
	struct error *error;

	if (!spec->error[0])
		return 0;
	error = calloc(1, sizeof(*error));
	if (!error)
		return -ENOMEM;
	weft_filter_values(spec->error, "seed", parse_rate, error->rates);
	weft_filter_push(&error->filter, be, error_submit);
	return 0;
}
