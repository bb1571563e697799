/* memory.h - memory that is registered with RDMA adapters beforehand.
 *
 * Data may lie anywhere, and over TCP that is all there is to say. Over RDMA the adapter moves the
 * data by itself and memory must be registered first, which takes far longer than an I/O. So a
 * program that cares either gets its buffers from weft_memory_alloc(), or declares its own ones,
 * once. A buffer that is neither works as well: its data is copied, once, through memory that is
 * registered.
 *
 * A declaration is for the whole process and for every connection; memory is registered at the
 * first I/O. Functions may be called from any thread. */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed, page-aligned memory, declared. NULL and errno: there is none. For buffers that are used
 * many times: it costs far more than malloc(). */
void *weft_memory_alloc(size_t size);
/* No I/O is in flight on it. NULL is nothing. */
void weft_memory_free(void *memory);

/* Declares memory of the program's own. Until weft_memory_unregister() it stays mapped as it is: it
 * is not unmapped, not mapped anew, not given to madvise(MADV_DONTNEED) and the like; an adapter
 * would go on using the pages that were there. -EEXIST: some of it is declared already. */
int weft_memory_register(void *at, size_t size, struct weft_err *err);

/* Declares memory that is not the CPU's: [@at, @at + @size) stands for the bytes of the dma-buf @fd
 * from @offset on. @at is the address by which the program knows it, for a GPU the device's
 * pointer; it is then an address for data like any. @fd may be closed afterwards. I/O on such
 * memory works over RDMA, where adapter and driver take dma-bufs; elsewhere weft_submit() refuses
 * it with -EOPNOTSUPP, as do admin commands. */
int weft_memory_import_dmabuf(void *at, size_t size, int fd, uint64_t offset, struct weft_err *err);

/* Takes back what was registered or imported at exactly @at. No I/O is in flight on it. -ENOENT:
 * nothing was. */
int weft_memory_unregister(void *at, struct weft_err *err);

#ifdef __cplusplus
}
#endif

#endif
