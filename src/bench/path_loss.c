/* path_loss.c - path losses of a run: when a path was lost, why, and for how long. */
#include "bench/path_loss.h"

#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

/* --- the list --------------------------------------------------------------------------------- */

/* The one of @path that lasts. */
static struct bench_loss *find_open_loss(struct bench_losses *l, const char *path, bool access)
{
	for (unsigned i = l->count; i--;)
		if (l->at[i].seconds < 0 && l->at[i].access == access &&
		    !strcmp(l->at[i].path, path))
			return &l->at[i];
	return NULL;
}

static struct bench_loss *begin_loss(struct bench_losses *l, const char *path, bool access,
				     const char *why, double at_s)
{
	struct bench_loss *loss;

	if (l->count == BENCH_LOSSES_MAX) {
		l->more++;
		return NULL;
	}
	loss = &l->at[l->count++];
	*loss = (struct bench_loss){ .at_s = at_s, .seconds = -1, .access = access };
	snprintf(loss->path, sizeof(loss->path), "%s", path);
	snprintf(loss->why, sizeof(loss->why), "%s", why);
	return loss;
}

/* The first cause counts; but "change" is the beginning of one. */
struct bench_loss *bench_loss_note(struct bench_losses *l, const char *path, bool access, bool lost,
				   const char *why, double at_s)
{
	struct bench_loss *loss = find_open_loss(l, path, access);

	if (lost && !loss)
		return begin_loss(l, path, access, why, at_s);
	if (lost && !strncmp(loss->why, "change ", 7))
		snprintf(loss->why, sizeof(loss->why), "%s", why);
	if (lost || !loss)
		return NULL;
	loss->seconds = at_s - loss->at_s;
	return loss;
}

const char *bench_loss_address(const struct bench_loss *loss)
{
	const char *scheme = strstr(loss->path, "://");

	return scheme ? scheme + 3 : loss->path;
}

/* --- connections ------------------------------------------------------------------------------ */

static double seconds_at(const struct bench_loss_watch *w, uint64_t at_ns)
{
	return ((double)at_ns - (double)w->from_ns) / 1e9;
}

/* "resetting: why" */
static struct bench_loss *note_state(struct bench_loss_watch *w, const char *path,
				     enum weft_state state, const char *text, uint64_t now_ns)
{
	const char *why = strstr(text, ": ");

	if (state == WEFT_CONNECTING)
		return NULL;
	return bench_loss_note(w->losses, path, false, state != WEFT_LIVE, why ? why + 2 : text,
			       seconds_at(w, now_ns));
}

/* One of several: "ADDRESS: resetting: why" */
static struct bench_loss *on_path_event(struct bench_loss_watch *w, const struct weft_event *event,
					uint64_t now_ns)
{
	const char *rest = strstr(event->text, ": ");
	char address[sizeof(event->text)];

	if (!rest)
		return NULL;
	snprintf(address, sizeof(address), "%.*s", (int)(rest - event->text), event->text);
	return note_state(w, address, event->state, rest + 2, now_ns);
}

/* With several paths, each has had its own event. */
static struct bench_loss *on_state_event(struct bench_loss_watch *w, const struct weft_event *event,
					 uint64_t now_ns)
{
	struct weft_path_info path;
	struct bench_loss *loss;

	if (weft_ctrl_paths(w->ctrl, &path, 1) != 1)
		return NULL;
	loss = note_state(w, path.address, event->state, event->text, now_ns);
	if (loss)
		loss->alone = true;
	return loss;
}

struct bench_loss *bench_loss_event(struct bench_loss_watch *w, const struct weft_event *event,
				    uint64_t now_ns)
{
	switch (event->kind) {
	case WEFT_EVENT_STATE:
		return on_state_event(w, event, now_ns);
	case WEFT_EVENT_PATH:
		return on_path_event(w, event, now_ns);
	case WEFT_EVENT_ANA:
		w->ana_ns = now_ns;
		return NULL;
	default:
		return NULL;
	}
}

/* --- access ----------------------------------------------------------------------------------- */

/* It shows a moment after the controller has said that it changed. */
void bench_access_sample(const struct bench_loss_watch *w, uint64_t now_ns,
			 struct bench_access *seen)
{
	unsigned n = weft_ns_paths(w->ns, seen->through, WEFT_PATHS_MAX);

	seen->at_ns = now_ns - w->ana_ns < SECOND ? w->ana_ns : now_ns;
	seen->count = weft_ctrl_paths(w->ctrl, seen->paths, WEFT_PATHS_MAX);
	seen->count = seen->count < n ? seen->count : n;
}

/* Whether it ever was; a path without access from the beginning is not lost. */
static bool was_open(struct bench_loss_watch *w, unsigned path, bool open)
{
	unsigned i = 0;

	while (i < w->nopen && w->open[i] != path)
		i++;
	if (i == w->nopen && open && i < BENCH_PATHS_SEEN)
		w->open[w->nopen++] = path;
	return i < w->nopen;
}

struct bench_loss *bench_access_note(struct bench_loss_watch *w, const struct bench_access *seen,
				     unsigned i)
{
	const struct weft_path_info *path = &seen->paths[i];
	const struct weft_ns_path *through = &seen->through[i];
	bool open = through->access == WEFT_ACCESS_OPTIMIZED ||
		    through->access == WEFT_ACCESS_NON_OPTIMIZED;
	char why[64];

	if (path->state != WEFT_LIVE || path->path != through->path ||
	    through->access == WEFT_ACCESS_UNKNOWN || !was_open(w, path->path, open))
		return NULL;
	snprintf(why, sizeof(why), through->ana_group ? "%s (ANA group %u)" : "%s",
		 weft_access_text(through->access), through->ana_group);
	return bench_loss_note(w->losses, path->address, true, !open, why,
			       seconds_at(w, seen->at_ns));
}

void bench_access_begin(struct bench_loss_watch *w, uint64_t now_ns)
{
	struct bench_access seen;

	bench_access_sample(w, now_ns, &seen);
	for (unsigned i = 0; i < seen.count; i++)
		bench_access_note(w, &seen, i);
}
