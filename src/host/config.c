/* config.c - what a connection asks for: defaults, the caller's options, the URI's words.
 *
 *   weft_options_init ─▶ the program's options ─▶ ?hdgst=1&kato=5s ─▶ checked, identity set */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/suggest.h"
#include "base/uuid.h"
#include "host/internal.h"

void weft_options_init_size(struct weft_options *options, size_t size)
{
	static const struct weft_options defaults = {
		.queues = 16,
		.depth = 128,
		.keepalive_ms = 10000,
		.connect_ms = 10000,
		.admin_ms = 30000,
		.io_ms = 30000,
		.abort_ms = 5000,
		.reconnect_ms = 100,
		.reconnect_max_ms = 10000,
		.loss_ms = 600000,
		.probe_ms = 200,
		.discovery_ms = 60000,
		.discovery_entries = 16384,
		.discovery_services = 64,
		.retries = 7,
		.rnr_retries = 7,
		.inline_bytes = 64,
	};

	memset(options, 0, size);
	memcpy(options, &defaults, size < sizeof(defaults) ? size : sizeof(defaults));
	options->size = size;
}

/* A program that was compiled with an older libweft has fewer of them. */
static int copy_options(struct weft_options *to, const struct weft_options *from,
			struct weft_err *err)
{
	if (from && from->size < sizeof(from->size))
		return weft_fail(err, -EINVAL, "the options were not made by weft_options_init()");
	if (from && from->size > sizeof(*to))
		return weft_fail(err, -EINVAL,
				 "the program was compiled with a newer libweft than %s, which it "
				 "runs with: %zu bytes of options, not %zu",
				 weft_version(), from->size, sizeof(*to));
	weft_options_init(to);
	if (from)
		memcpy(to, from, from->size);
	to->size = sizeof(*to);
	return 0;
}

/* --- words ------------------------------------------------------------------------------------ */

enum kind { SWITCH, NUMBER, TIME, CHOICE, NQN, UUID, CPUS };

static const char *const policies[] = {
	[WEFT_QUEUE_DEPTH] = "queue-depth",
	[WEFT_ROUND_ROBIN] = "round-robin",
	[WEFT_LATENCY] = "latency",
};

static const char *const resends[] = {
	[WEFT_RESEND_IDEMPOTENT] = "idempotent",
	[WEFT_RESEND_NEVER] = "never",
};

static const char *const origins[] = {
	[WEFT_PATHS_GIVEN] = "given",
	[WEFT_PATHS_DISCOVER] = "discover",
};

static const struct word {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct host_config */
	uint32_t min, max;
	const char *const *choices; /* by their numbers, up to @max */
} words[] = {
#define OPTION(field) offsetof(struct host_config, options.field)
	{ "hdgst", SWITCH, OPTION(hdgst), 0, 0 },
	{ "ddgst", SWITCH, OPTION(ddgst), 0, 0 },
	{ "queues", NUMBER, OPTION(queues), 1, HOST_QUEUES_MAX },
	{ "depth", NUMBER, OPTION(depth), 1, HOST_DEPTH_MAX },
	{ "nsid", NUMBER, offsetof(struct host_config, nsid), 1, UINT32_MAX - 1 },
	{ "kato", TIME, OPTION(keepalive_ms), 0, 3600000 },
	{ "connect_timeout", TIME, OPTION(connect_ms), 1, 3600000 },
	{ "admin_timeout", TIME, OPTION(admin_ms), 1, 3600000 },
	{ "io_timeout", TIME, OPTION(io_ms), 1, 3600000 },
	{ "abort_timeout", TIME, OPTION(abort_ms), 1, 3600000 },
	{ "reconnect_delay", TIME, OPTION(reconnect_ms), 1, 3600000 },
	{ "reconnect_delay_max", TIME, OPTION(reconnect_max_ms), 1, 3600000 },
	{ "loss_timeout", TIME, OPTION(loss_ms), 0, UINT32_MAX },
	{ "fast_io_fail", TIME, OPTION(fast_io_fail_ms), 0, UINT32_MAX },
	{ "probe", TIME, OPTION(probe_ms), 0, 3600000 },
	{ "policy", CHOICE, OPTION(policy), 0, WEFT_LATENCY, policies },
	{ "resend", CHOICE, OPTION(resend), 0, WEFT_RESEND_NEVER, resends },
	{ "paths", CHOICE, OPTION(paths), 0, WEFT_PATHS_DISCOVER, origins },
	{ "discovery_timeout", TIME, OPTION(discovery_ms), 1, 3600000 },
	{ "discovery_entries", NUMBER, OPTION(discovery_entries), 1, 65536 },
	{ "discovery_services", NUMBER, OPTION(discovery_services), 1, 64 },
	{ "tos", NUMBER, OPTION(tos), 0, 255 },
	{ "retry", NUMBER, OPTION(retries), 0, 7 },
	{ "rnr_retry", NUMBER, OPTION(rnr_retries), 0, 7 },
	{ "ack_timeout", NUMBER, OPTION(ack_timeout), 0, 31 },
	{ "inline", NUMBER, OPTION(inline_bytes), 0, 1024 },
	{ "hostnqn", NQN, offsetof(struct host_config, hostnqn), 0, 0 },
	{ "hostid", UUID, offsetof(struct host_config, hostid), 0, 0 },
	{ "cpus", CPUS, offsetof(struct host_config, cpus), 0, 0 },
#undef OPTION
};

#define NWORDS (sizeof(words) / sizeof(words[0]))
static_assert(NWORDS <= 64, "a bit for each");

static int parse_number(const char *text, uint64_t *value, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, 10);
	*rest = end;
	return errno ? -ERANGE : 0;
}

/* 5s, 100ms, 2m; a bare number is seconds. */
static int parse_time(const char *text, uint64_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = { { "", 1000 }, { "s", 1000 }, { "ms", 1 }, { "m", 60000 } };
	const char *rest;
	int rc = parse_number(text, ms, &rest);

	if (rc < 0 || *ms > UINT32_MAX)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(rest, units[i].unit)) {
			*ms *= units[i].ms;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_number(const struct word *word, const char *text, void *to, struct weft_err *err)
{
	const char *rest = "";
	uint64_t value;
	int rc = word->kind == TIME ? parse_time(text, &value) : parse_number(text, &value, &rest);

	if (rc < 0 || *rest || value < word->min || value > word->max)
		return weft_fail(err, -EINVAL, "%s=%s: expected %s from %u to %u%s", word->name,
				 text, word->kind == TIME ? "a time" : "a number", word->min,
				 word->max, word->kind == TIME ? " ms, such as 5s or 100ms" : "");
	*(uint32_t *)to = (uint32_t)value;
	return 0;
}

static int set_switch(const struct word *word, const char *text, bool *to, struct weft_err *err)
{
	static const char *const on[] = { "1", "yes", "on", "true" };
	static const char *const off[] = { "0", "no", "off", "false" };

	for (size_t i = 0; i < 4; i++) {
		if (!strcmp(text, on[i]) || !strcmp(text, off[i])) {
			*to = !strcmp(text, on[i]);
			return 0;
		}
	}
	return weft_fail(err, -EINVAL, "%s=%s: expected 1, yes, on or true; or 0, no, off or false",
			 word->name, text);
}

static int wrong_choice(const struct word *word, const char *text, struct weft_err *err)
{
	char known[128] = "";

	for (uint32_t i = 0; i <= word->max; i++) {
		strcat(known, !i ? "" : i < word->max ? ", " : " or ");
		strcat(known, word->choices[i]);
	}
	return weft_fail(err, -EINVAL, "%s=%s: expected %s", word->name, text, known);
}

static int set_choice(const struct word *word, const char *text, void *to, struct weft_err *err)
{
	for (uint32_t i = 0; i <= word->max; i++) {
		if (!strcmp(text, word->choices[i])) {
			memcpy(to, &i, sizeof(i));
			return 0;
		}
	}
	return wrong_choice(word, text, err);
}

static int set_cpus(const struct word *word, const char *text, cpu_set_t *to, struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = weft_cpus_parse(text, to, &why);

	return rc < 0 ? weft_fail(err, rc, "%s=: %s", word->name, why.text) : 0;
}

static int set_hostnqn(const struct word *word, const char *text, char *to, struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = weft_nqn_check(text, &why);

	if (rc == 0)
		strcpy(to, text);
	else if (!strncmp(why.text, "expected an NQN", strlen("expected an NQN")))
		return weft_fail(err, rc,
				 "%s=%s: expected an NQN: nqn.YYYY-MM.DOMAIN:NAME, such as "
				 "nqn.2026-11.com.example:host, or "
				 "nqn.2014-08.org.nvmexpress:uuid:UUID",
				 word->name, text);
	return rc < 0 ? weft_fail(err, rc, "%s=%s: %s", word->name, text, why.text) : 0;
}

static int set_word(struct host_config *config, const struct word *word, const char *text,
		    struct weft_err *err)
{
	char *to = (char *)config + word->offset;

	switch (word->kind) {
	case SWITCH:
		return set_switch(word, text, (bool *)to, err);
	case CHOICE:
		return set_choice(word, text, to, err);
	case NQN:
		return set_hostnqn(word, text, to, err);
	case UUID:
		if (weft_uuid_parse(text, (uint8_t *)to) < 0)
			return weft_fail(err, -EINVAL, "%s=%s: expected a UUID", word->name, text);
		return 0;
	case CPUS:
		return set_cpus(word, text, (cpu_set_t *)to, err);
	default:
		return set_number(word, text, to, err);
	}
}

static const struct word *find_word(const char *name)
{
	for (size_t i = 0; i < NWORDS; i++)
		if (!strcmp(words[i].name, name))
			return &words[i];
	return NULL;
}

static int unknown_word(const char *name, struct weft_err *err)
{
	const char *names[NWORDS + 1] = { NULL }, *meant;
	char known[512] = "";

	for (size_t i = 0; i < NWORDS; i++) {
		strcat(known, i ? ", " : "");
		strcat(known, words[i].name);
		names[i] = words[i].name;
	}
	meant = weft_suggest_word(name, names);
	if (meant)
		return weft_fail(err, -EINVAL, "\"?%s\" is not understood; did you mean %s=?", name,
				 meant);
	return weft_fail(err, -EINVAL, "\"?%s\" is not understood; there are %s", name, known);
}

/* @seen: a bit for each word that came before, which may only come again with the same value. */
static int set_once(struct host_config *config, const struct word *word, const char *text,
		    uint64_t *seen, struct weft_err *err)
{
	uint64_t bit = UINT64_C(1) << (word - words);
	struct host_config before;
	int rc;

	memcpy(&before, config, sizeof(before));
	rc = set_word(config, word, text, err);
	if (rc == 0 && *seen & bit && memcmp(&before, config, sizeof(before)))
		return weft_fail(err, -EINVAL, "%s=%s: %s is given twice, with two values",
				 word->name, text, word->name);
	*seen |= bit;
	config->words |= bit;
	return rc;
}

/* @several: @query has the words of several URIs, and two of them may differ. */
static int parse_query(struct host_config *config, const char *query, bool several,
		       struct weft_err *err)
{
	char copy[WEFT_URI_MAX], *rest = copy, *item, *value;
	const struct word *word;
	uint64_t seen = 0;
	int rc = 0;

	snprintf(copy, sizeof(copy), "%s", query);
	while (rc == 0 && (item = strsep(&rest, "&"))) {
		value = strchr(item, '=');
		if (value)
			*value++ = '\0';
		word = find_word(item);
		if (!word)
			return unknown_word(item, err);
		rc = set_once(config, word,
			      value                ? value :
			      word->kind == SWITCH ? "1" :
						     "",
			      &seen, err);
		if (several)
			seen = 0;
	}
	return rc;
}

void host_link_options(const struct host_config *config, uint16_t qid, uint16_t cntlid,
		       uint32_t depth, struct weft_link_options *options)
{
	const struct weft_options *o = &config->options;

	*options = (struct weft_link_options){
		.addr = config->addr,
		.depth = depth,
		.qid = qid,
		.cntlid = cntlid,
		.hdgst = o->hdgst,
		.ddgst = o->ddgst,
		.setup_ms = o->connect_ms,
		.tos = o->tos,
		.retries = o->retries,
		.rnr_retries = o->rnr_retries,
		.ack_timeout = o->ack_timeout,
		.inline_bytes = o->inline_bytes,
	};
}

/* --- who we are ------------------------------------------------------------------------------- */

/* The first line of a file that nvme-cli and the kernel's host use as well. */
static bool read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool found = file && fgets(line, size, file);

	if (file)
		fclose(file);
	if (found)
		line[strcspn(line, " \t\r\n")] = '\0';
	return found && *line;
}

/* The UUID is made from the machine's id and the user: it is stable, and two users of a machine do
 * not look like one host that connects twice. */
static void generate_host_uuid(uint8_t uuid[16])
{
	char user[32];

	snprintf(user, sizeof(user), "%u", geteuid());
	weft_stable_uuid("host", user, false, uuid);
}

static void default_hostid(uint8_t hostid[16])
{
	char line[64];

	if (!read_line("/etc/nvme/hostid", line, sizeof(line)) || weft_uuid_parse(line, hostid) < 0)
		generate_host_uuid(hostid);
}

static void default_hostnqn(struct host_config *config)
{
	char line[WEFT_NQN_MAX + 2], text[37];
	uint8_t uuid[16];

	if (read_line("/etc/nvme/hostnqn", line, sizeof(line)) && !weft_nqn_check(line, NULL)) {
		snprintf(config->hostnqn, sizeof(config->hostnqn), "%.223s", line);
		return;
	}
	config->hostnqn_generated = true;
	generate_host_uuid(uuid);
	weft_uuid_format(uuid, text);
	snprintf(config->hostnqn, sizeof(config->hostnqn), "nqn.2014-08.org.nvmexpress:uuid:%s",
		 text);
}

static int set_identity(struct host_config *config, struct weft_err *err)
{
	const struct weft_options *o = &config->options;
	int rc = 0;

	default_hostid(config->hostid);
	default_hostnqn(config);
	if (o->hostnqn)
		rc = set_word(config, find_word("hostnqn"), o->hostnqn, err);
	if (rc == 0 && o->hostid)
		rc = set_word(config, find_word("hostid"), o->hostid, err);
	return rc;
}

static int set_cpus_option(struct host_config *config, struct weft_err *err)
{
	const char *cpus = config->options.cpus;

	return cpus ? set_word(config, find_word("cpus"), cpus, err) : 0;
}

/* --- all together ----------------------------------------------------------------------------- */

/* The words have been checked; what the program set has not. */
static int check_connect_options(const struct host_config *config, struct weft_err *err)
{
	for (size_t i = 0; i < NWORDS; i++) {
		const char *at = (const char *)config + words[i].offset;
		uint32_t value;

		if ((words[i].kind != NUMBER && words[i].kind != TIME && words[i].kind != CHOICE) ||
		    at == (const char *)&config->nsid)
			continue;
		memcpy(&value, at, sizeof(value));
		if (value < words[i].min || value > words[i].max)
			return weft_fail(err, -EINVAL, "%s: expected %u to %u, got %u",
					 words[i].name, words[i].min, words[i].max, value);
	}
	return 0;
}

bool host_config_has(const struct host_config *config, const char *word)
{
	return config->words >> (find_word(word) - words) & 1;
}

int host_config_parse(const struct weft_uri_parts *parts, const char *shared,
		      const struct weft_options *options, struct host_config *config,
		      struct weft_err *err)
{
	int rc;

	memset(config, 0, sizeof(*config));
	rc = copy_options(&config->options, options, err);
	if (rc < 0)
		return rc;
	config->transport = weft_link_transport_find(parts->trtype);
	if (!config->transport)
		return weft_fail(err, -EPROTONOSUPPORT,
				 "nvme+%s:// is not built in; see weft version",
				 weft_uri_transport(parts->trtype));
	strcpy(config->subnqn, parts->nqn[0] ? parts->nqn : NVME_NQN_DISCOVERY);
	rc = set_identity(config, err);
	if (rc == 0)
		rc = set_cpus_option(config, err);
	if (rc == 0 && *shared)
		rc = parse_query(config, shared, true, err);
	if (rc == 0 && parts->query[0])
		rc = parse_query(config, parts->query, false, err);
	if (rc == 0)
		rc = check_connect_options(config, err);
	if (rc == 0 && config->options.paths == WEFT_PATHS_DISCOVER && !parts->nqn[0])
		return weft_fail(err, -EINVAL,
				 "paths=discover: of which subsystem? its NQN belongs behind the "
				 "address of the discovery service");
	if (rc == 0 && parts->trtype == NVMF_TRTYPE_RDMA &&
	    (config->options.hdgst || config->options.ddgst))
		return weft_fail(err, -EINVAL,
				 "hdgst, ddgst: digests are TCP's; RDMA checks its packets itself");
	return rc;
}
