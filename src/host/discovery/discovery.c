/* discovery.c - weft_discover(): reads the log of a discovery service, and follows its referrals.
 *
 *   header: generation, count ─▶ entries, in parts ─▶ header: the same generation? else again
 *
 *   service ─▶ log ─┬─▶ entries
 *                   └─▶ referrals ─▶ service …      each address once, bounded in depth
 *
 * A service is not trusted, and its log may be endless: one discovery, with all services that take
 * part in it, has one limit of services, entries and time. Log entries must be numeric addresses: a
 * peer must not choose what this host asks its resolver. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "host/internal.h"

enum { SERVICES_MAX = 64 };

#define ENTRY_SIZE sizeof(struct nvmf_disc_log_entry)
static_assert(ENTRY_SIZE == 1024, "discovery log entry");

/* --- limits ----------------------------------------------------------------------------------- */

struct discovery_limits {
	const struct weft_options *of;
	uint32_t entries; /* may still be read; an entry that is read again counts again */
	uint64_t until_ms;
};

static void init_limits(struct discovery_limits *limits, const struct weft_options *options)
{
	*limits = (struct discovery_limits){ .of = options,
					     .entries = options->discovery_entries,
					     .until_ms = weft_monotonic_ms() +
							 options->discovery_ms };
}

static uint32_t time_left_ms(const struct discovery_limits *limits)
{
	uint64_t now = weft_monotonic_ms();

	return now < limits->until_ms ? (uint32_t)(limits->until_ms - now) : 0;
}

int host_discovery_fail_timeout(const struct weft_options *options, struct weft_err *err)
{
	return weft_fail(err, -ETIME, "discovery took longer than %u ms (discovery_timeout)",
			 options->discovery_ms);
}

/* --- one log ---------------------------------------------------------------------------------- */

static int read_disc_log_header(struct weft_ctrl *ctrl, struct host_disc_log_header *header,
				struct weft_err *err)
{
	return weft_log_page(ctrl, NVME_LOG_LID_DISCOVER, 0, 0, header, sizeof(*header), err);
}

int host_disc_log_check_header(const struct host_disc_log_header *header, uint32_t most,
			       const struct weft_options *options, struct weft_err *err)
{
	uint64_t total = le64_to_cpu(header->numrec);

	if (le16_to_cpu(header->recfmt))
		return weft_fail(err, -EPROTO, "the discovery log has the unknown format %u",
				 le16_to_cpu(header->recfmt));
	if (total > most)
		return weft_fail(err, -E2BIG,
				 "the discovery log claims %llu entries, of which %u may be read "
				 "(discovery_entries=%u)",
				 (unsigned long long)total, most, options->discovery_entries);
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

/* A unicast address; and not a loopback one, unless the service's own address is. */
static bool is_somewhere(const struct sockaddr_storage *addr, const struct sockaddr_storage *from)
{
	return !weft_addr_is_wildcard(addr) && !weft_addr_is_multicast(addr) &&
	       (!weft_addr_is_loopback(addr) || weft_addr_is_loopback(from));
}

/* An address with a "/" or "?" in it must not become another address, nor a port a subsystem. */
static bool uri_matches(const struct weft_uri_parts *parts, const struct weft_discovered *d,
			const char *subnqn)
{
	return !parts->query[0] && !strcmp(parts->host, d->address) &&
	       !d->service[strspn(d->service, "0123456789")] && parts->port &&
	       parts->port == atoi(d->service) && !strcmp(parts->nqn, subnqn);
}

static void make_uri(struct weft_discovered *d, const struct sockaddr_storage *from, bool six)
{
	bool discovery = d->subtype == NVME_NQN_DISC || d->subtype == NVME_NQN_CURR;
	char nqn[WEFT_NQN_TEXT_MAX + 1];
	struct sockaddr_storage addr;
	struct weft_uri_parts parts;
	int len;

	weft_nqn_text(d->subnqn, nqn);
	len = snprintf(d->uri, sizeof(d->uri), "nvme+%s://%s%s%s:%s%s%s", d->transport,
		       six ? "[" : "", d->address, six ? "]" : "", d->service, discovery ? "" : "/",
		       discovery ? "" : nqn);
	if (len >= (int)sizeof(d->uri) || weft_uri_split(d->uri, &parts, NULL) < 0 ||
	    !uri_matches(&parts, d, discovery ? "" : d->subnqn) ||
	    weft_addr_parse(parts.host, parts.port, &addr) < 0 || !is_somewhere(&addr, from))
		d->uri[0] = '\0';
}

void host_disc_log_decode_entry(const struct nvmf_disc_log_entry *e,
				const struct sockaddr_storage *from, struct weft_discovered *d)
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
	if (weft_link_transport_find(e->trtype))
		make_uri(d, from, e->adrfam == NVMF_ADDR_FAMILY_IP6);
}

static int grow_log(struct weft_discovery *log, unsigned more)
{
	struct weft_discovered *entries = reallocarray(log->entries, log->count + more,
						       sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	log->entries = entries;
	return 0;
}

struct disc_log_reader {
	struct weft_ctrl *ctrl;
	struct weft_ctrl_info info;
	struct sockaddr_storage from;
	struct discovery_limits *limits;
	struct weft_discovery *log;
};

static int read_disc_log_entries(struct disc_log_reader *r, uint64_t first, unsigned count,
				 struct weft_err *err)
{
	_cleanup_(weft_freep) struct nvmf_disc_log_entry *piece = calloc(count, ENTRY_SIZE);
	int rc;

	if (!time_left_ms(r->limits))
		return host_discovery_fail_timeout(r->limits->of, err);
	if (!piece || grow_log(r->log, count) < 0)
		return weft_fail(err, -ENOMEM, "no memory for the discovery log");
	r->limits->entries -= count;
	rc = weft_log_page(r->ctrl, NVME_LOG_LID_DISCOVER, 0, ENTRY_SIZE * (first + 1), piece,
			   (uint32_t)(count * ENTRY_SIZE), err);
	for (unsigned i = 0; rc == 0 && i < count; i++) {
		struct weft_discovered *d = &r->log->entries[r->log->count++];

		host_disc_log_decode_entry(&piece[i], &r->from, d);
		snprintf(d->from, sizeof(d->from), "%s", r->info.address);
	}
	return rc;
}

/* One try; -EAGAIN: the log changed meanwhile. */
static int read_disc_log_once(struct disc_log_reader *r, struct weft_err *err)
{
	struct host_disc_log_header before, after;
	uint64_t total, piece = r->info.transfer_max / ENTRY_SIZE;
	int rc = read_disc_log_header(r->ctrl, &before, err);

	if (rc == 0)
		rc = host_disc_log_check_header(&before, r->limits->entries, r->limits->of, err);
	if (rc < 0)
		return rc;
	total = le64_to_cpu(before.numrec);
	piece = piece < HOST_DISC_LOG_ENTRIES_PER_CMD ? piece : HOST_DISC_LOG_ENTRIES_PER_CMD;
	for (uint64_t at = 0; rc == 0 && at < total; at += piece)
		rc = read_disc_log_entries(r, at,
					   (unsigned)(total - at < piece ? total - at : piece),
					   err);
	if (rc == 0)
		rc = read_disc_log_header(r->ctrl, &after, err);
	r->log->generation = le64_to_cpu(before.genctr);
	return rc < 0 ? rc : before.genctr == after.genctr ? 0 : -EAGAIN;
}

static int read_disc_log(struct weft_ctrl *ctrl, struct discovery_limits *limits,
			 struct weft_discovery *log, struct weft_err *err)
{
	struct disc_log_reader r = { .ctrl = ctrl, .limits = limits, .log = log };
	int rc = -EAGAIN;

	memset(log, 0, sizeof(*log));
	weft_ctrl_info(ctrl, &r.info);
	host_ctrl_address(ctrl, &r.from);
	if (!r.info.discovery)
		return weft_fail(err, -EPROTOTYPE,
				 "%s/%s is a subsystem, not a discovery service; leave out what "
				 "follows %s",
				 r.info.address, r.info.subnqn, r.info.address);
	for (int i = 0; rc == -EAGAIN && i < HOST_DISC_LOG_TRIES_MAX; i++) {
		log->count = 0;
		rc = read_disc_log_once(&r, err);
	}
	if (rc < 0)
		weft_discovery_free(log);
	return rc == -EAGAIN ?
		       weft_fail(err, rc, "the discovery log changed %d times while it was read",
				 HOST_DISC_LOG_TRIES_MAX) :
		       rc;
}

int weft_discovery_read(struct weft_ctrl *ctrl, struct weft_discovery *log, struct weft_err *err)
{
	struct discovery_limits limits;
	int rc;

	init_limits(&limits, &ctrl->config.options);
	rc = read_disc_log(ctrl, &limits, log, err);
	log->left_ms = time_left_ms(&limits);
	return rc;
}

void weft_discovery_free(struct weft_discovery *log)
{
	free(log->entries);
	log->entries = NULL;
	log->count = 0;
}

/* --- referrals -------------------------------------------------------------------------------- */

struct service {
	struct weft_uri_parts parts;
	struct sockaddr_storage addr;
	unsigned depth;
};

struct disc_walk {
	struct host_path_spec given[HOST_PATHS_MAX]; /* of the first */
	int ngiven;
	struct service services[SERVICES_MAX];
	unsigned count;
	struct discovery_limits limits;
	struct weft_discovery *all;
};

__attribute__((format(printf, 2, 3))) static void note_skipped(struct disc_walk *disc_walk,
							       const char *fmt, ...)
{
	char why[sizeof(disc_walk->all->skipped_why.text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	weft_fail(&disc_walk->all->skipped_why, 0, "%s", why);
	disc_walk->all->skipped++;
}

static bool service_is_known(const struct disc_walk *disc_walk, const struct service *service)
{
	for (unsigned i = 0; i < disc_walk->count; i++)
		if (disc_walk->services[i].parts.trtype == service->parts.trtype &&
		    weft_addr_equal(&disc_walk->services[i].addr, &service->addr))
			return true;
	return false;
}

/* Why there is no URI. */
static void note_skipped_address(struct disc_walk *disc_walk, const struct weft_discovered *d)
{
	struct sockaddr_storage addr;

	if (strcmp(d->transport, "tcp") && strcmp(d->transport, "rdma"))
		note_skipped(disc_walk, "%s is not built in", d->transport);
	else if (weft_addr_parse(d->address, 0, &addr) < 0)
		note_skipped(disc_walk, "%s: names in a log are not looked up", d->address);
	else
		note_skipped(disc_walk, "%s: nobody has that address, seen from here", d->address);
}

static void add_referral(struct disc_walk *disc_walk, const struct weft_discovered *d,
			 unsigned depth)
{
	struct service *service, found = { .depth = depth };

	if (!*d->uri) {
		note_skipped_address(disc_walk, d);
		return;
	}
	weft_uri_split(d->uri, &found.parts, NULL);
	weft_addr_parse(found.parts.host, found.parts.port, &found.addr);
	if (service_is_known(disc_walk, &found) || !found.parts.port)
		return;
	if (depth > HOST_REFERRAL_DEPTH_MAX) {
		note_skipped(disc_walk, "referrals are followed %d deep", HOST_REFERRAL_DEPTH_MAX);
	} else if (disc_walk->count == disc_walk->limits.of->discovery_services) {
		note_skipped(disc_walk, "discovery_services=%u",
			     disc_walk->limits.of->discovery_services);
	} else {
		service = &disc_walk->services[disc_walk->count++];
		*service = found;
	}
}

/* The words of the first URI apply to all. */
static void service_path_spec(const struct disc_walk *disc_walk, const struct service *service,
			      struct host_path_spec *spec)
{
	*spec = disc_walk->given[0];
	spec->parts = service->parts;
	spec->config.transport = weft_link_transport_find(service->parts.trtype);
}

/* Connects once, for what is left of the time. */
static int read_service_log(struct disc_walk *disc_walk, unsigned at, struct weft_discovery *log,
			    struct weft_err *err)
{
	struct service *service = &disc_walk->services[at];
	struct host_path_spec spec;
	struct weft_ctrl *ctrl;
	uint32_t lifetime_ms = time_left_ms(&disc_walk->limits);
	int rc;

	service_path_spec(disc_walk, service, &spec);
	rc = host_connect_once(at ? &spec : disc_walk->given, at ? 1 : disc_walk->ngiven,
			       lifetime_ms, &ctrl, err);
	if (rc < 0)
		return rc;
	host_ctrl_address(ctrl, &service->addr);
	rc = read_disc_log(ctrl, &disc_walk->limits, log, err);
	weft_disconnect(ctrl);
	return rc;
}

static int append_entries(struct weft_discovery *all, const struct weft_discovery *log)
{
	if (!log->count)
		return 0;
	if (grow_log(all, log->count) < 0)
		return -ENOMEM;
	memcpy(all->entries + all->count, log->entries, log->count * sizeof(*log->entries));
	all->count += log->count;
	return 0;
}

/* A service that cannot be reached does not fail the discovery: only its log is missing. */
static int walk_service(struct disc_walk *disc_walk, unsigned at, struct weft_err *err)
{
	struct weft_discovery log, *all = disc_walk->all;
	struct weft_err why = { "" };
	int rc = read_service_log(disc_walk, at, &log, &why);

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
			add_referral(disc_walk, &log.entries[i], disc_walk->services[at].depth + 1);
	rc = append_entries(all, &log);
	weft_discovery_free(&log);
	return rc < 0 ? weft_fail(err, rc, "no memory for the discovery log") : 0;
}

static int walk_services(struct disc_walk *disc_walk, struct weft_err *err)
{
	struct weft_err late = { "" };
	int rc = 0;

	disc_walk->services[disc_walk->count++].parts = disc_walk->given[0].parts;
	for (unsigned i = 0; rc == 0 && i < disc_walk->count; i++) {
		if (time_left_ms(&disc_walk->limits)) {
			rc = walk_service(disc_walk, i, err);
			continue;
		}
		host_discovery_fail_timeout(disc_walk->limits.of, &late);
		note_skipped(disc_walk, "%s", late.text);
	}
	return rc;
}

int weft_discover(const char *uri, const struct weft_options *options, struct weft_discovery *all,
		  struct weft_err *err)
{
	_cleanup_(weft_freep) struct disc_walk *disc_walk = calloc(1, sizeof(*disc_walk));
	int rc;

	memset(all, 0, sizeof(*all));
	if (!disc_walk)
		return weft_fail(err, -ENOMEM, "no memory for the discovery log");
	disc_walk->all = all;
	disc_walk->ngiven = rc = host_path_specs_parse(uri, options, disc_walk->given, err);
	if (rc < 0)
		return rc;
	init_limits(&disc_walk->limits, &disc_walk->given[0].config.options);
	rc = walk_services(disc_walk, err);
	all->left_ms = time_left_ms(&disc_walk->limits);
	if (rc < 0)
		weft_discovery_free(all);
	return rc;
}
