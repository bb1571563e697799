/* listener.c - where the target listens; new connections go to the reactor with the fewest
 * queues. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "target/cluster/cluster.h"

static struct weft_poll_group *least_loaded_poll_group(struct weft_target *t)
{
	struct weft_poll_group *best = t->poll_groups[0];

	for (unsigned i = 1; i < t->npoll_groups; i++)
		if (atomic_load(&t->poll_groups[i]->nqpairs) < atomic_load(&best->nqpairs))
			best = t->poll_groups[i];
	return best;
}

static unsigned count_connections(const struct weft_target *t)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < t->npoll_groups; i++)
		sum += atomic_load(&t->poll_groups[i]->nqpairs);
	return sum;
}

struct weft_poll_group *tgt_assign_poll_group(struct weft_target *t)
{
	struct weft_poll_group *group;

	assert_on_control(t);
	if (count_connections(t) >= t->connections_max)
		return NULL;
	group = least_loaded_poll_group(t);
	atomic_fetch_add(&group->nqpairs, 1);
	return group;
}

/* A listener that cannot pause refuses connections while the target is frozen. */
static struct weft_poll_group *choose_poll_group(struct weft_listener *l)
{
	struct tgt_listener *listener = l->user;

	return listener->target->freeze_state != TGT_SERVING ?
		       NULL :
		       tgt_assign_poll_group(listener->target);
}

static void listener_closed(struct weft_listener *l)
{
	struct tgt_listener *listener = l->user;
	struct weft_target *t = listener->target;

	assert(weft_list_empty(&listener->link));
	free(listener);
	tgt_target_teardown_done(t);
}

static const struct weft_listener_ops listener_ops = {
	.qpair = &tgt_qpair_ops,
	.choose_group = choose_poll_group,
	.closed = listener_closed,
};

static struct tgt_listener *listener_find(struct weft_target *t, const struct weft_uri *uri)
{
	struct tgt_listener *l;

	weft_list_for_each(l, &t->listeners, link)
		if (l->l->transport->trtype == uri->trtype &&
		    weft_addr_equal(&l->l->addr, &uri->addr))
			return l;
	return NULL;
}

/* --- port ids --------------------------------------------------------------------------------- */

static struct tgt_listener *listener_by_portid(struct weft_target *t, uint16_t portid)
{
	struct tgt_listener *l;

	weft_list_for_each(l, &t->listeners, link)
		if (l->portid == portid)
			return l;
	return NULL;
}

static uint16_t lowest_free_portid(struct weft_target *t)
{
	uint16_t portid = tgt_cluster_first_portid(t);

	while (listener_by_portid(t, portid))
		portid++;
	return portid;
}

static int choose_portid(struct tgt_listener *l, uint16_t portid, struct weft_err *err)
{
	const struct tgt_listener *other = portid ? listener_by_portid(l->target, portid) : NULL;
	char text[WEFT_URI_MAX];

	l->portid = portid ? portid : lowest_free_portid(l->target);
	if (!other)
		return 0;
	weft_uri_format(other->l->transport->trtype, &other->l->addr, text, sizeof(text));
	return weft_fail(err, -EEXIST, "portid %u is that of %s already", portid, text);
}

struct tgt_port tgt_listener_port(const struct tgt_listener *l)
{
	return (struct tgt_port){ l->l->transport->trtype, l->portid, l->l->addr };
}

/* @l may listen on any address; the connection has the one that it was made to. */
static bool listener_accepts(const struct tgt_listener *l, uint8_t trtype,
			     const struct sockaddr_storage *local)
{
	const struct sockaddr_storage *addr = &l->l->addr;

	if (l->l->transport->trtype != trtype)
		return false;
	return weft_addr_equal(addr, local) ||
	       (weft_addr_is_wildcard(addr) && addr->ss_family == local->ss_family &&
		weft_addr_port(addr) == weft_addr_port(local));
}

uint16_t tgt_listener_portid(struct weft_target *t, uint8_t trtype,
			     const struct sockaddr_storage *local)
{
	struct tgt_listener *l;

	assert_on_control(t);
	weft_list_for_each(l, &t->listeners, link)
		if (listener_accepts(l, trtype, local))
			return l->portid;
	return 0;
}

/* --- add and remove --------------------------------------------------------------------------- */

/* Hosts get an event, and so do other members, which notify their hosts. */
static void notify_listeners_changed(struct weft_target *t)
{
	struct weft_subsys *s;

	tgt_discovery_changed(t);
	weft_list_for_each(s, &t->subsystems, link)
		tgt_cluster_reconcile(s);
}

static int listen_fail(int rc, const struct weft_uri *uri, const struct weft_err *why,
		       struct weft_err *err)
{
	char text[WEFT_URI_MAX];

	weft_uri_format(uri->trtype, &uri->addr, text, sizeof(text));
	if (rc == -EADDRINUSE)
		return weft_fail(err, rc,
				 "cannot listen on %s: the port is taken; choose another one",
				 text);
	if (rc == -EADDRNOTAVAIL)
		return weft_fail(err, rc, "cannot listen on %s: no interface has this address",
				 text);
	if (rc == -EACCES)
		return weft_fail(err, rc,
				 "cannot listen on %s: this user may not have port %u; choose one "
				 "from 1024 on, or start as root or with CAP_NET_BIND_SERVICE",
				 text, weft_addr_port(&uri->addr));
	return weft_fail(err, rc, "cannot listen on %s: %s", text, why->text);
}

static int listener_start(struct tgt_listener *l, const struct weft_uri *uri, struct weft_err *err)
{
	const struct weft_transport *transport = weft_transport_find(uri->trtype);
	struct weft_err why = { "" };
	int rc;

	if (transport)
		rc = transport->listen(&l->l, l->target->control, &uri->addr, &listener_ops, l,
				       &why);
	else
		rc = weft_fail(&why, -EPROTONOSUPPORT, "it is not built in; see weft version");
	if (rc < 0)
		return listen_fail(rc, uri, &why, err);
	if (l->target->freeze_state != TGT_SERVING && transport->pause)
		transport->pause(l->l);
	return 0;
}

int weft_listener_add(struct weft_target *t, const struct weft_uri *uri, struct weft_err *err)
{
	struct tgt_listener *l = calloc(1, sizeof(*l));
	int rc;

	assert_on_control(t);
	if (!l)
		return weft_fail(err, -ENOMEM, "out of memory");
	l->target = t;
	rc = listener_find(t, uri) ? listen_fail(-EADDRINUSE, uri, NULL, err) :
				     choose_portid(l, uri->portid, err);
	if (rc == 0)
		rc = listener_start(l, uri, err);
	if (rc < 0) {
		free(l);
		return rc;
	}
	weft_list_push(&t->listeners, &l->link);
	notify_listeners_changed(t);
	return 0;
}

int tgt_listener_adopt(struct weft_target *t, const struct weft_uri *uri, int fd,
		       struct weft_err *err)
{
	const struct weft_transport *transport = weft_transport_find(uri->trtype);
	struct tgt_listener *l = calloc(1, sizeof(*l));
	int rc;

	assert_on_control(t);
	if (!l || !transport || !transport->listener_import) {
		free(l);
		close(fd);
		return weft_fail(err, -EINVAL, "a listener of this kind cannot be handed over");
	}
	l->target = t;
	rc = choose_portid(l, uri->portid, err);
	if (rc < 0)
		close(fd);
	else
		rc = transport->listener_import(&l->l, t->control, fd, &listener_ops, l, err);
	if (rc < 0) {
		free(l);
		return rc;
	}
	weft_list_push(&t->listeners, &l->link);
	return 0;
}

void tgt_listener_close(struct tgt_listener *l)
{
	assert_on_control(l->target);
	weft_list_remove(&l->link);
	l->target->teardowns++;
	l->l->transport->unlisten(l->l);
}

int weft_listener_remove(struct weft_target *t, const struct weft_uri *uri, struct weft_err *err)
{
	struct tgt_listener *l = listener_find(t, uri);
	char text[WEFT_URI_MAX];

	assert_on_control(t);
	weft_uri_format(uri->trtype, &uri->addr, text, sizeof(text));
	if (!l)
		return weft_fail(err, -ENOENT, "no listener on %s", text);
	tgt_listener_close(l);
	notify_listeners_changed(t);
	return 0;
}
