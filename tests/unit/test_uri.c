/* test_uri.c - addresses and names, good and bad, each with the exact sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/uri.h"
#include "running.h"

#define NQN     "nqn.2026-11.io.weft:default"
#define TEN     "xxxxxxxxxx"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/* --- addresses -------------------------------------------------------------------------------- */

static const struct {
	const char *text, *again, *nqn;
	bool loopback, wildcard;
} good_uris[] = {
	{ "nvme+tcp://127.0.0.1:4420", "nvme+tcp://127.0.0.1:4420", "", true, false },
	{ "nvme+tcp://127.0.0.1", "nvme+tcp://127.0.0.1:4420", "", true, false },
	{ "nvme+tcp://127.0.0.1/", "nvme+tcp://127.0.0.1:4420", "", true, false },
	{ "NVMe+TCP://127.8.9.1:1", "nvme+tcp://127.8.9.1:1", "", true, false },
	{ "nvme+tcp://localhost:0", "nvme+tcp://127.0.0.1:0", "", true, false },
	{ "nvme+tcp://0.0.0.0:65535", "nvme+tcp://0.0.0.0:65535", "", false, true },
	{ "nvme+tcp://192.168.1.20:8009", "nvme+tcp://192.168.1.20:8009", "", false, false },
	{ "nvme+tcp://128.0.0.1", "nvme+tcp://128.0.0.1:4420", "", false, false },
	{ "nvme+tcp://[::1]", "nvme+tcp://[::1]:4420", "", true, false },
	{ "nvme+tcp://[::1]:1234", "nvme+tcp://[::1]:1234", "", true, false },
	{ "nvme+tcp://[::]:4420", "nvme+tcp://[::]:4420", "", false, true },
	{ "nvme+tcp://[2001:DB8:0::1]:4420", "nvme+tcp://[2001:db8::1]:4420", "", false, false },
	{ "nvme+tcp://[::ffff:127.0.0.1]", "nvme+tcp://[::ffff:127.0.0.1]:4420", "", true, false },
	{ "nvme+tcp://[::ffff:0.0.0.0]", "nvme+tcp://[::ffff:0.0.0.0]:4420", "", false, true },
	{ "nvme+tcp://127.0.0.1:4420/" NQN, "nvme+tcp://127.0.0.1:4420", NQN, true, false },
	{ "nvme+tcp://[::1]/" NQN, "nvme+tcp://[::1]:4420", NQN, true, false },
	{ "nvme+tcp://[::1]/testnqn", "nvme+tcp://[::1]:4420", "testnqn", true, false },
	{ "nvme+tcp://[::1]/a%3Fb%25%2c c/d,e", "nvme+tcp://[::1]:4420", "a?b%, c/d,e", true,
	  false },
	{ "nvme+rdma://192.0.2.1", "nvme+rdma://192.0.2.1:4420", "", false, false },
	{ "nvme+rdma://[2001:db8::1]:1/" NQN, "nvme+rdma://[2001:db8::1]:1", NQN, false, false },
};

static void uri_good(void **state)
{
	char again[WEFT_URI_MAX];
	struct weft_uri uri;

	for_each_named(i, good_uris, text) {
		struct weft_err err = { "" };

		if (weft_uri_parse(good_uris[i].text, &uri, &err) < 0)
			fail_msg("%s: %s", good_uris[i].text, err.text);
		weft_uri_format(uri.trtype, &uri.addr, again, sizeof(again));
		assert_string_equal(again, good_uris[i].again);
		assert_string_equal(uri.nqn, good_uris[i].nqn);
		if (weft_addr_is_loopback(&uri.addr) != good_uris[i].loopback ||
		    weft_addr_is_wildcard(&uri.addr) != good_uris[i].wildcard)
			fail_msg("%s: loopback or wildcard", good_uris[i].text);
	}
}

#define PORT_EXPECTED   "expected a port from 1 to 65535, got "
#define PORTID_EXPECTED "expected a portid from 1 to 65535, got "
#define QUERY_EXPECTED  "query words other than portid=N are not understood here: "

static const struct {
	const char *text, *why;
} bad_uris[] = {
	{ "", "expected nvme+tcp://ADDRESS:PORT or nvme+rdma://…, got \"\"" },
	{ "127.0.0.1:4420",
	  "expected nvme+tcp://ADDRESS:PORT or nvme+rdma://…, got \"127.0.0.1:4420\"" },
	{ "tcp://127.0.0.1",
	  "expected nvme+tcp://ADDRESS:PORT or nvme+rdma://…, got \"tcp://127.0.0.1\"" },
	{ "nvme+tcp:127.0.0.1",
	  "expected nvme+tcp://ADDRESS:PORT or nvme+rdma://…, got \"nvme+tcp:127.0.0.1\"" },
	{ "nvme+tcp://", "no address after the \"//\"" },
	{ "nvme+tcp://:4420", "no address after the \"//\"" },
	{ "nvme+tcp:///" NQN, "no address after the \"//\"" },
	{ "nvme+tcp://example.com",
	  "\"example.com\" is not a numeric address, and names other than "
	  "localhost are not looked up" },
	{ "nvme+tcp://127.1", "\"127.1\" is not a numeric address, and names other than localhost "
			      "are not looked up" },
	{ "nvme+tcp://127.0.0.1:", PORT_EXPECTED "\"\"" },
	{ "nvme+tcp://127.0.0.1:x", PORT_EXPECTED "\"x\"" },
	{ "nvme+tcp://127.0.0.1:-1", PORT_EXPECTED "\"-1\"" },
	{ "nvme+tcp://127.0.0.1:65536", PORT_EXPECTED "\"65536\"" },
	{ "nvme+tcp://127.0.0.1:000080", PORT_EXPECTED "\"000080\"" },
	{ "nvme+tcp://[::1]:99999", PORT_EXPECTED "\"99999\"" },
	{ "nvme+tcp://::1", "an IPv6 address goes in brackets: nvme+tcp://[::1]:4420" },
	{ "nvme+tcp://[::1", "no \"]\" after the IPv6 address \"::1\"" },
	{ "nvme+tcp://[::g]", "\"::g\" is not an IPv6 address" },
	{ "nvme+tcp://[127.0.0.1]", "\"127.0.0.1\" is not an IPv6 address" },
	{ "nvme+tcp://[::1]4420", "expected \":PORT\" after \"]\", got \"4420\"" },
	{ "nvme+tcp://127.0.0.1?", QUERY_EXPECTED "\"?\"" },
	{ "nvme+tcp://127.0.0.1?hdgst=1", QUERY_EXPECTED "\"?hdgst=1\"" },
	{ "nvme+tcp://127.0.0.1/" NQN "?nsid=1", QUERY_EXPECTED "\"?nsid=1\"" },
	{ "nvme+tcp://127.0.0.1?portid=", PORTID_EXPECTED "\"\"" },
	{ "nvme+tcp://127.0.0.1?portid=0", PORTID_EXPECTED "\"0\"" },
	{ "nvme+tcp://127.0.0.1?portid=65536", PORTID_EXPECTED "\"65536\"" },
	{ "nvme+tcp://127.0.0.1?portid=1&portid=2", PORTID_EXPECTED "\"1&portid=2\"" },
	{ "nvme+tcp://127.0.0.1/50%", "expected two hexadecimal digits behind \"%\", got \"\"" },
	{ "nvme+tcp://127.0.0.1/50%off",
	  "expected two hexadecimal digits behind \"%\", got \"of\"" },
	{ "nvme+tcp://127.0.0.1/a%00b", "\"%00\" cannot be part of a name" },
	{ "nvme+tcp://127.0.0.1/a%0Ab", "an NQN is printable UTF-8" },
	{ "nvme+tcp://127.0.0.1/%ff", "an NQN is printable UTF-8" },
	{ "nvme+tcp://127.0.0.1/" HUNDRED HUNDRED TEN TEN "%41123",
	  "an NQN has at most 223 bytes, this one has 224" },
	{ "nvme+tcp://" HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED,
	  "an address has fewer than 512 characters" },
};

static void uri_bad(void **state)
{
	struct weft_uri uri;

	for_each_named(i, bad_uris, text) {
		struct weft_err err = { "" };

		if (!weft_uri_parse(bad_uris[i].text, &uri, &err))
			fail_msg("%s: accepted", bad_uris[i].text);
		assert_string_equal(err.text, bad_uris[i].why);
	}
}

static const struct {
	const char *a, *b;
	bool equal;
} pairs[] = {
	{ "nvme+tcp://127.0.0.1", "nvme+tcp://localhost:4420", true },
	{ "nvme+tcp://127.0.0.1", "nvme+tcp://127.0.0.1:4421", false },
	{ "nvme+tcp://127.0.0.1", "nvme+tcp://127.0.0.2", false },
	{ "nvme+tcp://127.0.0.1", "nvme+tcp://[::1]", false },
	{ "nvme+tcp://[::1]", "nvme+tcp://[0::1]:4420", true },
	{ "nvme+tcp://[::1]", "nvme+tcp://[::2]", false },
};

static void addresses_equal(void **state)
{
	struct weft_uri a, b;

	for_each_named(i, pairs, a) {
		assert_int_equal(weft_uri_parse(pairs[i].a, &a, NULL), 0);
		assert_int_equal(weft_uri_parse(pairs[i].b, &b, NULL), 0);
		if (weft_addr_equal(&a.addr, &b.addr) != pairs[i].equal)
			fail_msg("%s and %s", pairs[i].a, pairs[i].b);
	}
}

/* --- names ------------------------------------------------------------------------------------ */

#define UUID_FORM "nqn.2014-08.org.nvmexpress:uuid:"

static const char *const good_nqns[] = {
	NQN,
	"nqn.2014-08.org.nvmexpress.discovery",
	UUID_FORM "2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3b",
	UUID_FORM "2F1C3B7E-52A4-4C0E-9D3A-6B8F0E1D2C3B",
	"nqn.2014-08.com.example",
	"nqn.2014-08.com.example:a:b c/d",
	"nqn.2014-08.com.ex-ample:\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80",
	"nqn.2014-08.com.example:" HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN
	"xxxxxxxxx", /* 223 */
};

static void nqn_good(void **state)
{
	for_each_row(i, good_nqns) {
		struct weft_err err = { "" };

		if (weft_nqn_check(good_nqns[i], &err) < 0)
			fail_msg("%s: %s", good_nqns[i], err.text);
	}
}

#define NQN_EXPECTED  "expected an NQN such as nqn.2026-11.com.example:disks, got "
#define UUID_EXPECTED "expected a UUID after \"" UUID_FORM "\", got "

static const struct {
	const char *nqn, *why;
} bad_nqns[] = {
	{ "", NQN_EXPECTED "\"\"" },
	{ "nqn", NQN_EXPECTED "\"nqn\"" },
	{ "iqn.2014-08.com.example", NQN_EXPECTED "\"iqn.2014-08.com.example\"" },
	{ "NQN.2014-08.com.example", NQN_EXPECTED "\"NQN.2014-08.com.example\"" },
	{ "nqn.2014-8.com.example", NQN_EXPECTED "\"nqn.2014-8.com.example\"" },
	{ "nqn.2014-00.com.example", NQN_EXPECTED "\"nqn.2014-00.com.example\"" },
	{ "nqn.2014-13.com.example", NQN_EXPECTED "\"nqn.2014-13.com.example\"" },
	{ "nqn.2014-08", NQN_EXPECTED "\"nqn.2014-08\"" },
	{ "nqn.2014-08.", NQN_EXPECTED "\"nqn.2014-08.\"" },
	{ "nqn.2014-08.:x", NQN_EXPECTED "\"nqn.2014-08.:x\"" },
	{ "nqn.2014-08.com..example", NQN_EXPECTED "\"nqn.2014-08.com..example\"" },
	{ "nqn.2014-08.com.:x", NQN_EXPECTED "\"nqn.2014-08.com.:x\"" },
	{ "nqn.2014-08.com.example:", NQN_EXPECTED "\"nqn.2014-08.com.example:\"" },
	{ "nqn.2014-08.com.exa mple:x", NQN_EXPECTED "\"nqn.2014-08.com.exa mple:x\"" },
	{ UUID_FORM, UUID_EXPECTED "\"\"" },
	{ UUID_FORM "x", UUID_EXPECTED "\"x\"" },
	{ UUID_FORM "2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3bb",
	  UUID_EXPECTED "\"2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3bb\"" },
	{ "nqn.2014-08.com.example:\n", "an NQN is printable UTF-8" },
	{ "nqn.2014-08.com.example:\x7f", "an NQN is printable UTF-8" },
	{ "nqn.2014-08.com.example:\xff", "an NQN is printable UTF-8" },
	{ "nqn.2014-08.com.example:\xc3", "an NQN is printable UTF-8" },
	{ "nqn.2014-08.com.example:\xc0\xaf", "an NQN is printable UTF-8" },     /* overlong */
	{ "nqn.2014-08.com.example:\xed\xa0\x80", "an NQN is printable UTF-8" }, /* surrogate */
	{ "nqn.2014-08.com.example:\xf4\x90\x80\x80", "an NQN is printable UTF-8" },
	{ "nqn.2014-08.com.example:" HUNDRED HUNDRED,
	  "an NQN has at most 223 bytes, this one has 224" },
};

static void nqn_bad(void **state)
{
	for_each_named(i, bad_nqns, nqn) {
		struct weft_err err = { "" };

		if (!weft_nqn_check(bad_nqns[i].nqn, &err))
			fail_msg("%s: accepted", bad_nqns[i].nqn);
		assert_string_equal(err.text, bad_nqns[i].why);
	}
}

/* A subsystem may be called anything that can be shown, as Linux' target has it. */
static void nqn_of_a_subsystem(void **state)
{
	for_each_named(i, bad_nqns, nqn) {
		struct weft_err err = { "" };
		bool form = strstr(bad_nqns[i].why, "expected") && bad_nqns[i].nqn[0];
		int rc = weft_subnqn_check(bad_nqns[i].nqn, &err);

		assert_int_equal(rc, form ? 0 : -EINVAL);
		assert_string_equal(err.text, form ? "" : bad_nqns[i].why);
	}
}

static const struct {
	const char *nqn, *text;
} written[] = {
	{ NQN, NQN },
	{ "testnqn", "testnqn" },
	{ "a?b,c%41 d/e", "a%3Fb%2Cc%2541 d/e" },
	{ "\xc3\xbc", "\xc3\xbc" },
};

static void nqn_in_a_uri(void **state)
{
	char text[WEFT_NQN_TEXT_MAX + 1], uri[sizeof(text) + 32];
	struct weft_uri_parts parts;

	for_each_named(i, written, nqn) {
		weft_nqn_text(written[i].nqn, text);
		assert_string_equal(text, written[i].text);
		snprintf(uri, sizeof(uri), "nvme+tcp://127.0.0.1/%s", text);
		assert_int_equal(weft_uri_split(uri, &parts, NULL), 0);
		assert_string_equal(parts.nqn, written[i].nqn);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uri_good),        cmocka_unit_test(uri_bad),
		cmocka_unit_test(addresses_equal), cmocka_unit_test(nqn_good),
		cmocka_unit_test(nqn_bad),         cmocka_unit_test(nqn_of_a_subsystem),
		cmocka_unit_test(nqn_in_a_uri),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
