/* bare_client.c - the other end of bare.c: the bytes of NVMe/TCP without NVMe/TCP.
 *
 *   read:  72 out, 24 + data in          write: 72 + data out, 24 in
 *
 * The first message tells the server both lengths; from then on both sides only count (pump.h).
 *
 * usage: bare_client read|write BYTES DEPTH CONNECTIONS WARMUP SECONDS PORT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "pump.h"

enum {
	COMMAND = 72,
	RESPONSE = 24,
	RING_BYTES = 256 << 10,
	/* What was found to be fastest: of small ones, one end works on some while the other does
	 * on others; large ones stay in the cache when all of them are one batch. */
	BATCHES = 4,
	LARGE = 64 << 10,
};

static uint8_t zeros[RING_BYTES];

static int open_connection(const struct pump *p, int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	uint32_t hello[2] = { p->request, p->reply };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		pump_die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (send(fd, hello, sizeof(hello), 0) != sizeof(hello) || ioctl(fd, FIONBIO, &one) < 0)
		pump_die("hello");
	return fd;
}

int main(int argc, char **argv)
{
	static struct pump p;
	uint32_t bytes, depth, connections;
	bool write;

	if (argc != 8) {
		fputs("usage: bare_client read|write BYTES DEPTH CONNECTIONS WARMUP SECONDS PORT\n",
		      stderr);
		return 2;
	}
	write = !strcmp(argv[1], "write");
	bytes = (uint32_t)atoi(argv[2]);
	depth = (uint32_t)atoi(argv[3]);
	connections = (uint32_t)atoi(argv[4]);
	p.request = COMMAND + (write ? bytes : 0);
	p.reply = RESPONSE + (write ? 0 : bytes);
	pump_init(&p, connections, depth, bytes < LARGE ? BATCHES : 1);
	for (uint32_t i = 0; i < connections; i++) {
		p.conns[i].fd = open_connection(&p, atoi(argv[7]));
		p.conns[i].ring = zeros;
		p.conns[i].ring_bytes = sizeof(zeros) / p.request * p.request;
	}
	pump_run(&p, atof(argv[5]), atof(argv[6]));
	return 0;
}
