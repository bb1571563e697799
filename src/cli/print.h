/* print.h - what several commands print: JSON, and what is in it. */
#ifndef WEFT_CLI_PRINT_H
#define WEFT_CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <weft/host.h>

/* On standard output, for people to read or, with @compact, on one line. */
void weft_print_json(const json_t *json, bool compact);

/* "weft NAME: warning: …" on standard error for each of a list of sentences; NULL: none. */
void weft_cli_warnings(const char *command, json_t *warnings);

/* Bytes as hexadecimal digits; NULL: no memory. */
json_t *weft_json_hex(const void *bytes, size_t length);

/* A time, to the microsecond: more is noise. */
json_t *weft_json_seconds(double seconds);

/* Of an object that one of our own functions made; "" and 0 where the key is missing. */
const char *weft_json_text(const json_t *object, const char *key);
json_int_t weft_json_number(const json_t *object, const char *key);

/* --- counters.c: what queues count (weft_queue_stats), of several together -------------------- */

/* What @queue has counted, on top of @sum. */
void weft_counters_add_queue(const struct weft_queue *queue, struct weft_queue_stats *sum);
/* Whether one of its paths is RDMA's: others leave most counters at 0. */
bool weft_counters_rdma(struct weft_ctrl *ctrl);
/* Without @rdma, only what also TCP counts. */
json_t *weft_counters_json(const struct weft_queue_stats *stats, bool rdma);

#endif
