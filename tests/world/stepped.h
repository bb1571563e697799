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

#define TURNED_NQN "nqn.2026-11.io.weft:turned"
#define FLOODER    "nqn.2026-11.io.weft:host-that-floods"
#define OTHER      "nqn.2026-11.io.weft:host-that-waits"

enum { TURNED_DEPTH = 128, TURNED_QUEUES = 4096 };

extern struct weft_target *turned_target;
extern struct weft_subsys *turned_subsys; /* any host may use it; namespace 1 is there */

void turned_start(void);
void turned_stop(void);
struct weft_subsys *turned_subsys_add(const char *nqn);
void turned_listen(void); /* on one more port */
struct weft_backend *turned_backend(const char *spec);
/* One more namespace, of the subsystem above, which owns @be. */
void turned_ns_add(uint32_t nsid, uint32_t block, struct weft_backend *be);

unsigned turned_ctrls(void); /* that there are */

/* What became of something that the target was asked for. */
struct turned_end {
	bool over;
	int rc;
};
void turned_ended(void *arg, int rc, const struct weft_err *err);

/* One turn of the control reactor, then everything else until it rests. */
void turned_home(void);
/* Everything but the control reactor. */
void turned_others(void);
/* The clock goes forward, and then as above. */
void turned_later(unsigned ms);
/* One turn of the control reactor and one of the reactor that has the connections, whatever is left
 * then. */
void turned_once(void);

/* --- a connection ----------------------------------------------------------------------------- */

struct wire {
	int fd;
	bool stalls;  /* it takes nothing that comes */
	uint16_t cid; /* of the next command */
	unsigned sent, answered;
	unsigned r2ts; /* that came; it sends no data */
	struct nvme_cqe last;
	uint8_t *data; /* of the last command that returned some */
	size_t data_len;
	uint8_t *in; /* received, not taken apart */
	size_t nin;
};

/* Where wires come from: 127.0.0.x, or 0: wherever the kernel says. Hosts that nobody named count
 * by their address. */
extern uint8_t turned_source;
/* Connects and sends ICReq; that counts as a command. */
struct wire *wire_open(void);
void wire_close(struct wire *wire);
/* @len bytes inside the capsule; or, where @data is NULL, room for as many from the target. */
void wire_send(struct wire *wire, union nvme_sqe *sqe, const void *data, size_t len);
/* Of a reservation: its two keys. */
void wire_send_keys(struct wire *wire, uint32_t nsid, uint8_t opcode, uint32_t cdw10,
		    uint64_t crkey, uint64_t key);
/* Turns until all that was sent has its answer; the status of the last. */
uint16_t wire_wait(struct wire *wire);
/* What was sent is where the target receives it from. */
void wire_delivered(const struct wire *wire);

/* --- commands --------------------------------------------------------------------------------- */

struct nvmf_connect_data turned_connect_data(const char *subnqn, const char *hostnqn,
					     unsigned hostid, uint16_t cntlid);
void wire_connect_send(struct wire *wire, const struct nvmf_connect_data *data, uint16_t qid,
		       uint32_t kato);
/* An association: Connect, and CC.EN. */
struct wire *turned_admin(const char *subnqn, const char *hostnqn, unsigned hostid,
			  uint16_t *cntlid);
struct wire *turned_io(const char *hostnqn, unsigned hostid, uint16_t cntlid, uint16_t qid);

#endif
