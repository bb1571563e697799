/* tcp_host.h - a host's end of a connection: PDUs right by default, wrong where a program says so.
 *
 *   program ─▶ its PDU (pdu_out.h) ─▶ socket
 *   socket ─▶ tcp_host_hear(): everything that the target sends is checked
 *
 * A host that broke a rule is tainted: what it is told is still well-formed, but it may be
 * terminated. One that is not tainted is never terminated, and every answer fits a command. */
#ifndef WEFT_TESTS_PEER_TCP_HOST_H
#define WEFT_TESTS_PEER_TCP_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/tcp.h"

enum {
	HOST_CIDS = 256,
	HOST_R2TS = 64,
	HOST_DATA_MAX = 1 << 20,
	HOST_IN_MAX = HOST_DATA_MAX + 4096,
};

struct tcp_host_r2t {
	uint16_t cccid, ttag;
	uint32_t offset, left;
};

struct tcp_host {
	int fd;                        /* -1: none */
	bool asked;                    /* ICReq was sent */
	bool ready, terminated, ended; /* ICResp, C2HTermReq, the end of the stream came */
	bool hdgst, ddgst;             /* asked for, then granted */
	bool tainted, deaf;
	bool connected;
	uint32_t maxr2t;      /* R2Ts per command that it takes */
	uint16_t qid, cntlid; /* as Connect said */
	uint32_t sqsize;
	uint8_t cid;   /* of the next command */
	unsigned open; /* commands without an answer */
	struct host_cmd {
		bool open;
		uint32_t asked; /* bytes of its data, by R2Ts */
		union nvme_sqe sqe;
	} cmds[HOST_CIDS];
	struct nvmf_connect_data connect; /* of the last one */
	struct tcp_host_r2t r2ts[HOST_R2TS];
	unsigned nr2ts;
	size_t have;
	char *in;
};

/* --- a connection ----------------------------------------------------------------------------- */

void tcp_host_open(struct tcp_host *h, int fd);
void tcp_host_shut(struct tcp_host *h); /* its half of the stream */
void tcp_host_close(struct tcp_host *h);
bool tcp_host_hear(struct tcp_host *h); /* unless it is deaf; true: there was something */

uint32_t tcp_host_capsule_max(const struct tcp_host *h); /* data in a capsule, at least */
void tcp_host_icreq(struct tcp_host *h, uint8_t dgst, uint8_t hpda, uint32_t maxr2t);
/* Gives it a command id; @len bytes of @data go into the capsule, @pad words before them. */
void tcp_host_command(struct tcp_host *h, union nvme_sqe *sqe, const void *data, uint32_t len,
		      unsigned pad);
/* Sends @len bytes of what an R2T asked for; 0, or more than it did: all. Bytes are @fill, unless
 * they are a Connect's. */
void tcp_host_data(struct tcp_host *h, unsigned r2t, uint32_t len, uint8_t fill);
/* All of what no R2T asked for, or not so. */
void tcp_host_stray(struct tcp_host *h, const struct tcp_host_r2t *as, bool last);
void tcp_host_term(struct tcp_host *h, uint16_t fes);
void tcp_host_raw(struct tcp_host *h, const void *bytes, uint32_t len);

/* After everybody had time: who could be answered was. */
void tcp_host_check_settled(const struct tcp_host *h);

#endif
