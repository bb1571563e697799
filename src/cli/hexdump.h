/* hexdump.h - bytes as lines, those that repeat left out, as hexdump -C shows them. */
#ifndef WEFT_CLI_HEXDUMP_H
#define WEFT_CLI_HEXDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct weft_hexdump {
	FILE *out;
	uint64_t offset; /* of the next byte */
	uint8_t last[16];
	bool any, repeats;
};

/* @length is a multiple of 16, but for the last call. -errno of the output. */
int weft_hexdump(struct weft_hexdump *dump, const void *bytes, size_t length);
int weft_hexdump_end(struct weft_hexdump *dump);

#endif
