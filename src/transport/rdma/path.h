/* path.h - the network path of a connection: adapter, port, kind of RDMA, and MTU. */
#ifndef WEFT_TRANSPORT_RDMA_PATH_H
#define WEFT_TRANSPORT_RDMA_PATH_H

#include <weft/host.h>

#include "transport/rdma/verbs.h"

/* @id is connected; members that are not known stay empty. */
void rdma_query_path(const struct rdma_cm_id *id, struct weft_path *path);

#endif
