/* backend.h - where a namespace's bytes live.
 *
 * A backend is opened from a SPEC, "TYPE:ARG[,key=value…]", serves weft_io from any reactor, and
 * knows bytes, not blocks: the target has checked the range and the alignment to the namespace's
 * block before an io gets here. Sizes, offsets and lengths are multiples of the block.
 *
 * A SPEC may put filters on it, backends that stand on another one: filter/filter.h. */
#ifndef WEFT_BACKEND_BACKEND_H
#define WEFT_BACKEND_BACKEND_H

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/guard.h"
#include "reactor/reactor.h"

#define WEFT_NSID_MAX    1024 /* namespaces per subsystem */
#define WEFT_NODES_MAX   64   /* nodes of a cluster */
#define WEFT_LOCK_AS_MAX (1ull << 61)

#define WEFT_FILTER_MAX 128 /* bytes of a filter's value in a SPEC */

struct weft_backend;
struct weft_io;
struct weft_spec;

enum weft_io_kind {
	WEFT_IO_READ,
	WEFT_IO_WRITE,
	WEFT_IO_FLUSH,   /* all writes completed before it was submitted become durable */
	WEFT_IO_ZERO,    /* the range reads as zeroes; WEFT_IO_UNMAP: its space may be freed */
	WEFT_IO_TRIM,    /* the range's contents are no longer needed; a hint */
	WEFT_IO_EXTENTS, /* which parts of the range are allocated: see weft_extent */
};

/* An allocated part of a namespace. A gap between two of them reads as zeroes, and was not written
 * since it was deallocated. */
struct weft_extent {
	uint64_t offset, length;
};

enum weft_io_flags {
	WEFT_IO_FUA = 1, /* durable before done() */
	WEFT_IO_UNMAP = 2,
};

/* One operation, embedded in its owner. */
struct weft_io {
	enum weft_io_kind kind;
	unsigned flags;
	void *buf;
	uint64_t offset;
	uint64_t length;
	/* EXTENTS: @buf has room for so many struct weft_extent, at least one. When done: so many
	 * were found, in order and not adjacent, and they cover so many bytes from @offset on, at
	 * least a block. */
	unsigned extents;
	uint64_t covered;
	/* @rc: 0 or -errno. The whole range was done, or it failed. */
	void (*done)(struct weft_io *io, int rc);

	/* The backend's, while it owns the io. */
	struct weft_backend *be;
	union {
		struct weft_op op;
		struct weft_timer timer; /* of filter/delay.c, before storage has the io */
		struct {
			struct weft_retry retry;    /* the guard has refused it */
			struct weft_task bulk_task; /* as bulk work: the backend's, or its owner's */
		};
	};
	struct iovec iov;
	uint64_t moved;
};

/* Keys that only some types take; every type takes block, nsid, uuid and ro. */
enum weft_spec_keys {
	WEFT_KEY_SIZE = 1,
	WEFT_KEY_DIRECT = 2,
};

struct weft_backend_ops {
	const char *type;
	/* How its SPEC is written, "TYPE:ARG[,key=value]", for help and errors. */
	const char *usage;
	bool arg_is_size; /* ARG is the size, not a name */
	bool exclusive;   /* one user, also among those that only read */
	unsigned keys;    /* of enum weft_spec_keys */

	/* A warning: it can be opened and may not be meant; false: there is none (optional). */
	bool (*warning)(const struct weft_spec *spec, struct weft_err *why);
	/* On -errno, everything that it has created is removed again. */
	int (*open)(struct weft_backend **be, const struct weft_spec *spec, struct weft_err *err);
	/* As open(), with the descriptor() of the backend that the old process of a takeover has
	 * open. Owns @fd, also when it fails. NULL: nothing to adopt, open() will do. */
	int (*adopt)(struct weft_backend **be, const struct weft_spec *spec, int fd,
		     struct weft_err *err);
	int (*descriptor)(struct weft_backend *be);
	/* Called through weft_backend_submit(). On 0 the backend owns @io and what it points to
	 * until it calls io->done() on the reactor that submitted it, which may be before this
	 * returns. On -errno the caller still owns it. A filter passes what it owns to the backend
	 * below. */
	int (*submit)(struct weft_backend *be, struct weft_io *io);
	/* The memory itself, to read from without a copy, while the backend's guard is shared;
	 * NULL: this backend has none (optional). */
	void *(*map)(struct weft_backend *be, uint64_t offset);
	bool extents; /* it takes WEFT_IO_EXTENTS; otherwise all blocks count as allocated */
	/* Bytes of storage in use, for thin namespaces (optional). */
	uint64_t (*used)(struct weft_backend *be);
	/* Called through weft_backend_resize_run(), on any thread. May wait for a disk. Does not
	 * change size and spec of @be. */
	int (*resize)(struct weft_backend *be, uint64_t size, struct weft_err *err);
	bool locks_are_local; /* its locks are this kernel's: other machines do not see them */
	/* Whether I/O that cluster node @node started on this storage may still be under way. NULL:
	 * this storage cannot be shared. */
	bool (*node_active)(struct weft_backend *be, unsigned node);
	/* Locks the storage as @as (below WEFT_LOCK_AS_MAX), a number for the namespace that we
	 * serve from it, until it is closed. -ENOTUNIQ: a node that shares it holds it as @other;
	 * it must not be used. NULL if node_active() is. */
	int (*lock_as)(struct weft_backend *be, uint64_t as, uint64_t *other);
	/* The identity of the storage: a number that is the same wherever it is opened, on this
	 * machine or another. 0: there is none. NULL if node_active() is. */
	uint64_t (*identity)(struct weft_backend *be);
	/* No io is in flight. Removes storage that is created and was never served; frees @be. On
	 * any thread. May wait for a disk. */
	void (*close)(struct weft_backend *be);
};

struct weft_backend {
	const struct weft_backend_ops *ops;
	uint64_t size;      /* bytes; changed by a resize alone */
	uint32_t align;     /* of io->buf; 1: any address */
	uint32_t block_min; /* smallest block it can serve, in bytes: 512 or 4096 */
	/* 0: ZERO and TRIM take a range of any length. Otherwise they keep the reactor busy: they
	 * must not cross a multiple of so many bytes, and are submitted as bulk work. */
	uint32_t clear_max;
	bool read_only;
	bool thin;               /* storage is allocated when written */
	bool created;            /* opening it has created the storage */
	bool never_served;       /* set by the caller: no host was served from it, see close() */
	atomic_bool sync_failed; /* until it is opened again; see disk.c */
	/* Canonical text that opens it again; a resize replaces it. The storage frees it; filters
	 * on it have the same pointer. */
	char *spec;
	struct weft_guard *guard; /* of the memory that map() returns; NULL: none */
	/* A filter's: the backend below, which it closes. NULL: this is storage. See
	 * filter/filter.h. */
	struct weft_backend *next;
};

/* The backend below all filters. */
static inline struct weft_backend *weft_backend_storage(struct weft_backend *be)
{
	while (be->next)
		be = be->next;
	return be;
}

/* A parsed SPEC. Keys that every backend has are here; the rest is the type's. */
struct weft_spec {
	const struct weft_backend_ops *ops;
	char type[16];
	char arg[1024]; /* between "TYPE:" and the first "," */
	uint64_t size;  /* size=, or an ARG that is one; 0: not given */
	uint32_t block; /* block=, 0: not given */
	uint32_t nsid;  /* nsid=, 0: not given */
	char uuid[37];  /* uuid=, lower case, "": not given */
	bool read_only; /* ro */
	bool direct;    /* direct */
	/* Filters, as written; "": none. */
	char delay[WEFT_FILTER_MAX], error[WEFT_FILTER_MAX];
	unsigned node; /* of a cluster that shares it, 1 … WEFT_NODES_MAX; 0: not shared */
};

/* Parses @text and checks every key; the sentence in @err names the key and what is expected. */
int weft_spec_parse(const char *text, struct weft_spec *spec, struct weft_err *err);

/* A warning: @spec can be opened and may not be meant; false: there is none. */
static inline bool weft_spec_warning(const struct weft_spec *spec, struct weft_err *why)
{
	return spec->ops->warning && spec->ops->warning(spec, why);
}

int weft_backend_open(struct weft_backend **be, const struct weft_spec *spec, struct weft_err *err);
/* Takeover: continues with storage that the old process has open. Neither uses it while the other
 * does. Owns @fd, the other's weft_backend_descriptor(). */
int weft_backend_adopt(struct weft_backend **be, const struct weft_spec *spec, int fd,
		       struct weft_err *err);
int weft_backend_descriptor(struct weft_backend *be); /* -1: none is needed */
/* Both name the same storage, used in the same way; their sizes and filters may differ. */
bool weft_spec_same(const struct weft_spec *a, const struct weft_spec *b);
/* A name for the storage that all its SPECs have in common; false: no other SPEC can name it. */
#define WEFT_STORAGE_NAME_MAX 1100
bool weft_spec_storage_name(const struct weft_spec *spec, char name[WEFT_STORAGE_NAME_MAX]);
void weft_backend_close(struct weft_backend *be);
static inline void weft_backend_closep(struct weft_backend **be)
{
	if (*be)
		weft_backend_close(*be);
}

/* Grows or shrinks; on -errno @be has its old size. The caller has stopped io beyond a smaller end,
 * and has checked the size against the namespace's block.
 *
 *   begin ─▶ run: the storage changes, which may wait for a disk ─▶ end: so do @be->size, @be->spec
 *
 * One thread begins and ends; any thread may run it. @be->size and @be->spec belong to the first
 * one. weft_backend_submit() reads @be->size, so nothing may be submitted while it ends. */
struct weft_backend_resize {
	struct weft_backend *be;
	uint64_t size;
	char *spec; /* what @be->spec becomes */
};
/* On -errno there is nothing to end. */
int weft_backend_resize_begin(struct weft_backend_resize *resize, struct weft_backend *be,
			      uint64_t size, struct weft_err *err);
int weft_backend_resize_run(const struct weft_backend_resize *resize, struct weft_err *err);
void weft_backend_resize_end(struct weft_backend_resize *resize, bool done);
/* All three steps, if nobody is served. */
int weft_backend_resize(struct weft_backend *be, uint64_t size, struct weft_err *err);

static inline bool weft_io_changes(const struct weft_io *io)
{
	return io->kind == WEFT_IO_WRITE || io->kind == WEFT_IO_ZERO || io->kind == WEFT_IO_TRIM;
}

static inline bool weft_io_clears(const struct weft_io *io)
{
	return io->kind == WEFT_IO_ZERO || io->kind == WEFT_IO_TRIM;
}

/* Asserts our own state: the caller has checked what its peer sent. */
static inline void weft_io_assert_fits(const struct weft_backend *be, const struct weft_io *io)
{
	if (io->kind == WEFT_IO_FLUSH)
		return;
	assert(io->length && io->length <= be->size && io->offset <= be->size - io->length);
	assert(!((io->offset | io->length) & (be->block_min - 1)));
	assert(io->kind > WEFT_IO_WRITE || !((uintptr_t)io->buf & (be->align - 1)));
	assert(io->kind != WEFT_IO_EXTENTS || (io->buf && io->extents));
	assert(!weft_io_clears(io) || !be->clear_max ||
	       io->offset / be->clear_max == (io->offset + io->length - 1) / be->clear_max);
}

/* Every io goes through here: to a namespace's backend, and from a filter to the one below. */
static inline int weft_backend_submit(struct weft_backend *be, struct weft_io *io)
{
	weft_io_assert_fits(be, io);
	if (be->read_only && weft_io_changes(io))
		return -EROFS;
	if (io->kind == WEFT_IO_EXTENTS && !be->ops->extents)
		return -EOPNOTSUPP;
	io->be = be;
	return be->ops->submit(be, io);
}

/* One line per type, "file:PATH[,size=SIZE]…", NULL at the end: for help texts. */
const char *weft_backend_usage(unsigned index);

#endif
