/* units.c - sizes and times as text for people. */
#include "cli/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"

#define DAY_MS 86400000u

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

struct weft_text weft_exact_text(uint64_t bytes)
{
	struct weft_text text = weft_size_text(bytes);
	size_t at = strlen(text.s);

	if (bytes >= 1024)
		snprintf(text.s + at, sizeof(text.s) - at, " (%" PRIu64 " bytes)", bytes);
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

struct weft_text weft_seconds_text(double seconds)
{
	bool brief = seconds < 0.1;
	struct weft_text text;

	snprintf(text.s, sizeof(text.s), "%.1f %s", brief ? seconds * 1e3 : seconds,
		 brief ? "ms" : "s");
	return text;
}

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
