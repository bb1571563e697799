/* setup.c - what a run needs of its connection, and its region of the namespace; impossible options
 * are refused here, before the first I/O. */
#include <errno.h>
#include <inttypes.h>

#include "base/plural.h"
#include "base/units.h"
#include "bench/job.h"

#define GIB          (UINT64_C(1) << 30)
#define MEMORY_MAX   (8 * GIB)
#define LEDGER_MAX   (UINT64_C(1) << 25) /* chunks: 900 MiB, if all of them are written */
#define DEPTH_OPTION 128u
#define DEPTH_MAX    4096u /* of a connection */
#define QUEUES_MAX   1024u

void bench_connect_options(const struct bench_config *c, struct weft_options *options)
{
	unsigned each = (c->depth + c->queues - 1) / c->queues + 1; /* and a flush */

	options->queues = c->jobs * c->queues;
	options->depth = each > DEPTH_OPTION ? each : DEPTH_OPTION;
	if (options->queues > QUEUES_MAX)
		options->queues = QUEUES_MAX;
	if (options->depth > DEPTH_MAX)
		options->depth = DEPTH_MAX; /* the rest waits in the queue */
}

static int check_ctrl(const struct bench_load *load, struct weft_err *err)
{
	const struct bench_config *c = load->config;
	unsigned wanted = c->jobs * c->queues;

	if (load->info.queues < wanted)
		return weft_fail(err, -EINVAL,
				 "%u job%s with %u queue%s need %u, and the controller has %u; "
				 "use fewer --jobs or --queues",
				 c->jobs, weft_plural(c->jobs), c->queues, weft_plural(c->queues),
				 wanted, load->info.queues);
	return 0;
}

/* --- the region ------------------------------------------------------------------------------- */

static int check_blocks(const struct bench_load *load, struct weft_err *err)
{
	const struct bench_config *c = load->config;
	const struct weft_ns_info *ns = &load->ns_info;

	if (bench_writes(c) && ns->read_only)
		return weft_fail(err, -EROFS, "namespace %u is read-only: --rw read or randread",
				 ns->nsid);
	if (c->bs % ns->block_size || c->offset % ns->block_size)
		return weft_fail(err, -EINVAL,
				 "--bs and --offset must be multiples of the block size, which is "
				 "%u",
				 ns->block_size);
	if (c->offset >= ns->size || c->size > ns->size - c->offset)
		return weft_fail(err, -ERANGE,
				 "--offset and --size reach beyond namespace %u, which has %s",
				 ns->nsid, weft_exact_text(ns->size).s);
	return 0;
}

static int check_memory(const struct bench_config *c, struct weft_err *err)
{
	uint64_t bytes = c->depth * c->bs * c->jobs;

	if (bytes > MEMORY_MAX)
		return weft_fail(err, -ENOMEM,
				 "%u job%s with %u I/O%s of %s would need %s of memory; use less",
				 c->jobs, weft_plural(c->jobs), c->depth, weft_plural(c->depth),
				 weft_unit_size_text(c->bs).s, weft_unit_size_text(bytes).s);
	if (c->verify && c->size / c->bs > LEDGER_MAX)
		return weft_fail(err, -ENOMEM,
				 "--verify remembers every block, and these are too many; add "
				 "--size %" PRIu64 "G or less",
				 LEDGER_MAX * c->bs / GIB);
	return 0;
}

static int set_region(const struct bench_load *load, struct bench_config *c, struct weft_err *err)
{
	int rc = check_blocks(load, err);

	if (rc < 0)
		return rc;
	if (!c->size)
		c->size = load->ns_info.size - c->offset;
	c->size -= c->size % c->bs;
	if (c->size / c->bs < c->jobs)
		return weft_fail(err, -ERANGE,
				 "the region is too small: it has %" PRIu64 " block%s of %s for %u "
				 "job%s",
				 c->size / c->bs, weft_plural(c->size / c->bs),
				 weft_unit_size_text(c->bs).s, c->jobs, weft_plural(c->jobs));
	return check_memory(c, err);
}

int bench_setup(struct bench_load *load, struct bench_config *config, struct weft_err *err)
{
	int rc;

	load->config = config;
	weft_ctrl_info(load->ctrl, &load->info);
	weft_ns_info(load->ns, &load->ns_info);
	rc = check_ctrl(load, err);
	return rc ? rc : set_region(load, config, err);
}
