/* types.h - what the types of backend share inside this folder. */
#ifndef WEFT_BACKEND_TYPES_H
#define WEFT_BACKEND_TYPES_H

#include "backend/backend.h"

#define WEFT_BLOCK_MIN 512u

extern const struct weft_backend_ops weft_mem_ops;
extern const struct weft_backend_ops weft_null_ops;
extern const struct weft_backend_ops weft_file_ops;
extern const struct weft_backend_ops weft_block_ops;

/* The type called @name, or NULL. */
const struct weft_backend_ops *weft_backend_type(const char *name);

/* Fills in what @spec says. @size must suit the block asked for, and that @block_min. */
int weft_backend_init(struct weft_backend *be, const struct weft_spec *spec, uint64_t size,
		      uint32_t block_min, struct weft_err *err);
void weft_backend_fini(struct weft_backend *be);

/* weft_fail() with the sentence behind "TYPE:ARG: ". */
int weft_spec_fail(const struct weft_spec *spec, struct weft_err *err, int rc, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The canonical text of @spec, without what belongs to the namespace; NULL when out of memory. */
char *weft_spec_text(const struct weft_spec *spec);

#endif
