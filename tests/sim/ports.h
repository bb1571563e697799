/* ports.h - where targets listen, and which ways there are cut.
 *
 * A port has a number that hosts use and that stays; which socket answers there changes with the
 * process. */
#ifndef SIM_PORTS_H
#define SIM_PORTS_H

#include <stdbool.h>
#include <stdint.h>

struct sim_node;

enum port_state {
	PORT_REFUSES, /* the machine is there, and nobody listens */
	PORT_SILENT,  /* not even the machine */
	PORT_UP,
};

void ports_begin(void);
void port_listen(uint16_t port, uint16_t really);
void port_close(uint16_t port, enum port_state state);
enum port_state port_state(uint16_t port);
uint16_t port_really(uint16_t port);

/* Between @host (NULL: all) and @port, both ways, as often as it was cut. */
void port_cut(const struct sim_node *host, uint16_t port);
void port_heal(const struct sim_node *host, uint16_t port);
bool port_is_cut(const struct sim_node *host, uint16_t port);

#endif
