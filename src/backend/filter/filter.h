/* filter.h - filters: backends on top of another one, which change what happens to an io.
 *
 *   weft_backend_submit() ─▶ delay ─▶ error ─▶ mem, null, file, block
 *
 * That is the order, whatever the order in the SPEC: an io that fails has waited first, as with a
 * disk that retries before it gives up. A namespace has the topmost; each owns the one below.
 *
 * A filter sees every io. So it has no map(): nobody reads memory in place, past the filter. It
 * passes on all ops that are not io; its ops table has those that the one below has. */
#ifndef WEFT_BACKEND_FILTER_FILTER_H
#define WEFT_BACKEND_FILTER_FILTER_H

#include "backend/internal.h"

/* Kinds of io that filters change; WEFT_IO_EXTENTS, which touches no data, passes. */
#define WEFT_FILTER_KINDS WEFT_IO_EXTENTS

/* The first member of a filter's struct, which calloc() has allocated. */
struct weft_filter {
	struct weft_backend be;
	struct weft_backend_ops ops;
};

/* Puts @filter on top of *@be, which it owns from now on; *@be becomes the filter. */
void weft_filter_push(struct weft_filter *filter, struct weft_backend **be,
		      int (*submit)(struct weft_backend *be, struct weft_io *io));

/* All filters of @spec. On -errno *@be is closed, and storage that opening it created is
 * removed. */
int weft_filter_push_all(struct weft_backend **be, const struct weft_spec *spec,
			 struct weft_err *err);

/* values.c: parses "[KIND:]VALUE[+[KIND:]VALUE…]" into a value for each kind. A VALUE without KIND
 * is for all kinds that are not named; without one they have 0. parse() makes a number of a VALUE,
 * or returns -EINVAL or -ERANGE, which ends it. @extra: one more word that may stand for a KIND;
 * NULL: there is none. */
int weft_filter_values(const char *text, const char *extra,
		       int (*parse)(unsigned kind, const char *text, uint64_t *value),
		       uint64_t values[WEFT_FILTER_KINDS + 1]);

/* Of each filter: the parser of its key, and the function that puts it on *@be if @spec has it. */
int weft_delay_set(struct weft_spec *spec, const char *value);
int weft_delay_push(struct weft_backend **be, const struct weft_spec *spec);
int weft_error_set(struct weft_spec *spec, const char *value);
int weft_error_push(struct weft_backend **be, const struct weft_spec *spec);

#endif
