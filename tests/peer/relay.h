/* relay.h - a way to a target that a test can cut, silence or close: TCP connections are taken, and
 * their bytes passed on, by a thread of its own. */
#ifndef WEFT_TESTS_PEER_RELAY_H
#define WEFT_TESTS_PEER_RELAY_H

#include <stdint.h>

enum relay_mode {
	RELAY_PASS,
	RELAY_REFUSE,     /* new connections are reset */
	RELAY_HOLD,       /* nothing moves, and nobody is told */
	RELAY_NO_ANSWERS, /* what the host says arrives, and no answer does */
};

struct relay;

/* To the port of @address, nvme+tcp://127.0.0.1:PORT. */
struct relay *relay_start(const char *address);
void relay_stop(struct relay *relay);

const char *relay_address(const struct relay *relay); /* nvme+tcp://127.0.0.1:PORT */
void relay_mode(struct relay *relay, enum relay_mode mode);
/* Resets every connection; returns when that is done. */
void relay_cut(struct relay *relay);
void relay_cut_soon(struct relay *relay); /* does not wait for it */
/* The same, and what was kept back before does not pass in between. */
void relay_cut_then(struct relay *relay, enum relay_mode mode);
unsigned relay_connections(struct relay *relay); /* now */
uint64_t relay_bytes(struct relay *relay);       /* passed on so far */

#endif
