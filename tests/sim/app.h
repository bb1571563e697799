/* app.h - a program that uses the namespaces, and never forgets what it wrote (ledger.h).
 *
 * Whatever happens to targets and ways, it gets its answers, in the end, and they are good. Only
 * what a disk refused may fail; and, of a host that gives its target up or does not send writes
 * again, what it had under way then: it connects anew, and goes on. */
#ifndef SIM_APP_H
#define SIM_APP_H

#include <weft/host.h>

#include "ledger.h"
#include "scheduler.h"

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
	const char *uri;
	bool may_fail;
	struct weft_ctrl *ctrl; /* NULL: it cannot connect, for now */
	struct weft_ns *ns[DISKS];
	struct weft_queue *queue;
	struct app_io ios[APP_DEPTH];
	unsigned busy;
	uint64_t ios_done;
	bool ending;              /* no new ones */
	unsigned unknown, undone; /* writes that failed */
};

/* @uri stays in place until app_close(). @may_fail: for want of a connection. */
void app_start(struct app *app, unsigned number, const char *uri, bool may_fail);
/* Connects anew, if its controller is dead and nothing is under way. */
void app_look(struct app *app);
/* Lets what is under way end. */
void app_end(struct app *app);
void app_close(struct app *app);

#endif
