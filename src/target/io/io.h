/* io.h - I/O commands, on the reactor of their queue. */
#ifndef WEFT_TARGET_IO_IO_H
#define WEFT_TARGET_IO_IO_H

#include "target/internal.h"

/* io/io.c */
extern const struct tgt_command_info tgt_io_commands[];
void tgt_io_command(struct weft_req *req);
/* Answers; a fused command goes on with its pair. */
void tgt_io_finish(struct weft_req *req, uint16_t status);
void tgt_io_done(struct weft_io *io, int rc); /* finishes with the status of the io */
/* io/storage_error.c: storage failed the request's io; returns the status to answer with. */
uint16_t tgt_io_failed(struct weft_req *req, int rc);
/* The status of the request's io; call it once for each io. */
static inline uint16_t tgt_io_status(struct weft_req *req, int rc)
{
	return rc < 0 ? tgt_io_failed(req, rc) : 0;
}
struct weft_req *tgt_io_req(struct weft_io *io);
/* Sets offset and length from SLBA and NLB. 0 or a status. */
uint16_t tgt_io_set_range(struct weft_req *req, const struct tgt_ns *ns);
/* The same for commands that move the range's data between host and namespace. */
uint16_t tgt_io_set_data_range(struct weft_req *req, const struct tgt_ns *ns);
uint16_t tgt_io_check_lbas(const struct tgt_ns *ns, uint64_t slba, uint64_t nlb);
/* For a piece, in bytes: the namespace may have shrunk since the whole range was checked. */
uint16_t tgt_io_check_piece(struct weft_req *req, uint64_t offset, uint64_t length);
/* True: @req, which waited for its host, a buffer or its turn, has ended with the generic status @sc.
 * False: it waits for none of these, and ends with @sc before it enters its namespace again. */
bool tgt_io_abort(struct weft_req *req, uint8_t sc);
/* Submits an io to the request's namespace. */
void tgt_io_submit(struct weft_req *req, enum weft_io_kind kind, void *buf, uint64_t offset,
		   uint64_t length, unsigned flags, void (*done)(struct weft_io *io, int rc));
/* Calls @attempt now and, while it returns false because the block guard refuses it, again in later
 * turns; the backend has no io of @req meanwhile. */
void tgt_io_retry_until(struct weft_req *req, bool (*attempt)(struct weft_req *req));
/* io/buffer.c: gets a buffer of tgt_req.length at req->data and calls @run, inside the namespace,
 * now or when a buffer is free. Fetched data stays at tgt_req.host_data. */
void tgt_io_buffer(struct weft_req *req, void (*run)(struct weft_req *req));
/* WEFT_IO_FUA if the command asks for it or the host turned the write cache off. */
unsigned tgt_io_durability(struct weft_req *req, bool fua);

/* io/write_data.c: commands that bring data */
struct tgt_write_data_ops {
	bool writer; /* it changes the namespace */
	bool list;   /* it is a range list: see io/tenant_limit.c */
	/* Before the data is fetched: 0, and how many bytes in tgt_req.length, or a status. */
	uint16_t (*check_command)(struct weft_req *req, const struct tgt_ns *ns);
	/* With the data at tgt_req.host_data and the namespace entered: 0 or a status. */
	uint16_t (*check_data)(struct weft_req *req, const struct tgt_ns *ns);
	void (*execute)(struct weft_req *req);
};
void tgt_io_write_data(struct weft_req *req, const struct tgt_write_data_ops *input);

/* io/tenant_limit.c */
void tgt_limit_init(struct tgt_tenant_limit *limit, unsigned most);
bool tgt_limit_is_idle(const struct tgt_tenant_limit *limit);
/* @req is a range list, or first of a fused pair. Calls @start, now or when its tenant has fewer of
 * that kind under way. */
void tgt_limit_admit(struct weft_req *req, void (*start)(struct weft_req *req));
void tgt_limit_release(struct weft_req *req);
void tgt_limit_unwait(struct weft_req *req); /* it waits no more */
void tgt_limit_wake_next(struct weft_task *task);

/* io/bulk.c: leaves the namespace; when it is this command's turn, enters again and calls @piece,
 * with a buffer at req->data for as much of @bytes as tgt_req.piece says; 0: it needs none. The
 * backend has no io of @req meanwhile. */
enum { TGT_PIECE_BYTES = 128 << 10 };
void tgt_io_bulk(struct weft_req *req, uint64_t bytes, void (*piece)(struct weft_req *req));
/* The flow of the command's host, on this reactor. */
struct weft_bulk_flow *tgt_io_bulk_queue(struct weft_req *req);
/* Storage has no piece of @req any more; does nothing if it had none. */
void tgt_io_piece_ends(struct weft_req *req);
/* Its connection closes: ends @req if it waits for its turn, or for room for its list. */
void tgt_io_bulk_closing(struct weft_req *req);
/* True: a command between two pieces has ended with the generic status @sc. False: storage has a
 * piece, and the command ends after that. */
bool tgt_io_bulk_abort(struct weft_req *req, uint8_t sc);

/* io/…: one file per command or kind */
void tgt_io_read(struct weft_req *req);
void tgt_io_write(struct weft_req *req);
void tgt_io_write_run(struct weft_req *req);
void tgt_io_flush(struct weft_req *req);
void tgt_io_compare(struct weft_req *req);
void tgt_io_compare_run(struct weft_req *req);
void tgt_io_write_zeroes(struct weft_req *req);
void tgt_io_verify(struct weft_req *req);
void tgt_io_dsm(struct weft_req *req);
void tgt_io_copy(struct weft_req *req);
/* On the control reactor: an admin command that storage answers. */
void tgt_lba_status(struct weft_req *req);
/* Flushes every namespace, then continues on the control reactor. */
void tgt_io_shutdown(struct weft_msg *msg);

/* io/fused.c */
/* @req is fused, or comes behind the first half of a pair. True: it is one of a pair. */
bool tgt_io_fused(struct weft_req *req);
static inline bool tgt_io_is_fused(const struct weft_req *req)
{
	return req->cmd.common.flags & NVME_FUSE_MASK;
}
/* Both commands of @first's pair, which waits for its tenant's others, end. */
void tgt_io_fused_abort(struct weft_req *first, uint16_t sc);
void tgt_io_fused_step(struct weft_req *req, uint16_t status);
void tgt_io_fused_closing(struct tgt_queue *queue);

#endif
