/* io.h - I/O commands, on the reactor of their queue. */
#ifndef WEFT_TARGET_IO_IO_H
#define WEFT_TARGET_IO_IO_H

#include "target/internal.h"

/* io/io.c */
extern const struct tgt_command_info tgt_io_commands[];
void tgt_io_command(struct weft_req *req);
/* Answers; a fused command goes on with its pair. */
void tgt_io_finish(struct weft_req *req, uint16_t status);
void tgt_io_done(struct weft_io *io, int rc); /* finishes with what became of the io */
/* io/storage_error.c: storage did not do the request's io; the status to answer with. */
uint16_t tgt_io_failed(struct weft_req *req, int rc);
/* What storage made of the request's io; once for each io. */
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
/* Of a piece, in bytes: the namespace may have shrunk since the whole was checked. */
uint16_t tgt_io_check_piece(struct weft_req *req, uint64_t offset, uint64_t length);
/* To the namespace that the request works on. */
void tgt_io_submit(struct weft_req *req, enum weft_io_kind kind, void *buf, uint64_t offset,
		   uint64_t length, unsigned flags, void (*done)(struct weft_io *io, int rc));
/* Runs @attempt now and, while somebody keeps it out, which is false, in later turns; the backend has
 * no io of @req meanwhile. */
void tgt_io_retry_until(struct weft_req *req, bool (*attempt)(struct weft_req *req));
/* io/buffer.c: a buffer of tgt_req.length at req->data, then @run, in the namespace, now or when one is
 * free. Fetched data is still at tgt_req.host_data. */
void tgt_io_buffer(struct weft_req *req, void (*run)(struct weft_req *req));
/* WEFT_IO_FUA where the command asks for it or the host turned the write cache off. */
unsigned tgt_io_durability(struct weft_req *req, bool fua);

/* io/write_data.c: commands that bring data */
struct tgt_write_data_ops {
	bool writer;
	bool list; /* of ranges: see io/range_lists.c */
	/* Before the data is asked for: 0 and how many bytes in tgt_req.length, or a status. */
	uint16_t (*check_command)(struct weft_req *req, const struct tgt_ns *ns);
	/* With the data at tgt_req.host_data and the namespace entered: 0 or a status. */
	uint16_t (*check_data)(struct weft_req *req, const struct tgt_ns *ns);
	void (*execute)(struct weft_req *req);
};
void tgt_io_write_data(struct weft_req *req, const struct tgt_write_data_ops *input);

/* io/range_lists.c: commands that bring a list of ranges, and keep it until they end: @fetch, now
 * or when their share has fewer of them. */
void tgt_io_list_admit(struct weft_req *req, void (*fetch)(struct weft_req *req));
void tgt_io_list_release(struct weft_req *req);
void tgt_io_list_unwait(struct weft_req *req); /* that waits: it does not any more */
void tgt_io_lists_wake_next(struct weft_task *task);
void tgt_io_lists_closing(struct weft_qpair *qp); /* nothing of it waits any more */

/* io/bulk.c: leaves the namespace, and when it is this command's turn enters it again and runs
 * @piece, with a buffer at req->data for as much of @bytes as tgt_req.piece says; 0: it needs none.
 * The backend has no io of @req meanwhile. */
enum { TGT_PIECE_BYTES = 128 << 10 };
void tgt_io_bulk(struct weft_req *req, uint64_t bytes, void (*piece)(struct weft_req *req));
/* The line of the command's host, on this reactor. */
struct weft_bulk_flow *tgt_io_bulk_queue(struct weft_req *req);
/* Storage has no piece of it any more; one that has none is left as it is. */
void tgt_io_piece_ends(struct weft_req *req);
void tgt_io_bulk_closing(struct weft_qpair *qp); /* nothing of it waits for its turn any more */
/* A command between two pieces ends with the generic status @sc, which is true; one of which
 * storage has a piece ends after that. */
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
void tgt_lba_status(
	struct weft_req *req); /* on the control reactor: an admin command that storage answers */
void tgt_io_shutdown(
	struct weft_msg *msg); /* flushes every namespace, then on to the control reactor */

/* io/fused.c */
bool tgt_io_fused(struct weft_req *req); /* true: it took care of @req */
void tgt_io_fused_step(struct weft_req *req, uint16_t status);
void tgt_io_fused_closing(struct tgt_queue *queue);

#endif
