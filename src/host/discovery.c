/* discovery.c - what a discovery service knows, and those that it refers to.
 *
 *   header: generation, count ─▶ entries, in pieces ─▶ header: the same generation? else again
 *
 *   service ─▶ log ─┬─▶ entries
 *                   └─▶ referrals ─▶ service …      each address once, bounded in depth and number */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "host/internal.h"

enum { SERVICES_MAX = 64 };

#define ENTRY_SIZE sizeof(struct nvmf_disc_log_entry)
static_assert(ENTRY_SIZE == 1024, "discovery log entry");

/* --- one log ---------------------------------------------------------------------------------- */

static int read_header(struct weft_ctrl *ctrl, struct host_log_header *header, struct weft_err *err)
{
	return weft_log_page(ctrl, NVME_LOG_LID_DISCOVER, 0, 0, header, sizeof(*header), err);
}

int host_log_check(const struct host_log_header *header, struct weft_err *err)
{
	uint64_t total = le64_to_cpu(header->numrec);

	if (le16_to_cpu(header->recfmt))
		return weft_fail(err, -EPROTO, "the discovery log has the unknown format %u",
				 le16_to_cpu(header->recfmt));
	if (total > HOST_LOG_ENTRIES_MAX)
		return weft_fail(err, -EPROTO, "the discovery log claims %llu entries",
				 (unsigned long long)total);
	return 0;
}

static void name_transport(uint8_t trtype, char *name, size_t size)
{
	switch (trtype) {
	case NVMF_TRTYPE_TCP:
		snprintf(name, size, "tcp");
		break;
	case NVMF_TRTYPE_RDMA:
		snprintf(name, size, "rdma");
		break;
	case NVMF_TRTYPE_FC:
		snprintf(name, size, "fc");
		break;
	case NVMF_TRTYPE_LOOP:
		snprintf(name, size, "loop");
		break;
	default:
		snprintf(name, size, "%u", trtype);
	}
}

static void make_uri(struct weft_discovered *d, bool six)
{
	bool discovery = d->subtype == NVME_NQN_DISC || d->subtype == NVME_NQN_CURR;
	struct weft_uri_parts parts;
	int len;

	len = snprintf(d->uri, sizeof(d->uri), "nvme+%s://%s%s%s:%s%s%s", d->transport,
		       six ? "[" : "", d->address, six ? "]" : "", d->service, discovery ? "" : "/",
		       discovery ? "" : d->subnqn);
	/* An address with a "/" or "?" in it must not become another address. */
	if (len >= (int)sizeof(d->uri) || weft_uri_split(d->uri, &parts, NULL) < 0 ||
	    parts.query[0] || strcmp(parts.host, d->address) || parts.port != atoi(d->service) ||
	    (!discovery && strcmp(parts.nqn, d->subnqn)))
		d->uri[0] = '\0';
}

void host_log_decode(const struct nvmf_disc_log_entry *e, const char *from,
		     struct weft_discovered *d)
{
	memset(d, 0, sizeof(*d));
	name_transport(e->trtype, d->transport, sizeof(d->transport));
	weft_utf8_copy(d->address, e->traddr, sizeof(e->traddr));
	weft_utf8_copy(d->service, e->trsvcid, sizeof(e->trsvcid));
	weft_utf8_copy(d->subnqn, e->subnqn, sizeof(e->subnqn));
	d->portid = le16_to_cpu(e->portid);
	d->cntlid = le16_to_cpu(e->cntlid);
	d->subtype = e->subtype;
	d->secure = (e->treq & 3) == 1;
	snprintf(d->from, sizeof(d->from), "%s", from);
	if (weft_link_transport(e->trtype))
		make_uri(d, e->adrfam == NVMF_ADDR_FAMILY_IP6);
}

static int grow(struct weft_discovery *log, unsigned more)
{
	struct weft_discovered *entries = reallocarray(log->entries, log->count + more,
						       sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	log->entries = entries;
	return 0;
}

static int read_piece(struct weft_ctrl *ctrl, struct weft_discovery *log, uint64_t first,
		      unsigned count, const char *from, struct weft_err *err)
{
	_cleanup_(weft_freep) struct nvmf_disc_log_entry *piece = calloc(count, ENTRY_SIZE);
	int rc;

	if (!piece || grow(log, count) < 0)
		return weft_fail(err, -ENOMEM, "no memory for the discovery log");
	rc = weft_log_page(ctrl, NVME_LOG_LID_DISCOVER, 0, ENTRY_SIZE * (first + 1), piece,
			   (uint32_t)(count * ENTRY_SIZE), err);
	for (unsigned i = 0; rc == 0 && i < count; i++)
		host_log_decode(&piece[i], from, &log->entries[log->count++]);
	return rc;
}

/* One try; -EAGAIN: it changed meanwhile. */
static int read_once(struct weft_ctrl *ctrl, struct weft_discovery *log, struct weft_err *err)
{
	struct weft_ctrl_info info;
	struct host_log_header before, after;
	uint64_t total, piece;
	int rc = read_header(ctrl, &before, err);

	if (rc == 0)
		rc = host_log_check(&before, err);
	if (rc < 0)
		return rc;
	weft_ctrl_info(ctrl, &info);
	total = le64_to_cpu(before.numrec);
	piece = info.transfer_max / ENTRY_SIZE < HOST_LOG_PIECE ? info.transfer_max / ENTRY_SIZE :
								  HOST_LOG_PIECE;
	for (uint64_t at = 0; rc == 0 && at < total; at += piece)
		rc = read_piece(ctrl, log, at, (unsigned)(total - at < piece ? total - at : piece),
				info.address, err);
	if (rc == 0)
		rc = read_header(ctrl, &after, err);
	log->generation = le64_to_cpu(before.genctr);
	return rc < 0 ? rc : before.genctr == after.genctr ? 0 : -EAGAIN;
}

int weft_discovery_read(struct weft_ctrl *ctrl, struct weft_discovery *log, struct weft_err *err)
{
	struct weft_ctrl_info info;
	int rc = -EAGAIN;

	memset(log, 0, sizeof(*log));
	weft_ctrl_info(ctrl, &info);
	if (!info.discovery)
		return weft_fail(err, -EPROTOTYPE,
				 "%s/%s is a subsystem, not a discovery service; leave out what "
				 "follows %s",
				 info.address, info.subnqn, info.address);
	for (int i = 0; rc == -EAGAIN && i < HOST_LOG_ROUNDS_MAX; i++) {
		log->count = 0;
		rc = read_once(ctrl, log, err);
	}
	if (rc < 0)
		weft_discovery_free(log);
	return rc == -EAGAIN ?
		       weft_fail(err, rc, "the discovery log changed %d times while it was read",
				 HOST_LOG_ROUNDS_MAX) :
		       rc;
}

void weft_discovery_free(struct weft_discovery *log)
{
	free(log->entries);
	log->entries = NULL;
	log->count = 0;
}

/* --- referrals -------------------------------------------------------------------------------- */

struct service {
	char uri[512];
	unsigned depth;
};

struct walk {
	struct service services[SERVICES_MAX];
	unsigned count;
};

/* The words of the first URI hold for all. */
static void add_service(struct walk *walk, const char *uri, unsigned depth)
{
	const char *words = walk->count ? strchr(walk->services[0].uri, '?') : NULL;
	struct service *service = &walk->services[walk->count];

	if (depth > HOST_REFERRAL_DEPTH_MAX || walk->count == SERVICES_MAX || !*uri)
		return;
	for (unsigned i = 0; i < walk->count; i++)
		if (!strncmp(walk->services[i].uri, uri, strlen(uri)) &&
		    strchr("?/", walk->services[i].uri[strlen(uri)]))
			return;
	if (snprintf(service->uri, sizeof(service->uri), "%s%s", uri, words ? words : "") >=
	    (int)sizeof(service->uri))
		return;
	service->depth = depth;
	walk->count++;
}

/* A visit, not a stay: no keep-alive, no reconnecting. */
static int visit(const char *uri, const struct weft_options *options, struct weft_discovery *log,
		 struct weft_err *err)
{
	struct weft_options brief;
	struct weft_ctrl *ctrl;
	int rc;

	if (options)
		brief = *options;
	else
		weft_options_init(&brief);
	brief.keepalive_ms = 0;
	brief.loss_ms = 0;
	rc = weft_connect(uri, &brief, &ctrl, err);
	if (rc < 0)
		return rc;
	rc = weft_discovery_read(ctrl, log, err);
	weft_disconnect(ctrl);
	return rc;
}

static int append(struct weft_discovery *all, const struct weft_discovery *log)
{
	if (!log->count)
		return 0;
	if (grow(all, log->count) < 0)
		return -ENOMEM;
	memcpy(all->entries + all->count, log->entries, log->count * sizeof(*log->entries));
	all->count += log->count;
	return 0;
}

/* A service that cannot be reached hides only what it alone knows. */
static int take_in(struct walk *walk, unsigned at, const struct weft_options *options,
		   struct weft_discovery *all, struct weft_err *err)
{
	struct weft_discovery log;
	struct weft_err why = { "" };
	int rc = visit(walk->services[at].uri, options, &log, &why);

	if (rc < 0 && at) {
		all->unreachable++;
		weft_fail(&all->why, rc, "referral: %s", why.text);
		return 0;
	}
	if (rc < 0)
		return weft_fail(err, rc, "%s", why.text);
	if (!at)
		all->generation = log.generation;
	for (unsigned i = 0; i < log.count; i++)
		if (log.entries[i].subtype == NVME_NQN_DISC)
			add_service(walk, log.entries[i].uri, walk->services[at].depth + 1);
	rc = append(all, &log);
	weft_discovery_free(&log);
	return rc < 0 ? weft_fail(err, rc, "no memory for the discovery log") : 0;
}

int weft_discover(const char *uri, const struct weft_options *options, struct weft_discovery *all,
		  struct weft_err *err)
{
	_cleanup_(weft_freep) struct walk *walk = calloc(1, sizeof(*walk));
	int rc = 0;

	memset(all, 0, sizeof(*all));
	if (!walk)
		return weft_fail(err, -ENOMEM, "no memory for the discovery log");
	add_service(walk, uri, 0);
	for (unsigned i = 0; rc == 0 && i < walk->count; i++)
		rc = take_in(walk, i, options, all, err);
	if (rc < 0)
		weft_discovery_free(all);
	return rc;
}
