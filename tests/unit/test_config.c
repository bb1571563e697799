/* test_config.c - configurations, good and bad, each bad one with the exact sentence; and YAML
 * that is written comes back the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpus.h"
#include "daemon/config/config.h"
#include "daemon/control/methods.h"
#include "running.h"

#define FILE_NAME     "weft.yaml"
#define SUBSYS        "subsystems:\n  - nqn: nqn.2026-11.io.weft:a\n"
#define NS            SUBSYS "    namespaces:\n"
#define HOST          "nqn.2014-08.org.nvmexpress:uuid:2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3b"
#define HOST_EXAMPLE  "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-cdef-0123-456789abcdef"
#define UUID          "2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3b"
#define UUID_CAPITALS "2F1C3B7E-52A4-4C0E-9D3A-6B8F0E1D2C3B"

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_int_equal(fputs(text, file) < 0, 0);
	fclose(file);
}

static int read_text(const char *text, struct weft_doc *doc, struct weft_config *config,
		     struct weft_err *err)
{
	int rc;

	err->text[0] = '\0';
	write_text(FILE_NAME, text);
	rc = weft_doc_read(doc, FILE_NAME, err);
	return rc < 0 ? rc : weft_config_read(config, doc, err);
}

/* --- what is refused -------------------------------------------------------------------------- */

/* Each namespace without a number gets one, so that there must not be more than numbers. */
static void too_many_namespaces(void **state)
{
	static const char item[] = "      - backend: mem:1M\n";
	char *text = malloc(sizeof(NS) + (WEFT_NSID_MAX + 1) * sizeof(item)), *at;

	for (unsigned n = WEFT_NSID_MAX; n <= WEFT_NSID_MAX + 1; n++) {
		struct weft_config config;
		struct weft_doc doc;
		struct weft_err err;
		int rc;

		at = stpcpy(text, NS);
		for (unsigned i = 0; i < n; i++)
			at = stpcpy(at, item);
		rc = read_text(text, &doc, &config, &err);
		assert_int_equal(rc, n > WEFT_NSID_MAX ? -EINVAL : 0);
		if (n > WEFT_NSID_MAX)
			assert_string_equal(err.text,
					    "weft.yaml:3: subsystems[0].namespaces: expected at "
					    "most 1024, got 1025");
		weft_config_free(&config);
		weft_doc_free(&doc);
	}
	free(text);
}

static const struct {
	const char *text, *why;
} bad[] = {
	/* YAML */
	{ "", "weft.yaml: there is nothing in this file" },
	{ "# nothing\n", "weft.yaml: there is nothing in this file" },
	{ "listen: [\n", "weft.yaml:2: not YAML: while parsing a flow node, did not find expected "
			 "node content" },
	{ "a: b: c\n", "weft.yaml:1: not YAML: mapping values are not allowed in this context" },
	{ "poll: true\nlisten:\n\t- x\n",
	  "weft.yaml:3: not YAML: while scanning for the next token, found character that cannot "
	  "start any token; YAML takes no tabs there, only spaces" },
	{ "a: @\n",
	  "weft.yaml:1: not YAML: while scanning for the next token, found character that "
	  "cannot start any token" },
	{ "a: \xff\n", "weft.yaml:1: not YAML: invalid leading UTF-8 octet" },
	{ "poll: true\npoll: true\n", "weft.yaml:2: poll: given twice" },
	{ "engine: !!binary x\n", "weft.yaml:1: engine: tags are not understood here" },
	{ "control: \"a\\0b\"\n", "weft.yaml:1: control: a NUL byte is not text" },
	{ "[a]: b\n", "weft.yaml:1: a key is a word" },
	{ "poll: true\n---\npoll: true\n", "weft.yaml:3: a second document in one file" },
	{ "listen: &a [ *a ]\n",
	  "weft.yaml:1: listen[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: "
	  "nested too deeply, or too much of it" },
	/* shape and names */
	{ "- x\n", "weft.yaml:1: expected a map of keys and values, got a list" },
	{ "x\n", "weft.yaml:1: expected a map of keys and values, got \"x\"" },
	{ "~\n", "weft.yaml:1: expected a map of keys and values, got nothing" },
	{ "\nlisten: []\nlisen: []\n",
	  "weft.yaml:3: lisen: no such key; the keys are listen, control, cpus, engine, poll, depth, "
	  "queues, max_queues, subsystems" },
	{ SUBSYS "    colour: red\n",
	  "weft.yaml:3: subsystems[0].colour: no such key; the keys are nqn, serial, model, "
	  "state, cluster, allow_any_host, hosts, namespaces, ana" },
	{ NS "      - { backend: mem:1M, size: 3 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].size: no such key; the keys are nsid, backend, "
	  "block, uuid, ro, ana_group" },
	{ "subsystems: {}\n", "weft.yaml:1: subsystems: expected a list, got a map" },
	{ "subsystems:\n  - x\n",
	  "weft.yaml:2: subsystems[0]: expected a map of keys and values, got \"x\"" },
	/* values */
	{ "listen: 5\n", "weft.yaml:1: listen: expected a list, got 5" },
	{ "listen:\n  - 5\n", "weft.yaml:2: listen[0]: expected an address such as "
			      "nvme+tcp://127.0.0.1:4420, got 5" },
	{ "listen: [ nonsense ]\n",
	  "weft.yaml:1: listen[0]: expected nvme+tcp://ADDRESS:PORT or nvme+rdma://…, got \"nonsense\"" },
	{ "listen: [ \"nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:a\" ]\n",
	  "weft.yaml:1: listen[0]: expected an address without a subsystem, got "
	  "\"/nqn.2026-11.io.weft:a\"" },
	{ "listen: [ \"nvme+tcp://127.0.0.1\", \"nvme+tcp://localhost:4420\" ]\n",
	  "weft.yaml:1: listen[1]: nvme+tcp://127.0.0.1:4420 is given twice" },
	{ "listen: [ \"nvme+tcp://127.0.0.1?portid=1\", \"nvme+tcp://127.0.0.1?portid=2\" ]\n",
	  "weft.yaml:1: listen[1]: nvme+tcp://127.0.0.1:4420 is given twice" },
	{ "control: \"\"\n", "weft.yaml:1: control: expected a text of 1 to 107 bytes, got \"\"" },
	{ "control: [ a ]\n",
	  "weft.yaml:1: control: expected a text of 1 to 107 bytes, got a list" },
	{ "cpus: all\n", "weft.yaml:1: cpus: expected CPUs such as 0-3,5, got \"all\"" },
	{ "cpus: 3-1\n", "weft.yaml:1: cpus: expected CPUs such as 0-3,5, got \"3-1\"" },
	{ "cpus: 0,\n", "weft.yaml:1: cpus: expected CPUs such as 0-3,5, got \"0,\"" },
	{ "cpus: \"\"\n", "weft.yaml:1: cpus: expected CPUs such as 0-3,5, got \"\"" },
	{ "cpus: -1\n", "weft.yaml:1: cpus: expected CPUs such as 0-3,5, got \"-1\"" },
	{ "cpus: [ 0 ]\n", "weft.yaml:1: cpus: expected CPUs such as 0-3,5, got a list" },
	{ "engine: kqueue\n",
	  "weft.yaml:1: engine: expected auto, uring or epoll, got \"kqueue\"" },
	{ "poll: yes\n", "weft.yaml:1: poll: expected true or false, got \"yes\"" },
	{ "depth: 1\n", "weft.yaml:1: depth: expected a number from 2 to 65535, got 1" },
	{ "depth: 65536\n", "weft.yaml:1: depth: expected a number from 2 to 65535, got 65536" },
	{ "depth: \"8\"\n", "weft.yaml:1: depth: expected a number from 2 to 65535, got \"8\"" },
	{ "depth: 0x10\n", "weft.yaml:1: depth: expected a number from 2 to 65535, got \"0x10\"" },
	{ "depth: 1.5\n", "weft.yaml:1: depth: expected a number from 2 to 65535, got \"1.5\"" },
	{ "depth:\n", "weft.yaml:1: depth: expected a number from 2 to 65535, got nothing" },
	{ "queues: 0\n", "weft.yaml:1: queues: expected a number from 1 to 65534, got 0" },
	{ "max_queues: 1\n",
	  "weft.yaml:1: max_queues: expected a number from 2 to 1000000, got 1" },
	/* subsystems */
	{ "subsystems:\n  - serial: x\n", "weft.yaml:2: subsystems[0].nqn: missing" },
	{ "subsystems:\n  - nqn: \"\"\n",
	  "weft.yaml:2: subsystems[0].nqn: expected an NQN such as nqn.2026-11.com.example:disks, got "
	  "\"\"" },
	{ "subsystems:\n  - nqn: \"a\\nb\"\n",
	  "weft.yaml:2: subsystems[0].nqn: an NQN is printable UTF-8" },
	{ "subsystems:\n  - nqn: 5\n", "weft.yaml:2: subsystems[0].nqn: expected an NQN, got 5" },
	{ "subsystems:\n  - nqn: nqn.2014-08.org.nvmexpress.discovery\n",
	  "weft.yaml:2: subsystems[0].nqn: this NQN is the discovery service's, which is always "
	  "there" },
	{ SUBSYS "  - nqn: nqn.2026-11.io.weft:a\n",
	  "weft.yaml:3: subsystems[1].nqn: nqn nqn.2026-11.io.weft:a is given twice, first in line 2" },
	{ SUBSYS "    state: /srv/weft.state\n",
	  "weft.yaml:3: subsystems[0].state: expected file:PATH, got \"/srv/weft.state\"" },
	{ SUBSYS "    cluster: { node: 1 }\n", "weft.yaml:3: subsystems[0].cluster.of: missing" },
	{ SUBSYS "    cluster: { node: 3, of: 2 }\n",
	  "weft.yaml:3: subsystems[0].cluster.node: 3 here, but there are 2 of them" },
	{ SUBSYS "    cluster: { node: 1, of: 2 }\n",
	  "weft.yaml:3: subsystems[0].cluster: its members need a state in common; add state: "
	  "file:PATH" },
	{ SUBSYS "    cluster: { node: 1, of: 2 }\n    namespaces: [ { backend: file:/a } ]\n",
	  "weft.yaml:3: subsystems[0].cluster: its members need a state in common; add state: "
	  "file:PATH" },
	{ SUBSYS
	  "    state: file:/s\n    cluster: { node: 1, of: 2 }\n    namespaces: [ { backend: "
	  "mem:1M } ]\n",
	  "weft.yaml:5: subsystems[0].namespaces[0].backend: mem: is not storage that the members of "
	  "a cluster share" },
	{ SUBSYS "    serial: 123456789012345678901\n",
	  "weft.yaml:3: subsystems[0].serial: expected a text of 1 to 20 bytes, got "
	  "\"123456789012345678901\"" },
	{ SUBSYS "    model: \"\\xfc\"\n",
	  "weft.yaml:3: subsystems[0].model: expected printable ASCII, got \"\\u00FC\"" },
	{ SUBSYS "    hosts: x\n", "weft.yaml:3: subsystems[0].hosts: expected a list, got \"x\"" },
	{ SUBSYS "    hosts:\n    - " HOST "\n    - x\n",
	  "weft.yaml:5: subsystems[0].hosts[1]: expected a host's NQN such as " HOST_EXAMPLE
	  ", got \"x\"" },
	{ SUBSYS "    allow_any_host: maybe\n",
	  "weft.yaml:3: subsystems[0].allow_any_host: expected true or false, got \"maybe\"" },
	/* namespaces */
	{ NS "      - { nsid: 1 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].backend: missing; expected a "
	  "SPEC such as mem:1G" },
	{ NS "      - backend: mem:1M\n        nsid: abc\n",
	  "weft.yaml:5: subsystems[0].namespaces[0].nsid: expected a number from 1 to 1024, got "
	  "\"abc\"" },
	{ NS "      - { nsid: 0, backend: mem:1M }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].nsid: expected a number from 1 to 1024, got "
	  "0" },
	{ NS "      - { nsid: 4294967295, backend: mem:1M }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].nsid: expected a number from 1 to 1024, got "
	  "4294967295" },
	{ NS "      - { backend: mem:1M, block: 1000 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].block: expected 512 or 4096, got 1000" },
	{ NS "      - { backend: mem:1536, block: 4096 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].block: the backend's size is not a multiple of "
	  "4096" },
	{ NS "      - { backend: mem:1M, uuid: 12345 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].uuid: expected a UUID that is not all zero, got "
	  "12345" },
	{ NS "      - { backend: mem:1M, uuid: 00000000-0000-0000-0000-000000000000 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].uuid: expected a UUID that is not all zero, got "
	  "\"00000000-0000-0000-0000-000000000000\"" },
	{ NS "      - { backend: mem:1M, nsid: 3 }\n      - { backend: mem:1M, nsid: 3 }\n",
	  "weft.yaml:5: subsystems[0].namespaces[1].nsid: nsid 3 is given twice, first in line 4" },
	{ NS "      - { backend: mem:1M, nsid: 3 }\n      - { backend: \"mem:1M,nsid=3\" }\n",
	  "weft.yaml:5: subsystems[0].namespaces[1].nsid: nsid 3 is given twice, first in line 4" },
	{ NS "      - { backend: \"mem:1M,nsid=2\", nsid: 3 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].nsid: 3 here, but the backend says nsid=2" },
	{ NS "      - { backend: \"mem:1M,block=512\", block: 4096 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].block: 4096 here, but the backend says "
	  "block=512" },
	{ NS "      - { backend: mem:1M, uuid: " UUID " }\n  - nqn: nqn.2026-11.io.weft:b\n"
	     "    namespaces:\n      - { backend: \"mem:1M,uuid=" UUID "\" }\n",
	  "weft.yaml:7: subsystems[1].namespaces[0].uuid: uuid " UUID " is given twice, first in "
	  "line 4" },
	{ NS "      - { backend: mem:1M, uuid: " UUID_CAPITALS " }\n"
	     "      - { backend: \"mem:1M,uuid=" UUID "\" }\n",
	  "weft.yaml:5: subsystems[0].namespaces[1].uuid: uuid " UUID " is given twice, first in "
	  "line 4" },
	{ NS
	  "      - { backend: \"file:/nowhere/a,size=1M\" }\n      - { backend: file:/nowhere/a }\n",
	  "weft.yaml:5: subsystems[0].namespaces[1].backend: file:/nowhere/a is the storage of "
	  "file:/nowhere/a in line 4, too" },
	{ NS "      - { backend: file:weft.yaml, ro: true }\n"
	     "      - { backend: \"file:./weft.yaml,ro\" }\n  - nqn: nqn.2026-11.io.weft:b\n"
	     "    namespaces:\n      - { backend: file:././weft.yaml }\n",
	  "weft.yaml:8: subsystems[1].namespaces[0].backend: file:././weft.yaml is the storage of "
	  "file:weft.yaml in line 4, too" },
	/* ANA */
	{ NS "      - { backend: mem:1M, ana_group: 0 }\n",
	  "weft.yaml:4: subsystems[0].namespaces[0].ana_group: expected a number from 1 to 1024, got "
	  "0" },
	{ SUBSYS "    ana:\n    - { state: change }\n",
	  "weft.yaml:4: subsystems[0].ana[0].group: missing" },
	{ SUBSYS "    ana:\n    - { group: 1 }\n",
	  "weft.yaml:4: subsystems[0].ana[0].state: missing" },
	{ SUBSYS "    ana:\n    - { group: 1, state: fast }\n",
	  "weft.yaml:4: subsystems[0].ana[0].state: expected optimized, non-optimized, inaccessible, "
	  "persistent-loss or change, got \"fast\"" },
	{ SUBSYS "    ana:\n    - { group: 1025, state: change }\n",
	  "weft.yaml:4: subsystems[0].ana[0].group: expected a number from 1 to 1024, got 1025" },
	{ SUBSYS "    ana:\n    - { group: 1, state: change, portid: 0 }\n",
	  "weft.yaml:4: subsystems[0].ana[0].portid: expected a number from 1 to 65535, got 0" },
	{ SUBSYS "    ana:\n    - { group: 1, state: change, hostnqn: x }\n",
	  "weft.yaml:4: subsystems[0].ana[0].hostnqn: expected a host's NQN such as " HOST_EXAMPLE
	  ", got \"x\"" },
	{ SUBSYS
	  "    ana:\n    - { group: 1, state: change }\n    - { group: 1, state: optimized }\n",
	  "weft.yaml:5: subsystems[0].ana[1]: group 1: another rule is for the same portid and "
	  "hostnqn" },
	{ "listen: [ \"nvme+tcp://127.0.0.1?portid=2\", \"nvme+tcp://127.0.0.2?portid=2\" ]\n",
	  "weft.yaml:1: listen[1]: portid 2 is given twice" },
	/* who may connect */
	{ SUBSYS "    hosts: [ " HOST " ]\n    allow_any_host: true\n",
	  "weft.yaml:4: subsystems[0].allow_any_host: true does not go with hosts; leave one of "
	  "them out" },
	{ SUBSYS "    hosts: []\n    allow_any_host: true\n",
	  "weft.yaml:4: subsystems[0].allow_any_host: true does not go with hosts; leave one of "
	  "them out" },
	{ "listen: [ \"nvme+tcp://127.0.0.1\", \"nvme+tcp://0.0.0.0:4421\" ]\n" SUBSYS,
	  "weft.yaml:3: subsystems[0]: nvme+tcp://0.0.0.0:4421 is not loopback, so "
	  "nqn.2026-11.io.weft:a must say who may connect: add hosts, or allow_any_host: true" },
	{ "listen: [ \"nvme+tcp://[::]\" ]\n" SUBSYS
	  "    allow_any_host: true\n  - nqn: nqn.2026-11.io.weft:b\n",
	  "weft.yaml:5: subsystems[1]: nvme+tcp://[::]:4420 is not loopback, so "
	  "nqn.2026-11.io.weft:b must say who may connect: add hosts, or allow_any_host: true" },
};

static void config_bad(void **state)
{
	for_each_named(i, bad, text) {
		struct weft_config config;
		struct weft_doc doc;
		struct weft_err err;

		if (!read_text(bad[i].text, &doc, &config, &err))
			fail_msg("accepted:\n%s", bad[i].text);
		assert_string_equal(err.text, bad[i].why);
		weft_doc_free(&doc);
	}
}

static void config_unreadable(void **state)
{
	struct weft_doc doc;
	struct weft_err err = { "" };

	assert_int_equal(weft_doc_read(&doc, "no/such.yaml", &err), -ENOENT);
	assert_string_equal(err.text, "no/such.yaml: No such file or directory");
	weft_doc_free(&doc);
	err.text[0] = '\0';
	assert_int_equal(weft_doc_read(&doc, ".", &err), -EISDIR);
	assert_string_equal(err.text, ".: Is a directory");
	weft_doc_free(&doc);
}

/* --- what is understood ----------------------------------------------------------------------- */

static void config_defaults(void **state)
{
	struct weft_config config;
	struct weft_doc doc;
	struct weft_err err;
	char uri[WEFT_URI_MAX];

	if (read_text("{}\n", &doc, &config, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(config.listen.count, 1);
	weft_uri_format(((struct weft_uri *)config.listen.at)->trtype,
			&((struct weft_uri *)config.listen.at)->addr, uri, sizeof(uri));
	assert_string_equal(uri, "nvme+tcp://127.0.0.1:4420");
	assert_int_equal(config.depth, 1024);
	assert_int_equal(config.queues, 128);
	assert_int_equal(config.queues_max, 16384);
	assert_int_equal(config.engine, WEFT_ENGINE_AUTO);
	assert_true(config.control_default && !config.poll && CPU_COUNT(&config.cpus));
	assert_int_equal(config.subsystems.count, 0);
	weft_config_free(&config);
	weft_doc_free(&doc);
}

static const char everything[] =
	"listen: [ \"nvme+tcp://0.0.0.0:4420\", \"nvme+tcp://[::1]:0?portid=1\", \"nvme+tcp://[::1]:0\" ]\n"
	"control: /run/x.sock\n"
	"engine: epoll\n"
	"poll: true\n"
	"depth: 65535\n"
	"queues: 4\n"
	"max_queues: 100\n"
	"subsystems:\n"
	"  - nqn: nqn.2026-11.io.weft:a\n"
	"    serial: 0042\n"
	"    model: 7\n"
	"    state: file:/srv/a.state\n"
	"    hosts: [ " HOST " ]\n"
	"    namespaces:\n"
	"      - { backend: mem:1M }\n"
	"      - { backend: \"mem:2M,nsid=1,block=512,ro\" }\n"
	"      - { nsid: 3, backend: \"mem:1M,uuid=" UUID "\", block: 4096, ro: true, uuid: "
	"2F1C3B7E-52a4-4c0e-9d3a-6b8f0e1d2c3b }\n"
	"      - { backend: mem:1M, ana_group: 1024 }\n"
	"    ana:\n"
	"      - { group: 1024, state: inaccessible }\n"
	"      - { group: 1024, state: non-optimized, portid: 65535, hostnqn: " HOST " }\n"
	"  - nqn: nqn.2026-11.io.weft:b\n"
	"    allow_any_host: true\n"
	"  - nqn: nqn.2026-11.io.weft:c\n"
	"    allow_any_host: false\n"
	"  - nqn: nqn.2026-11.io.weft:d\n"
	"    hosts: []\n";

static void check_namespaces(const struct weft_subsys_config *subsys)
{
	static const uint32_t nsids[] = { 2, 1, 3, 4 };
	const struct weft_ns_config *ns = subsys->namespaces.at;

	assert_int_equal(subsys->namespaces.count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ns[i].nsid, nsids[i]);
	assert_true(!ns[0].spec.read_only && ns[1].spec.read_only && ns[2].spec.read_only);
	assert_int_equal(ns[0].block, 0);
	assert_int_equal(ns[1].block, 512);
	assert_int_equal(ns[2].spec.block, 4096);
	assert_string_equal(ns[2].uuid, UUID);
	assert_string_equal(ns[3].uuid, "");
	assert_int_equal(ns[0].ana_group, 0);
	assert_int_equal(ns[3].ana_group, 1024);
}

static void check_ana(const struct weft_subsys_config *subsys)
{
	const struct weft_ana_rule *rule = subsys->ana.at;

	assert_int_equal(subsys->ana.count, 2);
	assert_int_equal(rule[0].group, 1024);
	assert_int_equal(rule[0].state, WEFT_ANA_INACCESSIBLE);
	assert_int_equal(rule[0].portid, 0);
	assert_string_equal(rule[0].hostnqn, "");
	assert_int_equal(rule[1].state, WEFT_ANA_NON_OPTIMIZED);
	assert_int_equal(rule[1].portid, 65535);
	assert_string_equal(rule[1].hostnqn, HOST);
}

/* One was asked for; the others get the lowest that are left. */
static void check_portids(const struct weft_config *config)
{
	static const uint16_t portids[] = { 2, 1, 3 };
	const struct weft_uri *uri = config->listen.at;

	assert_int_equal(config->listen.count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(uri[i].portid, portids[i]);
}

static void check_subsystems(const struct weft_subsys_config *subsys)
{
	assert_string_equal(subsys[0].serial, "0042");
	assert_string_equal(subsys[0].model, "7");
	assert_string_equal(subsys[0].state, "file:/srv/a.state");
	assert_string_equal(subsys[1].state, "");
	assert_string_equal(subsys[0].hosts.at, HOST);
	assert_int_equal(subsys[0].access, WEFT_ALLOWED_LISTED);
	assert_int_equal(subsys[1].access, WEFT_ALLOWED_ANY);
	assert_int_equal(subsys[2].access, WEFT_ALLOWED_LISTED);
	assert_int_equal(subsys[3].access, WEFT_ALLOWED_LISTED);
	check_namespaces(&subsys[0]);
	check_ana(&subsys[0]);
}

static void config_everything(void **state)
{
	struct weft_config config;
	struct weft_doc doc;
	struct weft_err err;

	if (read_text(everything, &doc, &config, &err) < 0)
		fail_msg("%s", err.text);
	weft_doc_free(&doc); /* what was decoded stands alone */
	check_portids(&config);
	assert_string_equal(config.control, "/run/x.sock");
	assert_true(!config.control_default && config.poll);
	assert_int_equal(config.engine, WEFT_ENGINE_EPOLL);
	assert_int_equal(config.depth, 65535);
	assert_int_equal(config.queues, 4);
	assert_int_equal(config.queues_max, 100);
	assert_int_equal(config.subsystems.count, 4);
	check_subsystems(config.subsystems.at);
	weft_config_free(&config);
}

/* --- the same decoders, other sources --------------------------------------------------------- */

static void flags_are_named(void **state)
{
	struct weft_config config;
	struct weft_err err = { "" };
	struct weft_doc doc;

	assert_int_equal(weft_doc_init(&doc), 0);
	weft_doc_set(&doc, "engine", json_string("kqueue"), "--engine");
	assert_int_equal(weft_config_read(&config, &doc, &err), -EINVAL);
	assert_string_equal(err.text, "--engine: expected auto, uring or epoll, got \"kqueue\"");
	weft_doc_free(&doc);
}

static void flags_given_twice(void **state)
{
	struct weft_config config;
	struct weft_err err = { "" };
	struct weft_doc doc;

	assert_int_equal(weft_doc_init(&doc), 0);
	json_object_set_new(doc.root, "subsystems",
			    json_pack("[{s:s, s:[{s:s}, {s:s}]}]", "nqn", "nqn.2026-11.io.weft:a",
				      "namespaces", "backend", "mem:1M,nsid=1", "backend",
				      "mem:1M,nsid=1"));
	weft_doc_place_flag(&doc, "subsystems[0].namespaces", "--ns");
	assert_int_equal(weft_config_read(&config, &doc, &err), -EINVAL);
	assert_string_equal(err.text, "two --ns have nsid 1");
	json_object_set_new(doc.root, "subsystems",
			    json_pack("[{s:s, s:[{s:s}, {s:s}]}]", "nqn", "nqn.2026-11.io.weft:a",
				      "namespaces", "backend", "file:/a", "backend", "file:/a"));
	err.text[0] = '\0';
	assert_int_equal(weft_config_read(&config, &doc, &err), -EINVAL);
	assert_string_equal(err.text, "two --ns have the same storage, file:/a and file:/a");
	weft_doc_free(&doc);
}

static const struct {
	const char *method, *params, *why;
} bad_params[] = {
	{ "status", "{\"x\": 1}", "x: no such key; there are none here" },
	{ "namespace-add", "{}", "backend: missing; expected a SPEC such as mem:1G" },
	{ "subsystem-remove", "{}", "nqn: missing" },
	{ "subsystem-add",
	  "{\"nqn\": \"nqn.2026-11.io.weft:a\", \"hosts\": [\"" HOST
	  "\"], \"allow_any_host\": true}",
	  "allow_any_host: true does not go with hosts; leave one of them out" },
	{ "namespace-add", "[]", "expected a map of keys and values, got a list" },
	{ "namespace-add", "{\"backend\": 5}",
	  "backend: expected a backend such as \"mem:1G\", got 5" },
	{ "namespace-add", "{\"backend\": \"mem:1M\", \"nsid\": \"abc\"}",
	  "nsid: expected a number from 1 to 1024, got \"abc\"" },
	{ "namespace-add", "{\"backend\": \"mem:1M\", \"colour\": \"red\"}",
	  "colour: no such key; the keys are nqn, nsid, backend, block, uuid, ro, ana_group" },
	{ "namespace-add", "{\"backend\": \"mem:1M,nsid=2\", \"nsid\": 1}",
	  "nsid: 1 here, but the backend says nsid=2" },
	{ "namespace-resize", "{\"nsid\": 1}", "size: missing" },
	{ "namespace-resize", "{\"nsid\": 1, \"size\": \"many\"}",
	  "size: expected a size such as 1048576, \"128M\" or \"10G\", got \"many\"" },
	{ "namespace-resize", "{\"nsid\": 1, \"size\": 0}",
	  "size: expected a size such as 1048576, \"128M\" or \"10G\", got 0" },
	{ "namespace-remove", "{\"nsid\": 1.5}",
	  "nsid: expected a number from 1 to 1024, got 1.5" },
	{ "subsystem-add",
	  "{\"nqn\": \"nqn.2026-11.io.weft:a\", \"namespaces\": [{\"backend\": \"mem:1M\", \"nsid\": 1},"
	  " {\"backend\": \"mem:1M\", \"nsid\": 1}]}",
	  "namespaces[1].nsid: nsid 1 is given twice, first in namespaces[0]" },
	{ "subsystem-add",
	  "{\"nqn\": \"nqn.2026-11.io.weft:a\", \"namespaces\": [{\"backend\": \"block:/nowhere/a\"},"
	  " {\"backend\": \"block:/nowhere/a,ro\"}]}",
	  "namespaces[1].backend: block:/nowhere/a is the storage of block:/nowhere/a in "
	  "namespaces[0], too" },
	{ "host-allow", "{}", "host: missing" },
	{ "host-refuse", "{\"host\": \"\"}",
	  "host: expected a host's NQN such as " HOST_EXAMPLE ", got \"\"" },
	{ "listener-add", "{\"listen\": \"ftp://x\"}",
	  "listen: expected nvme+tcp://ADDRESS:PORT or nvme+rdma://…, got \"ftp://x\"" },
	{ "save", "{\"path\": true}", "path: expected a text of 1 to 4095 bytes, got true" },
};

static const struct weft_rpc_method *find_method(const char *name)
{
	const struct weft_rpc_method *method = weft_rpc_methods;

	while (method->name && strcmp(method->name, name))
		method++;
	assert_non_null(method->name);
	return method;
}

static void params_bad(void **state)
{
	for_each_named(i, bad_params, method) {
		const struct weft_rpc_method *method = find_method(bad_params[i].method);
		json_auto_t *params = json_loads(bad_params[i].params, 0, NULL);
		struct weft_doc doc = { .root = params };
		void *out = calloc(1, method->params_size + 1);
		struct weft_err err = { "" };

		assert_non_null(params);
		if (!weft_decode(&doc, method->params, out, &err))
			fail_msg("%s accepted %s", bad_params[i].method, bad_params[i].params);
		assert_string_equal(err.text, bad_params[i].why);
		if (method->params_free)
			method->params_free(out);
		free(out);
	}
}

/* --- there and back --------------------------------------------------------------------------- */

static const char *const trees[] = {
	"{}",
	"{\"a\": 1, \"b\": -1, \"c\": true, \"d\": false, \"e\": []}",
	"{\"a\": [\"0042\", \"1.5\", \"1e3\", \"0x1\", \"true\", \"null\", \"~\", \"\", \"yes\"]}",
	"{\"a\": [\" lead\", \"trail \", \"a: b\", \"# x\", \"- x\", \"[x\", \"{x\", \"&a\", \"*a\"]}",
	"{\"a\": [\"line\\nline\", \"tab\\t\", \"quote\\\"s'\", \"\\u00fc\\u20ac\", \"\\u0007\"]}",
	"{\"a\": [{\"b\": [{\"c\": [[1], [2, 3]]}]}, {}]}",
	"{\"listen\": [\"nvme+tcp://[::1]:4420\"], \"cpus\": \"0-3,5\", \"control\": \"/a b/c\"}",
	"{\"a\": 9223372036854775807, \"b\": \"9223372036854775808\"}",
};

static void yaml_comes_back(void **state)
{
	for_each_row(i, trees) {
		json_auto_t *tree = json_loads(trees[i], 0, NULL);
		struct weft_err err = { "" };
		struct weft_doc doc;
		FILE *file = fopen(FILE_NAME, "w");

		assert_non_null(tree);
		assert_non_null(file);
		assert_int_equal(weft_yaml_write(file, tree), 0);
		fclose(file);
		if (weft_doc_read(&doc, FILE_NAME, &err) < 0)
			fail_msg("%s: %s", trees[i], err.text);
		if (!json_equal(tree, doc.root))
			fail_msg("%s became %s", trees[i], json_dumps(doc.root, 0));
		weft_doc_free(&doc);
	}
}

static void cpus_format(void **state)
{
	cpu_set_t cpus;
	char text[64];

	CPU_ZERO(&cpus);
	weft_cpus_format(&cpus, text, sizeof(text));
	assert_string_equal(text, "");
	for (int cpu = 0; cpu < 4; cpu++)
		CPU_SET(cpu, &cpus);
	CPU_SET(5, &cpus);
	CPU_SET(CPU_SETSIZE - 1, &cpus);
	weft_cpus_format(&cpus, text, sizeof(text));
	assert_string_equal(text, "0-3,5,1023");
}

/* --- everything happens in a folder of its own ------------------------------------------------ */

static char folder[] = "/tmp/weft-config-XXXXXX";

static int enter_folder(void **state)
{
	return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int leave_folder(void **state)
{
	unlink(FILE_NAME);
	return chdir("/") || rmdir(folder) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_bad),        cmocka_unit_test(too_many_namespaces),
		cmocka_unit_test(config_unreadable), cmocka_unit_test(config_defaults),
		cmocka_unit_test(config_everything), cmocka_unit_test(flags_are_named),
		cmocka_unit_test(flags_given_twice), cmocka_unit_test(params_bad),
		cmocka_unit_test(yaml_comes_back),   cmocka_unit_test(cpus_format),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
