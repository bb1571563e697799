/* ports.c - where targets listen, and which ways there are cut. */
#include "ports.h"

#include <string.h>

#include "scheduler.h"

enum { PORTS_MAX = 8, CUTS_MAX = 16 };

static struct port {
	uint16_t number, really;
	enum port_state state;
} ports[PORTS_MAX];

static struct {
	const struct sim_node *host;
	uint16_t port;
} cuts[CUTS_MAX];
static unsigned ncuts;

void ports_begin(void)
{
	must(!ncuts);
	memset(ports, 0, sizeof(ports));
}

static struct port *find_port(uint16_t number)
{
	unsigned i = 0;

	while (i < PORTS_MAX && ports[i].number && ports[i].number != number)
		i++;
	must(i < PORTS_MAX);
	ports[i].number = number;
	return &ports[i];
}

void port_listen(uint16_t port, uint16_t really)
{
	find_port(port)->really = really;
	find_port(port)->state = PORT_UP;
}

void port_close(uint16_t port, enum port_state state)
{
	find_port(port)->state = state;
}

enum port_state port_state(uint16_t port)
{
	return find_port(port)->state;
}

uint16_t port_really(uint16_t port)
{
	return find_port(port)->really;
}

void port_cut(const struct sim_node *host, uint16_t port)
{
	must(ncuts < CUTS_MAX);
	cuts[ncuts].host = host;
	cuts[ncuts++].port = port;
}

void port_heal(const struct sim_node *host, uint16_t port)
{
	for (unsigned i = 0; i < ncuts; i++) {
		if (cuts[i].host != host || cuts[i].port != port)
			continue;
		cuts[i] = cuts[--ncuts];
		return;
	}
	must(!"it was cut");
}

bool port_is_cut(const struct sim_node *host, uint16_t port)
{
	for (unsigned i = 0; i < ncuts; i++)
		if (cuts[i].port == port && (!cuts[i].host || cuts[i].host == host))
			return true;
	return false;
}
