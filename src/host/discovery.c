/* discovery.c - what a discovery service knows, and those that it refers to.
 *
 *   header: generation, count ─▶ entries, in pieces ─▶ header: the same generation? else again
 *
 *   service ─▶ log ─┬─▶ entries
 *                   └─▶ referrals ─▶ service …      each address once, bounded in depth
 *
 * A service is a stranger until it has been asked, and may never stop: all of a discovery, whoever
 * takes part in it, has one allowance of services, entries and time. What it tells are addresses:
 * what this host asks its resolver is not a peer's to choose. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "host/internal.h"

enum { SERVICES_MAX = 64 };

#define ENTRY_SIZE sizeof(struct nvmf_disc_log_entry)
static_assert(ENTRY_SIZE == 1024, "discovery log entry");

/* --- what it may cost ------------------------------------------------------------------------- */

struct allowance {
	const struct weft_options *of;
	uint32_t entries; /* that may still be read; one that is read again counts again */
	uint64_t until_ms;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void allow(struct allowance *allowed, const struct weft_options *options)
{
	*allowed = (struct allowance){ .of = options,
				       .entries = options->discovery_entries,
				       .until_ms = now_ms() + options->discovery_ms };
}

static uint32_t left_ms(const struct allowance *allowed)
{
	uint64_t now = now_ms();

	return now < allowed->until_ms ? (uint32_t)(allowed->until_ms - now) : 0;
}

int host_discovery_late(const struct weft_options *options, struct weft_err *err)
{
	return weft_fail(err, -ETIME, "discovery took longer than %u ms (discovery_timeout)",
			 options->discovery_ms);
}

/* --- one log ---------------------------------------------------------------------------------- */

static int read_header(struct weft_ctrl *ctrl, struct host_log_header *header, struct weft_err *err)
{
	return weft_log_page(ctrl, NVME_LOG_LID_DISCOVER, 0, 0, header, sizeof(*header), err);
}

int host_log_check(const struct host_log_header *header, uint32_t most,
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

/* Somebody has it, and it is not this machine's own where another one tells of it. */
static bool is_somewhere(const struct sockaddr_storage *addr, const struct sockaddr_storage *from)
{
	return !weft_addr_is_wildcard(addr) && !weft_addr_is_multicast(addr) &&
	       (!weft_addr_is_loopback(addr) || weft_addr_is_loopback(from));
}

/* An address with a "/" or "?" in it must not become another address, nor a port a subsystem. */
static bool says(const struct weft_uri_parts *parts, const struct weft_discovered *d,
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
	    !says(&parts, d, discovery ? "" : d->subnqn) ||
	    weft_addr_parse(parts.host, parts.port, &addr) < 0 || !is_somewhere(&addr, from))
		d->uri[0] = '\0';
}

void host_log_decode(const struct nvmf_disc_log_entry *e, const struct sockaddr_storage *from,
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
	if (weft_link_transport(e->trtype))
		make_uri(d, from, e->adrfam == NVMF_ADDR_FAMILY_IP6);
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

struct reading {
	struct weft_ctrl *ctrl;
	struct weft_ctrl_info info;
	struct sockaddr_storage from;
	struct allowance *allowed;
	struct weft_discovery *log;
};

static int read_piece(struct reading *r, uint64_t first, unsigned count, struct weft_err *err)
{
	_cleanup_(weft_freep) struct nvmf_disc_log_entry *piece = calloc(count, ENTRY_SIZE);
	int rc;

	if (!left_ms(r->allowed))
		return host_discovery_late(r->allowed->of, err);
	if (!piece || grow(r->log, count) < 0)
		return weft_fail(err, -ENOMEM, "no memory for the discovery log");
	r->allowed->entries -= count;
	rc = weft_log_page(r->ctrl, NVME_LOG_LID_DISCOVER, 0, ENTRY_SIZE * (first + 1), piece,
			   (uint32_t)(count * ENTRY_SIZE), err);
	for (unsigned i = 0; rc == 0 && i < count; i++) {
		struct weft_discovered *d = &r->log->entries[r->log->count++];

		host_log_decode(&piece[i], &r->from, d);
		snprintf(d->from, sizeof(d->from), "%s", r->info.address);
	}
	return rc;
}

/* One try; -EAGAIN: it changed meanwhile. */
static int read_once(struct reading *r, struct weft_err *err)
{
	struct host_log_header before, after;
	uint64_t total, piece = r->info.transfer_max / ENTRY_SIZE;
	int rc = read_header(r->ctrl, &before, err);

	if (rc == 0)
		rc = host_log_check(&before, r->allowed->entries, r->allowed->of, err);
	if (rc < 0)
		return rc;
	total = le64_to_cpu(before.numrec);
	piece = piece < HOST_LOG_PIECE ? piece : HOST_LOG_PIECE;
	for (uint64_t at = 0; rc == 0 && at < total; at += piece)
		rc = read_piece(r, at, (unsigned)(total - at < piece ? total - at : piece), err);
	if (rc == 0)
		rc = read_header(r->ctrl, &after, err);
	r->log->generation = le64_to_cpu(before.genctr);
	return rc < 0 ? rc : before.genctr == after.genctr ? 0 : -EAGAIN;
}

static int read_log(struct weft_ctrl *ctrl, struct allowance *allowed, struct weft_discovery *log,
		    struct weft_err *err)
{
	struct reading r = { .ctrl = ctrl, .allowed = allowed, .log = log };
	int rc = -EAGAIN;

	memset(log, 0, sizeof(*log));
	weft_ctrl_info(ctrl, &r.info);
	host_ctrl_address(ctrl, &r.from);
	if (!r.info.discovery)
		return weft_fail(err, -EPROTOTYPE,
				 "%s/%s is a subsystem, not a discovery service; leave out what "
				 "follows %s",
				 r.info.address, r.info.subnqn, r.info.address);
	for (int i = 0; rc == -EAGAIN && i < HOST_LOG_ROUNDS_MAX; i++) {
		log->count = 0;
		rc = read_once(&r, err);
	}
	if (rc < 0)
		weft_discovery_free(log);
	return rc == -EAGAIN ?
		       weft_fail(err, rc, "the discovery log changed %d times while it was read",
				 HOST_LOG_ROUNDS_MAX) :
		       rc;
}

int weft_discovery_read(struct weft_ctrl *ctrl, struct weft_discovery *log, struct weft_err *err)
{
	struct allowance allowed;
	int rc;

	allow(&allowed, &ctrl->config.options);
	rc = read_log(ctrl, &allowed, log, err);
	log->left_ms = left_ms(&allowed);
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

struct walk {
	struct host_place given[HOST_PATHS_MAX]; /* of the first */
	int ngiven;
	struct service services[SERVICES_MAX];
	unsigned count;
	struct allowance allowed;
	struct weft_discovery *all;
};

__attribute__((format(printf, 2, 3))) static void skip(struct walk *walk, const char *fmt, ...)
{
	char why[sizeof(walk->all->skipped_why.text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	weft_fail(&walk->all->skipped_why, 0, "%s", why);
	walk->all->skipped++;
}

static bool is_known(const struct walk *walk, const struct service *service)
{
	for (unsigned i = 0; i < walk->count; i++)
		if (walk->services[i].parts.trtype == service->parts.trtype &&
		    weft_addr_equal(&walk->services[i].addr, &service->addr))
			return true;
	return false;
}

/* Why there is no URI. */
static void skip_odd(struct walk *walk, const struct weft_discovered *d)
{
	struct sockaddr_storage addr;

	if (strcmp(d->transport, "tcp") && strcmp(d->transport, "rdma"))
		skip(walk, "%s is not built in", d->transport);
	else if (weft_addr_parse(d->address, 0, &addr) < 0)
		skip(walk, "%s: names in a log are not looked up", d->address);
	else
		skip(walk, "%s: nobody has that address, seen from here", d->address);
}

static void refer(struct walk *walk, const struct weft_discovered *d, unsigned depth)
{
	struct service *service, found = { .depth = depth };

	if (!*d->uri) {
		skip_odd(walk, d);
		return;
	}
	weft_uri_split(d->uri, &found.parts, NULL);
	weft_addr_parse(found.parts.host, found.parts.port, &found.addr);
	if (is_known(walk, &found) || !found.parts.port)
		return;
	if (depth > HOST_REFERRAL_DEPTH_MAX) {
		skip(walk, "referrals are followed %d deep", HOST_REFERRAL_DEPTH_MAX);
	} else if (walk->count == walk->allowed.of->discovery_services) {
		skip(walk, "discovery_services=%u", walk->allowed.of->discovery_services);
	} else {
		service = &walk->services[walk->count++];
		*service = found;
	}
}

/* The words of the first URI hold for all. */
static void place_of(const struct walk *walk, const struct service *service,
		     struct host_place *place)
{
	*place = walk->given[0];
	place->parts = service->parts;
	place->config.transport = weft_link_transport(service->parts.trtype);
}

/* A visit, not a stay: it has what is left of the time. */
static int visit(struct walk *walk, unsigned at, struct weft_discovery *log, struct weft_err *err)
{
	struct service *service = &walk->services[at];
	struct host_place place;
	struct weft_ctrl *ctrl;
	uint32_t life_ms = left_ms(&walk->allowed);
	int rc;

	place_of(walk, service, &place);
	rc = host_visit(at ? &place : walk->given, at ? 1 : walk->ngiven, life_ms, &ctrl, err);
	if (rc < 0)
		return rc;
	host_ctrl_address(ctrl, &service->addr);
	rc = read_log(ctrl, &walk->allowed, log, err);
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
static int take_in(struct walk *walk, unsigned at, struct weft_err *err)
{
	struct weft_discovery log, *all = walk->all;
	struct weft_err why = { "" };
	int rc = visit(walk, at, &log, &why);

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
			refer(walk, &log.entries[i], walk->services[at].depth + 1);
	rc = append(all, &log);
	weft_discovery_free(&log);
	return rc < 0 ? weft_fail(err, rc, "no memory for the discovery log") : 0;
}

static int walk_all(struct walk *walk, struct weft_err *err)
{
	struct weft_err late = { "" };
	int rc = 0;

	walk->services[walk->count++].parts = walk->given[0].parts;
	for (unsigned i = 0; rc == 0 && i < walk->count; i++) {
		if (left_ms(&walk->allowed)) {
			rc = take_in(walk, i, err);
			continue;
		}
		host_discovery_late(walk->allowed.of, &late);
		skip(walk, "%s", late.text);
	}
	return rc;
}

int weft_discover(const char *uri, const struct weft_options *options, struct weft_discovery *all,
		  struct weft_err *err)
{
	_cleanup_(weft_freep) struct walk *walk = calloc(1, sizeof(*walk));
	int rc;

	memset(all, 0, sizeof(*all));
	if (!walk)
		return weft_fail(err, -ENOMEM, "no memory for the discovery log");
	walk->all = all;
	walk->ngiven = rc = host_places_parse(uri, options, walk->given, err);
	if (rc < 0)
		return rc;
	allow(&walk->allowed, &walk->given[0].config.options);
	rc = walk_all(walk, err);
	all->left_ms = left_ms(&walk->allowed);
	if (rc < 0)
		weft_discovery_free(all);
	return rc;
}
