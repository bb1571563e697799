/* route.c - where an id is and where it goes: bound, listening, resolved. */
#include <netinet/in.h>

#include "fabric/internal.h"
#include "fabric/ops.h"

enum { EPHEMERAL = 32768, BACKLOG_MAX = 1024 };

static uint16_t last_port = EPHEMERAL;

/* The id is on its device from now on. */
void fabric_id_bind_dev(struct fabric_id *id)
{
	struct rdma_addr *addr = &id->pub.route.addr;

	id->pub.verbs = &id->dev->ctx;
	id->pub.port_num = 1;
	id->pub.pd = &id->dev->pd.pub;
	if (id->dev->iwarp)
		return;
	fabric_addr_gid(&addr->src_addr, &addr->addr.ibaddr.sgid);
	if (addr->dst_addr.sa_family)
		fabric_addr_gid(&addr->dst_addr, &addr->addr.ibaddr.dgid);
	addr->addr.ibaddr.pkey = 0xffff;
	id->path = (struct ibv_sa_path_rec){ .sgid = addr->addr.ibaddr.sgid,
					     .dgid = addr->addr.ibaddr.dgid,
					     .mtu = id->dev->conf.port.active_mtu,
					     .traffic_class = id->tos,
					     .hop_limit = 64 };
}

static bool addr_covers(const struct fabric_id *id, const struct sockaddr *addr)
{
	const struct sockaddr *mine = &id->pub.route.addr.src_addr;

	if (!fabric_addr_any(mine))
		return fabric_addr_same(mine, addr);
	return mine->sa_family == addr->sa_family || (mine->sa_family == AF_INET6 && !id->afonly);
}

static bool addr_in_use(const struct fabric_id *id, const struct sockaddr *addr)
{
	const struct fabric_id *other;

	weft_list_for_each(other, &fabric_ids, link) {
		const struct sockaddr *theirs = &other->pub.route.addr.src_addr;

		if (other == id || other->passive || !theirs->sa_family ||
		    fabric_addr_port(theirs) != fabric_addr_port(addr))
			continue;
		if (addr_covers(other, addr) || addr_covers(id, theirs))
			return true;
	}
	return false;
}

static int bind_to(struct fabric_id *id, const struct sockaddr *addr)
{
	struct sockaddr *mine = &id->pub.route.addr.src_addr;

	memcpy(mine, addr, fabric_addr_size(addr));
	if (!fabric_addr_port(mine)) {
		last_port = last_port < UINT16_MAX ? last_port + 1 : EPHEMERAL;
		fabric_addr_set_port(mine, last_port);
	}
	if (!addr_in_use(id, mine))
		return 0;
	memset(&id->pub.route.addr.src_storage, 0, sizeof(id->pub.route.addr.src_storage));
	return EADDRINUSE;
}

int fabric_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct fabric_id *id = fabric_id_in(pub);
	bool any = fabric_addr_any(addr);
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(bind_addr);
	id->dev = any ? NULL : fabric_addr_dev(addr);
	if (id->state != ID_IDLE)
		errno = EINVAL;
	else if (!any && (!id->dev || id->dev->removed))
		errno = ENODEV;
	else
		errno = bind_to(id, addr);
	if (errno)
		return -1;
	id->state = ID_BOUND;
	if (id->dev)
		fabric_id_bind_dev(id);
	return 0;
}

int fabric_listen(struct rdma_cm_id *pub, int backlog)
{
	struct fabric_id *id = fabric_id_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(listen);
	if (id->state != ID_BOUND) {
		errno = EINVAL;
		return -1;
	}
	id->state = ID_LISTENING;
	id->backlog = backlog > 0 && backlog < BACKLOG_MAX ? backlog : BACKLOG_MAX;
	return 0;
}

struct fabric_id *fabric_listener(const struct sockaddr *addr)
{
	struct fabric_id *id, *found = NULL;

	weft_list_for_each(id, &fabric_ids, link)
		if (id->state == ID_LISTENING &&
		    fabric_addr_port(&id->pub.route.addr.src_addr) == fabric_addr_port(addr) &&
		    addr_covers(id, addr) &&
		    (!found || !fabric_addr_any(&id->pub.route.addr.src_addr)))
			found = id;
	return found;
}

/* --- the way there ---------------------------------------------------------------------------- */

/* Without a source address, loopback is its own source. */
static int take_source(struct fabric_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct sockaddr_storage own = { 0 };

	if (id->state == ID_BOUND)
		return 0;
	src = src && src->sa_family && !fabric_addr_any(src) ? src : dst;
	memcpy(&own, src, fabric_addr_size(src));
	if (src == dst)
		fabric_addr_set_port((struct sockaddr *)&own, 0);
	return bind_to(id, (struct sockaddr *)&own);
}

int fabric_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src, struct sockaddr *dst,
			int timeout_ms)
{
	struct fabric_id *id = fabric_id_in(pub);
	int status;
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(resolve_addr);
	errno = id->state == ID_IDLE || id->state == ID_BOUND ? take_source(id, src, dst) : EINVAL;
	if (errno)
		return -1;
	memcpy(&pub->route.addr.dst_addr, dst, fabric_addr_size(dst));
	id->state = ID_ADDR_QUERY;
	id->dev = fabric_addr_dev(&pub->route.addr.src_addr);
	if (fabric_addr_fate(dst, &status) == RDMA_CM_EVENT_ADDR_ERROR) {
		fabric_event_tell(id, RDMA_CM_EVENT_ADDR_ERROR, status);
	} else if (!id->dev || id->dev->removed) {
		fabric_event_tell(id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	} else {
		id->state = ID_ADDR_RESOLVED;
		fabric_event_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	return 0;
}

int fabric_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct fabric_id *id = fabric_id_in(pub);
	int status;
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(resolve_route);
	if (id->state != ID_ADDR_RESOLVED) {
		errno = EINVAL;
		return -1;
	}
	id->state = ID_ROUTE_QUERY;
	if (fabric_addr_fate(&pub->route.addr.dst_addr, &status) == RDMA_CM_EVENT_ROUTE_ERROR) {
		fabric_event_tell(id, RDMA_CM_EVENT_ROUTE_ERROR, status);
		return 0;
	}
	id->state = ID_ROUTE_RESOLVED;
	fabric_event_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}
