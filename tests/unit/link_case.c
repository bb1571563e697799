/* link_case.c - a link and a scripted controller. */
#include "link_case.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURNS_MAX = 20000 }; /* of a millisecond: what never comes is a hang */

struct weft_reactor *r;
uint64_t now_ns = 1000000000;
int listener, peer;
struct sockaddr_storage addr;

struct weft_link *link_;
unsigned readies, dones, closes;
struct weft_link_slot last;
struct weft_err why;
int end_rc;
bool end_hung_up;

char memory[MEMORY];
static struct iovec parts[3] = { { memory, 7 },
				 { memory + 7, 100 },
				 { memory + 107, MEMORY - 107 } };

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

static void on_ready(struct weft_link *link)
{
	readies++;
}

static void on_done(struct weft_link *link, struct weft_link_slot *slot)
{
	dones++;
	last = *slot;
}

static void on_closed(struct weft_link *link)
{
	closes++;
	end_rc = link->rc;
	end_hung_up = link->peer_closed;
	why = link->err;
	weft_link_free(link);
	link_ = NULL;
}

const struct weft_link_ops ops = { on_ready, on_done, on_closed };

int set_up(void **state)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = clock_ns };
	socklen_t len = sizeof(addr);

	((struct sockaddr_in *)&addr)->sin_family = AF_INET;
	((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), errno);
	assert_return_code(listen(listener, 8), errno);
	assert_return_code(getsockname(listener, (struct sockaddr *)&addr, &len), errno);
	return weft_reactor_create(&r, &options, NULL);
}

int tear_down(void **state)
{
	close(listener);
	weft_reactor_destroy(r);
	return 0;
}

void await(const unsigned *counter)
{
	for (int i = 0; i < TURNS_MAX && !*counter; i++)
		weft_reactor_turn(r, 1);
	assert_int_equal(*counter, 1);
}

/* @len bytes that the link sends. */
void ctrl_recv(void *to, size_t len)
{
	for (int i = 0; len; i++) {
		ssize_t n = recv(peer, to, len, MSG_DONTWAIT);

		if (!n || i == TURNS_MAX)
			fail_msg("the link sent %zu bytes less", len);
		if (n < 0) {
			weft_reactor_turn(r, 1);
			continue;
		}
		to = (char *)to + n;
		len -= (size_t)n;
	}
}

void ctrl_send(const void *bytes, size_t len)
{
	assert_int_equal(send(peer, bytes, len, MSG_NOSIGNAL), len);
}

void open_link(uint8_t dgst)
{
	struct weft_link_options options = { .addr = addr,
					     .depth = DEPTH,
					     .hdgst = dgst & 1,
					     .ddgst = dgst & 2,
					     .setup_ms = SETUP_MS };
	struct nvme_tcp_icreq icreq;

	readies = dones = closes = 0;
	why.text[0] = '\0';
	assert_int_equal(weft_tcp_link.open(&link_, r, &options, &ops, NULL, NULL), 0);
	peer = accept(listener, NULL, NULL);
	assert_true(peer >= 0);
	ctrl_recv(&icreq, sizeof(icreq));
	assert_int_equal(icreq.hdr.type, NVME_TCP_ICREQ);
	assert_int_equal(icreq.dgst, dgst);
}

void ctrl_send_icresp(uint16_t pfv, uint8_t cpda, uint8_t dgst, uint32_t maxh2c)
{
	struct nvme_tcp_icresp pdu = {
		.hdr = { .type = NVME_TCP_ICRESP, .hlen = sizeof(pdu) },
		.pfv = cpu_to_le16(pfv),
		.cpda = cpda,
		.dgst = dgst,
		.maxh2cdata = cpu_to_le32(maxh2c),
	};

	pdu.hdr.plen = cpu_to_le32(sizeof(pdu));
	ctrl_send(&pdu, sizeof(pdu));
}

void open_ready(uint8_t dgst, uint8_t cpda)
{
	open_link(dgst);
	ctrl_send_icresp(0, cpda, dgst, 4096);
	await(&readies);
}

void close_link(void)
{
	if (link_)
		weft_link_close(link_, -ESHUTDOWN, "over");
	await(&closes);
	close(peer);
}

/* The link tells what was wrong, and ends. */
void expect_term(const char *name, uint16_t fes, uint32_t fei, const char *sentence)
{
	struct nvme_tcp_term term;
	uint32_t got;

	ctrl_recv(&term, sizeof(term));
	got = le16_to_cpu(term.feil) | (uint32_t)le16_to_cpu(term.feiu) << 16;
	if (term.hdr.type != NVME_TCP_H2C_TERM || le16_to_cpu(term.fes) != fes || got != fei)
		fail_msg("%s: type %u, FES %u, FEI %u", name, term.hdr.type, le16_to_cpu(term.fes),
			 got);
	now_ns += LINGER_MS * UINT64_C(1000000);
	await(&closes);
	if (strcmp(why.text, sentence))
		fail_msg("%s: \"%s\"", name, why.text);
	assert_int_equal(end_rc, -EPROTO);
	assert_false(end_hung_up);
	close(peer);
}

static const struct {
	uint8_t opcode;
	uint32_t len;
} kinds[] = {
	[READ_512] = { nvme_cmd_read, 512 },
	[READ_20000] = { nvme_cmd_read, 20000 },
	[WRITE_512] = { nvme_cmd_write, 512 },     /* in the capsule */
	[WRITE_20000] = { nvme_cmd_write, 20000 }, /* not in it */
};

uint16_t submit(enum kind kind)
{
	struct weft_link_slot *slot = weft_link_get_slot(link_);

	assert_non_null(slot);
	slot->cmd.common.opcode = kinds[kind].opcode;
	slot->data.iov = parts;
	slot->data_len = kinds[kind].len;
	weft_link_submit(link_, slot);
	return le16_to_cpu(slot->cmd.common.cid);
}

/* The capsule of the command, as it should be. */
void ctrl_recv_capsule(enum kind kind, uint16_t cid, uint8_t dgst)
{
	struct nvme_tcp_cmd cmd;
	char rest[1024];
	uint32_t more;

	ctrl_recv(&cmd, sizeof(cmd));
	assert_int_equal(cmd.hdr.type, NVME_TCP_CMD);
	assert_int_equal(le16_to_cpu(cmd.sqe.common.cid), cid);
	more = le32_to_cpu(cmd.hdr.plen) - (uint32_t)sizeof(cmd);
	assert_int_equal(more, (dgst & 1 ? 4 : 0) + (kind == WRITE_512 ? 512 : 0) +
				       (kind == WRITE_512 && dgst & 2 ? 4 : 0));
	ctrl_recv(rest, more);
}
