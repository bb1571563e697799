/* takeover.c - the streams of a target whose place another one takes. */
#include "world/takeover.h"

#include <sys/socket.h>
#include <unistd.h>

#include "must.h"
#include "transport/tcp/state.h"

enum { FDS = 256, NOBODY = 0 }; /* descriptor 0 is nobody's connection */

static int hosts[FDS]; /* by the target's descriptor */

void takeover_connected(int host, int target)
{
	must(target < FDS && host > NOBODY);
	hosts[target] = host;
}

void takeover_closed(int host)
{
	for (int i = 0; i < FDS; i++)
		if (hosts[i] == host)
			hosts[i] = NOBODY;
}

/* What was not read at @from can be read at the other end of @to; true: nothing follows it. */
static bool drain_into_new_pair(int from, int to)
{
	static char bytes[1 << 16];
	ssize_t n;

	while ((n = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		must(send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n);
	return !n;
}

static void replace_pair(int *fd)
{
	const int room = 1 << 20; /* for what the old pair held, which it may hold in fewer bytes */
	int host = hosts[*fd], ends[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends));
	for (int i = 0; i < 2; i++)
		must(!setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)));
	if (drain_into_new_pair(*fd, ends[0]))
		shutdown(ends[0], SHUT_WR);
	if (host != NOBODY) {
		drain_into_new_pair(host, ends[1]);
		must(dup2(ends[0], host) == host);
		takeover_closed(host);
		takeover_connected(host, ends[1]);
	}
	close(ends[0]);
	*fd = ends[1];
}

void takeover_move(struct weft_target_state *state)
{
	struct weft_queue_state *queues = state->queues.at;

	for (unsigned i = 0; i < state->queues.count; i++)
		replace_pair(&tcp_conn_state(&queues[i].qpair)->fd);
}
