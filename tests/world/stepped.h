/* stepped.h - a target whose reactors the test turns by hand, and hosts that are mere sockets.
 *
 * Nothing runs unless the test says so: between two turns of the control reactor everything else
 * has come to rest. So what one turn of the control reactor does can be counted, and the time has
 * no say: the clock counts turns. */
#ifndef WEFT_TESTS_WORLD_STEPPED_H
#define WEFT_TESTS_WORLD_STEPPED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/nvme.h"
#include "target/target.h"

#define STEPPED_NQN "nqn.2026-11.io.weft:turned"
#define FLOODER     "nqn.2026-11.io.weft:host-that-floods"
#define OTHER       "nqn.2026-11.io.weft:host-that-waits"

enum { STEPPED_DEPTH = 128, STEPPED_QUEUES = 4096 };

/* Entries of each queue; another number is set before stepped_start(). */
extern uint32_t stepped_depth;
extern struct weft_target *stepped_target;
extern struct weft_subsys *stepped_subsys; /* any host may use it; namespace 1 is there */

void stepped_start(void);
void stepped_stop(void);
struct weft_subsys *stepped_subsys_add(const char *nqn);
void stepped_listen(void); /* on one more port */
struct weft_backend *stepped_backend(const char *spec);
/* One more namespace, of the subsystem above, which owns @be. */
void stepped_ns_add(uint32_t nsid, uint32_t block, struct weft_backend *be);

unsigned stepped_ctrls(void); /* that there are */

/* What became of something that the target was asked for. */
struct stepped_end {
	bool over;
	int rc;
};
void stepped_ended(void *arg, int rc, const struct weft_err *err);

/* One turn of the control reactor, then everything else until it rests. */
void stepped_control(void);
/* Everything but the control reactor. */
void stepped_others(void);
/* The clock goes forward, and then as above. */
void stepped_later(unsigned ms);
/* One turn of the control reactor and one of the reactor that has the connections, whatever is left
 * then. */
void stepped_once(void);

/* --- a connection ----------------------------------------------------------------------------- */

struct raw_host {
	int fd;
	bool stalls;  /* it takes nothing that comes */
	uint16_t cid; /* of the next command */
	unsigned sent, answered;
	unsigned r2ts;             /* that came; it sends no data by itself */
	uint16_t r2t_cid, r2t_tag; /* of the last one */
	struct nvme_cqe last;
	uint8_t *data; /* of the last command that returned some */
	size_t data_len;
	uint8_t *in; /* received, not taken apart */
	size_t nin;
};

/* Where wires come from: 127.0.0.x, or 0: wherever the kernel says. Hosts that nobody named count
 * by their address. */
extern uint8_t stepped_source;
/* Connects and sends ICReq; that counts as a command. */
struct raw_host *raw_host_open(void);
void raw_host_close(struct raw_host *raw);
/* @len bytes inside the capsule; or, where @data is NULL, room for as many from the target. */
void raw_host_send(struct raw_host *raw, union nvme_sqe *sqe, const void *data, size_t len);
/* What the last R2T asked for, all of it. */
void raw_host_send_data(struct raw_host *raw, const void *data, size_t len);
/* Of a reservation: its two keys. */
void raw_host_send_keys(struct raw_host *raw, uint32_t nsid, uint8_t opcode, uint32_t cdw10,
			uint64_t crkey, uint64_t key);
/* Turns until all that was sent has its answer; the status of the last. */
uint16_t raw_host_wait(struct raw_host *raw);
/* What was sent is where the target receives it from. */
void raw_host_delivered(const struct raw_host *raw);

/* --- commands --------------------------------------------------------------------------------- */

struct nvmf_connect_data stepped_connect_data(const char *subnqn, const char *hostnqn,
					      unsigned hostid, uint16_t cntlid);
void raw_host_connect_send(struct raw_host *raw, const struct nvmf_connect_data *data, uint16_t qid,
			   uint32_t kato);
/* An association: Connect, and CC.EN. */
struct raw_host *stepped_admin(const char *subnqn, const char *hostnqn, unsigned hostid,
			       uint16_t *cntlid);
struct raw_host *stepped_io(const char *hostnqn, unsigned hostid, uint16_t cntlid, uint16_t qid);

#endif
