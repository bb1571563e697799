/* test_host_config.c - what a connection asks for: the program's options, the URI's words, good and
 * bad, each with the exact sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/internal.h"
#include "running.h"

#define BASE    "nvme+tcp://192.0.2.1:4420/nqn.2026-11.io.weft:a"
#define HOSTNQN "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-cdef-0123-456789abcdef"
#define HOSTID  "01234567-89ab-cdef-0123-456789abcdef"

static int parse(const char *words, const struct weft_options *options, struct host_config *config,
		 struct weft_err *err)
{
	struct weft_uri_parts parts;
	char uri[WEFT_URI_MAX];

	snprintf(uri, sizeof(uri), BASE "%s", words);
	assert_int_equal(weft_uri_split(uri, &parts, NULL), 0);
	return host_config_parse(&parts, "", options, config, err);
}

static void defaults(void **state)
{
	struct weft_err err = { "" };
	struct host_config config;
	struct weft_options options;

	weft_options_init(&options);
	assert_int_equal(parse("", NULL, &config, &err), 0);
	assert_memory_equal(&config.options, &options, sizeof(options));
	assert_string_equal(config.subnqn, "nqn.2026-11.io.weft:a");
	assert_int_equal(weft_nqn_check(config.hostnqn, NULL), 0);
	assert_int_equal(config.nsid, 0);
	assert_string_equal(err.text, "");
}

static void discovery_service(void **state)
{
	struct weft_uri_parts parts;
	struct host_config config;

	assert_int_equal(weft_uri_split("nvme+tcp://192.0.2.1", &parts, NULL), 0);
	assert_int_equal(host_config_parse(&parts, "", NULL, &config, NULL), 0);
	assert_string_equal(config.subnqn, NVME_NQN_DISCOVERY);
}

/* A name may hold what looks like a word. */
static void words_given(void **state)
{
	struct weft_uri_parts parts;
	struct host_config config;

	assert_int_equal(weft_uri_split(BASE "fast_io_fail=1?depth=4&nsid=1", &parts, NULL), 0);
	assert_int_equal(host_config_parse(&parts, "kato=1s", NULL, &config, NULL), 0);
	assert_true(host_config_has(&config, "depth"));
	assert_true(host_config_has(&config, "nsid"));
	assert_true(host_config_has(&config, "kato"));
	assert_false(host_config_has(&config, "fast_io_fail"));
	assert_int_equal(parse("?fast_io_fail=0", NULL, &config, NULL), 0);
	assert_true(host_config_has(&config, "fast_io_fail"));
}

/* --- words ------------------------------------------------------------------------------------ */

#define OPTION(field) offsetof(struct host_config, options.field)
#define NSID          offsetof(struct host_config, nsid)

static const struct {
	const char *words;
	size_t offset;
	uint32_t value;
} numbers[] = {
	{ "?queues=1", OPTION(queues), 1 },
	{ "?queues=1024", OPTION(queues), 1024 },
	{ "?depth=4096", OPTION(depth), 4096 },
	{ "?depth=8&kato=1s&depth=8", OPTION(depth), 8 },
	{ "?kato=5s&kato=5000ms", OPTION(keepalive_ms), 5000 },
	{ "?depth=007", OPTION(depth), 7 },
	{ "?nsid=1", NSID, 1 },
	{ "?nsid=4294967294", NSID, 4294967294 },
	{ "?hdgst=1&nsid=3&ddgst=0", NSID, 3 },
	{ "?kato=0", OPTION(keepalive_ms), 0 },
	{ "?kato=5", OPTION(keepalive_ms), 5000 },
	{ "?kato=5s", OPTION(keepalive_ms), 5000 },
	{ "?kato=5ms", OPTION(keepalive_ms), 5 },
	{ "?kato=2m", OPTION(keepalive_ms), 120000 },
	{ "?kato=60m", OPTION(keepalive_ms), 3600000 },
	{ "?connect_timeout=1ms", OPTION(connect_ms), 1 },
	{ "?admin_timeout=3s", OPTION(admin_ms), 3000 },
	{ "?io_timeout=3s", OPTION(io_ms), 3000 },
	{ "?abort_timeout=3s", OPTION(abort_ms), 3000 },
	{ "?reconnect_delay=10ms", OPTION(reconnect_ms), 10 },
	{ "?reconnect_delay_max=1m", OPTION(reconnect_max_ms), 60000 },
	{ "?fast_io_fail=5s", OPTION(fast_io_fail_ms), 5000 },
	{ "?probe=0", OPTION(probe_ms), 0 },
	{ "?probe=50ms", OPTION(probe_ms), 50 },
	{ "?policy=queue-depth", OPTION(policy), WEFT_QUEUE_DEPTH },
	{ "?policy=round-robin", OPTION(policy), WEFT_ROUND_ROBIN },
	{ "?policy=latency", OPTION(policy), WEFT_LATENCY },
	{ "?resend=idempotent", OPTION(resend), WEFT_RESEND_IDEMPOTENT },
	{ "?resend=never", OPTION(resend), WEFT_RESEND_NEVER },
	{ "?paths=given", OPTION(paths), WEFT_PATHS_GIVEN },
	{ "?paths=discover", OPTION(paths), WEFT_PATHS_DISCOVER },
	{ "?discovery_timeout=1ms", OPTION(discovery_ms), 1 },
	{ "?discovery_entries=65536", OPTION(discovery_entries), 65536 },
	{ "?discovery_services=1", OPTION(discovery_services), 1 },
	{ "?loss_timeout=0", OPTION(loss_ms), 0 },
	{ "?loss_timeout=4294967295ms", OPTION(loss_ms), UINT32_MAX },
};

static void good_numbers(void **state)
{
	for_each_named(i, numbers, words) {
		struct weft_err err = { "" };
		struct host_config config;
		uint32_t got;

		if (parse(numbers[i].words, NULL, &config, &err) < 0)
			fail_msg("%s: %s", numbers[i].words, err.text);
		memcpy(&got, (char *)&config + numbers[i].offset, sizeof(got));
		if (got != numbers[i].value)
			fail_msg("%s: %u", numbers[i].words, got);
	}
}

static const struct {
	const char *words;
	bool hdgst, ddgst;
} switches[] = {
	{ "?hdgst", true, false },
	{ "?ddgst", false, true },
	{ "?hdgst=1&ddgst", true, true },
	{ "?hdgst=1&hdgst", true, false },
	{ "?ddgst=0", false, false },
	{ "?hdgst=yes&ddgst=on", true, true },
	{ "?hdgst=no&ddgst=true", false, true },
	{ "?hdgst=off&ddgst=false", false, false },
	{ "?hdgst=yes&hdgst=1", true, false },
};

static void good_switches(void **state)
{
	for_each_named(i, switches, words) {
		struct host_config config;

		assert_int_equal(parse(switches[i].words, NULL, &config, NULL), 0);
		if (config.options.hdgst != switches[i].hdgst ||
		    config.options.ddgst != switches[i].ddgst)
			fail_msg("%s: %d, %d", switches[i].words, config.options.hdgst,
				 config.options.ddgst);
	}
}

static void identity(void **state)
{
	static const uint8_t hostid[16] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
					    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };
	struct host_config config, again;

	assert_int_equal(parse("?hostnqn=" HOSTNQN "&hostid=" HOSTID, NULL, &config, NULL), 0);
	assert_string_equal(config.hostnqn, HOSTNQN);
	assert_memory_equal(config.hostid, hostid, sizeof(hostid));
	/* What is made up is the same every time. */
	assert_int_equal(parse("", NULL, &config, NULL), 0);
	assert_int_equal(parse("", NULL, &again, NULL), 0);
	assert_string_equal(config.hostnqn, again.hostnqn);
	assert_memory_equal(config.hostid, again.hostid, sizeof(again.hostid));
}

#define WORDS                                                                                                             \
	"hdgst, ddgst, queues, depth, nsid, kato, connect_timeout, admin_timeout, io_timeout, "                           \
	"abort_timeout, reconnect_delay, reconnect_delay_max, loss_timeout, fast_io_fail, probe, policy, resend, paths, " \
	"discovery_timeout, discovery_entries, discovery_services, "                                                      \
	"tos, retry, rnr_retry, ack_timeout, inline, hostnqn, hostid, cpus"
#define YES_OR_NO "expected 1, yes, on or true; or 0, no, off or false"
#define TIME      " ms, such as 5s or 100ms"

#define NQN_EXPECTED                                                                          \
	"expected an NQN: nqn.YYYY-MM.DOMAIN:NAME, such as nqn.2026-11.com.example:host, or " \
	"nqn.2014-08.org.nvmexpress:uuid:UUID"

static const struct {
	const char *words, *sentence;
} bad[] = {
	{ "?speed=11", "\"?speed\" is not understood; there are " WORDS },
	{ "?", "" }, /* nothing to understand */
	{ "?&", "\"?\" is not understood; there are " WORDS },
	{ "?hdgst=1&", "\"?\" is not understood; there are " WORDS },
	{ "?=1", "\"?\" is not understood; there are " WORDS },
	{ "?HDGST=1", "\"?HDGST\" is not understood; there are " WORDS },
	{ "?hdgst=2", "hdgst=2: " YES_OR_NO },
	{ "?hdgst=Yes", "hdgst=Yes: " YES_OR_NO },
	{ "?hdgst=", "hdgst=: " YES_OR_NO },
	{ "?nsid=1&nsid=2", "nsid=2: nsid is given twice, with two values" },
	{ "?depth=7&depth=8&depth=7", "depth=8: depth is given twice, with two values" },
	{ "?hdgst=1&hdgst=0", "hdgst=0: hdgst is given twice, with two values" },
	{ "?hostnqn=" HOSTNQN "&hostnqn=nqn.2026-11.a:b",
	  "hostnqn=nqn.2026-11.a:b: hostnqn is given twice, with two values" },
	{ "?queues=0", "queues=0: expected a number from 1 to 1024" },
	{ "?queues=1025", "queues=1025: expected a number from 1 to 1024" },
	{ "?queues", "queues=: expected a number from 1 to 1024" },
	{ "?depth=0", "depth=0: expected a number from 1 to 4096" },
	{ "?depth=4097", "depth=4097: expected a number from 1 to 4096" },
	{ "?depth=-1", "depth=-1: expected a number from 1 to 4096" },
	{ "?depth= 1", "depth= 1: expected a number from 1 to 4096" },
	{ "?depth=+1", "depth=+1: expected a number from 1 to 4096" },
	{ "?depth=1k", "depth=1k: expected a number from 1 to 4096" },
	{ "?depth=18446744073709551617",
	  "depth=18446744073709551617: expected a number from 1 to 4096" },
	{ "?nsid=0", "nsid=0: expected a number from 1 to 4294967294" },
	{ "?nsid=4294967295", "nsid=4294967295: expected a number from 1 to 4294967294" },
	{ "?nsid=4294967297", "nsid=4294967297: expected a number from 1 to 4294967294" },
	{ "?kato=1h", "kato=1h: expected a time from 0 to 3600000" TIME },
	{ "?kato=61m", "kato=61m: expected a time from 0 to 3600000" TIME },
	{ "?kato=s", "kato=s: expected a time from 0 to 3600000" TIME },
	{ "?kato=1.5s", "kato=1.5s: expected a time from 0 to 3600000" TIME },
	{ "?connect_timeout=0", "connect_timeout=0: expected a time from 1 to 3600000" TIME },
	{ "?io_timeout=99999999999s",
	  "io_timeout=99999999999s: expected a time from 1 to 3600000" TIME },
	{ "?loss_timeout=4294967295s",
	  "loss_timeout=4294967295s: expected a time from 0 to 4294967295" TIME },
	{ "?policy=fast", "policy=fast: expected queue-depth, round-robin or latency" },
	{ "?policy", "policy=: expected queue-depth, round-robin or latency" },
	{ "?resend=always", "resend=always: expected idempotent or never" },
	{ "?cpus=x", "cpus=: expected CPUs such as 0-3,5, got \"x\"" },
	{ "?cpus=", "cpus=: expected CPUs such as 0-3,5, got \"\"" },
	{ "?cpus=5-3", "cpus=: expected CPUs such as 0-3,5, got \"5-3\"" },
	{ "?paths=all", "paths=all: expected given or discover" },
	{ "?discovery_services=65", "discovery_services=65: expected a number from 1 to 64" },
	{ "?discovery_timeout=0",
	  "discovery_timeout=0: expected a time from 1 to 3600000 ms, such as 5s or 100ms" },
	{ "?hostid=7", "hostid=7: expected a UUID" },
	{ "?hostid=" HOSTID "0", "hostid=" HOSTID "0: expected a UUID" },
	{ "?hostnqn=me", "hostnqn=me: " NQN_EXPECTED },
	{ "?hostnqn=", "hostnqn=: " NQN_EXPECTED },
	{ "?hostnqn=nqn.2014-08.org.nvmexpress:uuid:7",
	  "hostnqn=nqn.2014-08.org.nvmexpress:uuid:7: expected a UUID after "
	  "\"nqn.2014-08.org.nvmexpress:uuid:\", got \"7\"" },
};

static void bad_words(void **state)
{
	for_each_named(i, bad, words) {
		struct weft_err err = { "" };
		struct host_config config;
		int rc = parse(bad[i].words, NULL, &config, &err);

		if (rc != (*bad[i].sentence ? -EINVAL : 0) || strcmp(err.text, bad[i].sentence))
			fail_msg("%s: %d, %s", bad[i].words, rc, err.text);
	}
}

/* --- the program's options -------------------------------------------------------------------- */

static void words_win(void **state)
{
	struct weft_options options;
	struct host_config config;

	weft_options_init(&options);
	options.depth = 5;
	options.queues = 6;
	options.hdgst = true;
	options.hostnqn = "nqn.2026-11.io.weft:host";
	options.hostid = HOSTID;
	assert_int_equal(parse("?depth=9&hdgst=0&hostnqn=" HOSTNQN, &options, &config, NULL), 0);
	assert_int_equal(config.options.depth, 9);
	assert_int_equal(config.options.queues, 6);
	assert_false(config.options.hdgst);
	assert_string_equal(config.hostnqn, HOSTNQN);
	assert_int_equal(config.hostid[15], 0xef);
}

#define WRONG(field_, value_, sentence_)          \
	{                                         \
		OPTION(field_), value_, sentence_ \
	}

static const struct {
	size_t offset;
	uint32_t value;
	const char *sentence;
} wrong[] = {
	WRONG(queues, 0, "queues: expected 1 to 1024, got 0"),
	WRONG(queues, 1025, "queues: expected 1 to 1024, got 1025"),
	WRONG(depth, 0, "depth: expected 1 to 4096, got 0"),
	WRONG(keepalive_ms, 3600001, "kato: expected 0 to 3600000, got 3600001"),
	WRONG(connect_ms, 0, "connect_timeout: expected 1 to 3600000, got 0"),
	WRONG(admin_ms, 0, "admin_timeout: expected 1 to 3600000, got 0"),
	WRONG(io_ms, UINT32_MAX, "io_timeout: expected 1 to 3600000, got 4294967295"),
	WRONG(abort_ms, 0, "abort_timeout: expected 1 to 3600000, got 0"),
	WRONG(reconnect_ms, 0, "reconnect_delay: expected 1 to 3600000, got 0"),
	WRONG(reconnect_max_ms, 0, "reconnect_delay_max: expected 1 to 3600000, got 0"),
};

static void wrong_options(void **state)
{
	for_each_named(i, wrong, sentence) {
		struct weft_err err = { "" };
		struct host_config given, config;

		weft_options_init(&given.options);
		memcpy((char *)&given + wrong[i].offset, &wrong[i].value, sizeof(uint32_t));
		if (parse("", &given.options, &config, &err) != -EINVAL)
			fail_msg("accepted: %s", wrong[i].sentence);
		assert_string_equal(err.text, wrong[i].sentence);
	}
}

/* A program that was compiled with another libweft. */
static void options_of_another_version(void **state)
{
	struct {
		struct weft_options options;
		uint64_t more; /* than we know */
	} newer;
	struct weft_err err = { "" };
	struct host_config config;

	weft_options_init_size(&newer.options, offsetof(struct weft_options, discovery_ms));
	newer.options.depth = 5;
	newer.options.discovery_ms = 1; /* behind its end */
	assert_int_equal(parse("", &newer.options, &config, NULL), 0);
	assert_int_equal(config.options.depth, 5);
	assert_int_equal(config.options.discovery_ms, 60000);
	assert_int_equal(config.options.size, sizeof(config.options));

	newer.more = 7;
	weft_options_init_size(&newer.options, sizeof(newer));
	assert_int_equal(newer.more, 0);
	assert_int_equal(parse("", &newer.options, &config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "compiled with a newer libweft"));

	err.text[0] = '\0';
	newer.options.size = 0;
	assert_int_equal(parse("", &newer.options, &config, &err), -EINVAL);
	assert_string_equal(err.text, "the options were not made by weft_options_init()");
}

static void wrong_identity(void **state)
{
	struct weft_err err = { "" };
	struct weft_options options;
	struct host_config config;

	weft_options_init(&options);
	options.hostid = "me";
	assert_int_equal(parse("", &options, &config, &err), -EINVAL);
	assert_string_equal(err.text, "hostid=me: expected a UUID");
	err.text[0] = '\0';
	options.hostid = NULL;
	options.hostnqn = "me";
	assert_int_equal(parse("", &options, &config, &err), -EINVAL);
	assert_string_equal(err.text, "hostnqn=me: " NQN_EXPECTED);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static const struct {
	uint64_t blocks;
	uint8_t formats, current, shift;
	uint16_t metadata;
	int rc;
	const char *sentence;
} geometries[] = {
	{ 1, 0, 0, 9, 0, 0, "" },
	{ 1 << 20, 0, 0, 12, 0, 0, "" },
	{ 1 << 20, 3, 3, 16, 0, 0, "" },
	{ 1, 40, 0x20 | 1, 12, 0, 0, "" }, /* format 17 */
	{ (UINT64_MAX >> 1) >> 9, 0, 0, 9, 0, 0, "" },
	{ 0, 0, 0, 9, 0, -ENODEV, "there is no such namespace" },
	{ 1, 0, 1, 9, 0, -EPROTO, "it says it has format 1 of 0" },
	{ 1, 0, 0, 9, 8, -EOPNOTSUPP,
	  "its blocks have 8 bytes of metadata, which is not supported" },
	{ 1, 0, 0, 8, 0, -EPROTO, "it says its blocks have 2^8 bytes" },
	{ 1, 0, 0, 17, 0, -EPROTO, "it says its blocks have 2^17 bytes" },
	{ 1, 0, 0, 255, 0, -EPROTO, "it says its blocks have 2^255 bytes" },
	{ (UINT64_MAX >> 1) / 4096 + 1, 0, 0, 12, 0, -EPROTO,
	  "it says it has 2251799813685248 blocks" },
};

static void geometry(void **state)
{
	for_each_named(i, geometries, sentence) {
		uint8_t current = geometries[i].current;
		unsigned index = (current & 0xf) | (current >> 1 & 0x30), shift = 0;
		struct nvme_id_ns id = { .nsze = cpu_to_le64(geometries[i].blocks),
					 .nlbaf = geometries[i].formats,
					 .flbas = current };
		struct weft_err err = { "" };
		int rc;

		id.lbaf[index].ds = geometries[i].shift;
		id.lbaf[index].ms = cpu_to_le16(geometries[i].metadata);
		rc = host_ns_geometry(&id, &shift, &err);
		if (rc != geometries[i].rc || strcmp(err.text, geometries[i].sentence) ||
		    (!rc && shift != geometries[i].shift))
			fail_msg("case %zu: %d, shift %u, %s", i, rc, shift, err.text);
	}
}

/* Descriptors win over Identify Namespace; what is malformed is left alone. */
static void identifiers(void **state)
{
	static const uint8_t none[16];
	struct nvme_id_ns id = { 0 };
	uint8_t list[HOST_PAGE] = { NVME_NIDT_UUID, 16 };
	struct host_ns_ids ids;

	memset(id.nguid, 0x11, sizeof(id.nguid));
	memset(id.eui64, 0x22, sizeof(id.eui64));
	memset(list + 4, 0x33, 16);
	host_ns_ids(&id, list, &ids);
	assert_memory_equal(ids.uuid, list + 4, 16);
	assert_memory_equal(ids.nguid, id.nguid, 16);
	assert_memory_equal(ids.eui64, id.eui64, 8);

	list[20] = NVME_NIDT_EUI64;
	list[21] = 8;
	memset(list + 24, 0x44, 8);
	host_ns_ids(&id, list, &ids);
	assert_memory_equal(ids.eui64, list + 24, 8);

	list[1] = 15; /* not a UUID's length */
	host_ns_ids(&id, list, &ids);
	assert_memory_equal(ids.uuid, none, 16);

	memset(list, 0xff, sizeof(list)); /* one after the other, up to the end */
	host_ns_ids(&id, list, &ids);
	assert_memory_equal(ids.uuid, none, 16);
}

/* --- what a discovery service may tell -------------------------------------------------------- */

static const struct {
	const char *address, *from;
	bool told; /* as a URI */
} places[] = {
	{ "192.0.2.7", "198.51.100.1", true },
	{ "10.0.0.1", "198.51.100.1", true },
	{ "127.0.0.1", "127.0.0.1", true },
	{ "127.0.0.1", "::1", true },
	{ "::1", "127.0.0.1", true },
	{ "127.0.0.1", "198.51.100.1", false }, /* that is here, not there */
	{ "127.8.8.8", "198.51.100.1", false },
	{ "::1", "2001:db8::1", false },
	{ "::ffff:127.0.0.1", "198.51.100.1", false },
	{ "0.0.0.0", "198.51.100.1", false },
	{ "0.0.0.0", "127.0.0.1", false },
	{ "::", "::1", false },
	{ "::ffff:0.0.0.0", "::1", false },
	{ "224.0.0.1", "198.51.100.1", false },
	{ "255.255.255.255", "198.51.100.1", false },
	{ "ff02::1", "2001:db8::1", false },
	{ "::ffff:239.1.1.1", "2001:db8::1", false },
	{ "2001:db8::2", "2001:db8::1", true },
	{ "target.example", "198.51.100.1", false }, /* names */
	{ "localhost", "127.0.0.1", false },
	{ "127.1", "127.0.0.1", false },
	{ "0x7f.1", "127.0.0.1", false },
	{ "2130706433", "127.0.0.1", false },
};

static void told_by_a_service(void **state)
{
	for_each_named(i, places, address) {
		struct nvmf_disc_log_entry entry = { .trtype = NVMF_TRTYPE_TCP, .subtype = 2 };
		struct weft_discovered got;
		struct sockaddr_storage from;

		assert_int_equal(weft_addr_parse(places[i].from, 4420, &from), 0);
		entry.adrfam = strchr(places[i].address, ':') ? NVMF_ADDR_FAMILY_IP6 :
								NVMF_ADDR_FAMILY_IP4;
		memcpy(entry.traddr, places[i].address, strlen(places[i].address));
		memcpy(entry.trsvcid, "4420", 4);
		memcpy(entry.subnqn, "nqn.2026-11.io.weft:a", 21);
		host_disc_log_decode_entry(&entry, &from, &got);
		assert_string_equal(got.address, places[i].address);
		assert_int_equal(got.uri[0] != '\0', places[i].told);
	}
}

static const struct {
	const char *service;
	uint8_t subtype;
	bool told;
} services[] = {
	{ "4420", NVME_NQN_NVME, true },      { "8009", NVME_NQN_DISC, true },
	{ "81/0", NVME_NQN_DISC, false },     { "81/nqn.2026-11.io.weft:b", NVME_NQN_DISC, false },
	{ "81/0", NVME_NQN_NVME, false },     { "8009?kato=1", NVME_NQN_DISC, false },
	{ "+8009", NVME_NQN_DISC, false },    { " 8009", NVME_NQN_DISC, false },
	{ "http", NVME_NQN_DISC, false },     { "65536", NVME_NQN_DISC, false },
	{ "0", NVME_NQN_DISC, false },        { "", NVME_NQN_DISC, false },
	{ "1@2:8009", NVME_NQN_DISC, false }, { "8009/", NVME_NQN_DISC, false },
};

static void services_are_ports(void **state)
{
	struct sockaddr_storage from;

	assert_int_equal(weft_addr_parse("198.51.100.1", 4420, &from), 0);
	for_each_named(i, services, service) {
		struct nvmf_disc_log_entry entry = { .trtype = NVMF_TRTYPE_TCP,
						     .adrfam = NVMF_ADDR_FAMILY_IP4,
						     .subtype = services[i].subtype,
						     .traddr = "192.0.2.7",
						     .subnqn = "nqn.2026-11.io.weft:a" };
		struct weft_discovered got;

		memcpy(entry.trsvcid, services[i].service, strlen(services[i].service));
		host_disc_log_decode_entry(&entry, &from, &got);
		assert_int_equal(got.uri[0] != '\0', services[i].told);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(discovery_service),
		cmocka_unit_test(words_given),
		cmocka_unit_test(told_by_a_service),
		cmocka_unit_test(good_numbers),
		cmocka_unit_test(good_switches),
		cmocka_unit_test(identity),
		cmocka_unit_test(bad_words),
		cmocka_unit_test(words_win),
		cmocka_unit_test(wrong_options),
		cmocka_unit_test(options_of_another_version),
		cmocka_unit_test(wrong_identity),
		cmocka_unit_test(geometry),
		cmocka_unit_test(identifiers),
		cmocka_unit_test(services_are_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
