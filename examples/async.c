/* async.c - many reads in flight on one queue: each callback sends the next one off.
 *
 *     cc async.c -o async $(pkg-config --cflags --libs weft)
 *     ./async 'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default?nsid=1'
 *
 * A read scatters its bytes. What callbacks submit leaves together, at the end of the poll they run
 * in. Over RDMA the adapter writes into memory of weft_memory_alloc(): nothing is copied. */
#include <stdio.h>
#include <weft/host.h>
#include <weft/memory.h>

enum { READS = 32, CHUNK = 64 << 10, HEAD = 4096 };

struct job {
	struct weft_queue *queue;
	struct weft_ns *ns;
	unsigned long long next, end, reads, sum;
	struct weft_err err;
};

/* A command lives in something of the program's own, and so do its buffers. */
struct read {
	struct weft_cmd cmd;
	struct iovec iov[2];
	unsigned char head[HEAD], rest[CHUNK - HEAD];
};

static uint64_t sum_bytes(const struct iovec *iov)
{
	const unsigned char *at = iov->iov_base;
	uint64_t sum = 0;

	for (size_t i = 0; i < iov->iov_len; i++)
		sum += at[i];
	return sum;
}

static void submit_read(struct job *job, struct read *read)
{
	if (job->next == job->end || job->err.text[0])
		return;
	read->cmd.offset = job->next;
	read->cmd.rc = weft_submit(job->queue, &read->cmd);
	if (read->cmd.rc < 0)
		weft_cmd_text(&read->cmd, &job->err);
	job->next += CHUNK;
}

static void on_read_done(struct weft_cmd *cmd)
{
	struct job *job = cmd->user;

	if (cmd->rc < 0)
		weft_cmd_text(cmd, &job->err);
	else
		job->sum += sum_bytes(&cmd->iov[0]) + sum_bytes(&cmd->iov[1]);
	job->reads++;
	submit_read(job, (struct read *)cmd); /* whose first member the command is */
}

static void init_read(struct job *job, struct read *read)
{
	read->iov[0] = (struct iovec){ read->head, sizeof(read->head) };
	read->iov[1] = (struct iovec){ read->rest, sizeof(read->rest) };
	read->cmd = (struct weft_cmd){ .op = WEFT_READ, .ns = job->ns, .length = CHUNK };
	read->cmd.iov = read->iov;
	read->cmd.iovcnt = 2;
	read->cmd.done = on_read_done;
	read->cmd.user = job;
}

static int read_all(struct job *job)
{
	struct read *reads = weft_memory_alloc(READS * sizeof(*reads));

	for (int i = 0; reads && i < READS; i++) {
		init_read(job, &reads[i]);
		submit_read(job, &reads[i]);
	}
	/* Also after an error: until then the buffers are in use. */
	while (weft_queue_pending(job->queue))
		weft_queue_poll(job->queue, -1);
	weft_memory_free(reads);
	return !reads || job->err.text[0] ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct job job = { .next = 0 };
	struct weft_ctrl *ctrl = NULL;
	struct weft_ctrl_info info;
	struct weft_ns_info ns;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: async URI\n");
		return 2;
	}
	rc = weft_connect(argv[1], NULL, &ctrl, &job.err);
	if (rc == 0) {
		weft_ctrl_info(ctrl, &info);
		rc = weft_ns_open(ctrl, info.nsid ? info.nsid : 1, &job.ns, &job.err);
	}
	if (rc == 0)
		rc = weft_queue_open(ctrl, &job.queue, &job.err);
	if (rc == 0) {
		weft_ns_info(job.ns, &ns);
		job.end = ns.size / CHUNK * CHUNK;
		rc = read_all(&job);
	}
	if (rc == 0)
		printf("%llu reads, %llu bytes, sum %llu\n", job.reads, job.end, job.sum);
	else
		fprintf(stderr, "async: %s\n", job.err.text[0] ? job.err.text : "no memory");
	weft_queue_close(job.queue);
	weft_ns_close(job.ns);
	weft_disconnect(ctrl);
	return rc < 0;
}
