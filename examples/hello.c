/* hello.c - connect, write a block, read it back: the smallest whole program.
 *
 *     cc hello.c -o hello $(pkg-config --cflags --libs weft)
 *     ./hello 'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default?nsid=1'
 *
 * It overwrites the first block of the namespace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/host.h>

static int write_and_read_back(struct weft_queue *queue, struct weft_ns *ns, struct weft_err *err)
{
	struct weft_ns_info info;
	char *block;
	int rc;

	weft_ns_info(ns, &info);
	block = calloc(1, info.block_size);
	if (!block)
		return -1;
	strcpy(block, "Hello, fabric.");
	rc = weft_write(queue, ns, block, info.block_size, 0, WEFT_FUA, err);
	memset(block, 0, info.block_size);
	if (rc == 0)
		rc = weft_read(queue, ns, block, info.block_size, 0, err);
	if (rc == 0)
		puts(block);
	free(block);
	return rc;
}

int main(int argc, char **argv)
{
	struct weft_err err = { "" };
	struct weft_ctrl_info info;
	struct weft_ctrl *ctrl;
	struct weft_queue *queue = NULL;
	struct weft_ns *ns = NULL;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: hello URI\n");
		return 2;
	}
	rc = weft_connect(argv[1], NULL, &ctrl, &err);
	if (rc < 0) {
		fprintf(stderr, "hello: %s\n", err.text);
		return 1;
	}
	weft_ctrl_info(ctrl, &info);
	rc = weft_ns_open(ctrl, info.nsid ? info.nsid : 1, &ns, &err);
	if (rc == 0)
		rc = weft_queue_open(ctrl, &queue, &err);
	if (rc == 0)
		rc = write_and_read_back(queue, ns, &err);
	if (rc < 0)
		fprintf(stderr, "hello: %s\n", err.text);
	weft_queue_close(queue);
	weft_ns_close(ns);
	weft_disconnect(ctrl);
	return rc < 0;
}
