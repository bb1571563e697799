/* state.h - what a takeover moves of a TCP connection, beside its queue. */
#ifndef WEFT_TRANSPORT_TCP_STATE_H
#define WEFT_TRANSPORT_TCP_STATE_H

#include "transport/transport.h"

struct tcp_conn_state {
	int fd;
	bool ready, hdgst, ddgst; /* set up, and with what */
	uint32_t hpda, maxr2t;
};
static_assert(sizeof(struct tcp_conn_state) <= sizeof(((struct weft_qpair_state *)0)->own),
	      "it fits");

static inline struct tcp_conn_state *tcp_conn_state(struct weft_qpair_state *state)
{
	return (struct tcp_conn_state *)state->own;
}

#endif
