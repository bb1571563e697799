/* take_listen.c - after a takeover: listeners that were not handed over, RDMA's and new ones. */
#include <errno.h>
#include <netinet/in.h>

#include "base/log.h"
#include "daemon/state.h"

enum { AGAIN_MS = 50, TRIES = 100 };

static in_port_t *port_of(struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? &((struct sockaddr_in *)addr)->sin_port :
					    &((struct sockaddr_in6 *)addr)->sin6_port;
}

/* Port 0 is some port, and has become one. */
static bool is_same(struct weft_uri there, const struct weft_uri *uri)
{
	struct sockaddr_storage addr = uri->addr;

	if (!*port_of(&addr))
		*port_of(&there.addr) = 0;
	return there.trtype == uri->trtype && weft_addr_equal(&there.addr, &addr);
}

static bool is_listening(struct weft_daemon *d, const struct weft_uri *uri)
{
	json_auto_t *list = weft_look_listeners(d);
	struct weft_uri there;
	json_t *item;
	size_t index;

	json_array_foreach(list, index, item) {
		if (weft_uri_parse(json_string_value(item), &there, NULL) == 0 &&
		    is_same(there, uri))
			return true;
	}
	return false;
}

static int listen_once(struct weft_daemon *d, struct weft_err *err)
{
	const struct weft_uri *uri = d->config->listen.at;
	int rc = 0;

	for (unsigned i = 0; i < d->config->listen.count && !rc; i++)
		if (!is_listening(d, &uri[i]))
			rc = weft_listener_add(d->target, &uri[i], err);
	return rc;
}

static void listen_again(struct weft_timer *timer)
{
	struct weft_daemon *d = container_of(timer, struct weft_daemon, listen_again);

	if (!d->stopping)
		weft_take_listen(d);
}

/* The other process may hold an address for as long as the kernel needs to end it. */
void weft_take_listen(struct weft_daemon *d)
{
	struct weft_err err = { "" };
	int rc = listen_once(d, &err);

	if (rc == -EADDRINUSE && d->listen_tries++ < TRIES) {
		d->listen_again.fn = listen_again;
		weft_timer_set(d->home, &d->listen_again, AGAIN_MS);
	} else if (rc < 0) {
		weft_error("%s", err.text);
	}
}
