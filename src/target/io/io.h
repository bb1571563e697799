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
/* io/failed.c: storage did not do the request's io; the status to answer with. */
uint16_t tgt_io_failed(struct weft_req *req, int rc);
/* What storage made of the request's io; once for each io. */
static inline uint16_t tgt_io_status(struct weft_req *req, int rc)
{
	return rc < 0 ? tgt_io_failed(req, rc) : 0;
}
struct weft_req *tgt_io_req(struct weft_io *io);
/* Sets offset and length from SLBA and NLB. 0 or a status. */
uint16_t tgt_io_range(struct weft_req *req, const struct tgt_ns *ns);
/* The same for commands that move the range's data between host and namespace. */
uint16_t tgt_io_data_range(struct weft_req *req, const struct tgt_ns *ns);
uint16_t tgt_io_check_lbas(const struct tgt_ns *ns, uint64_t slba, uint64_t nlb);
/* To the namespace that the request works on. */
void tgt_io_submit(struct weft_req *req, enum weft_io_kind kind, void *buf, uint64_t offset,
		   uint64_t length, unsigned flags, void (*done)(struct weft_io *io, int rc));
/* Runs @again in the next turn; the backend has no io of @req meanwhile. */
void tgt_io_next_turn(struct weft_req *req, void (*again)(struct weft_req *req));
/* WEFT_IO_FUA where the command asks for it or the host turned the write cache off. */
unsigned tgt_io_durability(struct weft_req *req, bool fua);

/* io/input.c: commands that bring data */
struct tgt_input {
	bool writer;
	/* Before the data is asked for: 0 and how many bytes in tgt_req.length, or a status. */
	uint16_t (*before)(struct weft_req *req, const struct tgt_ns *ns);
	/* With the data at tgt_req.host_data and the namespace entered: 0 or a status. */
	uint16_t (*after)(struct weft_req *req, const struct tgt_ns *ns);
	void (*run)(struct weft_req *req);
};
void tgt_io_input(struct weft_req *req, const struct tgt_input *input);

/* io/steps.c */
void tgt_io_steps(struct weft_req *req, bool (*step)(struct weft_req *req, int rc));
void tgt_io_step_done(struct weft_io *io, int rc);

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
void tgt_io_shutdown(struct weft_msg *msg); /* flushes every namespace, then on to home */

/* io/fused.c */
bool tgt_io_fused(struct weft_req *req); /* true: it took care of @req */
void tgt_io_fused_next(struct weft_req *req, uint16_t status);
void tgt_io_fused_closing(struct tgt_queue *queue);

#endif
