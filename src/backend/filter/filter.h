/* filter.h - backends that stand on another one, and change what becomes of an io.
 *
 *   weft_backend_submit() ─▶ delay ─▶ error ─▶ mem, null, file, block
 *
 * That is the order, whatever the order in the SPEC: an io that fails has waited first, as with a disk
 * that tries before it gives up. A namespace has the topmost; each owns the one below.
 *
 * A filter sees every io. So it has no map(): nobody reads memory in place, past the filter. What is not
 * io it passes on; its ops table has what the one below has. */
#ifndef WEFT_BACKEND_FILTER_FILTER_H
#define WEFT_BACKEND_FILTER_FILTER_H

#include "backend/types.h"

/* Kinds of io that filters change; WEFT_IO_EXTENTS, which touches no data, passes. */
#define WEFT_FILTER_KINDS WEFT_IO_EXTENTS

/* The first member of a filter's struct, which calloc() gave. */
struct weft_filter {
	struct weft_backend be;
	struct weft_backend_ops ops;
};

/* Puts @filter on *@be, which it owns from now on, and into *@be. */
void weft_filter_push(struct weft_filter *filter, struct weft_backend **be,
		      int (*submit)(struct weft_backend *be, struct weft_io *io));

/* All filters of @spec. On -errno *@be is closed, and what opening it made is gone again. */
int weft_filter_push_all(struct weft_backend **be, const struct weft_spec *spec,
			 struct weft_err *err);

/* values.c: takes "[KIND:]VALUE[+[KIND:]VALUE…]" apart, into a value for each kind; one without KIND
 * is for all kinds that are not named, and those that nothing is said of have 0. parse() makes a
 * number of a VALUE, or returns -EINVAL or -ERANGE, which ends it. @extra: a word that may stand for a
 * KIND, and is one more; NULL: there is none. */
int weft_filter_values(const char *text, const char *extra,
		       int (*parse)(unsigned kind, const char *text, uint64_t *value),
		       uint64_t values[WEFT_FILTER_KINDS + 1]);

/* Of each filter: its key in the table of keys, and what puts it on *@be, if @spec has it. */
int weft_delay_set(struct weft_spec *spec, const char *value);
int weft_delay_push(struct weft_backend **be, const struct weft_spec *spec);
int weft_error_set(struct weft_spec *spec, const char *value);
int weft_error_push(struct weft_backend **be, const struct weft_spec *spec);

#endif
