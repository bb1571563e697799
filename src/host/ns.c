/* ns.c - an open namespace: who it is, how large, how its blocks are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/uuid.h"
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

/* MSSRL counts blocks of one source range; 0: not told, one block is always fine. */
static uint32_t copy_max(const struct nvme_id_ns *id, unsigned shift)
{
	uint64_t blocks = le16_to_cpu(id->mssrl);

	if (le32_to_cpu(id->mcl) < blocks)
		blocks = le32_to_cpu(id->mcl);
	return (uint32_t)((blocks ? blocks : 1) << shift);
}

bool host_has_no_descriptors(uint16_t status)
{
	return (status & 0x7ff) == SC_GENERIC(INVALID_FIELD) ||
	       (status & 0x7ff) == SC_GENERIC(INVALID_OPCODE);
}

static int read_descriptor_list(struct weft_ns *ns, char *page, struct weft_err *err)
{
	struct weft_err why = { "" };
	union nvme_sqe cmd = { 0 };
	int rc;

	host_fill_identify(&cmd, NVME_IDENTIFY_CNS_NS_DESC_LIST, ns->nsid);
	rc = weft_admin(ns->ctrl, &cmd, page, HOST_PAGE, NULL, &why);
	if (rc > 0 && host_has_no_descriptors((uint16_t)rc)) {
		memset(page, 0, HOST_PAGE);
		return 0;
	}
	if (rc > 0)
		rc = weft_status_to_errno((uint16_t)rc);
	return rc < 0 ? weft_fail(err, rc, "namespace %u: %s", ns->nsid, why.text) : 0;
}

static int check_transfer(struct weft_ns *ns, struct weft_err *err)
{
	struct weft_ctrl_info info;

	weft_ctrl_info(ns->ctrl, &info);
	if (info.transfer_max >> ns->block_shift)
		return 0;
	return weft_fail(err, -EPROTO,
			 "its blocks are larger than what the controller moves at once");
}

static int look(struct weft_ns *ns, struct weft_err *err)
{
	_cleanup_(weft_freep) char *page = malloc(HOST_PAGE);
	struct weft_err why = { "" };
	int rc;

	if (!page)
		return weft_fail(err, -ENOMEM, "no memory for a namespace");
	rc = weft_identify(ns->ctrl, NVME_IDENTIFY_CNS_NS, ns->nsid, &ns->id, &why);
	if (rc == 0)
		rc = host_ns_geometry(&ns->id, &ns->block_shift, &why);
	if (rc == 0)
		rc = check_transfer(ns, &why);
	if (rc < 0)
		return weft_fail(err, rc, "namespace %u: %s", ns->nsid, why.text);
	rc = read_descriptor_list(ns, page, err);
	if (rc < 0)
		return rc;
	host_ns_ids(&ns->id, page, &ns->ids);
	ns->copy_max = copy_max(&ns->id, ns->block_shift);
	atomic_store(&ns->read_only, ns->id.nsattr & 1);
	atomic_store(&ns->size, le64_to_cpu(ns->id.nsze) << ns->block_shift);
	return 0;
}
static_assert(sizeof(struct nvme_id_ns) == HOST_PAGE, "Identify Namespace");

enum { LOOKS_MAX = 4 }; /* while namespaces keep changing under us */

static void enroll(struct weft_ns *ns)
{
	pthread_mutex_lock(&ns->ctrl->lock);
	ns->opening = true;
	weft_list_push(&ns->ctrl->namespaces, &ns->link);
	pthread_mutex_unlock(&ns->ctrl->lock);
}

/* true: what was seen still holds, and from now on a scan sees to it. */
static bool is_settled(struct weft_ns *ns)
{
	bool changed;

	pthread_mutex_lock(&ns->ctrl->lock);
	changed = ns->changed;
	ns->changed = false;
	ns->opening = changed;
	pthread_mutex_unlock(&ns->ctrl->lock);
	return !changed;
}

int weft_ns_open(struct weft_ctrl *ctrl, uint32_t nsid, struct weft_ns **out, struct weft_err *err)
{
	struct weft_ns *ns = calloc(1, sizeof(*ns));
	int rc, looks = 0;

	if (!ns)
		return weft_fail(err, -ENOMEM, "no memory for a namespace");
	ns->ctrl = ctrl;
	ns->nsid = nsid;
	enroll(ns);
	do {
		rc = look(ns, err);
	} while (rc == 0 && !is_settled(ns) && ++looks < LOOKS_MAX);
	if (rc == 0 && looks == LOOKS_MAX)
		rc = weft_fail(err, -EAGAIN, "namespace %u keeps changing", nsid);
	if (rc < 0)
		weft_ns_close(ns);
	else
		*out = ns;
	return rc;
}

void weft_ns_close(struct weft_ns *ns)
{
	if (!ns)
		return;
	pthread_mutex_lock(&ns->ctrl->lock);
	weft_list_remove(&ns->link);
	pthread_mutex_unlock(&ns->ctrl->lock);
	free(ns);
}

void weft_ns_info(struct weft_ns *ns, struct weft_ns_info *info)
{
	static const uint8_t none[16];

	memset(info, 0, sizeof(*info));
	info->nsid = ns->nsid;
	info->block_size = 1u << ns->block_shift;
	info->size = atomic_load(&ns->size);
	info->read_only = atomic_load(&ns->read_only);
	if (memcmp(ns->ids.uuid, none, sizeof(none)))
		weft_uuid_format(ns->ids.uuid, info->uuid);
	memcpy(info->nguid, ns->ids.nguid, sizeof(info->nguid));
	memcpy(info->eui64, ns->ids.eui64, sizeof(info->eui64));
	pthread_mutex_lock(&ns->ctrl->lock);
	info->capacity = le64_to_cpu(ns->id.ncap) << ns->block_shift;
	info->used = le64_to_cpu(ns->id.nuse) << ns->block_shift;
	if (ns->id.nsfeat & 1 << 4)
		info->optimal_write = (le16_to_cpu(ns->id.nows) + 1u) << ns->block_shift;
	pthread_mutex_unlock(&ns->ctrl->lock);
}

/* --- which there are ----------------------------------------------------------------------------------- */

enum { NSIDS_PER_PAGE = HOST_PAGE / 4, NSIDS_MAX = 1 << 20 };

/* The ids above @after; returns how many are in @page, which must ascend. */
static int read_page(struct weft_ctrl *ctrl, uint32_t after, __le32 *page, struct weft_err *err)
{
	int n, rc = weft_identify(ctrl, NVME_IDENTIFY_CNS_NS_ACTIVE_LIST, after, page, err);

	if (rc < 0)
		return rc;
	for (n = 0; n < NSIDS_PER_PAGE && page[n]; n++) {
		if (le32_to_cpu(page[n]) <= after)
			return weft_fail(err, -EPROTO,
					 "Identify: the list of namespaces is out of order");
		after = le32_to_cpu(page[n]);
	}
	return n;
}

int weft_ns_list(struct weft_ctrl *ctrl, uint32_t *nsids, unsigned max, struct weft_err *err)
{
	_cleanup_(weft_freep) __le32 *page = malloc(HOST_PAGE);
	unsigned total = 0;
	uint32_t after = 0;
	int n;

	if (!page)
		return weft_fail(err, -ENOMEM, "no memory for a list of namespaces");
	do {
		n = read_page(ctrl, after, page, err);
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++, total++) {
			after = le32_to_cpu(page[i]);
			if (total < max)
				nsids[total] = after;
		}
		if (total > NSIDS_MAX)
			return weft_fail(err, -EPROTO,
					 "Identify: the list of namespaces does not end");
	} while (n == NSIDS_PER_PAGE && after < NVME_NSID_BROADCAST - 1);
	return (int)total;
}
