/* units.h - numbers for people: three digits and a unit. */
#ifndef WEFT_CLI_BENCH_UNITS_H
#define WEFT_CLI_BENCH_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct bench_text {
	char text[48];
};

struct bench_text bench_text_time(double ns, bool utf8); /* 812 ns, 41.2 µs, 1.23 ms, 2.05 s */
struct bench_text bench_text_count(double count);        /* 812, 41.2k, 1.23M */
struct bench_text bench_text_grouped(uint64_t count);    /* 1,234,567 */
struct bench_text bench_text_size(uint64_t bytes);       /* 4 KiB, 1 MiB, 10 GiB */
struct bench_text bench_text_precise(double value);      /* 0.123, 1.23, 12.3, 123 */

/* Of round values, as short as they are exact: 50 µs, 1 ms; 20k, 1.5M. */
struct bench_text bench_label_time(double ns);
struct bench_text bench_label_time_ascii(double ns); /* us */
struct bench_text bench_label_count(double count);

/* @text, right in @width columns. */
void bench_print_right(FILE *to, const char *text, int width);

#endif
