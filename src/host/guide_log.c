/* guide_log.c - a discovery log is read on home, in pieces, and only what matters of it is kept.
 *
 *   header ─▶ entries, 16 at a time ─▶ header: the same generation? ─▶ it counts
 *     ▲                                   └ another: again, 8 times, then after a pause
 *     └ an event says that it changed, or the connection is a new one
 *
 * (weft_discovery_read() is the same for a program that waits, and wants all of it.) */
#include <errno.h>
#include <string.h>

#include "host/guide.h"

enum { AGAIN_MS = 1000 };

static void read_header(struct host_guide *guide, void (*done)(struct host_admin *a, int rc));

static struct host_guide *guide_of(struct host_admin *a)
{
	return container_of(a, struct host_guide, reading.cmd);
}

static void start(struct host_guide *guide, uint64_t offset, size_t length,
		  void (*done)(struct host_admin *a, int rc))
{
	struct host_path *path = host_guide_path(guide);
	struct host_admin *a = &guide->reading.cmd;

	memset(a, 0, sizeof(*a));
	memset(guide->reading.page, 0, length);
	a->name = "Get Log Page";
	a->done = done;
	a->iov = (struct iovec){ guide->reading.page, length };
	host_fill_log_page(&a->cmd, NVME_LOG_LID_DISCOVER, 0, offset, (uint32_t)length);
	guide->reading.out = true;
	host_admin_start(path, a, path->config.options.admin_ms);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void on_again(struct weft_timer *timer)
{
	host_guide_read(container_of(timer, struct host_guide, reading.again));
}

static void fail(struct host_guide *guide, int rc, const struct weft_err *why)
{
	host_guide_failed(guide, rc, why);
	guide->reading.again.fn = on_again;
	weft_timer_set(guide->ctrl->reactor, &guide->reading.again, AGAIN_MS);
}

/* false: it is over. A connection that is lost is made again, and the log read then. */
static bool goes_on(struct host_guide *guide, int rc)
{
	struct weft_err why = { "" };
	uint16_t status;

	guide->reading.out = false;
	if (rc < 0 || guide->ctrl->stopping)
		return false;
	status = host_status(&guide->reading.cmd.cqe);
	if (!status)
		return true;
	rc = host_fail_status(&why, "Get Log Page", status);
	fail(guide, rc, &why);
	return false;
}

static void begin(struct host_guide *guide);

static void changed_meanwhile(struct host_guide *guide)
{
	struct weft_err why = { "" };

	if (++guide->reading.rounds < HOST_LOG_ROUNDS_MAX) {
		begin(guide);
		return;
	}
	weft_fail(&why, 0, "the discovery log changed %d times while it was read",
		  HOST_LOG_ROUNDS_MAX);
	fail(guide, -EAGAIN, &why);
}

static void complete(struct host_guide *guide)
{
	guide->listing = guide->reading.listing;
	host_guide_answered(guide);
	if (guide->reading.stale)
		host_guide_read(guide);
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Addresses only: what names stand for is not a matter of the peer's. */
static bool find_spot(const struct weft_discovered *d, struct host_spot *spot)
{
	struct weft_uri_parts parts;

	if (!d->uri[0] || weft_uri_split(d->uri, &parts, NULL) < 0 || !parts.port)
		return false;
	spot->transport = weft_link_transport(parts.trtype);
	return !weft_addr_parse(parts.host, parts.port, &spot->addr);
}

static void keep(struct host_spot *spots, unsigned *count, const struct host_spot *spot)
{
	for (unsigned i = 0; i < *count; i++)
		if (spots[i].transport == spot->transport &&
		    weft_addr_equal(&spots[i].addr, &spot->addr))
			return;
	if (*count < HOST_LISTED_MAX)
		spots[(*count)++] = *spot;
}

static void take_entry(struct host_guide *guide, const struct nvmf_disc_log_entry *entry)
{
	struct host_listing *listing = &guide->reading.listing;
	struct weft_discovered decoded;
	struct host_spot spot;

	host_log_decode(entry, &host_guide_path(guide)->config.addr, &decoded);
	if (decoded.subtype == NVME_NQN_DISC && find_spot(&decoded, &spot))
		keep(listing->referrals, &listing->nreferrals, &spot);
	else if (decoded.subtype == NVME_NQN_NVME &&
		 !strcmp(decoded.subnqn, guide->wanted.subnqn) && find_spot(&decoded, &spot))
		keep(listing->places, &listing->nplaces, &spot);
}

static unsigned piece_of(const struct host_guide *guide)
{
	const struct host_reading *r = &guide->reading;
	uint64_t left = r->total - r->at;
	uint64_t most = host_guide_path(guide)->traits.transfer_max /
			sizeof(struct nvmf_disc_log_entry);

	most = most < HOST_LOG_PIECE ? most : HOST_LOG_PIECE;
	return (unsigned)(left < most ? left : most);
}

static void on_last_header(struct host_admin *a, int rc)
{
	struct host_guide *guide = guide_of(a);
	const struct host_log_header *header = (const void *)guide->reading.page;

	if (!goes_on(guide, rc))
		return;
	if (le64_to_cpu(header->genctr) == guide->reading.generation)
		complete(guide);
	else
		changed_meanwhile(guide);
}

static void read_piece(struct host_guide *guide);

static void on_piece(struct host_admin *a, int rc)
{
	struct host_guide *guide = guide_of(a);
	const struct nvmf_disc_log_entry *entries = (const void *)guide->reading.page;

	if (!goes_on(guide, rc))
		return;
	for (size_t i = 0; i < a->iov.iov_len / sizeof(*entries); i++, guide->reading.at++)
		take_entry(guide, &entries[i]);
	if (guide->reading.at < guide->reading.total)
		read_piece(guide);
	else
		read_header(guide, on_last_header);
}

static void read_piece(struct host_guide *guide)
{
	start(guide, sizeof(struct nvmf_disc_log_entry) * (guide->reading.at + 1),
	      sizeof(struct nvmf_disc_log_entry) * piece_of(guide), on_piece);
}

/* --- the header ------------------------------------------------------------------------------- */

static void on_first_header(struct host_admin *a, int rc)
{
	struct host_guide *guide = guide_of(a);
	const struct host_log_header *header = (const void *)guide->reading.page;
	struct weft_err why = { "" };

	if (!goes_on(guide, rc))
		return;
	rc = host_log_check(header, guide->wanted.options.discovery_entries, &guide->wanted.options,
			    &why);
	if (rc < 0) {
		fail(guide, rc, &why);
		return;
	}
	guide->reading.generation = le64_to_cpu(header->genctr);
	guide->reading.total = le64_to_cpu(header->numrec);
	if (guide->reading.total)
		read_piece(guide);
	else
		complete(guide);
}

static void read_header(struct host_guide *guide, void (*done)(struct host_admin *a, int rc))
{
	start(guide, 0, sizeof(struct host_log_header), done);
}

static void begin(struct host_guide *guide)
{
	guide->reading.at = 0;
	guide->reading.stale = false;
	guide->reading.listing.nplaces = guide->reading.listing.nreferrals = 0;
	read_header(guide, on_first_header);
}

void host_guide_read(struct host_guide *guide)
{
	guide->reading.stale = guide->reading.out;
	if (guide->reading.out || guide->state != WEFT_LIVE)
		return;
	weft_timer_stop(guide->ctrl->reactor, &guide->reading.again);
	guide->reading.rounds = 0;
	begin(guide);
}

void host_guide_read_stop(struct host_guide *guide)
{
	weft_timer_stop(guide->ctrl->reactor, &guide->reading.again);
}
