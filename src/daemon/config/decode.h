/* decode.h - decode a tree of JSON values into a struct, by schemas.
 *
 * A map becomes a struct, a key one of its members. A key that the schema does not have is refused,
 * and so is a value of the wrong type or out of range; the sentence says where, what was expected
 * and what was found. Texts are copied: the tree may be freed when decoding is done. */
#ifndef WEFT_DAEMON_CONFIG_DECODE_H
#define WEFT_DAEMON_CONFIG_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/items.h"
#include "daemon/config/doc.h"

struct weft_decoder {
	const struct weft_doc *doc;
	struct weft_err *err;
	struct weft_doc_path path; /* of the value that is being decoded */
};

struct weft_schema;
struct weft_schema_field;

typedef int weft_decode_fn(struct weft_decoder *d, const struct weft_schema_field *field,
			   json_t *value, void *out);

struct weft_schema_field {
	const char *name; /* NULL: the keys of @map are keys of this map too */
	weft_decode_fn *decode;
	size_t offset; /* of the member; @decode gets its address */
	bool required;
	const char *expected;     /* for the sentence if a required key is missing (optional) */
	uint32_t min, max;        /* numbers: the range; texts: bytes */
	const char *const *words; /* weft_decode_word */
	const struct weft_schema *map;        /* weft_decode_map */
	const struct weft_schema_field *item; /* weft_decode_list: the type of an item … */
	size_t item_size;                     /* … and its size */
};

struct weft_schema {
	const struct weft_schema_field *fields; /* an empty one ends them */
	/* Checks that need more than one field, and defaults that follow from the others
	 * (optional). */
	int (*finish)(struct weft_decoder *d, void *out);
};

/* @out is zeroed, or holds the defaults. On -errno, the lists in @out are still to be freed. */
int weft_decode(const struct weft_doc *doc, const struct weft_schema *map, void *out,
		struct weft_err *err);

weft_decode_fn weft_decode_map;    /* into a struct */
weft_decode_fn weft_decode_list;   /* struct weft_items; at == NULL: the key was not there */
weft_decode_fn weft_decode_number; /* uint32_t, min … max */
weft_decode_fn weft_decode_count;  /* uint64_t */
weft_decode_fn weft_decode_bool;   /* bool */
weft_decode_fn weft_decode_text;   /* char[max + 1], min … max bytes */
weft_decode_fn weft_decode_word;   /* unsigned: index into @words */
weft_decode_fn weft_decode_size;   /* uint64_t: a number, or text such as "10G" */

/* For other decoders: the text of a string, or of a number as it was written; NULL and the sentence
 * set if @value is neither. */
struct weft_number_text {
	char number[24];
};
const char *weft_decode_as_text(struct weft_decoder *d, json_t *value, const char *what,
				struct weft_number_text *text);
/* "expected WHAT, got …" */
int weft_decode_expected(struct weft_decoder *d, json_t *value, const char *what);
/* A sentence about the value that is being decoded, or about a @key in it. */
int weft_decode_fail(struct weft_decoder *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int weft_decode_fail_at(struct weft_decoder *d, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
