/* feature.h - the parts of weft feature: which features there are by name, and what is in them. */
#ifndef WEFT_CLI_FEATURE_FEATURE_H
#define WEFT_CLI_FEATURE_FEATURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Bits of a feature's dword that mean something together. */
struct feature_part {
	const char *name; /* the specification's, in lower case; NULL: the end */
	unsigned shift, width;
	const char *label;
};

struct feature {
	const char *name, *title; /* nvme-cli's, the specification's; NULL: the end */
	uint8_t fid;
	bool per_namespace; /* a namespace's, and not the controller's */
	uint16_t data_len;  /* of what is in memory, and not in dword 0 */
	bool by_value;      /* whose data can be made from a number */
	uint32_t cdw11;     /* of Get Features */
	const struct feature_part *parts;
};

extern const struct feature weft_features[];
const struct feature *weft_feature_named(const char *name); /* NULL: there is none */
const struct feature *weft_feature_numbered(uint8_t fid);

/* { "wce": 1 } */
json_t *weft_feature_json(const struct feature *feature, uint32_t value);
void weft_feature_print(const struct feature *feature, uint32_t value);

#endif
