/* parse.h - numbers as people write them for a bench: 10k I/Os, 500ms, 2m. */
#ifndef WEFT_CLI_BENCH_PARSE_H
#define WEFT_CLI_BENCH_PARSE_H

#include <stdint.h>

/* 0, or -EINVAL. */
int bench_parse_count(const char *text, uint64_t *count); /* k, m: powers of 1000 */
int bench_parse_time(const char *text, uint64_t *ns);     /* 10, 1.5, 10s, 500ms, 2m, 1h */

#endif
