/* app.c - reads, writes and flushes, as many as fit, and what comes of them. */
#include "app.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/internal.h"

static const char *const names[] = { "host a", "host b" };

static_assert(sizeof(((struct app_io *)0)->data) >= DISK_BLOCKS * sizeof(uint64_t),
	      "a flush keeps its marks there");

/* --- the end of one --------------------------------------------------------------------------- */

static void check_failure(struct app *app, const struct app_io *io)
{
	bool unsent = io->cmd.rc == -ENOTCONN || io->cmd.rc == -EUSERS;
	bool lost = unsent || io->cmd.rc == -ECONNRESET;
	struct weft_err why;

	weft_cmd_text(&io->cmd, &why);
	sim_tell("%s: %s", app->sim.name, why.text);
	must((app->may_fail && lost) || disk_failures(io->disk) > io->failures);
	if (!lost || io->cmd.op != WEFT_WRITE)
		return;
	ledger_failed(io->block, io->cmd.rc);
	app->unknown += io->cmd.rc == -ECONNRESET;
	app->undone += unsent;
}

/* What began before power was lost was true then. */
static void check_success(struct app_io *io)
{
	bool current = io->epoch == ledger_epoch();

	switch (io->cmd.op) {
	case WEFT_READ:
		ledger_found(io->block, current ? io->floor : 0, io->data);
		break;
	case WEFT_WRITE:
		ledger_written(io->block, io->cmd.flags & WEFT_FUA);
		break;
	default:
		if (current)
			ledger_flushed(io->disk, io->data);
	}
}

static void on_io_done(struct weft_cmd *cmd)
{
	struct app_io *io = cmd->user;
	struct app *app = io->app;

	if (cmd->rc < 0)
		check_failure(app, io);
	else
		check_success(io);
	if (cmd->op != WEFT_FLUSH)
		ledger_put(io->block, cmd->op == WEFT_WRITE);
	must(io->busy);
	io->busy = false;
	app->busy--;
	app->ios_done++;
}

/* --- the beginning of one --------------------------------------------------------------------- */

static void fill_flush(struct app_io *io)
{
	io->disk = (unsigned)sim_random(DISKS);
	io->cmd.op = WEFT_FLUSH;
	ledger_mark(io->disk, io->data);
}

static bool fill_block(struct app_io *io, bool write)
{
	int block = ledger_take(io->app->number, write);

	if (block < 0)
		return false;
	io->block = (unsigned)block;
	io->disk = io->block / DISK_BLOCKS;
	io->iov = (struct iovec){ io->data, DISK_BLOCK };
	io->cmd.op = write ? WEFT_WRITE : WEFT_READ;
	io->cmd.iov = &io->iov;
	io->cmd.iovcnt = 1;
	io->cmd.length = DISK_BLOCK;
	io->cmd.offset = (uint64_t)(io->block % DISK_BLOCKS) * DISK_BLOCK;
	if (write) {
		io->cmd.flags = sim_chance(10) ? WEFT_FUA : 0;
		ledger_fill(io->block, io->data);
	} else {
		io->floor = ledger_floor(io->block);
		memset(io->data, 0xee, sizeof(io->data));
	}
	return true;
}

static void submit_io(struct app *app, struct app_io *io)
{
	memset(&io->cmd, 0, sizeof(io->cmd));
	io->app = app;
	if (sim_chance(2))
		fill_flush(io);
	else if (!fill_block(io, sim_chance(60)))
		return;
	io->epoch = ledger_epoch();
	io->failures = disk_failures(io->disk);
	io->cmd.ns = app->ns[io->disk];
	io->cmd.done = on_io_done;
	io->cmd.user = io;
	io->busy = true;
	app->busy++;
	io->cmd.rc = weft_submit(app->queue, &io->cmd);
	if (io->cmd.rc < 0)
		on_io_done(&io->cmd);
}

/* --- the program ------------------------------------------------------------------------------ */

static void drive_app(void *arg)
{
	struct app *app = arg;
	bool idle = app->ending || weft_ctrl_state(app->ctrl, NULL) == WEFT_DEAD;

	for (unsigned i = 0; i < APP_DEPTH && !idle; i++)
		if (!app->ios[i].busy && sim_chance(50))
			submit_io(app, &app->ios[i]);
	weft_queue_poll(app->queue, 0);
}

static void disconnect(struct app *app)
{
	if (app->queue) {
		sim_remove_reactor(app->queue->reactor);
		weft_queue_close(app->queue);
	}
	for (unsigned i = 0; i < DISKS; i++)
		weft_ns_close(app->ns[i]);
	weft_disconnect(app->ctrl);
	app->queue = NULL;
	memset(app->ns, 0, sizeof(app->ns));
	app->ctrl = NULL;
}

static int connect_to(struct app *app, struct weft_err *err)
{
	struct weft_options options;
	char hostnqn[80], hostid[40];
	int rc;

	snprintf(hostid, sizeof(hostid), "11111111-1111-4111-8111-11111111110%u", app->number);
	snprintf(hostnqn, sizeof(hostnqn), "nqn.2014-08.org.nvmexpress:uuid:%s", hostid);
	weft_options_init(&options);
	options.hostnqn = hostnqn;
	options.hostid = hostid;
	rc = weft_connect(app->uri, &options, &app->ctrl, err);
	for (unsigned i = 0; i < DISKS && rc == 0; i++)
		rc = weft_ns_open(app->ctrl, i + 1, &app->ns[i], err);
	if (rc == 0)
		rc = weft_queue_open(app->ctrl, &app->queue, err);
	if (rc == 0)
		sim_add_reactor(app->queue->reactor, &app->sim, drive_app, app);
	else
		disconnect(app);
	return rc;
}

void app_start(struct app *app, unsigned number, const char *uri, bool may_fail)
{
	struct weft_err err = { "" };

	memset(app, 0, sizeof(*app));
	app->number = number;
	app->uri = uri;
	app->may_fail = may_fail;
	app->sim.name = names[number];
	sim_current_node = &app->sim;
	if (connect_to(app, &err) < 0) {
		sim_tell("%s: %s", app->sim.name, err.text);
		must(!"connected");
	}
}

void app_look(struct app *app)
{
	if (app->busy || (app->ctrl && weft_ctrl_state(app->ctrl, NULL) != WEFT_DEAD))
		return;
	sim_current_node = &app->sim;
	if (app->ctrl)
		disconnect(app);
	if (connect_to(app, NULL) == 0)
		sim_tell("%s: connected anew", app->sim.name);
	sim_current_node = NULL;
}

static bool is_idle(void *arg)
{
	struct app *app = arg;

	return !app->busy;
}

void app_end(struct app *app)
{
	app->ending = true;
	must(sim_run_until(is_idle, app, 120000 * MS));
}

void app_close(struct app *app)
{
	sim_current_node = &app->sim;
	disconnect(app);
}
