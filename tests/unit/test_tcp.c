/* test_tcp.c - what makes a PDU acceptable, digests, statuses and directions, as tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "proto/status.h"
#include "proto/tcp.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* --- the common header -------------------------------------------------------------------- */

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

		if (check(cases[i].hdr, cases[i].agreed, host, &got, &fault) < 0)
			fail_msg("%s: refused: %s", cases[i].name, fault.why);
		if (got.header != want->header || got.data_at != want->data_at ||
		    got.data_len != want->data_len || got.ddgst != want->ddgst)
			fail_msg("%s: header %u, data %u at %u, ddgst %d", cases[i].name,
				 got.header, got.data_len, got.data_at, got.ddgst);
	}
}

static void check_refused(const struct refusal *cases, size_t count, bool host)
{
	for (size_t i = 0; i < count; i++) {
		struct nvme_tcp_fault fault;
		struct nvme_tcp_shape shape;

		if (check(cases[i].hdr, cases[i].agreed, host, &shape, &fault) != -EPROTO)
			fail_msg("%s: accepted", cases[i].name);
		if (fault.fes != cases[i].fes || fault.fei != cases[i].fei || !fault.why)
			fail_msg("%s: FES %u, FEI %u", cases[i].name, fault.fes, fault.fei);
	}
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

/* --- ICReq -------------------------------------------------------------------------------- */

static const struct {
	uint16_t pfv;
	uint8_t hpda, dgst;
	uint32_t maxr2t;
	uint16_t fes; /* 0: accepted */
	uint32_t fei;
} icreqs[] = {
	{ 0, 0, 0, 0, 0, 0 },
	{ 0, 31, 3, UINT32_MAX, 0, 0 },
	{ 0, 1, 0xff, 16, 0, 0 },
	{ 1, 0, 0, 0, NVME_TCP_FES_UNSUPPORTED, 8 },
	{ 0x100, 0, 0, 0, NVME_TCP_FES_UNSUPPORTED, 8 },
	{ 1, 32, 0, 0, NVME_TCP_FES_UNSUPPORTED, 8 },
	{ 0, 32, 0, 0, NVME_TCP_FES_FIELD, 10 },
	{ 0, 255, 0, 0, NVME_TCP_FES_FIELD, 10 },
};

static void icreq(void **state)
{
	for (size_t i = 0; i < COUNT(icreqs); i++) {
		struct nvme_tcp_icreq pdu = {
			.pfv = cpu_to_le16(icreqs[i].pfv),
			.hpda = icreqs[i].hpda,
			.dgst = icreqs[i].dgst,
			.maxr2t = cpu_to_le32(icreqs[i].maxr2t),
		};
		struct nvme_tcp_fault fault = { 0 };
		int rc = nvme_tcp_check_icreq(&pdu, &fault);

		if (rc != (icreqs[i].fes ? -EPROTO : 0) || fault.fes != icreqs[i].fes ||
		    fault.fei != icreqs[i].fei || !fault.why != !icreqs[i].fes)
			fail_msg("case %zu: %d, FES %u, FEI %u", i, rc, fault.fes, fault.fei);
	}
}

/* --- ICResp ------------------------------------------------------------------------------- */

static const struct {
	uint16_t pfv;
	uint8_t cpda, dgst;
	uint32_t maxh2cdata;
	uint16_t fes; /* 0: accepted */
	uint32_t fei;
} icresps[] = {
	{ 0, 0, 0, 4096, 0, 0 },
	{ 0, 31, 3, UINT32_MAX, 0, 0 },
	{ 0, 7, 0, 4097, 0, 0 },
	{ 1, 0, 0, 4096, NVME_TCP_FES_UNSUPPORTED, 8 },
	{ 0x100, 32, 0, 0, NVME_TCP_FES_UNSUPPORTED, 8 },
	{ 0, 32, 0, 4096, NVME_TCP_FES_FIELD, 10 },
	{ 0, 255, 0, 0, NVME_TCP_FES_FIELD, 10 },
	{ 0, 0, 0, 4095, NVME_TCP_FES_FIELD, 12 },
	{ 0, 0, 0, 0, NVME_TCP_FES_FIELD, 12 },
};

static void icresp(void **state)
{
	for (size_t i = 0; i < COUNT(icresps); i++) {
		struct nvme_tcp_icresp pdu = {
			.pfv = cpu_to_le16(icresps[i].pfv),
			.cpda = icresps[i].cpda,
			.dgst = icresps[i].dgst,
			.maxh2cdata = cpu_to_le32(icresps[i].maxh2cdata),
		};
		struct nvme_tcp_fault fault = { 0 };
		int rc = nvme_tcp_check_icresp(&pdu, &fault);

		if (rc != (icresps[i].fes ? -EPROTO : 0) || fault.fes != icresps[i].fes ||
		    fault.fei != icresps[i].fei || !fault.why != !icresps[i].fes)
			fail_msg("case %zu: %d, FES %u, FEI %u", i, rc, fault.fes, fault.fei);
	}
}

static void fes_text(void **state)
{
	assert_string_equal(nvme_tcp_fes_text(NVME_TCP_FES_FIELD), "invalid PDU header field");
	assert_string_equal(nvme_tcp_fes_text(NVME_TCP_FES_UNSUPPORTED), "unsupported parameter");
	assert_string_equal(nvme_tcp_fes_text(0), "unknown reason");
	assert_string_equal(nvme_tcp_fes_text(7), "unknown reason");
	assert_string_equal(nvme_tcp_fes_text(UINT16_MAX), "unknown reason");
}

static void type_text(void **state)
{
	static const struct {
		uint8_t type;
		const char *text;
	} cases[] = {
		{ NVME_TCP_ICREQ, "ICReq" },    { NVME_TCP_H2C_TERM, "H2CTermReq" },
		{ NVME_TCP_CMD, "CapsuleCmd" }, { NVME_TCP_H2C_DATA, "H2CData" },
		{ NVME_TCP_ICRESP, "ICResp" },  { NVME_TCP_R2T, "R2T" },
		{ 8, "unknown PDU" },           { 255, "unknown PDU" },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(nvme_tcp_type_text(cases[i].type), cases[i].text);
}

/* --- digests ------------------------------------------------------------------------------ */

static uint8_t zeroes[32], ones[32], up[32], down[32];

/* RFC 3720, B.4; the last is the check value of the polynomial's catalogue. */
static const uint8_t read_command[48] = {
	0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
	0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0,
};

static const struct {
	const void *data;
	size_t len;
	uint32_t crc;
} digests[] = {
	{ zeroes, 32, 0x8a9136aa },
	{ ones, 32, 0x62a8ab43 },
	{ up, 32, 0x46dd794e },
	{ down, 32, 0x113fdb5c },
	{ read_command, 48, 0xd9963a56 },
	{ "123456789", 9, 0xe3069283 },
	{ "", 0, 0 },
};

static void digest(void **state)
{
	memset(ones, 0xff, sizeof(ones));
	for (uint8_t i = 0; i < 32; i++) {
		up[i] = i;
		down[i] = 31 - i;
	}
	for (size_t i = 0; i < COUNT(digests); i++)
		assert_int_equal(nvme_tcp_crc(0, digests[i].data, digests[i].len), digests[i].crc);
}

/* Cut anywhere, and at any address, it is the same. */
static void digest_in_pieces(void **state)
{
	uint8_t data[300];
	uint32_t whole, crc;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + i / 7);
	for (size_t start = 0; start < 9; start++) {
		whole = nvme_tcp_crc(0, data + start, sizeof(data) - start);
		for (size_t cut = start; cut <= sizeof(data); cut++) {
			crc = nvme_tcp_crc(0, data + start, cut - start);
			crc = nvme_tcp_crc(crc, data + cut, sizeof(data) - cut);
			assert_int_equal(crc, whole);
		}
	}
	crc = 0;
	for (size_t i = 0; i < sizeof(data); i++)
		crc = nvme_tcp_crc(crc, &data[i], 1);
	assert_int_equal(crc, nvme_tcp_crc(0, data, sizeof(data)));
}

/* --- statuses ----------------------------------------------------------------------------- */

#define DNR 0x4000

static void status_from_errno(void **state)
{
	static const struct {
		int rc;
		uint16_t status;
	} cases[] = {
		{ 0, 0 },
		{ -ENOSPC, 0x81 | DNR },
		{ -EDQUOT, 0x81 | DNR },
		{ -EFBIG, 0x81 | DNR },
		{ -EROFS, 0x20 | DNR },
		{ -EOPNOTSUPP, 0x01 | DNR },
		{ -ENOMEM, 0x06 },
		{ -EAGAIN, 0x06 },
		{ -EIO, 0x06 | DNR },
		{ -EINVAL, 0x06 | DNR },
		{ -ENODEV, 0x06 | DNR },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		if (weft_status_from_errno(cases[i].rc) != cases[i].status)
			fail_msg("%s: %#x", strerror(-cases[i].rc),
				 weft_status_from_errno(cases[i].rc));
}

static void status_text(void **state)
{
	static const struct {
		uint16_t status;
		const char *text;
	} cases[] = {
		{ 0x000, "success" },
		{ 0x001, "invalid opcode" },
		{ 0x001 | DNR, "invalid opcode" },
		{ 0x080 | DNR, "LBA out of range" },
		{ 0x182 | DNR, "connect: invalid parameters" },
		{ 0x285 | DNR, "compare failure" },
		{ 0x082, "namespace not ready" },
		{ 0x015, "operation denied" },
		{ 0x191, "authentication required" },
		{ 0x303, "asymmetric access in transition" },
		{ 0x7ff, "unknown status" },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(weft_status_text(cases[i].status), cases[i].text);
}

/* From 0x180 on the same status means one thing of Connect and another of a Write. */
static void io_status(void **state)
{
	static const struct {
		uint16_t status;
		int rc;
		const char *text;
	} cases[] = {
		{ 0x180, -EINVAL, "conflicting attributes" },
		{ 0x181, -EINVAL, "invalid protection information" },
		{ 0x182, -EROFS, "attempted write to a read-only range" },
		{ 0x183 | DNR, -EMSGSIZE, "command size limit exceeded" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(weft_io_status_to_errno(cases[i].status), cases[i].rc);
		assert_string_equal(weft_io_status_text(cases[i].status), cases[i].text);
	}
	for (uint16_t status = 0; status < 0x180; status++) {
		assert_int_equal(weft_io_status_to_errno(status), weft_status_to_errno(status));
		assert_ptr_equal(weft_io_status_text(status), weft_status_text(status));
	}
}

/* --- directions --------------------------------------------------------------------------- */

static void direction(void **state)
{
	static const struct {
		uint8_t opcode, fctype;
		enum nvme_direction direction;
	} cases[] = {
		{ nvme_cmd_flush, 0, NVME_DIR_NONE },
		{ nvme_cmd_write, 0, NVME_DIR_TO_CTRL },
		{ nvme_cmd_read, 0, NVME_DIR_TO_HOST },
		{ nvme_cmd_compare, 0, NVME_DIR_TO_CTRL },
		{ nvme_cmd_write_zeroes, 0, NVME_DIR_NONE },
		{ nvme_cmd_dsm, 0, NVME_DIR_TO_CTRL },
		{ nvme_cmd_copy, 0, NVME_DIR_TO_CTRL },
		{ nvme_admin_identify, 0, NVME_DIR_TO_HOST },
		{ nvme_admin_get_log_page, 0, NVME_DIR_TO_HOST },
		{ nvme_admin_abort_cmd, 0, NVME_DIR_NONE },
		{ nvme_admin_set_features, 0, NVME_DIR_TO_CTRL },
		{ nvme_admin_get_features, 0, NVME_DIR_TO_HOST },
		{ nvme_admin_async_event, 0, NVME_DIR_NONE },
		{ nvme_admin_keep_alive, 0, NVME_DIR_NONE },
		{ 0xff, 0, NVME_DIR_BOTH },
		{ NVME_FABRICS_OPCODE, NVMF_PROPERTY_SET, NVME_DIR_NONE },
		{ NVME_FABRICS_OPCODE, NVMF_CONNECT, NVME_DIR_TO_CTRL },
		{ NVME_FABRICS_OPCODE, NVMF_PROPERTY_GET, NVME_DIR_NONE },
		{ NVME_FABRICS_OPCODE, NVMF_DISCONNECT, NVME_DIR_NONE },
		{ NVME_FABRICS_OPCODE, 0x06, NVME_DIR_TO_HOST },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		union nvme_sqe sqe = { .connect.opcode = cases[i].opcode,
				       .connect.fctype = cases[i].fctype };

		if (nvme_cmd_direction(&sqe) != cases[i].direction)
			fail_msg("opcode %#x, type %#x: %u", cases[i].opcode, cases[i].fctype,
				 nvme_cmd_direction(&sqe));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_accepted),
		cmocka_unit_test(header_refused),
		cmocka_unit_test(icreq),
		cmocka_unit_test(icresp),
		cmocka_unit_test(fes_text),
		cmocka_unit_test(type_text),
		cmocka_unit_test(digest),
		cmocka_unit_test(digest_in_pieces),
		cmocka_unit_test(status_from_errno),
		cmocka_unit_test(status_text),
		cmocka_unit_test(io_status),
		cmocka_unit_test(direction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
