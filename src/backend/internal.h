/* internal.h - what the backend types share inside this folder. */
#ifndef WEFT_BACKEND_INTERNAL_H
#define WEFT_BACKEND_INTERNAL_H

#include "backend/backend.h"

#define WEFT_BLOCK_MIN 512u

extern const struct weft_backend_ops weft_mem_ops;
extern const struct weft_backend_ops weft_null_ops;
extern const struct weft_backend_ops weft_file_ops;
extern const struct weft_backend_ops weft_block_ops;

/* The type called @name, or NULL. */
const struct weft_backend_ops *weft_backend_type(const char *name);

/* Fills in what @spec says. @size must be a multiple of the block in @spec, and that of
 * @block_min. */
int weft_backend_init(struct weft_backend *be, const struct weft_spec *spec, uint64_t size,
		      uint32_t block_min, struct weft_err *err);
void weft_backend_fini(struct weft_backend *be);

/* extents.c: finds what @io, of kind WEFT_IO_EXTENTS, asks for, by the backend's descriptor, with
 * at most @seeks searches for data. @data_end finds where, before *@end, the data at @at ends, or
 * that it goes on from there. 0 or -errno. May block as lseek() does. */
int weft_extents_search(struct weft_io *io, unsigned seeks,
			int (*data_end)(struct weft_backend *be, uint64_t at, uint64_t *end));

/* weft_fail() with the sentence behind "TYPE:ARG: ". */
int weft_spec_fail(const struct weft_spec *spec, struct weft_err *err, int rc, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The canonical text of @spec, without the namespace's keys; NULL: out of memory. */
char *weft_spec_text(const struct weft_spec *spec);

#endif
