/* mem.c - protection domains and memory regions: who may touch what. */
#include <sys/mman.h>

#include "fabric/internal.h"
#include "fabric/ops.h"

enum { REMOTE_RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC };

struct ibv_pd *fabric_alloc_pd(struct ibv_context *ctx)
{
	struct fabric_pd *pd;
	FABRIC_LOCKED;

	FABRIC_FAULT_NULL(alloc_pd);
	if (fabric_dev_of(ctx)->removed) {
		errno = EIO;
		return NULL;
	}
	pd = fabric_new(sizeof(*pd));
	pd->pub.context = ctx;
	pd->pub.handle = fabric_number();
	fabric_count.pds++;
	return &pd->pub;
}

int fabric_dealloc_pd(struct ibv_pd *pub)
{
	struct fabric_pd *pd = container_of(pub, struct fabric_pd, pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(dealloc_pd);
	if (pd->users)
		return EBUSY;
	fabric_count.pds--;
	free(pd);
	return 0;
}

static struct ibv_mr *mr_add(struct fabric_mr *mr, struct ibv_pd *pd, size_t size, int access)
{
	mr->pub.context = pd->context;
	mr->pub.pd = pd;
	mr->pub.length = size;
	mr->pub.handle = fabric_number();
	mr->pub.lkey = fabric_number();
	mr->pub.rkey = fabric_number();
	mr->access = access;
	weft_list_push(&fabric_mrs, &mr->link);
	container_of(pd, struct fabric_pd, pub)->users++;
	fabric_count.mrs++;
	fabric_count.registrations++;
	return &mr->pub;
}

static int reg_error(struct ibv_pd *pd, size_t size, int access)
{
	const struct fabric_dev *dev = fabric_dev_of(pd->context);

	if (dev->removed)
		return EIO;
	if (size > dev->conf.attr.max_mr_size)
		return EINVAL;
	if ((access & REMOTE_RIGHTS) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return (int)fabric_count.mrs >= dev->conf.attr.max_mr ? ENOMEM : 0;
}

struct ibv_mr *fabric_reg_mr(struct ibv_pd *pd, void *addr, size_t size, int access)
{
	struct fabric_mr *mr;
	FABRIC_LOCKED;

	FABRIC_FAULT_NULL(reg_mr);
	errno = reg_error(pd, size, access);
	if (errno)
		return NULL;
	mr = fabric_new(sizeof(*mr));
	mr->pub.addr = mr->at = addr;
	mr->base = (uintptr_t)addr;
	return mr_add(mr, pd, size, access);
}

struct ibv_mr *fabric_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t size, uint64_t iova,
				    int fd, int access)
{
	uint64_t page = offset & ~(uint64_t)4095;
	struct fabric_mr *mr;
	void *map;
	FABRIC_LOCKED;

	FABRIC_FAULT_NULL(reg_dmabuf_mr);
	errno = fabric_dev_of(pd->context)->conf.dmabuf ? reg_error(pd, size, access) : EOPNOTSUPP;
	if (errno)
		return NULL;
	map = mmap(NULL, offset - page + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)page);
	if (map == MAP_FAILED)
		return NULL;
	mr = fabric_new(sizeof(*mr));
	mr->map = map;
	mr->map_size = offset - page + size;
	mr->at = (char *)map + (offset - page);
	mr->base = iova;
	mr->pub.addr = (void *)(uintptr_t)offset;
	return mr_add(mr, pd, size, access);
}

int fabric_dereg_mr(struct ibv_mr *pub)
{
	struct fabric_mr *mr = container_of(pub, struct fabric_mr, pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(dereg_mr);
	weft_list_remove(&mr->link);
	container_of(pub->pd, struct fabric_pd, pub)->users--;
	if (mr->map)
		munmap(mr->map, mr->map_size);
	fabric_count.mrs--;
	free(mr);
	return 0;
}

static bool within(const struct fabric_mr *mr, uint64_t addr, uint32_t len)
{
	return addr >= mr->base && len <= mr->pub.length && addr - mr->base <= mr->pub.length - len;
}

char *fabric_mem_at(struct ibv_pd *pd, bool remote, uint32_t key, uint64_t addr, uint32_t len,
		    int access)
{
	struct fabric_mr *mr;

	weft_list_for_each(mr, &fabric_mrs, link) {
		if ((remote ? mr->pub.rkey : mr->pub.lkey) != key)
			continue;
		if (mr->pub.pd != pd || mr->invalid || (mr->access & access) != access)
			return NULL;
		return within(mr, addr, len) ? mr->at + (addr - mr->base) : NULL;
	}
	return NULL;
}

bool fabric_mem_invalidate(struct ibv_pd *pd, uint32_t rkey)
{
	struct fabric_mr *mr;

	weft_list_for_each(mr, &fabric_mrs, link)
		if (mr->pub.rkey == rkey && mr->pub.pd == pd && !mr->invalid) {
			mr->invalid = true;
			return true;
		}
	return false;
}
