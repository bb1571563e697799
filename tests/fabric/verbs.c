/* verbs.c - the table itself. */
#include "fabric/fabric.h"
#include "fabric/ops.h"

#define ENTRY(entry) .entry = fabric_##entry,

const struct rdma_verbs fabric_verbs = { FABRIC_ENTRIES(ENTRY) };
