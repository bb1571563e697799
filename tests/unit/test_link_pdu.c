/* test_link_pdu.c - a link and a scripted controller: which PDUs it takes, which it refuses, and
 * how each is told: the termination request's field, and the sentence. */
#include "link_case.h"
#include "running.h"

#include <stdio.h>
#include <string.h>

enum {
	H = NVME_TCP_F_HDGST,
	D = NVME_TCP_F_DDGST,
	LAST = NVME_TCP_F_LAST,
	SUCCESS = NVME_TCP_F_SUCCESS,
};

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
	ctrl_send(bytes, end);
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
	for_each_named(i, completions, name) {
		uint16_t cid;

		memset(memory, 0, sizeof(memory));
		open_ready(completions[i].dgst, 0);
		cid = submit(completions[i].kind);
		ctrl_recv_capsule(completions[i].kind, cid, completions[i].dgst);
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

/* Nothing tells of the first large payload: it may be copied. That another is likely, it tells
 * itself. */
static const struct {
	enum kind kind;
	struct script pdu;
	uint64_t copied_max;
} flow[] = {
	{ READ_20000, C2H(LAST | SUCCESS, 24, 24, 20024, 0, 0, 20000, 20000), 20000 },
	{ READ_20000, C2H(LAST | SUCCESS, 24, 24, 20024, 0, 0, 20000, 20000), 256 },
	{ READ_20000, C2H(LAST | SUCCESS, 24, 128, 20128, 0, 0, 20000, 20000), 256 },
	{ READ_512, C2H(LAST | SUCCESS, 24, 24, 536, 0, 0, 512, 512), 512 },
};

static void large_data_is_not_copied(void **state)
{
	open_ready(0, 0);
	for_each_row(i, flow) {
		uint64_t before = link_->stats.copied_bytes;
		uint16_t cid = submit(flow[i].kind);

		memset(memory, 0, sizeof(memory));
		dones = 0;
		ctrl_recv_capsule(flow[i].kind, cid, 0);
		say_script(&flow[i].pdu, cid);
		await(&dones);
		if (link_->stats.copied_bytes - before > flow[i].copied_max)
			fail_msg("%zu: %llu bytes were copied", i,
				 (unsigned long long)(link_->stats.copied_bytes - before));
		for (uint32_t j = 0; j < MEMORY; j++)
			assert_int_equal(memory[j], j < last.moved ? 0x3c : 0);
	}
	close_link();
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
	for_each_named(i, refusals, name) {
		uint16_t cid = 0;

		open_ready(refusals[i].dgst, 0);
		if (refusals[i].kind != NOTHING) {
			cid = submit(refusals[i].kind);
			ctrl_recv_capsule(refusals[i].kind, cid, refusals[i].dgst);
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
	ctrl_recv_capsule(READ_512, le16_to_cpu(resp.pdu.cqe.cid), 1);
	ctrl_send(&resp, sizeof(resp));
	expect_term(sentence, NVME_TCP_FES_HDGST, 0x04030201, sentence);
}

/* Whatever bit a bad cable turns in a header: it is told as a wrong digest, unless the bit says
 * whether there is one and where. Data that a damaged PLEN speaks of is not awaited. */
static void damaged_header(void **state)
{
	struct {
		struct nvme_tcp_data pdu;
		uint32_t hdgst;
	} c2h;

	for (unsigned bit = 8; bit < 8 * sizeof(c2h); bit++) {
		bool hlen = bit / 8 == offsetof(struct nvme_tcp_hdr, hlen), flag = bit == 8;
		char name[32];

		snprintf(name, sizeof(name), "byte %u, bit %u", bit / 8, bit % 8);
		open_ready(1, 0);
		c2h.pdu = (struct nvme_tcp_data){
			.hdr = { NVME_TCP_C2H_DATA, H | LAST, 24, 28, cpu_to_le32(540) },
			.cccid = cpu_to_le16(submit(READ_512)),
			.datal = cpu_to_le32(512),
		};
		ctrl_recv_capsule(READ_512, le16_to_cpu(c2h.pdu.cccid), 1);
		c2h.hdgst = htole32(nvme_tcp_crc(0, &c2h.pdu, sizeof(c2h.pdu)));
		((uint8_t *)&c2h)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ctrl_send(&c2h, sizeof(c2h));
		if (hlen)
			expect_term(name, NVME_TCP_FES_FIELD, 2,
				    "C2HData: HLEN does not fit this type");
		else if (flag)
			expect_term(name, NVME_TCP_FES_FIELD, 1,
				    "C2HData: HDGSTF is not what was negotiated");
		else
			expect_term(name, NVME_TCP_FES_HDGST, le32toh(c2h.hdgst),
				    "C2HData: the header digest is wrong");
	}
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
	ctrl_recv_capsule(READ_512, le16_to_cpu(c2h.pdu.cccid), 2);
	ctrl_send(&c2h, sizeof(c2h));
	await(&dones);
	assert_true(last.corrupt && last.moved == 512);
	close_link();
}

/* --- R2T -------------------------------------------------------------------------------------- */

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
	ctrl_recv_capsule(WRITE_20000, cid, 0);
	say_script(&r2t, cid);
	for (uint32_t at = 0, len; at < 20000; at += len) {
		ctrl_recv(&h2c, sizeof(h2c));
		len = le32_to_cpu(h2c.datal);
		assert_int_equal(h2c.hdr.type, NVME_TCP_H2C_DATA);
		assert_int_equal(h2c.hdr.pdo, 128);
		assert_int_equal(le32_to_cpu(h2c.hdr.plen), 128 + len);
		assert_int_equal(le16_to_cpu(h2c.ttag), 77);
		assert_int_equal(le32_to_cpu(h2c.datao), at);
		assert_int_equal(len, 20000 - at < 4096 ? 20000 - at : 4096);
		assert_int_equal(h2c.hdr.flags, at + len == 20000 ? LAST : 0);
		ctrl_recv(bytes, 128 - sizeof(h2c) + len);
		assert_memory_equal(bytes + 128 - sizeof(h2c), memory + at, len);
	}
	close_link();
}

enum { LARGE = 32 << 20 }; /* more than sockets take from one that does not read */

/* A controller may give a write up before it has read all of it. The command is over when the
 * kernel has let go of the last byte: until then the memory is not the program's. */
static void answered_while_data_leaves(void **state)
{
	static char large[LARGE];
	struct script r2t = R2T(0, 24, 0, 24, 0, 0, LARGE), resp = RESP(0, 24, 0, 24, 0);
	struct iovec iov = { large, sizeof(large) };
	struct nvme_tcp_data h2c;
	struct weft_link_slot *slot;
	uint16_t cid;

	open_link(0);
	ctrl_send_icresp(0, 0, 0, LARGE);
	await(&readies);
	slot = weft_link_get_slot(link_);
	slot->cmd.common.opcode = nvme_cmd_write;
	slot->data.iov = &iov;
	slot->data_len = LARGE;
	weft_link_submit(link_, slot);
	cid = le16_to_cpu(slot->cmd.common.cid);
	ctrl_recv_capsule(WRITE_20000, cid, 0);
	say_script(&r2t, cid);
	ctrl_recv(&h2c, sizeof(h2c));
	say_script(&resp, cid);
	for (int i = 0; i < 50; i++)
		weft_reactor_turn(r, 1);
	assert_int_equal(dones, 0);
	memset(large, 1,
	       sizeof(large)); /* what leaves from now on shows that it leaves from there */
	for (uint32_t at = 0; at < LARGE; at += MEMORY)
		ctrl_recv(memory, LARGE - at < MEMORY ? LARGE - at : MEMORY);
	assert_int_equal(memory[0], 1);
	await(&dones);
	close_link();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepted),        cmocka_unit_test(large_data_is_not_copied),
		cmocka_unit_test(refused),         cmocka_unit_test(wrong_header_digest),
		cmocka_unit_test(damaged_header),  cmocka_unit_test(wrong_data_digest),
		cmocka_unit_test(data_on_request), cmocka_unit_test(answered_while_data_leaves),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
