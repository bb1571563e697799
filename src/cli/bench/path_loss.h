/* path_loss.h - path losses of a run (failover): when a path was lost, why, and for how long.
 *
 *   events of the library ─▶ connections ─┐
 *   samples of each path's access ────────┴─▶ bench_losses ─▶ standard error, JSON, the plot */
#ifndef WEFT_CLI_BENCH_PATH_LOSS_H
#define WEFT_CLI_BENCH_PATH_LOSS_H

#include <stdbool.h>
#include <stdint.h>
#include <weft/host.h>

enum { BENCH_LOSSES_MAX = 256, BENCH_PATHS_SEEN = 64 };

struct bench_loss {
	double at_s;    /* since the warm-up's end */
	double seconds; /* until it could be used again; < 0: that was not seen */
	char path[128]; /* nvme+tcp://HOST:PORT */
	char why[256];
	bool access; /* the connection is there, and the namespace cannot be reached through it */
	bool alone;  /* it was the only path, and is reported as the connection */
};

struct bench_losses {
	struct bench_loss at[BENCH_LOSSES_MAX];
	unsigned count;
	uint64_t more; /* losses without room in the list */
};

/* The connection of @path, or @access through it, is lost because of @why, or is back: the loss
 * that begins or ends with it; NULL if nothing has changed. */
struct bench_loss *bench_loss_note(struct bench_losses *losses, const char *path, bool access,
				   bool lost, const char *why, double at_s);
const char *bench_loss_address(const struct bench_loss *loss); /* HOST:PORT */

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
