/* transport.c - which transports are built in: the one place that knows their names. */
#include "transport/transport.h"

#include <assert.h>

#include "transport/tcp/link.h"
#include "transport/tcp/tcp.h"
#ifdef WEFT_RDMA
#include "transport/rdma/link.h"
#include "transport/rdma/rdma.h"
#endif

static const struct {
	const struct weft_transport *target;
	const struct weft_link_transport *host;
} transports[] = {
	{ &weft_tcp, &weft_tcp_link },
#ifdef WEFT_RDMA
	{ &weft_rdma, &weft_rdma_link },
#endif
};

enum { COUNT = sizeof(transports) / sizeof(transports[0]) };
static_assert((int)COUNT <= (int)WEFT_TRANSPORTS_MAX, "a place in every poll group");

const struct weft_transport *weft_transport_at(unsigned index)
{
	return index < COUNT ? transports[index].target : NULL;
}

unsigned weft_transport_index(const struct weft_transport *transport)
{
	unsigned index = 0;

	while (index < COUNT && transports[index].target != transport)
		index++;
	assert(index < COUNT);
	return index;
}

const struct weft_transport *weft_transport_find(uint8_t trtype)
{
	for (size_t i = 0; i < COUNT; i++)
		if (transports[i].target->trtype == trtype)
			return transports[i].target;
	return NULL;
}

const struct weft_link_transport *weft_link_transport_find(uint8_t trtype)
{
	for (size_t i = 0; i < COUNT; i++)
		if (transports[i].host->trtype == trtype)
			return transports[i].host;
	return NULL;
}
