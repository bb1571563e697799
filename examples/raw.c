/* raw.c - commands that libweft has no call for: 64 bytes, filled by hand, passed through.
 *
 *     cc raw.c -o raw $(pkg-config --cflags --libs weft)
 *     ./raw 'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default?nsid=1'
 *
 * Two admin commands (Get Log Page of what the controller has, and of what it may not have) and an
 * I/O command (Flush). Command identifier and data pointer are the library's to fill in. */
#include <endian.h>
#include <stdio.h>
#include <weft/host.h>

enum { OPCODE_FLUSH = 0x00, OPCODE_GET_LOG_PAGE = 0x02, LOG_SMART = 0x02, LOG_VENDOR = 0xc0 };

struct sqe {
	uint32_t dw[16]; /* little-endian */
};

/* NVMe base 2.0, 5.16: NUMDL in CDW10 31:16, 0's based; LID in CDW10 7:0. */
static struct sqe get_log_page(uint8_t lid, uint32_t length)
{
	struct sqe sqe = { { 0 } };

	sqe.dw[0] = htole32(OPCODE_GET_LOG_PAGE);
	sqe.dw[1] = htole32(0xffffffff); /* the controller, not a namespace */
	sqe.dw[10] = htole32((length / 4 - 1) << 16 | lid);
	return sqe;
}

/* 0, -errno, or the status with which the controller refused: that is an answer, too. */
static int show_log(struct weft_ctrl *ctrl, uint8_t lid, struct weft_err *err)
{
	unsigned char page[512];
	struct sqe sqe = get_log_page(lid, sizeof(page));
	int rc = weft_admin(ctrl, &sqe, page, sizeof(page), NULL, err);

	if (rc > 0) {
		printf("log page %02xh: refused: %s (status 0x%x)\n", lid,
		       weft_status_text((uint16_t)rc), rc & 0x7ff);
		err->text[0] = '\0';
	}
	if (rc == 0)
		printf("log page %02xh: spare %u %%, used %u %%, warnings 0x%02x\n", lid, page[3],
		       page[5], page[0]);
	return rc < 0 ? rc : 0;
}

static int flush(struct weft_ctrl *ctrl, uint32_t nsid, struct weft_err *err)
{
	struct sqe sqe = { { htole32(OPCODE_FLUSH), htole32(nsid) } };
	struct weft_cmd cmd = { .op = WEFT_RAW, .sqe = &sqe };
	struct weft_queue *queue;
	int rc = weft_queue_open(ctrl, &queue, err);

	if (rc < 0)
		return rc;
	rc = weft_run(queue, &cmd, err);
	if (rc == 0)
		printf("flush of namespace %u: done, result %llu\n", nsid,
		       (unsigned long long)cmd.result);
	weft_queue_close(queue);
	return rc;
}

int main(int argc, char **argv)
{
	struct weft_err err = { "" };
	struct weft_ctrl_info info;
	struct weft_ctrl *ctrl;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: raw URI\n");
		return 2;
	}
	rc = weft_connect(argv[1], NULL, &ctrl, &err);
	if (rc == 0) {
		weft_ctrl_info(ctrl, &info);
		rc = show_log(ctrl, LOG_SMART, &err);
		if (rc == 0)
			rc = show_log(ctrl, LOG_VENDOR, &err);
		if (rc == 0)
			rc = flush(ctrl, info.nsid ? info.nsid : 1, &err);
		weft_disconnect(ctrl);
	}
	if (rc < 0)
		fprintf(stderr, "raw: %s\n", err.text);
	return rc < 0;
}
