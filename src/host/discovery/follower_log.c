/* follower_log.c - reads the log of a followed discovery service on the control reactor, in parts,
 * and keeps only the entries that matter.
 *
 *   header ─▶ entries, 16 at a time ─▶ header: the same generation? ─▶ the log counts
 *     ▲                                   └ another: again, 8 times, then after a pause
 *     └ an event says that the log changed, or the connection is a new one
 *
 * (weft_discovery_read() does the same synchronously, and keeps all entries.) */
#include <errno.h>
#include <string.h>

#include "host/discovery/follower.h"

enum { AGAIN_MS = 1000 };

static void read_log_header(struct host_follower *follower,
			    void (*done)(struct host_admin *a, int rc));

static struct host_follower *follower_of(struct host_admin *a)
{
	return container_of(a, struct host_follower, reading.cmd);
}

static void send_get_log_page(struct host_follower *follower, uint64_t offset, size_t length,
			      void (*done)(struct host_admin *a, int rc))
{
	struct host_path *path = host_follower_path(follower);
	struct host_admin *a = &follower->reading.cmd;

	host_admin_prepare(a, "Get Log Page", done);
	memset(follower->reading.page, 0, length);
	a->iov = (struct iovec){ follower->reading.page, length };
	host_fill_log_page(&a->cmd, NVME_LOG_LID_DISCOVER, 0, offset, (uint32_t)length);
	host_admin_start(path, a, path->config.options.admin_ms);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void on_log_retry_timer(struct weft_timer *timer)
{
	host_follower_read_log(container_of(timer, struct host_follower, reading.retry_timer));
}

static void log_read_failed(struct host_follower *follower, int rc, const struct weft_err *why)
{
	host_follower_failed(follower, rc, why);
	follower->reading.retry_timer.fn = on_log_retry_timer;
	weft_timer_set(follower->ctrl->reactor, &follower->reading.retry_timer, AGAIN_MS);
}

/* false: this read has ended. After a loss the follower reconnects and reads the log anew. */
static bool log_cmd_ok(struct host_follower *follower, int rc)
{
	struct weft_err why = { "" };
	uint16_t status;

	if (rc < 0 || follower->ctrl->stopping)
		return false;
	status = host_status(&follower->reading.cmd.cqe);
	if (!status)
		return true;
	rc = host_fail_status(&why, "Get Log Page", status);
	log_read_failed(follower, rc, &why);
	return false;
}

static void log_read_begin(struct host_follower *follower);

static void log_changed_while_read(struct host_follower *follower)
{
	struct weft_err why = { "" };

	if (++follower->reading.tries < HOST_DISC_LOG_TRIES_MAX) {
		log_read_begin(follower);
		return;
	}
	weft_fail(&why, 0, "the discovery log changed %d times while it was read",
		  HOST_DISC_LOG_TRIES_MAX);
	log_read_failed(follower, -EAGAIN, &why);
}

static void log_read_complete(struct host_follower *follower)
{
	follower->log = follower->reading.log;
	host_follower_log_complete(follower);
	if (follower->reading.stale)
		host_follower_read_log(follower);
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Numeric addresses only: a peer must not choose what this host asks its resolver. */
static bool parse_discovered_addr(const struct weft_discovered *d,
				  struct host_discovered_addr *daddr)
{
	struct weft_uri_parts parts;

	if (!d->uri[0] || weft_uri_split(d->uri, &parts, NULL) < 0 || !parts.port)
		return false;
	daddr->transport = weft_link_transport_find(parts.trtype);
	return !weft_addr_parse(parts.host, parts.port, &daddr->addr);
}

static void add_discovered_addr(struct host_discovered_addr *daddrs, unsigned *count,
				const struct host_discovered_addr *daddr)
{
	for (unsigned i = 0; i < *count; i++)
		if (daddrs[i].transport == daddr->transport &&
		    weft_addr_equal(&daddrs[i].addr, &daddr->addr))
			return;
	if (*count < HOST_DISCOVERED_MAX)
		daddrs[(*count)++] = *daddr;
}

static void handle_log_entry(struct host_follower *follower,
			     const struct nvmf_disc_log_entry *entry)
{
	struct host_disc_log *log = &follower->reading.log;
	struct weft_discovered decoded;
	struct host_discovered_addr daddr;

	host_disc_log_decode_entry(entry, &host_follower_path(follower)->config.addr, &decoded);
	if (decoded.subtype == NVME_NQN_DISC && parse_discovered_addr(&decoded, &daddr))
		add_discovered_addr(log->referrals, &log->nreferrals, &daddr);
	else if (decoded.subtype == NVME_NQN_NVME &&
		 !strcmp(decoded.subnqn, follower->wanted.subnqn) &&
		 parse_discovered_addr(&decoded, &daddr))
		add_discovered_addr(log->addrs, &log->naddrs, &daddr);
}

static unsigned entries_of_next_cmd(const struct host_follower *follower)
{
	const struct host_disc_log_read *r = &follower->reading;
	uint64_t left = r->total - r->at;
	uint64_t most = host_follower_path(follower)->assoc.traits.transfer_max /
			sizeof(struct nvmf_disc_log_entry);

	most = most < HOST_DISC_LOG_ENTRIES_PER_CMD ? most : HOST_DISC_LOG_ENTRIES_PER_CMD;
	return (unsigned)(left < most ? left : most);
}

static void on_header_recheck(struct host_admin *a, int rc)
{
	struct host_follower *follower = follower_of(a);
	const struct host_disc_log_header *header = (const void *)follower->reading.page;

	if (!log_cmd_ok(follower, rc))
		return;
	if (le64_to_cpu(header->genctr) == follower->reading.generation)
		log_read_complete(follower);
	else
		log_changed_while_read(follower);
}

static void read_log_entries(struct host_follower *follower);

static void on_log_entries(struct host_admin *a, int rc)
{
	struct host_follower *follower = follower_of(a);
	const struct nvmf_disc_log_entry *entries = (const void *)follower->reading.page;

	if (!log_cmd_ok(follower, rc))
		return;
	for (size_t i = 0; i < a->iov.iov_len / sizeof(*entries); i++, follower->reading.at++)
		handle_log_entry(follower, &entries[i]);
	if (follower->reading.at < follower->reading.total)
		read_log_entries(follower);
	else
		read_log_header(follower, on_header_recheck);
}

static void read_log_entries(struct host_follower *follower)
{
	send_get_log_page(follower, sizeof(struct nvmf_disc_log_entry) * (follower->reading.at + 1),
			  sizeof(struct nvmf_disc_log_entry) * entries_of_next_cmd(follower),
			  on_log_entries);
}

/* --- the header ------------------------------------------------------------------------------- */

static void on_log_header(struct host_admin *a, int rc)
{
	struct host_follower *follower = follower_of(a);
	const struct host_disc_log_header *header = (const void *)follower->reading.page;
	struct weft_err why = { "" };

	if (!log_cmd_ok(follower, rc))
		return;
	rc = host_disc_log_check_header(header, follower->wanted.options.discovery_entries,
					&follower->wanted.options, &why);
	if (rc < 0) {
		log_read_failed(follower, rc, &why);
		return;
	}
	follower->reading.generation = le64_to_cpu(header->genctr);
	follower->reading.total = le64_to_cpu(header->numrec);
	if (follower->reading.total)
		read_log_entries(follower);
	else
		log_read_complete(follower);
}

static void read_log_header(struct host_follower *follower,
			    void (*done)(struct host_admin *a, int rc))
{
	send_get_log_page(follower, 0, sizeof(struct host_disc_log_header), done);
}

static void log_read_begin(struct host_follower *follower)
{
	follower->reading.at = 0;
	follower->reading.stale = false;
	follower->reading.log.naddrs = follower->reading.log.nreferrals = 0;
	read_log_header(follower, on_log_header);
}

void host_follower_read_log(struct host_follower *follower)
{
	follower->reading.stale = follower->reading.cmd.inflight;
	if (follower->reading.cmd.inflight || follower->state != WEFT_LIVE)
		return;
	weft_timer_stop(follower->ctrl->reactor, &follower->reading.retry_timer);
	follower->reading.tries = 0;
	log_read_begin(follower);
}

void host_follower_read_stop(struct host_follower *follower)
{
	weft_timer_stop(follower->ctrl->reactor, &follower->reading.retry_timer);
}
