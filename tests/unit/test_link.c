/* test_link.c - a link and a scripted controller: which PDUs it takes, which it refuses, and how
 * each is told: the termination request's field, and the sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/tcp.h"
#include "transport/link.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum {
	SETUP_MS = 1000,
	LINGER_MS = 500,
	TURNS_MAX = 20000, /* of a millisecond: what never comes is a hang */
	DEPTH = 3,
	MEMORY = 20000,
	H = NVME_TCP_F_HDGST,
	D = NVME_TCP_F_DDGST,
	LAST = NVME_TCP_F_LAST,
	SUCCESS = NVME_TCP_F_SUCCESS,
};

/* --- the two ends ------------------------------------------------------------------------- */

static struct weft_reactor *r;
static uint64_t now_ns = 1000000000;
static int listener, peer; /* the controller's */
static struct sockaddr_storage addr;

static struct weft_link *link_;
static unsigned readies, dones, closes;
static struct weft_slot last; /* as done() saw it */
static struct weft_err why;   /* as closed() saw it */
static int end_rc;

static char memory[MEMORY];
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

static void on_done(struct weft_link *link, struct weft_slot *slot)
{
	dones++;
	last = *slot;
}

static void on_closed(struct weft_link *link)
{
	closes++;
	end_rc = link->rc;
	why = link->err;
	weft_link_free(link);
	link_ = NULL;
}

static const struct weft_link_ops ops = { on_ready, on_done, on_closed };

static int set_up(void **state)
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

static int tear_down(void **state)
{
	close(listener);
	weft_reactor_destroy(r);
	return 0;
}

static void await(const unsigned *counter)
{
	for (int i = 0; i < TURNS_MAX && !*counter; i++)
		weft_reactor_turn(r, 1);
	assert_int_equal(*counter, 1);
}

/* @len bytes that the link sends. */
static void hear(void *to, size_t len)
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

static void say(const void *bytes, size_t len)
{
	assert_int_equal(send(peer, bytes, len, MSG_NOSIGNAL), len);
}

static void open_link(uint8_t dgst)
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
	hear(&icreq, sizeof(icreq));
	assert_int_equal(icreq.hdr.type, NVME_TCP_ICREQ);
	assert_int_equal(icreq.dgst, dgst);
}

static void say_icresp(uint16_t pfv, uint8_t cpda, uint8_t dgst, uint32_t maxh2c)
{
	struct nvme_tcp_icresp pdu = {
		.hdr = { .type = NVME_TCP_ICRESP, .hlen = sizeof(pdu) },
		.pfv = cpu_to_le16(pfv),
		.cpda = cpda,
		.dgst = dgst,
		.maxh2cdata = cpu_to_le32(maxh2c),
	};

	pdu.hdr.plen = cpu_to_le32(sizeof(pdu));
	say(&pdu, sizeof(pdu));
}

static void open_ready(uint8_t dgst, uint8_t cpda)
{
	open_link(dgst);
	say_icresp(0, cpda, dgst, 4096);
	await(&readies);
}

static void close_link(void)
{
	if (link_)
		weft_link_close(link_, -ESHUTDOWN, "over");
	await(&closes);
	close(peer);
}

/* The link tells what was wrong, and ends. */
static void expect_term(const char *name, uint16_t fes, uint32_t fei, const char *sentence)
{
	struct nvme_tcp_term term;
	uint32_t got;

	hear(&term, sizeof(term));
	got = le16_to_cpu(term.feil) | (uint32_t)le16_to_cpu(term.feiu) << 16;
	if (term.hdr.type != NVME_TCP_H2C_TERM || le16_to_cpu(term.fes) != fes || got != fei)
		fail_msg("%s: type %u, FES %u, FEI %u", name, term.hdr.type, le16_to_cpu(term.fes),
			 got);
	now_ns += LINGER_MS * UINT64_C(1000000);
	await(&closes);
	if (strcmp(why.text, sentence))
		fail_msg("%s: \"%s\"", name, why.text);
	assert_int_equal(end_rc, -EPROTO);
	close(peer);
}

/* --- ICResp ------------------------------------------------------------------------------- */

static const struct {
	uint16_t pfv;
	uint8_t asked, cpda, dgst;
	uint32_t maxh2c;
	uint16_t fes; /* 0: accepted */
	uint32_t fei;
	const char *sentence;
} icresps[] = {
	{ 0, 0, 0, 0, 4096, 0, 0, "" },
	{ 0, 3, 31, 3, UINT32_MAX, 0, 0, "" },
	{ 3, 0, 0, 0, 4096, NVME_TCP_FES_UNSUPPORTED, 8, "ICResp: target wants PFV 3" },
	{ 0, 0, 32, 0, 4096, NVME_TCP_FES_FIELD, 10, "ICResp: CPDA is above 31" },
	{ 0, 0, 0, 0, 4095, NVME_TCP_FES_FIELD, 12, "ICResp: MAXH2CDATA is below 4096" },
	{ 0, 0, 0, 1, 4096, NVME_TCP_FES_UNSUPPORTED, 11,
	  "ICResp: the target does digests that nobody asked for" },
	{ 0, 3, 0, 1, 4096, NVME_TCP_FES_UNSUPPORTED, 11,
	  "ICResp: the target does not do the digests asked for; leave out hdgst and ddgst" },
};

static void icresp(void **state)
{
	for (size_t i = 0; i < COUNT(icresps); i++) {
		open_link(icresps[i].asked);
		say_icresp(icresps[i].pfv, icresps[i].cpda, icresps[i].dgst, icresps[i].maxh2c);
		if (icresps[i].fes) {
			expect_term(icresps[i].sentence, icresps[i].fes, icresps[i].fei,
				    icresps[i].sentence);
			assert_int_equal(readies, 0);
		} else {
			await(&readies);
			close_link();
		}
	}
}

static void silence(void **state)
{
	open_link(0);
	now_ns += SETUP_MS * UINT64_C(1000000);
	await(&closes);
	assert_int_equal(end_rc, -ETIMEDOUT);
	assert_string_equal(why.text,
			    "no ICResp within 1000 ms: something listens there that does not "
			    "answer as an NVMe/TCP target");
	close(peer);
}

static void nobody(void **state)
{
	struct weft_link_options options = { .addr = addr, .depth = 1, .setup_ms = SETUP_MS };

	((struct sockaddr_in *)&options.addr)->sin_port = htons(1);
	closes = 0;
	assert_int_equal(weft_tcp_link.open(&link_, r, &options, &ops, NULL, NULL), 0);
	await(&closes);
	assert_int_equal(end_rc, -ECONNREFUSED);
	assert_string_equal(why.text, "connect: Connection refused");
}

/* --- one PDU ------------------------------------------------------------------------------ */

enum kind { NOTHING, READ_512, WRITE_512, WRITE_20000 };

static const struct {
	uint8_t opcode;
	uint32_t len;
} kinds[] = {
	[READ_512] = { nvme_cmd_read, 512 },
	[WRITE_512] = { nvme_cmd_write, 512 },     /* in the capsule */
	[WRITE_20000] = { nvme_cmd_write, 20000 }, /* not in it */
};

static uint16_t submit(enum kind kind)
{
	struct weft_slot *slot = weft_link_take(link_);

	assert_non_null(slot);
	slot->cmd.common.opcode = kinds[kind].opcode;
	slot->iov = parts;
	slot->data_len = kinds[kind].len;
	weft_link_submit(link_, slot);
	return le16_to_cpu(slot->cmd.common.cid);
}

/* The capsule of the command, as it should be. */
static void hear_capsule(enum kind kind, uint16_t cid, uint8_t dgst)
{
	struct nvme_tcp_cmd cmd;
	char rest[1024];
	uint32_t more;

	hear(&cmd, sizeof(cmd));
	assert_int_equal(cmd.hdr.type, NVME_TCP_CMD);
	assert_int_equal(le16_to_cpu(cmd.sqe.common.cid), cid);
	more = le32_to_cpu(cmd.hdr.plen) - (uint32_t)sizeof(cmd);
	assert_int_equal(more, (dgst & 1 ? 4 : 0) + (kind == WRITE_512 ? 512 : 0) +
				       (kind == WRITE_512 && dgst & 2 ? 4 : 0));
	hear(rest, more);
}

/* A PDU of a controller: header, fields, the digests that flags name, @data bytes of data. */
struct script {
	uint8_t type, flags, hlen, pdo;
	uint32_t plen;
	int cid; /* added to the right one; of an R2T or C2HData: */
	uint32_t at, len;
	uint32_t data;
};

static void seal(char *at, const void *bytes, size_t len)
{
	uint32_t crc = htole32(nvme_tcp_crc(0, bytes, len));

	memcpy(at, &crc, sizeof(crc));
}

static void say_script(const struct script *s, uint16_t cid)
{
	static char bytes[MEMORY + 256];
	struct nvme_tcp_data head = {
		.hdr = { s->type, s->flags, s->hlen, s->pdo, cpu_to_le32(s->plen) },
		.cccid = cpu_to_le16((uint16_t)(cid + s->cid)),
		.ttag = cpu_to_le16(77),
		.datao = cpu_to_le32(s->at),
		.datal = cpu_to_le32(s->len),
	};
	uint32_t end = s->data ? s->pdo + s->data : sizeof(head) + (s->flags & H ? 4 : 0);

	memset(bytes, 0x3c, sizeof(bytes));
	memcpy(bytes, &head, sizeof(head));
	if (s->type == NVME_TCP_RESP) { /* the CID of a completion lies elsewhere */
		struct nvme_tcp_resp resp = { .hdr = head.hdr, .cqe.cid = head.cccid };

		memcpy(bytes, &resp, sizeof(resp));
	}
	if (s->flags & H)
		seal(bytes + sizeof(head), bytes, sizeof(head));
	if (s->flags & D) {
		seal(bytes + end, bytes + s->pdo, s->data);
		end += 4;
	}
	say(bytes, end);
}

#define RESP(flags, hlen, pdo, plen, cid)                           \
	{                                                           \
		NVME_TCP_RESP, flags, hlen, pdo, plen, cid, 0, 0, 0 \
	}
#define C2H(flags, hlen, pdo, plen, cid, at, len, data)                       \
	{                                                                     \
		NVME_TCP_C2H_DATA, flags, hlen, pdo, plen, cid, at, len, data \
	}
#define R2T(flags, hlen, pdo, plen, cid, at, len)                     \
	{                                                             \
		NVME_TCP_R2T, flags, hlen, pdo, plen, cid, at, len, 0 \
	}

static const struct {
	const char *name;
	uint8_t dgst;
	enum kind kind;
	struct script pdu;
	uint32_t moved;
} completions[] = {
	{ "CapsuleResp", 0, WRITE_512, RESP(0, 24, 0, 24, 0), 512 },
	{ "CapsuleResp, HDGST", 1, WRITE_512, RESP(H, 24, 0, 28, 0), 512 },
	{ "CapsuleResp without the data", 0, READ_512, RESP(0, 24, 0, 24, 0), 0 },
	{ "C2HData, SUCCESS", 0, READ_512, C2H(LAST | SUCCESS, 24, 24, 536, 0, 0, 512, 512), 512 },
	{ "C2HData, SUCCESS, padded", 0, READ_512,
	  C2H(LAST | SUCCESS, 24, 128, 640, 0, 0, 512, 512), 512 },
	{ "C2HData, SUCCESS, digests", 3, READ_512,
	  C2H(LAST | SUCCESS | H | D, 24, 28, 544, 0, 0, 512, 512), 512 },
	{ "C2HData, SUCCESS, in part", 0, READ_512,
	  C2H(LAST | SUCCESS, 24, 24, 124, 0, 0, 100, 100), 100 },
};

static void accepted(void **state)
{
	for (size_t i = 0; i < COUNT(completions); i++) {
		uint16_t cid;

		memset(memory, 0, sizeof(memory));
		open_ready(completions[i].dgst, 0);
		cid = submit(completions[i].kind);
		hear_capsule(completions[i].kind, cid, completions[i].dgst);
		say_script(&completions[i].pdu, cid);
		await(&dones);
		if (last.moved != completions[i].moved || last.corrupt || last.cqe.status)
			fail_msg("%s: %u bytes", completions[i].name, last.moved);
		if (completions[i].kind == READ_512)
			for (uint32_t j = 0; j < MEMORY; j++)
				assert_int_equal(memory[j], j < last.moved ? 0x3c : 0);
		close_link();
	}
}

static const struct {
	const char *name;
	uint8_t dgst;
	enum kind kind;
	struct script pdu;
	uint16_t fes;
	uint32_t fei;
	const char *sentence;
} refusals[] = {
	{ "a host's PDU",
	  0,
	  NOTHING,
	  { NVME_TCP_CMD, 0, 72, 0, 72, 0, 0, 0, 0 },
	  NVME_TCP_FES_FIELD,
	  0,
	  "CapsuleCmd: this side does not send such a PDU" },
	{ "no PDU at all",
	  0,
	  NOTHING,
	  { 0x47, 0, 24, 0, 24, 0, 0, 0, 0 },
	  NVME_TCP_FES_FIELD,
	  0,
	  "unknown PDU: this side does not send such a PDU" },
	{ "a second ICResp",
	  0,
	  NOTHING,
	  { NVME_TCP_ICRESP, 0, 128, 0, 128, 0, 0, 0, 0 },
	  NVME_TCP_FES_SEQUENCE,
	  0,
	  "ICResp: the connection is set up already" },
	{ "nobody's completion", 0, NOTHING, RESP(0, 24, 0, 24, 0), NVME_TCP_FES_FIELD, 20,
	  "CapsuleResp: completes a command that is not in flight" },
	{ "another's completion", 0, READ_512, RESP(0, 24, 0, 24, 1), NVME_TCP_FES_FIELD, 20,
	  "CapsuleResp: completes a command that is not in flight" },
	{ "the last user's completion", 0, READ_512, RESP(0, 24, 0, 24, -4), NVME_TCP_FES_FIELD, 20,
	  "CapsuleResp: completes a command that is not in flight" },
	{ "completion, HLEN", 0, READ_512, RESP(0, 28, 0, 24, 0), NVME_TCP_FES_FIELD, 2,
	  "CapsuleResp: HLEN does not fit this type" },
	{ "completion, PLEN", 0, READ_512, RESP(0, 24, 0, 28, 0), NVME_TCP_FES_FIELD, 4,
	  "CapsuleResp: PLEN does not fit this type" },
	{ "completion, HDGSTF not agreed", 0, READ_512, RESP(H, 24, 0, 28, 0), NVME_TCP_FES_FIELD,
	  1, "CapsuleResp: HDGSTF is not what was negotiated" },
	{ "completion, HDGSTF missing", 1, READ_512, RESP(0, 24, 0, 24, 0), NVME_TCP_FES_FIELD, 1,
	  "CapsuleResp: HDGSTF is not what was negotiated" },

	{ "nobody's data", 0, NOTHING, C2H(LAST, 24, 24, 536, 0, 0, 512, 512), NVME_TCP_FES_FIELD,
	  8, "C2HData: for a command that is not in flight" },
	{ "data for a write", 0, WRITE_512, C2H(LAST, 24, 24, 536, 0, 0, 512, 512),
	  NVME_TCP_FES_RANGE, 0, "C2HData: more data than the command asked for" },
	{ "too much data", 0, READ_512, C2H(LAST, 24, 24, 540, 0, 0, 516, 516), NVME_TCP_FES_RANGE,
	  0, "C2HData: more data than the command asked for" },
	{ "data too far in", 0, READ_512, C2H(LAST, 24, 24, 280, 0, 4, 256, 256),
	  NVME_TCP_FES_FIELD, 12, "C2HData: data out of order" },
	{ "data that lies about its length", 0, READ_512, C2H(LAST, 24, 24, 536, 0, 0, 256, 512),
	  NVME_TCP_FES_FIELD, 16, "C2HData: DATAL and PLEN disagree" },
	{ "SUCCESS before the end", 0, READ_512, C2H(SUCCESS, 24, 24, 536, 0, 0, 512, 512),
	  NVME_TCP_FES_FIELD, 1, "C2HData: SUCCESS without LAST_PDU" },
	{ "data, PDO in the header", 0, READ_512, C2H(LAST, 24, 20, 532, 0, 0, 512, 512),
	  NVME_TCP_FES_FIELD, 3, "C2HData: PDO is inside the header or not aligned" },
	{ "data, none", 0, READ_512, C2H(LAST, 24, 24, 24, 0, 0, 0, 0), NVME_TCP_FES_FIELD, 4,
	  "C2HData: PLEN leaves no room for data" },
	{ "data, DDGSTF missing", 2, READ_512, C2H(LAST, 24, 24, 536, 0, 0, 512, 512),
	  NVME_TCP_FES_FIELD, 1, "C2HData: DDGSTF is not what was negotiated" },

	{ "R2T for nobody", 0, NOTHING, R2T(0, 24, 0, 24, 0, 0, 512), NVME_TCP_FES_FIELD, 8,
	  "R2T: for a command that is not in flight" },
	{ "R2T for a read", 0, READ_512, R2T(0, 24, 0, 24, 0, 0, 512), NVME_TCP_FES_FIELD, 12,
	  "R2T: asks for data out of order" },
	{ "R2T for what was in the capsule", 0, WRITE_512, R2T(0, 24, 0, 24, 0, 0, 512),
	  NVME_TCP_FES_FIELD, 12, "R2T: asks for data out of order" },
	{ "R2T in the middle", 0, WRITE_20000, R2T(0, 24, 0, 24, 0, 4096, 4096), NVME_TCP_FES_FIELD,
	  12, "R2T: asks for data out of order" },
	{ "R2T for more than there is", 0, WRITE_20000, R2T(0, 24, 0, 24, 0, 0, 20001),
	  NVME_TCP_FES_RANGE, 0, "R2T: asks for data beyond the command" },
	{ "R2T for nothing", 0, WRITE_20000, R2T(0, 24, 0, 24, 0, 0, 0), NVME_TCP_FES_RANGE, 0,
	  "R2T: asks for data beyond the command" },
};

static void refused(void **state)
{
	for (size_t i = 0; i < COUNT(refusals); i++) {
		uint16_t cid = 0;

		open_ready(refusals[i].dgst, 0);
		if (refusals[i].kind != NOTHING) {
			cid = submit(refusals[i].kind);
			hear_capsule(refusals[i].kind, cid, refusals[i].dgst);
		}
		say_script(&refusals[i].pdu, cid);
		expect_term(refusals[i].name, refusals[i].fes, refusals[i].fei,
			    refusals[i].sentence);
		assert_int_equal(dones, 0);
	}
}

static void wrong_header_digest(void **state)
{
	static const char sentence[] = "CapsuleResp: the header digest is wrong";
	struct {
		struct nvme_tcp_resp pdu;
		char hdgst[4];
	} resp = { .pdu.hdr = { NVME_TCP_RESP, H, 24, 0, cpu_to_le32(28) }, .hdgst = "\1\2\3\4" };

	open_ready(1, 0);
	resp.pdu.cqe.cid = cpu_to_le16(submit(READ_512));
	hear_capsule(READ_512, le16_to_cpu(resp.pdu.cqe.cid), 1);
	say(&resp, sizeof(resp));
	expect_term(sentence, NVME_TCP_FES_HDGST, 0x04030201, sentence);
}

/* Data that was damaged on its way costs its command, not the connection. */
static void wrong_data_digest(void **state)
{
	struct {
		struct nvme_tcp_data pdu;
		char data[512], ddgst[4];
	} c2h = { .pdu.hdr = { NVME_TCP_C2H_DATA, D | LAST | SUCCESS, 24, 24, cpu_to_le32(540) },
		  .pdu.datal = cpu_to_le32(512) };

	open_ready(2, 0);
	c2h.pdu.cccid = cpu_to_le16(submit(READ_512));
	hear_capsule(READ_512, le16_to_cpu(c2h.pdu.cccid), 2);
	say(&c2h, sizeof(c2h));
	await(&dones);
	assert_true(last.corrupt && last.moved == 512);
	close_link();
}

/* --- R2T ---------------------------------------------------------------------------------- */

/* Pieces no longer than MAXH2CDATA, where the controller wants them, the last one marked. */
static void data_on_request(void **state)
{
	static char bytes[4096 + 128];
	struct script r2t = R2T(0, 24, 0, 24, 0, 0, 20000);
	struct nvme_tcp_data h2c;
	uint16_t cid;

	for (int i = 0; i < MEMORY; i++)
		memory[i] = (char)(i * 7);
	open_ready(0, 31);
	cid = submit(WRITE_20000);
	hear_capsule(WRITE_20000, cid, 0);
	say_script(&r2t, cid);
	for (uint32_t at = 0, len; at < 20000; at += len) {
		hear(&h2c, sizeof(h2c));
		len = le32_to_cpu(h2c.datal);
		assert_int_equal(h2c.hdr.type, NVME_TCP_H2C_DATA);
		assert_int_equal(h2c.hdr.pdo, 128);
		assert_int_equal(le32_to_cpu(h2c.hdr.plen), 128 + len);
		assert_int_equal(le16_to_cpu(h2c.ttag), 77);
		assert_int_equal(le32_to_cpu(h2c.datao), at);
		assert_int_equal(len, 20000 - at < 4096 ? 20000 - at : 4096);
		assert_int_equal(h2c.hdr.flags, at + len == 20000 ? LAST : 0);
		hear(bytes, 128 - sizeof(h2c) + len);
		assert_memory_equal(bytes + 128 - sizeof(h2c), memory + at, len);
	}
	close_link();
}

/* --- the end ------------------------------------------------------------------------------ */

static void target_terminates(void **state)
{
	struct nvme_tcp_term term = {
		.hdr = { NVME_TCP_C2H_TERM, 0, 24, 0, cpu_to_le32(24) },
		.fes = cpu_to_le16(NVME_TCP_FES_HDGST),
		.feil = cpu_to_le16(0x20),
	};

	open_ready(0, 0);
	submit(READ_512);
	say(&term, sizeof(term));
	await(&closes);
	assert_int_equal(dones, 0);
	assert_int_equal(end_rc, -EPROTO);
	assert_string_equal(why.text, "the target ended the connection: header digest error "
				      "(C2HTermReq, FES 3, FEI 32)");
	close(peer);
}

static void target_leaves(void **state)
{
	open_ready(0, 0);
	submit(READ_512);
	close(peer);
	await(&closes);
	assert_int_equal(dones, 0);
	assert_int_equal(end_rc, -ECONNRESET);
	assert_string_equal(why.text, "the target closed the connection");
}

/* Slots are limited; those not submitted can be put back. */
static void slots(void **state)
{
	struct weft_slot *taken[DEPTH];

	open_ready(0, 0);
	for (int i = 0; i < DEPTH; i++) {
		taken[i] = weft_link_take(link_);
		assert_non_null(taken[i]);
	}
	assert_null(weft_link_take(link_));
	weft_link_put(link_, taken[1]);
	assert_ptr_equal(weft_link_take(link_), taken[1]);
	close_link();
	assert_int_equal(end_rc, -ESHUTDOWN);
	assert_string_equal(why.text, "over");
}

/* FFFFh is no command's: in the error log it stands for none. A link of one slot counts through all. */
static void no_cid_ffff(void **state)
{
	struct weft_link_options options = { .addr = addr, .depth = 1, .setup_ms = SETUP_MS };
	struct weft_slot *slot;

	closes = 0;
	assert_int_equal(weft_tcp_link.open(&link_, r, &options, &ops, NULL, NULL), 0);
	peer = accept(listener, NULL, NULL);
	for (uint32_t i = 0; i <= 2 * UINT16_MAX; i++) {
		slot = weft_link_take(link_);
		assert_int_not_equal(le16_to_cpu(slot->cmd.common.cid), 0xffff);
		weft_link_put(link_, slot);
	}
	close_link();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(icresp),
		cmocka_unit_test(silence),
		cmocka_unit_test(nobody),
		cmocka_unit_test(accepted),
		cmocka_unit_test(refused),
		cmocka_unit_test(wrong_header_digest),
		cmocka_unit_test(wrong_data_digest),
		cmocka_unit_test(data_on_request),
		cmocka_unit_test(target_terminates),
		cmocka_unit_test(target_leaves),
		cmocka_unit_test(slots),
		cmocka_unit_test(no_cid_ffff),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
