/* network.h - connections between nodes: bytes that take their time, stop, or never come. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_node;

/* Takes the place of connect(): @fd becomes one end. 0 or -errno. */
int network_connect(int fd, const struct sockaddr_in *to);
/* Takes the place of accept4(): what came in on @listener becomes the other end. */
int network_accept(int listener, int fd);
/* How the end @fd is called, or its peer; NULL: it is no wire's. */
const struct sockaddr_in *network_name(int fd, bool own);

/* True: something moved. */
bool network_move(void);
uint64_t network_due(void); /* when something will; UINT64_MAX: nothing is under way */

/* Between @host (NULL: all) and @port: both ends are told. */
void network_reset(const struct sim_node *host, uint16_t port);
/* The target's end of all wires to @port is gone with its process. What it had sent still comes,
 * and then its end; @silent: nothing comes any more, until network_revive(). */
void network_abandon(uint16_t port, bool silent);
/* A machine is there again, and knows nothing of those that were abandoned silently. */
void network_revive(uint16_t port);
unsigned network_count(void);

#endif
