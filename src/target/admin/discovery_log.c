/* discovery_log.c - the discovery log page: the subsystems that a host may connect to, and where.
 *
 * The page is built for the host that asks: it has only the subsystems that allow this host, and a
 * listener on a wildcard address is shown with the address through which the host came. For a
 * cluster it has the listeners of all members. The generation counter grows with every change that
 * any host could see, so a host that reads in pieces and finds it the same before and after has
 * read one state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/admin/admin.h"
#include "target/cluster/cluster.h"

enum { ENTRIES_PER_COMMAND = 64 }; /* building so many is as much work as a command */

void tgt_discovery_changed(struct weft_target *t)
{
	struct tgt_ctrl *ctrl;

	assert_on_control(t);
	t->genctr++;
	if (!t->discovery) /* the target is stopping */
		return;
	weft_list_for_each(ctrl, &t->discovery->ctrls, link)
		tgt_event_raise(ctrl, TGT_EVENT_DISCOVERY);
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Reliable connections, made by RDMA_CM. */
static void fill_rdma(struct nvmf_disc_log_entry *entry)
{
	entry->tsas.rdma.qptype = NVMF_RDMA_QPTYPE_CONNECTED;
	entry->tsas.rdma.prtype = NVMF_RDMA_PRTYPE_NOT_SPECIFIED;
	entry->tsas.rdma.cms = NVMF_RDMA_CMS_RDMA_CM;
}

static void fill_entry(struct nvmf_disc_log_entry *entry, const struct tgt_port *port,
		       const struct weft_subsys *s)
{
	entry->trtype = port->trtype;
	entry->adrfam = port->addr.ss_family == AF_INET ? NVMF_ADDR_FAMILY_IP4 :
							  NVMF_ADDR_FAMILY_IP6;
	entry->subtype = s->discovery ? NVME_NQN_CURR : NVME_NQN_NVME;
	entry->treq = NVMF_TREQ_NOT_REQUIRED | NVMF_TREQ_DISABLE_SQFLOW;
	entry->portid = cpu_to_le16(port->portid);
	entry->cntlid = cpu_to_le16(NVME_CNTLID_DYNAMIC);
	entry->asqsz = cpu_to_le16((uint16_t)s->target->depth_max);
	if (s->discovery)
		entry->eflags = cpu_to_le16(NVMF_DISC_EFLAGS_EPCSD | NVMF_DISC_EFLAGS_DUPRETINFO);
	snprintf(entry->trsvcid, sizeof(entry->trsvcid), "%u", weft_addr_port(&port->addr));
	if (entry->trtype == NVMF_TRTYPE_RDMA)
		fill_rdma(entry);
	strcpy(entry->subnqn, s->nqn);
	weft_addr_format(&port->addr, entry->traddr, sizeof(entry->traddr));
}

/* --- the page --------------------------------------------------------------------------------- */

/* The part that a host reads: @len bytes from @offset on. The rest of the page is only counted. */
struct log_window {
	char *to;
	uint64_t offset, len;
	unsigned entries;
};

static_assert(sizeof(struct nvmf_disc_log_entry) == sizeof(struct nvmf_discovery_log),
	      "header and entries are of one size");
enum { ENTRY_BYTES = sizeof(struct nvmf_disc_log_entry) };

static bool overlaps_window(const struct log_window *page, uint64_t at)
{
	return at < page->offset + page->len && at + ENTRY_BYTES > page->offset;
}

/* Copies what the host reads of PART bytes that lie at @at of the page. */
static void copy_overlap(struct log_window *page, uint64_t at, const void *part)
{
	uint64_t from = at > page->offset ? at : page->offset;
	uint64_t end = page->offset + page->len,
		 to = at + ENTRY_BYTES < end ? at + ENTRY_BYTES : end;

	if (from < to)
		memcpy(page->to + (from - page->offset), (const char *)part + (from - at),
		       to - from);
}

static void add_entry(struct log_window *page, const struct tgt_port *port,
		      const struct weft_subsys *s)
{
	uint64_t at = ++page->entries * (uint64_t)ENTRY_BYTES;
	struct nvmf_disc_log_entry entry = { 0 };

	if (!overlaps_window(page, at))
		return;
	fill_entry(&entry, port, s);
	copy_overlap(page, at, &entry);
}

/* A wildcard listener of the other address family has no address for this host; and RDMA does not
 * work over loopback, by which the host may have come over TCP. */
static bool listener_is_reachable(const struct tgt_ctrl *ctrl, const struct tgt_listener *l)
{
	if (!weft_addr_is_wildcard(&l->l->addr))
		return true;
	if (l->l->transport->trtype == NVMF_TRTYPE_RDMA && ctrl->trtype == NVMF_TRTYPE_TCP &&
	    weft_addr_is_loopback(&ctrl->local))
		return false;
	return l->l->addr.ss_family == ctrl->local.ss_family;
}

/* Copies the address, not the port; both are of one family. */
static void set_address(struct sockaddr_storage *addr, const struct sockaddr_storage *from)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr; /* IPv6 has its port there too */
	in_port_t port = in->sin_port;

	*addr = *from;
	in->sin_port = port;
}

static void add_listener(struct log_window *page, const struct tgt_ctrl *ctrl,
			 const struct tgt_listener *l, const struct weft_subsys *s)
{
	struct tgt_port port = tgt_listener_port(l);

	if (!listener_is_reachable(ctrl, l))
		return;
	if (weft_addr_is_wildcard(&port.addr))
		set_address(&port.addr, &ctrl->local);
	add_entry(page, &port, s);
}

/* Another member's loopback address is useful only to a host that came by loopback itself. */
static void add_member(struct log_window *page, const struct tgt_ctrl *ctrl,
		       const struct weft_subsys *s, unsigned node)
{
	struct ports ports;

	tgt_cluster_ports_of(s, node, &ports);
	for (unsigned i = 0; i < ports.count; i++)
		if (!weft_addr_is_loopback(&ports.at[i].addr) ||
		    weft_addr_is_loopback(&ctrl->local))
			add_entry(page, &ports.at[i], s);
}

static void add_subsys(struct log_window *page, struct tgt_ctrl *ctrl, struct weft_subsys *s)
{
	struct tgt_listener *l;

	if (s->removing || (!s->discovery && !tgt_host_allowed(s, ctrl->hostnqn)))
		return;
	weft_list_for_each(l, &s->target->listeners, link)
		add_listener(page, ctrl, l, s);
	for (unsigned node = 1; s->cluster && node <= tgt_cluster_nodes(s); node++)
		if (node != weft_subsys_node(s))
			add_member(page, ctrl, s, node);
}

static void add_all_subsystems(struct log_window *page, struct tgt_ctrl *ctrl)
{
	struct weft_target *t = ctrl->subsys->target;
	struct weft_subsys *s;

	add_subsys(page, ctrl, t->discovery);
	weft_list_for_each(s, &t->subsystems, link)
		add_subsys(page, ctrl, s);
}

/* A host that reads in small pieces must not make us build the whole page for each. */
uint64_t tgt_discovery_read(struct tgt_ctrl *ctrl, uint64_t offset, void *to, uint64_t len)
{
	struct weft_target *t = ctrl->subsys->target;
	struct log_window page = { to, offset, offset + len > offset ? len : 0 };
	struct nvmf_discovery_log head = { .genctr = cpu_to_le64(t->genctr) };

	assert_on_control(ctrl->subsys->target);
	add_all_subsystems(&page, ctrl);
	head.numrec = cpu_to_le64(page.entries);
	copy_overlap(&page, 0, &head);
	tgt_control_charge(t, page.entries / ENTRIES_PER_COMMAND);
	return (page.entries + 1) * (uint64_t)ENTRY_BYTES;
}
