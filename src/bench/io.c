/* io.c - one I/O of a job: stamp its blocks, submit it, record its latency, verify what it has
 * read. */
#include <string.h>

#include "base/clock.h"
#include "bench/job.h"
#include "bench/stamp.h"
#include "bench/verify.h"

enum {
	POISON = 0xa5
}; /* what a read that brings nothing leaves; not the block of the read before */

static uint64_t chunk_offset(const struct bench_io *io)
{
	const struct bench_job *job = io->job;

	return job->load->config->offset + (job->plan.first + io->chunk) * io->iov.iov_len;
}

static uint32_t refresh_epoch(struct bench_job *job)
{
	struct weft_ctrl_info info;

	weft_ctrl_info(job->load->ctrl, &info);
	return job->epoch = (uint32_t)info.losses;
}

/* --- counting --------------------------------------------------------------------------------- */

static void count_in_flight(struct bench_job *job, int by)
{
	__atomic_store_n(&job->in_flight, job->in_flight + (unsigned)by, __ATOMIC_RELAXED);
	if (by < 0)
		__atomic_store_n(&job->answered, job->answered + 1, __ATOMIC_RELAXED);
}

static void count_completed(struct bench_job *job, enum bench_op op, uint64_t from_ns)
{
	uint64_t now = weft_monotonic_ns();

	if (job->phase != BENCH_LOADING || now < job->load->measure_ns)
		return;
	weft_hist_add(&job->hist[op], now > from_ns ? now - from_ns : 0);
	__atomic_store_n(&job->completed[op], job->completed[op] + 1, __ATOMIC_RELAXED);
}

static void count_failed(struct bench_job *job, const struct weft_cmd *cmd)
{
	bench_errors_add_failed(&job->trouble, cmd);
	job->check_dead = true;
}

/* --- verifying -------------------------------------------------------------------------------- */

static void stamp_blocks(struct bench_io *io)
{
	const struct bench_load *load = io->job->load;
	uint32_t block_size = load->ns_info.block_size;
	uint64_t offset = chunk_offset(io);

	io->generation = bench_ledger_send(&io->job->ledger, io->chunk);
	for (uint64_t at = 0; at < io->iov.iov_len; at += block_size)
		bench_stamp_fill((char *)io->iov.iov_base + at, block_size, load->run, offset + at,
				 io->generation);
}

static void judge_read(const struct bench_io *io, uint32_t epoch,
		       struct bench_verify_result *verdict)
{
	const struct bench_job *job = io->job;
	const struct bench_verify_case c = {
		.data = io->iov.iov_base,
		.length = io->iov.iov_len,
		.offset = chunk_offset(io),
		.run = job->load->run,
		.block_size = job->load->ns_info.block_size,
		.low = bench_ledger_low(&job->ledger, io->chunk, epoch),
		.high = job->ledger.chunks[io->chunk].high,
	};

	bench_verify(&c, verdict);
}

/* The connection may have been lost while the read was under way: check that before reporting an
 * error. */
static void verify_read(struct bench_io *io)
{
	struct bench_job *job = io->job;
	struct bench_chunk *chunk = &job->ledger.chunks[io->chunk];
	struct bench_verify_result verdict;

	if (chunk->bad)
		return;
	judge_read(io, job->epoch, &verdict);
	if (verdict.what != BENCH_FINE)
		judge_read(io, refresh_epoch(job), &verdict);
	job->checked += io->iov.iov_len / job->load->ns_info.block_size;
	job->unstamped += verdict.unstamped;
	if (verdict.what == BENCH_FINE)
		return;
	chunk->bad = 1;
	bench_errors_add_bad_block(&job->trouble, &verdict);
}

static void update_ledger(struct bench_io *io)
{
	struct bench_job *job = io->job;

	job->ledger.chunks[io->chunk].busy = 0;
	if (io->cmd.rc < 0)
		job->trouble.unchecked += job->phase == BENCH_SWEEPING;
	else if (io->cmd.op == WEFT_WRITE)
		bench_ledger_ack(&job->ledger, io->chunk, io->generation, io->epoch);
	else
		verify_read(io);
}

/* --- starting and ending ---------------------------------------------------------------------- */

static void io_done(struct weft_cmd *cmd)
{
	struct bench_io *io = cmd->user;
	struct bench_job *job = io->job;

	if (cmd->rc < 0)
		count_failed(job, cmd);
	else
		count_completed(job, cmd->op == WEFT_WRITE ? BENCH_WRITE : BENCH_READ, io->from_ns);
	if (job->plan.ledger)
		update_ledger(io);
	count_in_flight(job, -1);
	bench_job_push_idle(job, io);
}

static void flush_done(struct weft_cmd *cmd)
{
	struct bench_io *io = cmd->user;
	struct bench_job *job = io->job;

	io->busy = false;
	count_in_flight(job, -1);
	if (cmd->rc < 0) {
		count_failed(job, cmd);
		return;
	}
	count_completed(job, BENCH_FLUSH, io->from_ns);
	if (job->plan.ledger && refresh_epoch(job) == io->epoch)
		bench_ledger_flushed(&job->ledger, io->flush_seq, io->epoch);
}

/* Refused before it was sent: so would be all the others. */
static void submit_io(struct bench_io *io)
{
	struct bench_job *job = io->job;
	int rc = weft_submit(io->queue, &io->cmd);

	if (rc < 0) {
		io->cmd.rc = rc;
		count_in_flight(job, 1);
		job->over = true;
		io->cmd.done(&io->cmd);
		return;
	}
	count_in_flight(job, 1);
}

void bench_io_start(struct bench_io *io, const struct bench_next_io *step, uint64_t from_ns)
{
	struct bench_job *job = io->job;

	io->chunk = step->chunk;
	io->from_ns = from_ns;
	io->cmd.op = step->write ? WEFT_WRITE : WEFT_READ;
	io->cmd.offset = chunk_offset(io);
	if (job->plan.ledger) {
		io->epoch = job->epoch;
		job->ledger.chunks[io->chunk].busy = 1;
		if (step->write)
			stamp_blocks(io);
		else
			memset(io->iov.iov_base, POISON, io->iov.iov_len);
	}
	job->unflushed += step->write;
	submit_io(io);
}

void bench_io_flush(struct bench_job *job)
{
	struct bench_io *io = &job->flush;

	io->busy = true;
	io->from_ns = weft_monotonic_ns();
	io->flush_seq = job->ledger.seq;
	io->epoch = job->epoch;
	job->unflushed = 0;
	submit_io(io);
}

void bench_io_init(struct bench_io *io, struct bench_job *job, struct weft_queue *queue, void *buf,
		   uint64_t size)
{
	io->job = job;
	io->queue = queue;
	io->iov = (struct iovec){ buf, size };
	io->cmd = (struct weft_cmd){ .op = WEFT_FLUSH,
				     .ns = job->load->ns,
				     .length = size,
				     .iov = buf ? &io->iov : NULL,
				     .iovcnt = buf ? 1 : 0,
				     .done = buf ? io_done : flush_done,
				     .user = io };
}
