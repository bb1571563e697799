/* rdma.h - NVMe/RDMA: the private data of a connection request and of its answer (RDMA transport
 * 1.0, 3.2). */
#ifndef WEFT_PROTO_RDMA_H
#define WEFT_PROTO_RDMA_H

#include <stddef.h>

#include "proto/nvme.h"

struct nvme_rdma_request {
	__le16 recfmt;
	__le16 qid;
	__le16 hrqsize; /* completions that the host can hold */
	__le16 hsqsize; /* commands that it may send, 0's based */
	__le16 cntlid;
	__u8 rsvd[22];
};
static_assert(sizeof(struct nvme_rdma_request) == 32, "request private data");

struct nvme_rdma_accept {
	__le16 recfmt;
	__le16 crqsize; /* commands that the controller can hold */
	__u8 rsvd[28];
};
static_assert(sizeof(struct nvme_rdma_accept) == 32, "accept private data");

struct nvme_rdma_reject {
	__le16 recfmt;
	__le16 sts;
};
static_assert(sizeof(struct nvme_rdma_reject) == 4, "reject private data");

enum nvme_rdma_status {
	NVME_RDMA_OK,
	NVME_RDMA_BAD_LENGTH,
	NVME_RDMA_BAD_RECFMT,
	NVME_RDMA_BAD_QID,
	NVME_RDMA_BAD_HSQSIZE,
	NVME_RDMA_BAD_HRQSIZE,
	NVME_RDMA_NO_RESOURCES,
	NVME_RDMA_BAD_IRD,
	NVME_RDMA_BAD_ORD,
	NVME_RDMA_BAD_CNTLID,
};

/* "no resources"; a constant, never NULL. */
const char *nvme_rdma_status_text(uint16_t sts);

/* May @data, of @len bytes, become a queue of at most @depth_max entries? On 0 @request holds
 * it. */
enum nvme_rdma_status nvme_rdma_check_request(const void *data, size_t len, uint32_t depth_max,
					      struct nvme_rdma_request *request);

#endif
