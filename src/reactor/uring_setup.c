/* uring_setup.c - sets up an io_uring that fits this kernel: the best set-up that it knows, and no
 * feature that it lacks. */
#include "reactor/uring_setup.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define SQ_ENTRIES 256
#define CQ_ENTRIES 4096

#define SETUP_ALWAYS (IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE)

/* The best first; a kernel answers EINVAL to what it does not know. */
static const unsigned setups[] = {
	/* 6.1 */
	SETUP_ALWAYS | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG |
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	/* 5.19 */
	SETUP_ALWAYS | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG |
		IORING_SETUP_COOP_TASKRUN,
	SETUP_ALWAYS,
};

static int init_ring(struct io_uring *ring)
{
	struct io_uring_params params;
	int rc = -EINVAL;

	for (size_t i = 0; rc == -EINVAL && i < sizeof(setups) / sizeof(*setups); i++) {
		params = (struct io_uring_params){ .flags = setups[i], .cq_entries = CQ_ENTRIES };
		rc = io_uring_queue_init_params(SQ_ENTRIES, ring, &params);
	}
	return rc;
}

/* RSRC_TAGS stands for Linux 5.13, the first with multishot poll. */
static bool has_features(const struct io_uring *ring)
{
	unsigned need = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_RSRC_TAGS;

	return (ring->features & need) == need;
}

static bool has_opcodes(struct io_uring *ring)
{
	static const int need[] = {
		IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL, IORING_OP_RECV,  IORING_OP_RECVMSG,
		IORING_OP_SEND,     IORING_OP_SENDMSG,      IORING_OP_READV, IORING_OP_WRITEV,
		IORING_OP_FSYNC,    IORING_OP_FALLOCATE,
	};
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool all = probe;

	for (size_t i = 0; all && i < sizeof(need) / sizeof(*need); i++)
		all = io_uring_opcode_supported(probe, need[i]);
	io_uring_free_probe(probe);
	return all;
}

static int fail_setup(struct weft_err *err, int rc)
{
	switch (rc) {
	case -ENOSYS:
		return weft_fail(err, rc, "io_uring: this kernel has none");
	case -EPERM:
	case -EACCES:
		return weft_fail(err, rc,
				 "io_uring is forbidden (seccomp or kernel.io_uring_disabled)");
	case -ENOMEM:
		return weft_fail(err, rc, "io_uring: no memory (see ulimit -l)");
	default:
		return weft_fail(err, rc, "io_uring: %s", strerror(-rc));
	}
}

int weft_uring_setup(struct io_uring *ring, struct weft_err *err)
{
	int rc = init_ring(ring);

	if (rc < 0)
		return fail_setup(err, rc);
	if (has_features(ring) && has_opcodes(ring))
		return 0;
	io_uring_queue_exit(ring);
	return weft_fail(err, -ENOSYS, "io_uring: this kernel is too old for it");
}
