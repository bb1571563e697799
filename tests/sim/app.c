/* app.c - reads and writes, as many as fit, and what they may find. */
#include "app.h"

#include <stdio.h>
#include <string.h>

#include "host/internal.h"

static const char *const names[] = { "host a", "host b" };

static unsigned place(const struct app *app, unsigned block)
{
	return app->number * APP_BLOCKS + block;
}

/* --- stamps ------------------------------------------------------------------------------- */

static uint64_t stamp(const struct app *app, unsigned block, uint64_t n)
{
	return n ? (uint64_t)(place(app, block) + 1) << 48 | n : 0;
}

/* The number in it. */
static uint64_t check_stamp(const struct app *app, unsigned block, const uint64_t *data)
{
	uint64_t n = data[0] & 0xffffffffffff;

	must(data[0] == stamp(app, block, n));
	for (unsigned i = 1; i < DISK_BLOCK / 8; i++)
		must(data[i] == data[0]);
	return n;
}

/* --- one I/O ------------------------------------------------------------------------------ */

static void fill_write(struct app *app, struct app_io *io)
{
	struct app_block *b = &app->blocks[io->block];
	uint64_t value = stamp(app, io->block, ++b->issued);

	b->writing = true;
	for (unsigned i = 0; i < DISK_BLOCK / 8; i++)
		io->data[i] = value;
	io->cmd.op = WEFT_WRITE;
}

static void fill_read(struct app *app, struct app_io *io)
{
	const struct app_block *b = &app->blocks[io->block];

	io->floor = b->acked > b->seen ? b->acked : b->seen;
	memset(io->data, 0xee, sizeof(io->data));
	io->cmd.op = WEFT_READ;
}

static void check_read(struct app *app, const struct app_io *io)
{
	struct app_block *b = &app->blocks[io->block];
	uint64_t n = check_stamp(app, io->block, io->data);

	if (n < io->floor || n > b->issued)
		world_tell("%s: block %u holds %llu, must be %llu to %llu", app->sim.name,
			   io->block, (unsigned long long)n, (unsigned long long)io->floor,
			   (unsigned long long)b->issued);
	must(n >= io->floor);
	must(n <= b->issued);
	if (n > b->seen)
		b->seen = n;
}

static void done(struct weft_cmd *cmd)
{
	struct app_io *io = cmd->user;
	struct app *app = io->app;
	struct app_block *b = &app->blocks[io->block];

	if (cmd->rc < 0) {
		struct weft_err why;

		weft_cmd_text(cmd, &why);
		world_tell("%s: %s", app->sim.name, why.text);
	}
	must(cmd->rc == 0);
	if (cmd->op == WEFT_READ) {
		check_read(app, io);
	} else {
		b->acked = b->issued;
		b->writing = false;
	}
	io->busy = false;
	app->busy--;
	app->ios_done++;
}

static void start(struct app *app, struct app_io *io)
{
	io->app = app;
	io->block = (unsigned)world_random(APP_BLOCKS);
	memset(&io->cmd, 0, sizeof(io->cmd));
	if (world_chance(60) && !app->blocks[io->block].writing)
		fill_write(app, io);
	else
		fill_read(app, io);
	io->iov = (struct iovec){ io->data, DISK_BLOCK };
	io->cmd.ns = app->ns;
	io->cmd.iov = &io->iov;
	io->cmd.iovcnt = 1;
	io->cmd.length = DISK_BLOCK;
	io->cmd.offset = (uint64_t)place(app, io->block) * DISK_BLOCK;
	io->cmd.done = done;
	io->cmd.user = io;
	io->busy = true;
	app->busy++;
	must(!weft_submit(app->queue, &io->cmd));
}

/* --- the program -------------------------------------------------------------------------- */

static void drive(void *arg)
{
	struct app *app = arg;

	for (unsigned i = 0; i < APP_DEPTH && !app->ending; i++)
		if (!app->ios[i].busy && world_chance(50))
			start(app, &app->ios[i]);
	weft_queue_poll(app->queue, 0);
}

void app_start(struct app *app, unsigned number, const char *uri)
{
	struct weft_options options;
	struct weft_err err = { "" };
	char hostnqn[80], hostid[40];

	memset(app, 0, sizeof(*app));
	app->number = number;
	app->sim.name = names[number];
	world_node = &app->sim;
	snprintf(hostid, sizeof(hostid), "11111111-1111-4111-8111-11111111110%u", number);
	snprintf(hostnqn, sizeof(hostnqn), "nqn.2014-08.org.nvmexpress:uuid:%s", hostid);
	weft_options_init(&options);
	options.hostnqn = hostnqn;
	options.hostid = hostid;
	if (weft_connect(uri, &options, &app->ctrl, &err) < 0 ||
	    weft_ns_open(app->ctrl, 1, &app->ns, &err) < 0 ||
	    weft_queue_open(app->ctrl, &app->queue, &err) < 0) {
		world_tell("%s: %s", app->sim.name, err.text);
		must(!"connected");
	}
	world_add_reactor(app->queue->reactor, &app->sim, drive, app);
}

static bool is_idle(void *arg)
{
	struct app *app = arg;

	return !app->busy;
}

void app_end(struct app *app)
{
	app->ending = true;
	must(world_run_until(is_idle, app, 120000 * MS));
}

void app_check(const struct app *app)
{
	for (unsigned i = 0; i < APP_BLOCKS; i++) {
		uint64_t n = check_stamp(app, i, disk_at(place(app, i)));

		if (n != app->blocks[i].acked)
			world_tell("%s: block %u: storage holds %llu, acknowledged was %llu",
				   app->sim.name, i, (unsigned long long)n,
				   (unsigned long long)app->blocks[i].acked);
		must(n == app->blocks[i].acked);
	}
}

void app_close(struct app *app)
{
	world_node = &app->sim;
	world_remove_reactor(app->queue->reactor);
	weft_queue_close(app->queue);
	weft_ns_close(app->ns);
	weft_disconnect(app->ctrl);
}
