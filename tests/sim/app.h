/* app.h - a program that uses the namespaces, and never forgets what it wrote (ledger.h).
 *
 * Whatever happens to targets and ways, it gets its answers, in the end, and they are good. Only
 * what a disk refused may fail. */
#ifndef SIM_APP_H
#define SIM_APP_H

#include <weft/host.h>

#include "ledger.h"
#include "world.h"

enum { APP_DEPTH = 8 };

struct app_io {
	struct weft_cmd cmd;
	struct iovec iov;
	struct app *app;
	unsigned disk, block; /* a flush is of a disk only */
	uint64_t floor;       /* reads: what it must find at least */
	unsigned epoch, failures;
	bool busy;
	uint64_t data[LEDGER_WORDS];
};

struct app {
	struct sim_node sim;
	unsigned number;
	struct weft_ctrl *ctrl;
	struct weft_ns *ns[DISKS];
	struct weft_queue *queue;
	struct app_io ios[APP_DEPTH];
	unsigned busy;
	uint64_t ios_done;
	bool ending; /* no new ones */
};

void app_start(struct app *app, unsigned number, const char *uri);
/* Lets what is under way end. */
void app_end(struct app *app);
void app_close(struct app *app);

#endif
