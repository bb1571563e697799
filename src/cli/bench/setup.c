/* setup.c - the connection, the namespace and the region of a run; impossible options are refused
 * here, before the first I/O. */
#include <errno.h>
#include <inttypes.h>

#include "base/plural.h"
#include "base/units.h"
#include "cli/bench/job.h"
#include "cli/host_options.h"

#define COMMAND      "weft bench"
#define GIB          (UINT64_C(1) << 30)
#define MEMORY_MAX   (8 * GIB)
#define LEDGER_MAX   (UINT64_C(1) << 25) /* chunks: 900 MiB, if all of them are written */
#define DEPTH_OPTION 128u
#define DEPTH_MAX    4096u /* of a connection */
#define QUEUES_MAX   1024u

static int connect_ctrl(struct bench_load *load, struct weft_err *err)
{
	const struct bench_config *c = load->config;
	unsigned each = (c->depth + c->queues - 1) / c->queues + 1; /* and a flush */
	struct weft_options options = c->connect;
	int rc;

	options.queues = c->jobs * c->queues;
	options.depth = each > DEPTH_OPTION ? each : DEPTH_OPTION;
	if (options.queues > QUEUES_MAX)
		options.queues = QUEUES_MAX;
	if (options.depth > DEPTH_MAX)
		options.depth = DEPTH_MAX; /* the rest waits in the queue */
	rc = weft_host_connect(COMMAND, c->uri, &options, &load->ctrl, err);
	if (!rc)
		weft_ctrl_info(load->ctrl, &load->info);
	return rc;
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

static int open_ns(struct bench_load *load, struct weft_err *err)
{
	const struct bench_config *c = load->config;
	uint32_t nsid;
	int rc = weft_host_nsid(load->ctrl, c->uri, c->nsid, &nsid, err);

	if (!rc)
		rc = weft_host_ns_open(load->ctrl, c->uri, nsid, &load->ns, err);
	if (!rc)
		weft_ns_info(load->ns, &load->ns_info);
	return rc;
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
	rc = connect_ctrl(load, err);
	if (!rc)
		rc = open_ns(load, err);
	if (!rc)
		rc = check_ctrl(load, err);
	if (!rc)
		rc = set_region(load, config, err);
	if (!rc)
		weft_host_path_wait(&load->waiting, COMMAND, config->uri, &config->connect,
				    load->ctrl, load->ns);
	return rc;
}
