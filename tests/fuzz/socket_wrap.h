/* socket_wrap.h - the sockets under a link: pairs, whose other end is the harness's.
 *
 * The linker puts these in the place of the system's calls (--wrap): a link connects as ever, and
 * its calls move as few bytes at a time as a program says. */
#ifndef WEFT_TESTS_FUZZ_SOCKET_WRAP_H
#define WEFT_TESTS_FUZZ_SOCKET_WRAP_H

#include <stdint.h>

/* The other end of the socket that was made last, non-blocking; the caller's from now on. */
int socket_wrap_peer(void);
/* The next @calls of the link's move at most this many bytes each; 0: as many as they can. */
void socket_wrap_limit(uint32_t send, uint32_t recv, unsigned calls);

#endif
