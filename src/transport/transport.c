/* transport.c - which transports are built in. */
#include "transport/transport.h"

#include "transport/link.h"

static const struct weft_transport *const transports[] = {
	&weft_tcp,
#ifdef WEFT_RDMA
	&weft_rdma,
#endif
};

static const struct weft_link_transport *const link_transports[] = {
	&weft_tcp_link,
#ifdef WEFT_RDMA
	&weft_rdma_link,
#endif
};

const struct weft_transport *weft_transport_find(uint8_t trtype)
{
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (transports[i]->trtype == trtype)
			return transports[i];
	return NULL;
}

const struct weft_link_transport *weft_link_transport_find(uint8_t trtype)
{
	for (size_t i = 0; i < sizeof(link_transports) / sizeof(link_transports[0]); i++)
		if (link_transports[i]->trtype == trtype)
			return link_transports[i];
	return NULL;
}
