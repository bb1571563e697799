/* test_tcp.c - what makes the header of a PDU acceptable, as tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "proto/tcp.h"
#include "running.h"

enum {
	CAPSULE_MAX = 8192,
	H2C_MAX = 131072,

	H = NVME_TCP_F_HDGST,
	D = NVME_TCP_F_DDGST,
	LAST = NVME_TCP_F_LAST,

	/* What FEI names: offsets in the common header. */
	AT_TYPE = 0,
	AT_FLAGS = 1,
	AT_HLEN = 2,
	AT_PDO = 3,
	AT_PLEN = 4,
};

enum agreed { FRESH, PLAIN, HDGST, DDGST, BOTH };

static const struct nvme_tcp_rules rules[] = {
	[FRESH] = { false, false, false, CAPSULE_MAX, H2C_MAX },
	[PLAIN] = { true, false, false, CAPSULE_MAX, H2C_MAX },
	[HDGST] = { true, true, false, CAPSULE_MAX, H2C_MAX },
	[DDGST] = { true, false, true, CAPSULE_MAX, H2C_MAX },
	[BOTH] = { true, true, true, CAPSULE_MAX, H2C_MAX },
};

#define HDR(type_, flags_, hlen_, pdo_, plen_)                                               \
	{                                                                                    \
		.type = NVME_TCP_##type_, .flags = (flags_), .hlen = (hlen_), .pdo = (pdo_), \
		.plen = (__force_cast __le32)(plen_)                                         \
	}

struct acceptance {
	const char *name;
	enum agreed agreed;
	struct nvme_tcp_hdr hdr; /* PLEN in our byte order */
	struct nvme_tcp_shape shape;
};

struct refusal {
	const char *name;
	enum agreed agreed;
	struct nvme_tcp_hdr hdr;
	uint16_t fes;
	uint32_t fei;
};

/* What a host may send. */
static const struct acceptance accepted[] = {
	{ "ICReq", FRESH, HDR(ICREQ, 0, 128, 0, 128), { 128, 128, 0, false } },
	{ "ICReq, flags and PDO do not matter",
	  FRESH,
	  HDR(ICREQ, H | D, 128, 64, 128),
	  { 128, 128, 0, false } },

	{ "H2CTermReq first", FRESH, HDR(H2C_TERM, 0, 24, 0, 24), { 24, 24, 0, false } },
	{ "H2CTermReq with a header", PLAIN, HDR(H2C_TERM, 0, 24, 0, 96), { 24, 24, 72, false } },
	{ "H2CTermReq, the most", PLAIN, HDR(H2C_TERM, 0, 24, 0, 152), { 24, 24, 128, false } },
	{ "H2CTermReq has no digests", BOTH, HDR(H2C_TERM, 0, 24, 0, 48), { 24, 24, 24, false } },

	{ "CapsuleCmd", PLAIN, HDR(CMD, 0, 72, 0, 72), { 72, 72, 0, false } },
	{ "CapsuleCmd, PDO does not matter", PLAIN, HDR(CMD, 0, 72, 3, 72), { 72, 72, 0, false } },
	{ "CapsuleCmd, HDGST", HDGST, HDR(CMD, H, 72, 0, 76), { 76, 76, 0, false } },
	{ "CapsuleCmd, DDGST, no data", DDGST, HDR(CMD, 0, 72, 0, 72), { 72, 72, 0, false } },
	{ "CapsuleCmd, DDGST, no data but the flag",
	  DDGST,
	  HDR(CMD, D, 72, 0, 72),
	  { 72, 72, 0, false } },
	{ "CapsuleCmd, both, no data", BOTH, HDR(CMD, H, 72, 0, 76), { 76, 76, 0, false } },
	{ "CapsuleCmd, one byte", PLAIN, HDR(CMD, 0, 72, 72, 73), { 72, 72, 1, false } },
	{ "CapsuleCmd, data", PLAIN, HDR(CMD, 0, 72, 72, 72 + 512), { 72, 72, 512, false } },
	{ "CapsuleCmd, padded", PLAIN, HDR(CMD, 0, 72, 128, 128 + 512), { 72, 128, 512, false } },
	{ "CapsuleCmd, the farthest PDO",
	  PLAIN,
	  HDR(CMD, 0, 72, 252, 252 + 4),
	  { 72, 252, 4, false } },
	{ "CapsuleCmd, HDGST, data", HDGST, HDR(CMD, H, 72, 76, 76 + 512), { 76, 76, 512, false } },
	{ "CapsuleCmd, DDGST, data",
	  DDGST,
	  HDR(CMD, D, 72, 72, 72 + 512 + 4),
	  { 72, 72, 512, true } },
	{ "CapsuleCmd, both, data",
	  BOTH,
	  HDR(CMD, H | D, 72, 80, 80 + 512 + 4),
	  { 76, 80, 512, true } },
	{ "CapsuleCmd, the most",
	  PLAIN,
	  HDR(CMD, 0, 72, 72, 72 + CAPSULE_MAX),
	  { 72, 72, CAPSULE_MAX, false } },
	{ "CapsuleCmd, both, the most",
	  BOTH,
	  HDR(CMD, H | D, 72, 76, 76 + CAPSULE_MAX + 4),
	  { 76, 76, CAPSULE_MAX, true } },

	{ "H2CData", PLAIN, HDR(H2C_DATA, LAST, 24, 24, 24 + 4096), { 24, 24, 4096, false } },
	{ "H2CData, one byte", PLAIN, HDR(H2C_DATA, 0, 24, 24, 25), { 24, 24, 1, false } },
	{ "H2CData, padded",
	  PLAIN,
	  HDR(H2C_DATA, 0, 24, 128, 128 + 4096),
	  { 24, 128, 4096, false } },
	{ "H2CData, HDGST", HDGST, HDR(H2C_DATA, H, 24, 28, 28 + 4096), { 28, 28, 4096, false } },
	{ "H2CData, DDGST",
	  DDGST,
	  HDR(H2C_DATA, D | LAST, 24, 24, 24 + 4096 + 4),
	  { 24, 24, 4096, true } },
	{ "H2CData, both",
	  BOTH,
	  HDR(H2C_DATA, H | D, 24, 32, 32 + 4096 + 4),
	  { 28, 32, 4096, true } },
	{ "H2CData, the most",
	  PLAIN,
	  HDR(H2C_DATA, 0, 24, 24, 24 + H2C_MAX),
	  { 24, 24, H2C_MAX, false } },
	{ "H2CData, both, the most",
	  BOTH,
	  HDR(H2C_DATA, H | D, 24, 28, 28 + H2C_MAX + 4),
	  { 28, 28, H2C_MAX, true } },
};

static const struct refusal refused[] = {
	{ "ICResp", FRESH, HDR(ICRESP, 0, 128, 0, 128), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "C2HTermReq", PLAIN, HDR(C2H_TERM, 0, 24, 0, 24), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "CapsuleResp", PLAIN, HDR(RESP, 0, 24, 0, 24), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "C2HData", PLAIN, HDR(C2H_DATA, 0, 24, 24, 28), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "R2T", PLAIN, HDR(R2T, 0, 24, 0, 24), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "type 8", PLAIN, { .type = 8, .hlen = 24 }, NVME_TCP_FES_FIELD, AT_TYPE },
	{ "type 10", FRESH, { .type = 10, .hlen = 24 }, NVME_TCP_FES_FIELD, AT_TYPE },
	{ "type 255", BOTH, { .type = 255, .hlen = 24 }, NVME_TCP_FES_FIELD, AT_TYPE },

	{ "second ICReq", PLAIN, HDR(ICREQ, 0, 128, 0, 128), NVME_TCP_FES_SEQUENCE, 0 },
	{ "CapsuleCmd first", FRESH, HDR(CMD, 0, 72, 0, 72), NVME_TCP_FES_SEQUENCE, 0 },
	{ "H2CData first", FRESH, HDR(H2C_DATA, 0, 24, 24, 28), NVME_TCP_FES_SEQUENCE, 0 },

	{ "ICReq, HLEN", FRESH, HDR(ICREQ, 0, 127, 0, 128), NVME_TCP_FES_FIELD, AT_HLEN },
	{ "ICReq, short", FRESH, HDR(ICREQ, 0, 128, 0, 127), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "ICReq, long", FRESH, HDR(ICREQ, 0, 128, 0, 129), NVME_TCP_FES_FIELD, AT_PLEN },

	{ "H2CTermReq, HLEN", PLAIN, HDR(H2C_TERM, 0, 28, 0, 28), NVME_TCP_FES_FIELD, AT_HLEN },
	{ "H2CTermReq, short", PLAIN, HDR(H2C_TERM, 0, 24, 0, 23), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "H2CTermReq, long", PLAIN, HDR(H2C_TERM, 0, 24, 0, 153), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "H2CTermReq, PLEN is all ones", FRESH, HDR(H2C_TERM, 0, 24, 0, UINT32_MAX),
	  NVME_TCP_FES_FIELD, AT_PLEN },

	{ "CapsuleCmd, HDGSTF not agreed", PLAIN, HDR(CMD, H, 72, 0, 76), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "CapsuleCmd, HDGSTF missing", HDGST, HDR(CMD, 0, 72, 0, 76), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "CapsuleCmd, DDGSTF not agreed", PLAIN, HDR(CMD, D, 72, 72, 76), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "CapsuleCmd, DDGSTF missing", BOTH, HDR(CMD, H, 72, 76, 84), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "CapsuleCmd, HLEN", PLAIN, HDR(CMD, 0, 71, 0, 72), NVME_TCP_FES_FIELD, AT_HLEN },
	{ "CapsuleCmd, HLEN with its digest", HDGST, HDR(CMD, H, 76, 0, 76), NVME_TCP_FES_FIELD,
	  AT_HLEN },
	{ "CapsuleCmd, short", PLAIN, HDR(CMD, 0, 72, 0, 71), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "CapsuleCmd, PLEN 0", PLAIN, HDR(CMD, 0, 72, 0, 0), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "CapsuleCmd, no room for HDGST", HDGST, HDR(CMD, H, 72, 0, 72), NVME_TCP_FES_FIELD,
	  AT_PLEN },
	{ "CapsuleCmd, PDO 0", PLAIN, HDR(CMD, 0, 72, 0, 76), NVME_TCP_FES_FIELD, AT_PDO },
	{ "CapsuleCmd, PDO in HDGST", HDGST, HDR(CMD, H, 72, 72, 84), NVME_TCP_FES_FIELD, AT_PDO },
	{ "CapsuleCmd, PDO not aligned", PLAIN, HDR(CMD, 0, 72, 74, 84), NVME_TCP_FES_FIELD,
	  AT_PDO },
	{ "CapsuleCmd, PDO at the end", PLAIN, HDR(CMD, 0, 72, 76, 76), NVME_TCP_FES_FIELD,
	  AT_PLEN },
	{ "CapsuleCmd, PDO behind the end", PLAIN, HDR(CMD, 0, 72, 252, 76), NVME_TCP_FES_FIELD,
	  AT_PLEN },
	{ "CapsuleCmd, only DDGST behind PDO", DDGST, HDR(CMD, D, 72, 72, 76), NVME_TCP_FES_FIELD,
	  AT_PLEN },
	{ "CapsuleCmd, too much", PLAIN, HDR(CMD, 0, 72, 72, 72 + CAPSULE_MAX + 1),
	  NVME_TCP_FES_LIMIT, 0 },
	{ "CapsuleCmd, PLEN is all ones", PLAIN, HDR(CMD, 0, 72, 72, UINT32_MAX),
	  NVME_TCP_FES_LIMIT, 0 },

	{ "H2CData, HDGSTF not agreed", DDGST, HDR(H2C_DATA, H | D, 24, 28, 36), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "H2CData, DDGSTF missing", DDGST, HDR(H2C_DATA, LAST, 24, 24, 32), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "H2CData, DDGSTF not agreed", HDGST, HDR(H2C_DATA, H | D, 24, 28, 36), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "H2CData, HLEN", PLAIN, HDR(H2C_DATA, 0, 72, 72, 76), NVME_TCP_FES_FIELD, AT_HLEN },
	{ "H2CData, no data", PLAIN, HDR(H2C_DATA, LAST, 24, 24, 24), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "H2CData, only DDGST", DDGST, HDR(H2C_DATA, D, 24, 24, 28), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "H2CData, PDO 0", PLAIN, HDR(H2C_DATA, 0, 24, 0, 28), NVME_TCP_FES_FIELD, AT_PDO },
	{ "H2CData, PDO in HDGST", HDGST, HDR(H2C_DATA, H, 24, 24, 32), NVME_TCP_FES_FIELD,
	  AT_PDO },
	{ "H2CData, PDO not aligned", PLAIN, HDR(H2C_DATA, 0, 24, 25, 32), NVME_TCP_FES_FIELD,
	  AT_PDO },
	{ "H2CData, too much", PLAIN, HDR(H2C_DATA, 0, 24, 24, 24 + H2C_MAX + 1),
	  NVME_TCP_FES_LIMIT, 0 },
	{ "H2CData, PLEN is all ones", BOTH, HDR(H2C_DATA, H | D, 24, 28, UINT32_MAX),
	  NVME_TCP_FES_LIMIT, 0 },
};

/* What a controller may send. */
static const struct acceptance accepted_by_host[] = {
	{ "ICResp", FRESH, HDR(ICRESP, 0, 128, 0, 128), { 128, 128, 0, false } },
	{ "ICResp, flags and PDO do not matter",
	  FRESH,
	  HDR(ICRESP, H | D, 128, 64, 128),
	  { 128, 128, 0, false } },

	{ "C2HTermReq first", FRESH, HDR(C2H_TERM, 0, 24, 0, 24), { 24, 24, 0, false } },
	{ "C2HTermReq, the most", PLAIN, HDR(C2H_TERM, 0, 24, 0, 152), { 24, 24, 128, false } },
	{ "C2HTermReq has no digests", BOTH, HDR(C2H_TERM, 0, 24, 0, 48), { 24, 24, 24, false } },

	{ "CapsuleResp", PLAIN, HDR(RESP, 0, 24, 0, 24), { 24, 24, 0, false } },
	{ "CapsuleResp, PDO does not matter", PLAIN, HDR(RESP, 0, 24, 9, 24), { 24, 24, 0, false } },
	{ "CapsuleResp, HDGST", HDGST, HDR(RESP, H, 24, 0, 28), { 28, 28, 0, false } },
	{ "CapsuleResp, DDGST", DDGST, HDR(RESP, 0, 24, 0, 24), { 24, 24, 0, false } },

	{ "R2T", PLAIN, HDR(R2T, 0, 24, 0, 24), { 24, 24, 0, false } },
	{ "R2T, both", BOTH, HDR(R2T, H, 24, 0, 28), { 28, 28, 0, false } },

	{ "C2HData", PLAIN, HDR(C2H_DATA, LAST, 24, 24, 24 + 4096), { 24, 24, 4096, false } },
	{ "C2HData, SUCCESS",
	  PLAIN,
	  HDR(C2H_DATA, LAST | NVME_TCP_F_SUCCESS, 24, 24, 25),
	  { 24, 24, 1, false } },
	{ "C2HData, padded",
	  PLAIN,
	  HDR(C2H_DATA, 0, 24, 252, 252 + 4096),
	  { 24, 252, 4096, false } },
	{ "C2HData, both",
	  BOTH,
	  HDR(C2H_DATA, H | D, 24, 28, 28 + 4096 + 4),
	  { 28, 28, 4096, true } },
	{ "C2HData, the command limits it",
	  DDGST,
	  HDR(C2H_DATA, D, 24, 24, UINT32_MAX),
	  { 24, 24, UINT32_MAX - 28, true } },
};

static const struct refusal refused_by_host[] = {
	{ "ICReq", FRESH, HDR(ICREQ, 0, 128, 0, 128), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "H2CTermReq", PLAIN, HDR(H2C_TERM, 0, 24, 0, 24), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "CapsuleCmd", PLAIN, HDR(CMD, 0, 72, 0, 72), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "H2CData", PLAIN, HDR(H2C_DATA, 0, 24, 24, 28), NVME_TCP_FES_FIELD, AT_TYPE },
	{ "type 8", PLAIN, { .type = 8, .hlen = 24 }, NVME_TCP_FES_FIELD, AT_TYPE },
	{ "type 10", FRESH, { .type = 10, .hlen = 24 }, NVME_TCP_FES_FIELD, AT_TYPE },
	{ "type 255", BOTH, { .type = 255, .hlen = 24 }, NVME_TCP_FES_FIELD, AT_TYPE },

	{ "second ICResp", PLAIN, HDR(ICRESP, 0, 128, 0, 128), NVME_TCP_FES_SEQUENCE, 0 },
	{ "CapsuleResp first", FRESH, HDR(RESP, 0, 24, 0, 24), NVME_TCP_FES_SEQUENCE, 0 },
	{ "C2HData first", FRESH, HDR(C2H_DATA, 0, 24, 24, 28), NVME_TCP_FES_SEQUENCE, 0 },
	{ "R2T first", FRESH, HDR(R2T, 0, 24, 0, 24), NVME_TCP_FES_SEQUENCE, 0 },

	{ "ICResp, HLEN", FRESH, HDR(ICRESP, 0, 24, 0, 128), NVME_TCP_FES_FIELD, AT_HLEN },
	{ "ICResp, short", FRESH, HDR(ICRESP, 0, 128, 0, 127), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "ICResp, long", FRESH, HDR(ICRESP, 0, 128, 0, 129), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "C2HTermReq, long", PLAIN, HDR(C2H_TERM, 0, 24, 0, 153), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "C2HTermReq, short", FRESH, HDR(C2H_TERM, 0, 24, 0, 23), NVME_TCP_FES_FIELD, AT_PLEN },

	{ "CapsuleResp, HDGSTF not agreed", PLAIN, HDR(RESP, H, 24, 0, 28), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "CapsuleResp, HDGSTF missing", BOTH, HDR(RESP, 0, 24, 0, 28), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "CapsuleResp, HLEN", PLAIN, HDR(RESP, 0, 23, 0, 24), NVME_TCP_FES_FIELD, AT_HLEN },
	{ "CapsuleResp, long", PLAIN, HDR(RESP, 0, 24, 0, 25), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "CapsuleResp, no room for HDGST", HDGST, HDR(RESP, H, 24, 0, 24), NVME_TCP_FES_FIELD,
	  AT_PLEN },
	{ "R2T, long", PLAIN, HDR(R2T, 0, 24, 0, UINT32_MAX), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "R2T, HLEN", HDGST, HDR(R2T, H, 28, 0, 28), NVME_TCP_FES_FIELD, AT_HLEN },

	{ "C2HData, DDGSTF missing", DDGST, HDR(C2H_DATA, 0, 24, 24, 32), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "C2HData, DDGSTF not agreed", PLAIN, HDR(C2H_DATA, D, 24, 24, 32), NVME_TCP_FES_FIELD,
	  AT_FLAGS },
	{ "C2HData, PDO 0", PLAIN, HDR(C2H_DATA, 0, 24, 0, 28), NVME_TCP_FES_FIELD, AT_PDO },
	{ "C2HData, PDO in HDGST", HDGST, HDR(C2H_DATA, H, 24, 24, 32), NVME_TCP_FES_FIELD,
	  AT_PDO },
	{ "C2HData, PDO not aligned", PLAIN, HDR(C2H_DATA, 0, 24, 26, 32), NVME_TCP_FES_FIELD,
	  AT_PDO },
	{ "C2HData, no data", PLAIN, HDR(C2H_DATA, LAST, 24, 24, 24), NVME_TCP_FES_FIELD, AT_PLEN },
	{ "C2HData, only DDGST", DDGST, HDR(C2H_DATA, D, 24, 24, 28), NVME_TCP_FES_FIELD, AT_PLEN },
};

static int check(struct nvme_tcp_hdr hdr, enum agreed agreed, bool host,
		 struct nvme_tcp_shape *shape, struct nvme_tcp_fault *fault)
{
	struct nvme_tcp_rules of_side = rules[agreed];

	of_side.host = host;
	hdr.plen = cpu_to_le32((__force_cast uint32_t)hdr.plen);
	memset(shape, 0xa5, sizeof(*shape));
	memset(fault, 0xa5, sizeof(*fault));
	return nvme_tcp_check_hdr(&hdr, &of_side, shape, fault);
}

static void check_accepted(const struct acceptance *cases, size_t count, bool host)
{
	for (size_t i = 0; i < count; i++) {
		const struct nvme_tcp_shape *want = &cases[i].shape;
		struct nvme_tcp_fault fault;
		struct nvme_tcp_shape got;

		running_row("accepted", i, cases[i].name);
		if (check(cases[i].hdr, cases[i].agreed, host, &got, &fault) < 0)
			fail_msg("%s: refused: %s", cases[i].name, fault.why);
		if (got.header != want->header || got.data_at != want->data_at ||
		    got.data_len != want->data_len || got.ddgst != want->ddgst)
			fail_msg("%s: header %u, data %u at %u, ddgst %d", cases[i].name,
				 got.header, got.data_len, got.data_at, got.ddgst);
	}
	running_no_row("accepted");
}

static void check_refused(const struct refusal *cases, size_t count, bool host)
{
	for (size_t i = 0; i < count; i++) {
		struct nvme_tcp_fault fault;
		struct nvme_tcp_shape shape;

		running_row("refused", i, cases[i].name);
		if (check(cases[i].hdr, cases[i].agreed, host, &shape, &fault) != -EPROTO)
			fail_msg("%s: accepted", cases[i].name);
		if (fault.fes != cases[i].fes || fault.fei != cases[i].fei || !fault.why)
			fail_msg("%s: FES %u, FEI %u", cases[i].name, fault.fes, fault.fei);
	}
	running_no_row("refused");
}

static void header_accepted(void **state)
{
	check_accepted(accepted, COUNT(accepted), false);
	check_accepted(accepted_by_host, COUNT(accepted_by_host), true);
}

static void header_refused(void **state)
{
	check_refused(refused, COUNT(refused), false);
	check_refused(refused_by_host, COUNT(refused_by_host), true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_accepted),
		cmocka_unit_test(header_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
