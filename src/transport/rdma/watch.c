/* watch.c - watches a library's descriptor on a reactor. The library closes its descriptors itself,
 * and so does the reactor: the reactor gets a duplicate. */
#include "transport/rdma/watch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void watch_poll_done(struct weft_op *op, int res)
{
	struct rdma_watch *watch = container_of(op, struct rdma_watch, op);

	(void)res;
	if (watch->ending) {
		watch->ended(watch);
		return;
	}
	watch->readable(watch);
	/* readable() may have ended the watch. No poll is under way then that would complete. */
	if (!watch->ending)
		weft_sock_poll(&watch->sock, &watch->op);
	else
		watch->ended(watch);
}

int rdma_watch_start(struct rdma_watch *watch, struct weft_reactor *r, int fd)
{
	int flags = fcntl(fd, F_GETFL), own, rc;

	assert_driving(r);
	assert(watch->readable && watch->ended);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	rc = weft_sock_open(r, &watch->sock, own);
	if (rc < 0) {
		close(own);
		return rc;
	}
	watch->ending = false;
	watch->op.done = watch_poll_done;
	weft_sock_poll(&watch->sock, &watch->op);
	return 0;
}

void rdma_watch_end(struct rdma_watch *watch)
{
	assert_driving(watch->sock.reactor);
	assert(!watch->ending);
	watch->ending = true;
	weft_sock_close(&watch->sock);
}
