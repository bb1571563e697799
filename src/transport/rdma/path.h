/* path.h - which adapter, port and kind of RDMA a connection uses, and its MTU. */
#ifndef WEFT_TRANSPORT_RDMA_PATH_H
#define WEFT_TRANSPORT_RDMA_PATH_H

#include <weft/host.h>

#include "transport/rdma/verbs.h"

/* @id is connected; what cannot be found out stays empty. */
void rdma_query_path(const struct rdma_cm_id *id, struct weft_path *path);

#endif
