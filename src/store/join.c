/* join.c - open a store and become a member, blocking (weft_store_open) or on a thread
 * (weft_store_join).
 *
 *   weft_store_open()   create ─▶ join, which blocks ───────────────────▶ joined
 *   weft_store_join()   create ─▶ thread: join ─▶ message to control reactor ─▶ joined ─▶ done()
 *                                   └─ cancelled ─▶ close ─▶ done()
 *
 * A join takes seconds if a suspect must be probed or the file is locked. A process that serves
 * nobody yet may block. A target that serves hosts may not: its join has a thread of its own, which
 * ends with it.
 *
 * A cancelled join still ends its current poll; when done() runs we are not a member.
 *
 * Invariant: until it has joined, only the thread that joins knows the store. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "reactor/offload.h"
#include "store/internal.h"

struct weft_store_joining {
	struct weft_store *store;
	struct weft_offload offload;
	int rc;
	struct weft_err err;
	void (*done)(void *arg, int rc, struct weft_store *store, const struct weft_err *err);
	void *arg;
};

static int store_type_join(struct weft_store *store, struct weft_err *err)
{
	return store->ops->join ? store->ops->join(store, err) : 0;
}

static int store_type_joined(struct weft_store *store, struct weft_err *err)
{
	return store->ops->joined ? store->ops->joined(store, err) : 0;
}

/* --- blocking: the control reactor waits ------------------------------------------------------ */

static void on_failed_open_closed(void *arg)
{
	(void)arg;
}

int weft_store_open(struct weft_store **out, const struct weft_store_options *options,
		    struct weft_err *err)
{
	struct weft_store *store;
	int rc = store_create(&store, options, err);

	if (rc < 0)
		return rc;
	rc = store_type_join(store, err);
	if (!rc)
		rc = store_type_joined(store, err);
	if (rc < 0) {
		weft_store_close(store, on_failed_open_closed, NULL);
		return weft_fail(err, rc, "%s: %s", options->spec, strerror(-rc));
	}
	*out = store;
	return 0;
}

/* --- on a thread: the control reactor goes on ------------------------------------------------- */

static int join_on_thread(struct weft_offload *offload)
{
	struct weft_store_joining *joining = container_of(offload, struct weft_store_joining,
							  offload);

	return store_type_join(joining->store, &joining->err);
}

static void finish_join(void *arg)
{
	_cleanup_(weft_freep) struct weft_store_joining *joining = arg;

	joining->done(joining->arg, joining->rc, joining->store, &joining->err);
}

static void undo_join(struct weft_store_joining *joining, int rc)
{
	struct weft_store *store = take_ptr(&joining->store);

	assert(rc < 0);
	joining->rc = weft_fail(&joining->err, rc, "%s: %s", store->spec, strerror(-rc));
	weft_store_close(store, finish_join, joining);
}

static void on_join_thread_done(struct weft_offload *offload, int rc)
{
	struct weft_store_joining *joining = container_of(offload, struct weft_store_joining,
							  offload);

	assert_on(joining->store->control_reactor);
	if (!rc && atomic_load(&joining->store->cancelled))
		rc = -ECANCELED;
	if (!rc)
		rc = store_type_joined(joining->store, &joining->err);
	if (rc < 0)
		undo_join(joining, rc);
	else
		finish_join(joining);
}

int weft_store_join(struct weft_store_joining **out, const struct weft_store_options *options,
		    void (*done)(void *arg, int rc, struct weft_store *store,
				 const struct weft_err *err),
		    void *arg, struct weft_err *err)
{
	struct weft_store_joining *joining = calloc(1, sizeof(*joining));
	int rc;

	if (!joining)
		return weft_fail(err, -ENOMEM, "out of memory");
	rc = store_create(&joining->store, options, err);
	if (rc < 0) {
		free(joining);
		return rc;
	}
	assert_on(options->control_reactor);
	joining->done = done;
	joining->arg = arg;
	*out = joining;
	weft_offload_start(&joining->offload, options->control_reactor, join_on_thread,
			   on_join_thread_done);
	return 0;
}

void weft_store_join_cancel(struct weft_store_joining *joining)
{
	assert(joining->store);
	atomic_store(&joining->store->cancelled, true);
}
