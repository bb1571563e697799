/* identity.c - a namespace's identity (UUID, NGUID, EUI64) and block size, from Identify. */
#include <errno.h>
#include <string.h>

#include "host/internal.h"

enum { BLOCK_SHIFT_MIN = 9, BLOCK_SHIFT_MAX = 16 };

int host_ns_geometry(const struct nvme_id_ns *id, unsigned *block_shift, struct weft_err *err)
{
	/* FLBAS: index bits 3:0, and 6:5 where there are more than 16 formats. */
	unsigned index = (id->flbas & 0xf) | (id->nlbaf > 16 ? id->flbas >> 1 & 0x30 : 0);
	const struct nvme_lbaf *format = &id->lbaf[index];

	if (!id->nsze)
		return weft_fail(err, -ENODEV, "there is no such namespace");
	if (index > id->nlbaf)
		return weft_fail(err, -EPROTO, "it says it has format %u of %u", index, id->nlbaf);
	if (format->ms)
		return weft_fail(err, -EOPNOTSUPP,
				 "its blocks have %u bytes of metadata, which is not supported",
				 le16_to_cpu(format->ms));
	if (format->ds < BLOCK_SHIFT_MIN || format->ds > BLOCK_SHIFT_MAX)
		return weft_fail(err, -EPROTO, "it says its blocks have 2^%u bytes", format->ds);
	if (le64_to_cpu(id->nsze) > UINT64_MAX >> 1 >> format->ds)
		return weft_fail(err, -EPROTO, "it says it has %llu blocks",
				 (unsigned long long)le64_to_cpu(id->nsze));
	*block_shift = format->ds;
	return 0;
}

/* A list of type, length, identifier; a type of 0 ends it. */
static void read_descriptors(const uint8_t *list, struct host_ns_ids *ids)
{
	const uint8_t *end = list + HOST_PAGE;

	for (; end - list >= 4 && list[0] && list[1] && end - list - 4 >= list[1];
	     list += 4 + list[1]) {
		if (list[0] == NVME_NIDT_UUID && list[1] == 16)
			memcpy(ids->uuid, list + 4, 16);
		else if (list[0] == NVME_NIDT_NGUID && list[1] == 16)
			memcpy(ids->nguid, list + 4, 16);
		else if (list[0] == NVME_NIDT_EUI64 && list[1] == 8)
			memcpy(ids->eui64, list + 4, 8);
	}
}

void host_ns_ids(const struct nvme_id_ns *id, const void *descriptors, struct host_ns_ids *ids)
{
	memset(ids, 0, sizeof(*ids));
	memcpy(ids->nguid, id->nguid, sizeof(ids->nguid));
	memcpy(ids->eui64, id->eui64, sizeof(ids->eui64));
	read_descriptors(descriptors, ids);
}

bool host_ns_has_ids(const struct weft_ns *ns)
{
	static const struct host_ns_ids none;

	return memcmp(&ns->ids, &none, sizeof(none));
}

/* MSSRL counts blocks of one source range; 0: not told, one block is always fine. */
uint32_t host_ns_copy_max(const struct nvme_id_ns *id, unsigned shift)
{
	uint64_t blocks = le16_to_cpu(id->mssrl);

	if (le32_to_cpu(id->mcl) < blocks)
		blocks = le32_to_cpu(id->mcl);
	return (uint32_t)((blocks ? blocks : 1) << shift);
}

bool host_ns_desc_list_unsupported(uint16_t status)
{
	return (status & 0x7ff) == SC_GENERIC(INVALID_FIELD) ||
	       (status & 0x7ff) == SC_GENERIC(INVALID_OPCODE);
}
