/* loop.c - libweft inside the program's own poll(): one descriptor for I/O, one for events.
 *
 *     cc loop.c -o loop $(pkg-config --cflags --libs weft)
 *     ./loop 'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default?nsid=1'
 *
 * Prints how the first block begins, every second, and what happens to connection and namespace
 * meanwhile: restart the target, resize the namespace. Ends with standard input (Ctrl-D). */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/host.h>

struct watch {
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_queue *queue;
	struct weft_cmd cmd;
	struct iovec iov;
};

static void done(struct weft_cmd *cmd)
{
	const unsigned char *block = cmd->iov->iov_base;
	struct weft_err text = { "" };

	if (cmd->rc < 0) {
		weft_cmd_text(cmd, &text);
		puts(text.text);
	} else {
		printf("block 0: %02x %02x %02x %02x\n", block[0], block[1], block[2], block[3]);
	}
}

/* One read at a time; while the connection is lost it waits for the next one. */
static void read_first_block(struct watch *w)
{
	if (weft_queue_pending(w->queue))
		return;
	w->cmd = (struct weft_cmd){ .op = WEFT_READ, .ns = w->ns, .length = w->iov.iov_len };
	w->cmd.iov = &w->iov;
	w->cmd.iovcnt = 1;
	w->cmd.done = done;
	w->cmd.rc = weft_submit(w->queue, &w->cmd);
	if (w->cmd.rc < 0)
		done(&w->cmd);
}

static void print_events(struct watch *w)
{
	struct weft_event event;
	struct weft_ns_info info;

	while (weft_ctrl_next_event(w->ctrl, &event)) {
		printf("event: %s\n", event.text);
		if (event.kind != WEFT_EVENT_NAMESPACES && event.kind != WEFT_EVENT_OVERFLOW)
			continue;
		weft_ns_info(w->ns, &info);
		printf("namespace %u: %llu bytes\n", info.nsid, (unsigned long long)info.size);
	}
}

static void event_loop(struct watch *w)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = weft_queue_fd(w->queue), .events = POLLIN },
		{ .fd = weft_ctrl_event_fd(w->ctrl), .events = POLLIN },
	};
	char byte;

	for (;;) {
		if (poll(fds, 3, 1000) == 0)
			read_first_block(w);
		print_events(w);
		weft_queue_poll(w->queue, 0); /* sends what was submitted, runs done() */
		if (fds[0].revents && read(STDIN_FILENO, &byte, 1) <= 0)
			break;
	}
	while (weft_queue_pending(w->queue))
		weft_queue_poll(w->queue, -1);
}

static int open_namespace(struct watch *w, const char *uri, struct weft_err *err)
{
	static char block[64 << 10]; /* none is larger */
	struct weft_ctrl_info ctrl;
	struct weft_ns_info ns;
	int rc = weft_connect(uri, NULL, &w->ctrl, err);

	if (rc < 0)
		return rc;
	weft_ctrl_info(w->ctrl, &ctrl);
	rc = weft_ns_open(w->ctrl, ctrl.nsid ? ctrl.nsid : 1, &w->ns, err);
	if (rc < 0)
		return rc;
	weft_ns_info(w->ns, &ns);
	w->iov = (struct iovec){ block, ns.block_size };
	return weft_queue_open(w->ctrl, &w->queue, err);
}

int main(int argc, char **argv)
{
	struct weft_err err = { "" };
	struct watch w = { .ctrl = NULL };

	if (argc != 2) {
		fprintf(stderr, "usage: loop URI\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (open_namespace(&w, argv[1], &err) == 0)
		event_loop(&w);
	else
		fprintf(stderr, "loop: %s\n", err.text);
	weft_queue_close(w.queue);
	weft_ns_close(w.ns);
	weft_disconnect(w.ctrl);
	return err.text[0] != '\0';
}
