/* rdma_target.h - Weft's target on the fabric, on a reactor of the test's own thread.
 *
 * Nothing happens but in turns, which every wait here makes, a bounded number of them. */
#ifndef WEFT_TESTS_WORLD_RDMA_TARGET_H
#define WEFT_TESTS_WORLD_RDMA_TARGET_H

#include "fabric/manual_end.h"
#include "proto/nvme.h"
#include "proto/rdma.h"
#include "proto/status.h"

#define CASE_NQN "nqn.2026-11.io.weft:unit"

enum {
	CASE_DEPTH_MAX = 64,
	CASE_NS_BYTES = 16 << 20,
	CASE_CAPSULES = 16, /* places in an end's memory that commands are sent from ... */
	CASE_CAPSULE = 8192,
	CASE_DATA = CASE_CAPSULES * CASE_CAPSULE, /* ... and data behind them */
};

void case_start(const char *ip);
void case_start_apart(const char *ip); /* the control reactor and queue pairs on two reactors */
void case_start_slow(const char *ip);  /* on storage that answers when told to: storage/slow.h */
/* Stops it and looks that nothing is left of it. */
void case_stop(void);
uint16_t case_port(void);
struct weft_target *case_target(void);
struct weft_reactor *case_control(void);
void case_turn(void);
void case_turn_control(void); /* and not the queue pairs' reactor */
void case_turns(unsigned n);
void case_advance(uint64_t ms); /* its clock */
/* Turns until only the listener is left of the target on the fabric, beside what @hosts have. */
void case_settle(void);
void case_listen_again(void); /* takes the listener away and puts it back */
void case_unlisten(void);

#endif
