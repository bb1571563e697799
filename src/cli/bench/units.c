/* units.c - numbers for people: three digits and a unit. */
#include "cli/bench/units.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"

/* The bounds are where rounding to three digits would give four. */
struct bench_text bench_text_precise(double value)
{
	struct bench_text t;
	int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

	snprintf(t.text, sizeof(t.text), "%.*f", digits, value);
	return t;
}

static struct bench_text with_unit(double value, const char *unit)
{
	struct bench_text t = bench_text_precise(value);

	strncat(t.text, unit, sizeof(t.text) - strlen(t.text) - 1);
	return t;
}

struct bench_text bench_text_time(double ns, bool utf8)
{
	struct bench_text t;

	if (ns < 999.5) {
		snprintf(t.text, sizeof(t.text), "%.0f ns", ns);
		return t;
	}
	if (ns < 999.5e3)
		return with_unit(ns / 1e3, utf8 ? " µs" : " us");
	if (ns < 999.5e6)
		return with_unit(ns / 1e6, " ms");
	return with_unit(ns / 1e9, " s");
}

struct bench_text bench_text_count(double count)
{
	struct bench_text t;

	if (count >= 999.5e3)
		return with_unit(count / 1e6, "M");
	if (count >= 999.5)
		return with_unit(count / 1e3, "k");
	snprintf(t.text, sizeof(t.text), "%.0f", count);
	return t;
}

struct bench_text bench_text_grouped(uint64_t count)
{
	struct bench_text t;
	char digits[32], *to = t.text;
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return t;
}

struct bench_text bench_text_size(uint64_t bytes)
{
	struct bench_text t;
	char *unit;

	weft_size_format(bytes, t.text, sizeof(t.text));
	unit = t.text + strspn(t.text, "0123456789");
	if (*unit)
		snprintf(unit, 6, " %ciB", *unit);
	else
		strcpy(unit, " B");
	return t;
}

static struct bench_text label(double value, const char *unit)
{
	struct bench_text t;

	snprintf(t.text, sizeof(t.text), "%.4g%s", value, unit);
	return t;
}

static struct bench_text label_time(double ns, const char *micro)
{
	if (ns < 999.5)
		return label(ns, " ns");
	if (ns < 999.5e3)
		return label(ns / 1e3, micro);
	if (ns < 999.5e6)
		return label(ns / 1e6, " ms");
	return label(ns / 1e9, " s");
}

struct bench_text bench_label_time(double ns)
{
	return label_time(ns, " µs");
}

struct bench_text bench_label_time_ascii(double ns)
{
	return label_time(ns, " us");
}

struct bench_text bench_label_count(double count)
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

void bench_print_right(FILE *to, const char *text, int width)
{
	fprintf(to, "%*s%s", width > columns(text) ? width - columns(text) : 0, "", text);
}
