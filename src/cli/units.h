/* units.h - sizes and times, as text to look at. For exact sizes see base/size.h. */
#ifndef WEFT_CLI_UNITS_H
#define WEFT_CLI_UNITS_H

#include <stdint.h>

struct weft_text {
	char s[64];
};

/* "1.2 GiB", "64 MiB", "512 bytes": three digits or so. */
struct weft_text weft_size_text(uint64_t bytes);
/* "1 MiB (1048576 bytes)", "512 bytes": for errors, where it has to be exact. */
struct weft_text weft_exact_text(uint64_t bytes);
/* "0:07", "12:34", "1:02:03". */
struct weft_text weft_clock_text(uint64_t seconds);

/* "3.4 s", "12.1 ms". */
struct weft_text weft_seconds_text(double seconds);

/* 10s, 500ms, 2m; a number alone is seconds. -EINVAL: it is none, or beyond a day. */
int weft_ms_parse(const char *text, uint32_t *ms);

#endif
