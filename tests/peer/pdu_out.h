/* pdu_out.h - the PDU that a harness's end of a connection sends next.
 *
 *   fields, data ─▶ spoil ─▶ header digest ─▶ spoil ─▶ split ─▶ socket
 *
 * It is right by default, and wrong where a program says so. */
#ifndef WEFT_TESTS_PEER_PDU_OUT_H
#define WEFT_TESTS_PEER_PDU_OUT_H

#include <stdbool.h>

#include "proto/tcp.h"

extern struct outgoing {
	char bytes[(1 << 20) + 4096];
	uint32_t len;
} outgoing;

/* --- operations ------------------------------------------------------------------------------- */

/* Flips bits of one of its bytes, before its header digest is made or after. */
void op_spoil(void);
/* Sends its first bytes, lets the other end turn, then the rest. */
void op_split(void);
void outgoing_forget(void); /* both */

/* --- one PDU ---------------------------------------------------------------------------------- */

struct outgoing_form {
	const struct nvme_tcp_hdr *hdr; /* begins a whole header */
	uint32_t len, pdo;              /* of the data, which is in place */
	bool hdgst, ddgst, wrong_digest;
};

/* True: it was spoilt. */
bool outgoing_build(const struct outgoing_form *form);
/* False: the stream lost bytes in the middle. @meanwhile: the other end turns, and is heard. */
bool outgoing_send(int fd, void (*meanwhile)(void *arg), void *arg);

#endif
