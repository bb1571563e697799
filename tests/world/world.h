/* world.h - the target under test, and everything but its hosts: storage, memory, time, its user.
 *
 *   control: group 0, the user's calls ◀─ messages ─▶ the other reactor: group 1
 *
 * Both turn on this thread, when the program says so: what races between threads is an order of
 * turns here. Time passes only in world_advance(). Between runs the world is as it was at first. */
#ifndef WEFT_TESTS_WORLD_WORLD_H
#define WEFT_TESTS_WORLD_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#define WORLD_NQN         "nqn.2026-11.io.weft:open"
#define WORLD_NQN_GUARDED "nqn.2026-11.io.weft:guarded" /* only for WORLD_HOST */
#define WORLD_HOST        "nqn.2026-11.io.weft:host"

enum { WORLD_GROUPS = 2 };

/* Namespaces of WORLD_NQN; the guarded subsystem has the first. */
enum { NS_MEM = 1, NS_NULL, NS_SLOW, NS_READ_ONLY };

unsigned world_lba_shift(uint32_t nsid);

void world_create(void); /* once */
void world_turn(unsigned n);
void world_turn_one(unsigned group, unsigned n);
void world_doze(void); /* as before sleep: what comes next has to wake its reactor */
void world_advance(uint64_t ms);
/* The host's end of a new connection to a group, non-blocking; -1: not now. */
int world_connect(unsigned group);
void world_disconnect(int fd); /* closes it */
/* Listens there too, until world_unlisten() or until it stops. */
void world_listen(const char *uri);
void world_unlisten(const char *uri);
void world_look(void);

/* Who a controller of WORLD_NQN is for Cross-Controller Reset; zeroes: there is none. */
struct world_instance {
	uint16_t cntlid;
	uint8_t ciu;
	uint64_t cirn;
} world_instance(unsigned which);

/* What a user of the target may do at any time; done in the control reactor's next turn. */
void world_ns_remove(uint32_t nsid);
void world_ns_add(uint32_t nsid);
void world_ns_resize(uint32_t nsid, uint64_t size);
void world_ana(unsigned which); /* a state for the group of a namespace: its number */
void world_subsys_remove(unsigned index);
void world_host_allow(void);
void world_host_refuse(void);
void world_any_host(bool allow);
void world_listen_soon(const char *uri);
void world_unlisten_soon(const char *uri);
void world_stop(void);
/* The target freezes; if it comes to rest another one goes on in its place, or, @only_freeze, it
 * does itself. Nothing else is asked of it meanwhile. */
void world_takeover(bool only_freeze);

/* Buffers: a pool is left with few, or gets one back. */
void world_starve(unsigned pool, unsigned leave);
void world_feed(unsigned pool);

/* Buffers are back, storage answers: whatever waits for anything but a host goes on. True: there
 * was something to do. */
bool world_relieve(void);
/* Something ends only when time has passed: a freeze, a reservation that hosts are waited for
 * with. */
bool world_waits_for_time(void);
/* Commands are in a reactor's line for bulk work. */
bool world_is_at_work(void);
/* Every host has closed its sockets: nothing may be left of them. Restores the world. */
void world_end(void);

#endif
