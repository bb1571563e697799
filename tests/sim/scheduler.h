/* scheduler.h - hosts and targets in one thread, under a clock of ours: what a seed did, it does
 * again.
 *
 *   ┌ one step ──────────────────────────────────────────────────────────────────┐
 *   │ every reactor a turn ─▶ bytes whose time has come ─▶ storage whose time    │─▶ and if nobody had
 *   └──────────────────────────────────────────────────────────────────────────────┘   anything to do,
 *                                                              time goes on to what is due next
 * The code under test is the product's, whole. It is linked so that its threads, its waits and its
 * sockets lead here (wrap.c). */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "reactor/reactor.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

/* Says where, and ends with the seed. */
#define must(what) ((what) ? (void)0 : sim_broken(#what, __FILE__, __LINE__))
void sim_broken(const char *what, const char *file, int line) __attribute__((noreturn));

/* Everything anew, from @seed on; @story is what a failure is told with. */
void sim_begin(const char *story, uint64_t seed);
uint64_t sim_now(void);
uint64_t sim_random(uint64_t below); /* 0 to @below - 1 */
bool sim_chance(unsigned percent);
void sim_step(void);
void sim_run(uint64_t ns);
/* Until @over says so; false: not within @ns. */
bool sim_run_until(bool (*over)(void *arg), void *arg, uint64_t ns);
/* A line for who reads about a failing seed; printed with -v. */
void sim_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
extern bool sim_verbose;
extern unsigned sim_suspicions; /* so often a host began to doubt that a path is there */

/* Reactors get a turn in every step, except while their node stands still. What is dead touches
 * nothing any more that others see. @drive, unless NULL, is what somebody else does to give @r its
 * turn. */
struct sim_node {
	const char *name;
	bool still, dead;
};
void sim_add_reactor(struct weft_reactor *r, const struct sim_node *node, void (*drive)(void *arg),
		     void *arg);
void sim_remove_reactor(struct weft_reactor *r);
/* Whose code runs now: reactors and connections that it makes are this node's. */
extern const struct sim_node *sim_current_node;

/* What happens later. */
struct sim_event {
	struct weft_heap_node node;
	void (*fn)(struct sim_event *event);
};
void sim_at(struct sim_event *event, uint64_t delay_ns);
void sim_cancel(struct sim_event *event);

#endif
