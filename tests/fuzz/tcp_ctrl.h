/* tcp_ctrl.h - a controller's end of a link: PDUs right by default, wrong where a program says so.
 *
 *   program ─▶ its PDU (peer/pdu_out.h) ─▶ socket
 *   socket ─▶ tcp_ctrl_hear(): everything that the host sends is checked
 *
 * A peer that broke a rule is tainted: the host may end the connection, and what it sends is still
 * well-formed. To one that is not tainted every order comes as it was placed, and goes as it was
 * answered. */
#ifndef WEFT_TESTS_FUZZ_TCP_CTRL_H
#define WEFT_TESTS_FUZZ_TCP_CTRL_H

#include "order.h"
#include "proto/tcp.h"

enum { PEER_IN_MAX = (1 << 20) + 4096 };

struct peer {
	int fd;             /* -1: closed */
	bool hdgst, ddgst;  /* what the host asks for */
	uint32_t capsule;   /* data that fits a capsule */
	bool tainted, deaf; /* rules were broken; does not read */
	bool raw;           /* bytes were sent that nobody understood: R2Ts may be among them */
	bool loose;         /* tainted before set-up was over: what was agreed is not known */
	bool ready;         /* ICResp was sent */
	bool shut, termed;  /* its half of the stream is ended; C2HTermReq was sent */
	bool asked, ended;  /* ICReq, H2CTermReq came */
	bool eof;
	uint8_t cpda;
	uint32_t h2c_max;
	size_t have;
	char *in;
};

extern struct peer peer;

void tcp_ctrl_open(int fd, bool hdgst, bool ddgst);
void tcp_ctrl_shut(void);
void tcp_ctrl_close(void);
bool tcp_ctrl_hear(void); /* unless it is deaf; true: there was something */
void tcp_ctrl_taint(void);
bool tcp_ctrl_goes_in_capsule(const struct order *o); /* its data does */

/* --- PDUs ------------------------------------------------------------------------------------- */

/* The next one's data starts @pad words behind the header. */
void tcp_ctrl_pad(unsigned pad);
void tcp_ctrl_forget(void); /* that, and what peer/pdu_out.h knows of it */

void tcp_ctrl_icresp(uint16_t pfv, uint8_t cpda, uint8_t dgst, uint32_t maxh2c);
void tcp_ctrl_resp(const struct nvme_cqe *cqe);
/* @len bytes of @o's data behind the header; the header's fields are the caller's. */
void tcp_ctrl_c2h(const struct order *o, const struct nvme_tcp_data *fields, uint32_t at,
		  uint32_t len, bool wrong_digest);
void tcp_ctrl_r2t(const struct nvme_tcp_data *fields);
void tcp_ctrl_term(uint16_t fes, uint32_t more);
void tcp_ctrl_raw(const void *bytes, uint32_t len);

#endif
