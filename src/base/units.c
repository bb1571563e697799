/* units.c - numbers with units: as text for people, and as people write them. */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plural.h"
#include "base/size.h"

#define DAY_MS 86400000u

/* --- bytes ------------------------------------------------------------------------------------ */

struct weft_text weft_size_text(uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes / 1024;
	struct weft_text text;
	unsigned unit = 0;

	if (bytes < 1024) {
		snprintf(text.s, sizeof(text.s), "%u byte%s", (unsigned)bytes, weft_plural(bytes));
		return text;
	}
	/* What would be shown as 1024 is 1 of the next. */
	for (; value >= 1023.95 && unit < 5; unit++)
		value /= 1024;
	if (value >= 100 || value == (double)(uint64_t)value)
		snprintf(text.s, sizeof(text.s), "%.0f %s", value, units[unit]);
	else
		snprintf(text.s, sizeof(text.s), "%.1f %s", value, units[unit]);
	return text;
}

struct weft_text weft_short_size_text(uint64_t bytes)
{
	static const char *const units[] = { "", "K", "M", "G", "T", "P" };
	double value = (double)bytes;
	struct weft_text text;
	int unit = 0;

	/* What would be shown as 1024.0 is 1 of the next. */
	for (; value >= (unit ? 1023.95 : 1024) && unit < 5; unit++)
		value /= 1024;
	snprintf(text.s, sizeof(text.s), "%.*f%s",
		 unit == 0 || value == (double)(uint64_t)value ? 0 : 1, value, units[unit]);
	return text;
}

struct weft_text weft_unit_size_text(uint64_t bytes)
{
	struct weft_text t;
	char *unit;

	weft_size_format(bytes, t.s, sizeof(t.s));
	unit = t.s + strspn(t.s, "0123456789");
	if (*unit)
		snprintf(unit, 6, " %ciB", *unit);
	else
		strcpy(unit, " B");
	return t;
}

struct weft_text weft_exact_text(uint64_t bytes)
{
	struct weft_text text = weft_size_text(bytes);
	size_t at = strlen(text.s);

	if (bytes >= 1024)
		snprintf(text.s + at, sizeof(text.s) - at, " (%" PRIu64 " bytes)", bytes);
	return text;
}

/* --- counts and rates ------------------------------------------------------------------------- */

/* The bounds are where rounding to three digits would give four. */
struct weft_text weft_digits_text(double value)
{
	struct weft_text t;
	int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

	snprintf(t.s, sizeof(t.s), "%.*f", digits, value);
	return t;
}

static struct weft_text with_unit(double value, const char *unit)
{
	struct weft_text t = weft_digits_text(value);

	strncat(t.s, unit, sizeof(t.s) - strlen(t.s) - 1);
	return t;
}

struct weft_text weft_count_text(double count)
{
	struct weft_text t;

	if (count >= 999.5e3)
		return with_unit(count / 1e6, "M");
	if (count >= 999.5)
		return with_unit(count / 1e3, "k");
	snprintf(t.s, sizeof(t.s), "%.0f", count);
	return t;
}

struct weft_text weft_grouped_text(uint64_t count)
{
	struct weft_text t;
	char digits[32], *to = t.s;
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return t;
}

/* --- times ------------------------------------------------------------------------------------ */

struct weft_text weft_time_text(double ns, bool utf8)
{
	struct weft_text t;

	if (ns < 999.5) {
		snprintf(t.s, sizeof(t.s), "%.0f ns", ns);
		return t;
	}
	if (ns < 999.5e3)
		return with_unit(ns / 1e3, utf8 ? " µs" : " us");
	if (ns < 999.5e6)
		return with_unit(ns / 1e6, " ms");
	return with_unit(ns / 1e9, " s");
}

struct weft_text weft_seconds_text(double seconds)
{
	bool brief = seconds < 0.1;
	struct weft_text text;

	snprintf(text.s, sizeof(text.s), "%.1f %s", brief ? seconds * 1e3 : seconds,
		 brief ? "ms" : "s");
	return text;
}

struct weft_text weft_clock_text(uint64_t seconds)
{
	unsigned long long hours = seconds / 3600;
	unsigned minutes = (unsigned)(seconds / 60 % 60), rest = (unsigned)(seconds % 60);
	struct weft_text text;

	if (hours)
		snprintf(text.s, sizeof(text.s), "%llu:%02u:%02u", hours, minutes, rest);
	else
		snprintf(text.s, sizeof(text.s), "%u:%02u", minutes, rest);
	return text;
}

struct weft_text weft_uptime_text(uint64_t seconds)
{
	static const struct {
		unsigned seconds;
		char letter;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' } };
	uint64_t left = seconds;
	struct weft_text text;
	int at = 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (seconds >= units[i].seconds)
			at += snprintf(text.s + at, sizeof(text.s) - (size_t)at, "%" PRIu64 "%c",
				       left / units[i].seconds, units[i].letter);
		left %= units[i].seconds;
	}
	snprintf(text.s + at, sizeof(text.s) - (size_t)at, "%" PRIu64 "s", left);
	return text;
}

/* --- labels ----------------------------------------------------------------------------------- */

static struct weft_text label(double value, const char *unit)
{
	struct weft_text t;

	snprintf(t.s, sizeof(t.s), "%.4g%s", value, unit);
	return t;
}

static struct weft_text label_time(double ns, const char *micro)
{
	if (ns < 999.5)
		return label(ns, " ns");
	if (ns < 999.5e3)
		return label(ns / 1e3, micro);
	if (ns < 999.5e6)
		return label(ns / 1e6, " ms");
	return label(ns / 1e9, " s");
}

struct weft_text weft_time_label(double ns)
{
	return label_time(ns, " µs");
}

struct weft_text weft_time_label_ascii(double ns)
{
	return label_time(ns, " us");
}

struct weft_text weft_count_label(double count)
{
	if (count < 1000)
		return label(count, "");
	if (count < 1e6)
		return label(count / 1e3, "k");
	return label(count / 1e6, "M");
}

static int columns(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

void weft_print_right(FILE *to, const char *text, int width)
{
	fprintf(to, "%*s%s", width > columns(text) ? width - columns(text) : 0, "", text);
}

/* --- as people write them --------------------------------------------------------------------- */

static uint32_t unit_ms(const char *unit)
{
	return !strcmp(unit, "ms")          ? 1 :
	       !*unit || !strcmp(unit, "s") ? 1000 :
	       !strcmp(unit, "m")           ? 60000 :
					      0;
}

int weft_ms_parse(const char *text, uint32_t *ms)
{
	unsigned long value;
	uint32_t factor;
	char *unit;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	value = strtoul(text, &unit, 10);
	factor = unit_ms(unit);
	if (!factor || value > DAY_MS / factor)
		return -EINVAL;
	*ms = (uint32_t)value * factor;
	return 0;
}

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

int weft_count_parse(const char *text, uint64_t *count)
{
	return parse_with_unit(text, counts, count);
}

int weft_ns_parse(const char *text, uint64_t *ns)
{
	return parse_with_unit(text, times, ns);
}
