/* target_thread.h - Weft's own target on threads of the test, for the host to talk to.
 *
 * Its functions may be called from any thread and return when the target has done what they say;
 * what cannot be done ends the test. It has no header in common with <weft/host.h>: the two sides
 * use the same names for their own things. */
#ifndef WEFT_TESTS_WORLD_TARGET_THREAD_H
#define WEFT_TESTS_WORLD_TARGET_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct weft_backend;

#define TARGET_NQN "nqn.2026-11.io.weft:unit"

void target_start(void);
/* The same, and another beside it that has no namespaces: members 1 and 2 of a cluster. What the
 * first has is served from target_pair_begin() on. */
void target_start_pair(void);
void target_pair_begin(void);
void target_stop(void);

/* Asks that the second member serve the group; target_move_wait() returns when it does. One at a
 * time. */
void target_move_start(uint32_t group);
void target_move_wait(void);
/* While it stands still: nothing is to be written to the state that it shares. */
bool target_state_is_still(void);
/* The second member writes that it has the group, though the first never handed it over. */
void target_pair_take(uint32_t group);

/* nvme+tcp://127.0.0.1:PORT */
const char *target_address(void);
const char *target_other_address(void);

/* @spec as weft serve takes it; @uuid may be NULL. */
void target_ns_add(uint32_t nsid, const char *spec, uint32_t block, const char *uuid);
/* On storage of the test's own, in that ANA group. */
void target_ns_add_on(uint32_t nsid, struct weft_backend *be, uint32_t ana_group);
/* The same, or -errno: it was refused, and the storage is the caller's. */
int target_ns_try_on(uint32_t nsid, struct weft_backend *be, uint32_t ana_group);
void target_ns_remove(uint32_t nsid);
void target_ns_resize(uint32_t nsid, uint64_t size);
/* The same, or -errno. */
int target_ns_try_resize(uint32_t nsid, uint64_t size);
bool target_ns_is_there(uint32_t nsid); /* for hosts: one that is being removed is not */

/* Stands still, or -ETIMEDOUT: it did not within @limit_ms, and goes on. */
int target_freeze(uint32_t limit_ms);
void target_thaw(void);

/* The target's clock goes forward by that much. */
void target_time_passes(uint32_t ms);

/* The next controller gets this number, as when all others were in use before it. */
void target_next_cntlid(uint16_t cntlid);

/* A rule for all ports and hosts, in words; target_ana_wait() returns when it holds. */
struct target_ana *target_ana_start(uint32_t group, const char *state);
bool target_ana_over(struct target_ana *ana);
void target_ana_wait(struct target_ana *ana);

#endif
