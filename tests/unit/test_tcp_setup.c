/* test_tcp_setup.c - ICReq, ICResp and digests, as tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "proto/tcp.h"
#include "running.h"

/* --- ICReq ------------------------------------------------------------------------------------ */

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
	for_each_row(i, icreqs) {
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

/* --- ICResp ----------------------------------------------------------------------------------- */

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
	for_each_row(i, icresps) {
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

	for_each_named(i, cases, text)
		assert_string_equal(nvme_tcp_type_text(cases[i].type), cases[i].text);
}

/* --- digests ---------------------------------------------------------------------------------- */

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
	for_each_row(i, digests)
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

/* What is copied is all there is, and nothing beyond it; whole pieces, and parts of one. */
static void digest_of_a_copy(void **state)
{
	static const size_t lengths[] = { 0, 1, 512, 8191, 8192, 8193, 20000 };
	static char from[20000], to[20001];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i * 37 + i / 7);
	for_each_row(i, lengths) {
		memset(to, 0x5a, sizeof(to));
		assert_int_equal(nvme_tcp_crc_copy(to, from, lengths[i]),
				 nvme_tcp_crc(0, from, lengths[i]));
		assert_memory_equal(to, from, lengths[i]);
		assert_int_equal(to[lengths[i]], 0x5a);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(icreq),
		cmocka_unit_test(icresp),
		cmocka_unit_test(fes_text),
		cmocka_unit_test(type_text),
		cmocka_unit_test(digest),
		cmocka_unit_test(digest_in_pieces),
		cmocka_unit_test(digest_of_a_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
