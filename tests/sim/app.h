/* app.h - a program that uses the namespace, and never forgets what it wrote.
 *
 * Every block holds a stamp: whose it is, which one, and a number that grows with each write. Only
 * one write of a block is under way at a time, as NVMe asks for. So a read may find the last write
 * that was acknowledged before it began, or one that was issued since; never one that is older than
 * what was seen before, and never parts of two. */
#ifndef SIM_APP_H
#define SIM_APP_H

#include <weft/host.h>

#include "disk.h"
#include "world.h"

enum { APP_BLOCKS = DISK_BLOCKS / 2, APP_DEPTH = 8 };

struct app_block {
	uint64_t issued, acked, seen; /* writes */
	bool writing;
};

struct app_io {
	struct weft_cmd cmd;
	struct iovec iov;
	struct app *app;
	unsigned block;
	uint64_t floor; /* reads: what it must find at least */
	bool busy;
	uint64_t data[DISK_BLOCK / 8];
};

struct app {
	struct sim_node sim;
	unsigned number; /* 0 or 1: which half of the disk is its own */
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_queue *queue;
	struct app_block blocks[APP_BLOCKS];
	struct app_io ios[APP_DEPTH];
	unsigned busy;
	uint64_t ios_done;
	bool ending; /* no new ones */
};

void app_start(struct app *app, unsigned number, const char *uri);
/* Lets what is under way end. */
void app_end(struct app *app);
/* What storage holds is what was last acknowledged. */
void app_check(const struct app *app);
void app_close(struct app *app);

#endif
