/* uuid.h - UUIDs as text, and stable ones: a hash of kind, text and machine. */
#ifndef WEFT_BASE_UUID_H
#define WEFT_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

void weft_uuid_format(const uint8_t uuid[16], char text[37]);
int weft_uuid_parse(const char *text, uint8_t uuid[16]); /* -EINVAL */

/* The same at every start, different for every @kind and @text and, unless @common, machine. */
void weft_stable_hash(const char *kind, const char *text, bool common, uint8_t hash[32]);
void weft_stable_uuid(const char *kind, const char *text, bool common, uint8_t uuid[16]);

#endif
