/* path_loss.h - path losses of a run (failover): when a path was lost, why, and for how long.
 *
 *   events of the library ─▶ connections ─┐
 *   samples of each path's access ────────┴─▶ bench_losses ─▶ standard error, JSON, the plot */
#ifndef WEFT_BENCH_PATH_LOSS_H
#define WEFT_BENCH_PATH_LOSS_H

#include "bench/bench.h"

enum { BENCH_PATHS_SEEN = 64 };

/* The connection of @path, or @access through it, is lost because of @why, or is back: the loss
 * that begins or ends with it; NULL if nothing has changed. */
struct bench_loss *bench_loss_note(struct bench_losses *losses, const char *path, bool access,
				   bool lost, const char *why, double at_s);

/* Watches the paths of a run. */
struct bench_loss_watch {
	struct bench_losses *losses;
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	uint64_t from_ns;                       /* the warm-up's end */
	uint64_t ana_ns;                        /* the controller said that access changed */
	unsigned open[BENCH_PATHS_SEEN], nopen; /* paths through which there was access */
};

/* Both return as bench_loss_note() does. */
struct bench_loss *bench_loss_event(struct bench_loss_watch *watch, const struct weft_event *event,
				    uint64_t now_ns);

/* The access of all paths at a moment; each may have changed. */
struct bench_access {
	uint64_t at_ns;
	unsigned count;
	struct weft_path_info paths[WEFT_PATHS_MAX];
	struct weft_ns_path through[WEFT_PATHS_MAX];
};

/* Paths with access before the load begins can be lost from its first I/O on. */
void bench_access_begin(struct bench_loss_watch *watch, uint64_t now_ns);
void bench_access_sample(const struct bench_loss_watch *watch, uint64_t now_ns,
			 struct bench_access *seen);
struct bench_loss *bench_access_note(struct bench_loss_watch *watch,
				     const struct bench_access *seen, unsigned i);

#endif
