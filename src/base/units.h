/* units.h - numbers with units: as text for people, and as people write them. Exact sizes are in
 * base/size.h. */
#ifndef WEFT_BASE_UNITS_H
#define WEFT_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A few words, returned by value: weft_size_text(n).s lives until the end of the expression. */
struct weft_text {
	char s[48];
};

/* --- bytes ------------------------------------------------------------------------------------ */

struct weft_text weft_size_text(uint64_t bytes);       /* 1.2 GiB, 64 MiB, 512 bytes: rounded */
struct weft_text weft_short_size_text(uint64_t bytes); /* 1.2G, 64M, 512: for a table */
struct weft_text weft_unit_size_text(uint64_t bytes);  /* 4 KiB, 1536 MiB, 1000 B: exact */
struct weft_text weft_exact_text(uint64_t bytes);      /* 1 MiB (1048576 bytes): for errors */

/* --- times ------------------------------------------------------------------------------------ */

struct weft_text weft_time_text(double ns, bool utf8); /* 812 ns, 41.2 µs, 1.23 ms, 2.05 s */
struct weft_text weft_seconds_text(double seconds);    /* 3.4 s, 12.1 ms */
struct weft_text weft_clock_text(uint64_t seconds);    /* 0:07, 12:34, 1:02:03 */
struct weft_text weft_uptime_text(uint64_t seconds);   /* 7s, 2m0s, 3d4h12m7s */

/* --- counts and rates ------------------------------------------------------------------------- */

struct weft_text weft_count_text(double count);     /* 812, 41.2k, 1.23M */
struct weft_text weft_grouped_text(uint64_t count); /* 1,234,567 */
struct weft_text weft_digits_text(double value);    /* 0.12, 1.23, 12.3, 123 */

/* --- of round values, as short as they are exact: the labels of an axis ----------------------- */

struct weft_text weft_time_label(double ns);       /* 50 µs, 1 ms */
struct weft_text weft_time_label_ascii(double ns); /* 50 us */
struct weft_text weft_count_label(double count);   /* 20k, 1.5M */

/* @text, right in @width columns. */
void weft_print_right(FILE *to, const char *text, int width);

/* --- as people write them: 0, or -EINVAL ------------------------------------------------------ */

/* 10s, 500ms, 2m; a number alone is seconds. A day at most. */
int weft_ms_parse(const char *text, uint32_t *ms);
/* 10, 1.5, 10s, 500ms, 20us, 2m, 1h. */
int weft_ns_parse(const char *text, uint64_t *ns);
/* 1500, 10k, 1.5m: powers of 1000. */
int weft_count_parse(const char *text, uint64_t *count);

#endif
