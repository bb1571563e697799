/* rdma.c - checks the private data of an NVMe/RDMA connection request. */
#include "proto/rdma.h"

#include <string.h>

const char *nvme_rdma_status_text(uint16_t sts)
{
	static const char *const texts[] = {
		[NVME_RDMA_OK] = "no reason",
		[NVME_RDMA_BAD_LENGTH] = "invalid length of the private data",
		[NVME_RDMA_BAD_RECFMT] = "invalid format (RECFMT)",
		[NVME_RDMA_BAD_QID] = "invalid queue id",
		[NVME_RDMA_BAD_HSQSIZE] = "invalid number of commands (HSQSIZE)",
		[NVME_RDMA_BAD_HRQSIZE] = "invalid number of completions (HRQSIZE)",
		[NVME_RDMA_NO_RESOURCES] = "no resources",
		[NVME_RDMA_BAD_IRD] = "invalid number of incoming RDMA reads (IRD)",
		[NVME_RDMA_BAD_ORD] = "invalid number of outgoing RDMA reads (ORD)",
		[NVME_RDMA_BAD_CNTLID] = "invalid controller id",
	};

	return sts < sizeof(texts) / sizeof(texts[0]) ? texts[sts] : "an unknown reason";
}

/* InfiniBand pads the private data with zeroes, so it may be longer than the request. */
enum nvme_rdma_status nvme_rdma_check_request(const void *data, size_t len, uint32_t depth_max,
					      struct nvme_rdma_request *request)
{
	uint32_t entries;

	if (!data || len < sizeof(*request))
		return NVME_RDMA_BAD_LENGTH;
	memcpy(request, data, sizeof(*request));
	entries = le16_to_cpu(request->hsqsize) + 1u;
	if (le16_to_cpu(request->recfmt))
		return NVME_RDMA_BAD_RECFMT;
	if (le16_to_cpu(request->qid) == 0xffff)
		return NVME_RDMA_BAD_QID;
	if (entries < 2 || entries > depth_max)
		return NVME_RDMA_BAD_HSQSIZE;
	if (!le16_to_cpu(request->hrqsize))
		return NVME_RDMA_BAD_HRQSIZE;
	if (le16_to_cpu(request->qid) && le16_to_cpu(request->cntlid) >= 0xfff0)
		return NVME_RDMA_BAD_CNTLID;
	return NVME_RDMA_OK;
}
