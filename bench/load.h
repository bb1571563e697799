/* load.h - one thread that keeps a fixed number of operations in flight on one socket.
 *
 * The loop is the same for both framings, so that what differs between two results is the server:
 *
 *   nvme.c     NVMe/TCP: capsules, C2HData, R2T and H2CData
 *   plain.c    as many bytes each way without a protocol, for bare.c
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
	CMD_BYTES = 72, /* a command capsule without data */
	RSP_BYTES = 24, /* a response capsule; also the header of a data PDU */
	NO_SLOT = -1,
};

struct load;

struct framing {
	/* Connects, sets @l->fd and @l->items_per_op; ends the program when that fails. */
	void (*open)(struct load *l);
	/* Queues the bytes of a new operation. */
	void (*issue)(struct load *l, unsigned slot);
	/* Takes the unit that starts at @p; returns the bytes taken, 0 if @n are too few. Payload that
	 * follows is left to load_skip(). */
	size_t (*consume)(struct load *l, const uint8_t *p, size_t n);
};

/* One piece to send: a header of its own, or a part of the shared payload. */
struct item {
	struct iovec iov;
	uint8_t header[CMD_BYTES];
};

struct load {
	/* what the command line asks for */
	const struct framing *framing;
	const char *host, *port, *nqn;
	bool write, flow_control;
	uint32_t bytes, depth;
	double seconds, warm_s;

	int fd;
	unsigned items_per_op;
	uint64_t blocks;   /* namespace size in units of @bytes */
	uint8_t *payload;  /* what every write sends */
	uint64_t *started; /* per slot, ns */
	uint64_t now_ns;

	/* to send: a ring, whose size covers every slot's worst case */
	struct item *ring;
	uint32_t ring_mask, head, tail;

	/* received */
	uint8_t *rx;
	size_t have;
	uint64_t skip;
	int skip_slot;

	uint32_t in_flight;
	bool running;
	uint64_t done, *histogram, latency_sum_ns;
	uint64_t forgotten; /* operations done before measuring */
};

extern const struct framing nvme_framing, plain_framing;

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
int load_connect(const struct load *l);
void load_write_all(int fd, const void *data, size_t n);
void load_read_all(int fd, void *data, size_t n);

/* A header of @n bytes to fill in, queued to be sent. */
void *load_header(struct load *l, size_t n);
void load_payload(struct load *l, size_t n);
/* @n bytes of payload follow in the stream; with them @slot is done, unless it is NO_SLOT. */
void load_skip(struct load *l, uint64_t n, int slot);
void load_done(struct load *l, unsigned slot);
uint64_t load_random(void);

#endif
