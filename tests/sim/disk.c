/* disk.c - an operation is carried out some time after it was submitted, and reported some time
 * after that: now and then so late that whoever asked for it has given up long ago.
 *
 *   submit ─▶ under way ─▶ carried out ─▶ reported
 *                 └ its process is killed ─▶ never was, or is carried out all the same, whenever that is
 *
 * A way to a disk stands for an open file: it is left when it was closed and the last operation on
 * it is over. */
#include "disk.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler.h"

static struct disk {
	struct media media;
	bool trouble;
	unsigned failures;
} disks[DISKS];

struct way {
	struct weft_backend be;
	struct weft_list link;
	struct disk *disk;
	const struct sim_node *owner; /* NULL: dead */
	unsigned node, busy;
	bool closed;
};

struct work {
	struct weft_list link;
	struct sim_event event;
	struct weft_msg report;
	struct way *way;
	struct weft_io io;    /* as it was asked for */
	struct weft_io *asks; /* who; NULL: gone */
	struct weft_reactor *reactor;
	int rc;
};

static struct weft_list ways = { &ways, &ways }, works = { &works, &works };
static unsigned busy;

void disks_begin(void)
{
	must(!busy && weft_list_empty(&ways));
	memset(disks, 0, sizeof(disks));
}

const void *disk_at(unsigned disk, unsigned block)
{
	return disks[disk].media.cache + block * DISK_BLOCK;
}

void disk_carry_out(unsigned disk, const struct weft_io *io)
{
	media_carry_out(&disks[disk].media, io);
}

unsigned disks_busy(void)
{
	return busy;
}

/* --- ways ------------------------------------------------------------------------------------- */

static struct way *way_of(struct weft_backend *be)
{
	return container_of(be, struct way, be);
}

static bool is_left(const struct way *way, unsigned node)
{
	return way->node == node && (way->owner || way->busy);
}

bool disks_left(unsigned node)
{
	struct way *way;

	weft_list_for_each(way, &ways, link)
		if (is_left(way, node))
			return true;
	return false;
}

static bool disk_node_active(struct weft_backend *be, unsigned node)
{
	struct way *way;

	weft_list_for_each(way, &ways, link)
		if (way->disk == way_of(be)->disk && is_left(way, node))
			return true;
	return false;
}

static uint64_t disk_identity(struct weft_backend *be)
{
	return 0;
}

/* All are given the same. */
static int disk_lock_as(struct weft_backend *be, uint64_t as, uint64_t *other)
{
	return 0;
}

static void free_way(struct way *way)
{
	if (!way->closed || way->busy)
		return;
	weft_list_remove(&way->link);
	free(way->be.spec);
	free(way);
}

static void disk_close(struct weft_backend *be)
{
	way_of(be)->closed = true;
	way_of(be)->owner = NULL;
	free_way(way_of(be));
}

/* --- an operation ----------------------------------------------------------------------------- */

static void end_work(struct work *work)
{
	struct way *way = work->way;

	if (!work->asks && weft_io_changes(&work->io))
		free(work->io.buf);
	weft_list_remove(&work->link);
	free(work);
	busy--;
	way->busy--;
	free_way(way);
}

static void report(struct weft_msg *msg)
{
	struct work *work = container_of(msg, struct work, report);
	struct weft_io *asks = work->asks;
	int rc = work->rc;

	end_work(work);
	asks->done(asks, rc);
}

static void post_report(struct sim_event *event)
{
	struct work *work = container_of(event, struct work, event);

	work->report.fn = report;
	weft_reactor_post(work->reactor, &work->report);
}

/* What failed may have been done all the same. */
static bool fails(struct disk *disk)
{
	if (!disk->trouble || sim_chance(50))
		return false;
	disk->failures++;
	return true;
}

static void due(struct sim_event *event)
{
	struct work *work = container_of(event, struct work, event);
	struct disk *disk = work->way->disk;
	bool failed = fails(disk);

	if (!failed || (work->io.kind == WEFT_IO_WRITE && sim_chance(50)))
		media_carry_out(&disk->media, &work->io);
	if (!work->asks) {
		end_work(work);
		return;
	}
	work->rc = failed ? -EIO : 0;
	work->event.fn = post_report;
	sim_at(&work->event, sim_random(20 * US));
}

static uint64_t how_long(void)
{
	switch (sim_random(200)) {
	case 0:
		return sim_random(sim_chance(10) ? 15000 * MS : 3000 * MS);
	case 1:
	case 2:
	case 3:
		return sim_random(50 * MS);
	default:
		return 5 * US + sim_random(200 * US);
	}
}

static struct work *new_work(struct way *way, struct weft_io *io)
{
	struct work *work = calloc(1, sizeof(*work));

	must(work && io->offset + io->length <= DISK_BYTES);
	work->way = way;
	work->io = *io;
	work->asks = io;
	work->reactor = weft_reactor_self();
	way->busy++;
	busy++;
	weft_list_push(&works, &work->link);
	return work;
}

static int disk_submit(struct weft_backend *be, struct weft_io *io)
{
	struct work *work;

	if (!way_of(be)->owner)
		return -EIO;
	work = new_work(way_of(be), io);
	work->event.fn = due;
	sim_at(&work->event, how_long());
	return 0;
}

static const struct weft_backend_ops disk_ops = {
	.type = "sim",
	.submit = disk_submit,
	.node_active = disk_node_active,
	.lock_as = disk_lock_as,
	.identity = disk_identity,
	.close = disk_close,
};

struct weft_backend *disk_open(unsigned disk, unsigned node, const struct sim_node *owner)
{
	struct way *way = calloc(1, sizeof(*way));

	must(way);
	way->disk = &disks[disk];
	way->node = node;
	way->owner = owner;
	way->be.ops = &disk_ops;
	way->be.size = DISK_BYTES;
	way->be.align = 1;
	way->be.block_min = 512;
	way->be.spec = strdup("sim:disk");
	weft_list_push(&ways, &way->link);
	return &way->be;
}

/* --- trouble ---------------------------------------------------------------------------------- */

/* A dead process's memory is given back in order, so its operations are given back to it,
 * failed. */
static void give_back(struct work *work)
{
	struct work *answer = new_work(work->way, work->asks);

	answer->reactor = work->reactor;
	answer->rc = -EIO;
	post_report(&answer->event);
}

static void killed(struct work *work)
{
	bool carried_out = work->event.fn == post_report;
	void *copy = NULL;

	if (!weft_heap_has(&work->event.node)) /* its report is in the mail */
		return;
	give_back(work);
	if (weft_io_changes(&work->io)) {
		copy = malloc(work->io.length);
		must(copy);
		if (work->io.kind == WEFT_IO_WRITE)
			memcpy(copy, work->io.buf, work->io.length);
		work->io.buf = copy;
	}
	work->asks = NULL;
	if (copy && !carried_out && sim_chance(60))
		return;
	sim_cancel(&work->event);
	end_work(work);
}

void disks_killed(const struct sim_node *owner)
{
	struct weft_list before, *link;
	struct way *way;

	weft_list_init(&before);
	weft_list_splice(&before, &works);
	while ((link = weft_list_pop(&before))) {
		struct work *work = container_of(link, struct work, link);

		weft_list_push(&works, &work->link);
		if (work->way->owner == owner)
			killed(work);
	}
	weft_list_for_each(way, &ways, link)
		if (way->owner == owner)
			way->owner = NULL;
}

static void forget_late_ones(void)
{
	struct work *work, *tmp;

	weft_list_for_each_safe(work, tmp, &works, link) {
		if (work->asks)
			continue;
		sim_cancel(&work->event);
		end_work(work);
	}
}

void disks_lose_power(void)
{
	forget_late_ones();
	for (unsigned i = 0; i < DISKS; i++)
		media_lose_power(&disks[i].media);
}

void disk_trouble(unsigned disk, bool on)
{
	disks[disk].trouble = on;
}

unsigned disk_failures(unsigned disk)
{
	return disks[disk].failures;
}
