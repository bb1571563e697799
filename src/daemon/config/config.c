/* config.c - the configuration's schemas, and decoders of our own types: NQNs, addresses, SPECs.
 *
 * Checks that need more than one value (duplicate names, which hosts may connect) are in
 * check.c. */
#include "daemon/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpus.h"
#include "daemon/config/check.h"
#include "proto/nvme.h"

/* --- values ----------------------------------------------------------------------------------- */

static int decode_nqn(struct weft_decoder *d, json_t *value, void *out,
		      int (*check)(const char *nqn, struct weft_err *err))
{
	const char *text = json_string_value(value);
	struct weft_err why = { "" };

	if (!text)
		return weft_decode_expected(d, value, "an NQN");
	if (check(text, &why) < 0)
		return weft_decode_fail(d, "%s", why.text);
	strcpy(out, text);
	return 0;
}

int weft_decode_hostnqn(struct weft_decoder *d, const struct weft_schema_field *field,
			json_t *value, void *out)
{
	const char *text = json_string_value(value);

	if (text && strncmp(text, "nqn.", 4))
		return weft_decode_expected(d, value,
					    "a host's NQN such as nqn.2014-08.org.nvmexpress:uuid:"
					    "01234567-89ab-cdef-0123-456789abcdef");
	return decode_nqn(d, value, out, weft_nqn_check);
}

int weft_decode_subnqn(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		       void *out)
{
	return decode_nqn(d, value, out, weft_subnqn_check);
}

static int decode_subsys_nqn(struct weft_decoder *d, const struct weft_schema_field *field,
			     json_t *value, void *out)
{
	int rc = weft_decode_subnqn(d, field, value, out);

	if (!rc && !strcmp(out, NVME_NQN_DISCOVERY))
		return weft_decode_fail(
			d, "this NQN is the discovery service's, which is always there");
	return rc;
}

int weft_decode_listen(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		       void *out)
{
	const char *text = json_string_value(value);
	struct weft_err why = { "" };
	struct weft_uri *uri = out;

	if (!text)
		return weft_decode_expected(d, value,
					    "an address such as nvme+tcp://127.0.0.1:4420");
	if (weft_uri_parse(text, uri, &why) < 0)
		return weft_decode_fail(d, "%s", why.text);
	if (uri->nqn[0])
		return weft_decode_fail(d, "expected an address without a subsystem, got \"/%s\"",
					uri->nqn);
	return 0;
}

static int decode_spec(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		       void *out)
{
	const char *text = json_string_value(value);
	struct weft_err why = { "" };

	if (!text)
		return weft_decode_expected(d, value, "a backend such as \"mem:1G\"");
	if (weft_spec_parse(text, out, &why) < 0)
		return weft_decode_fail(d, "%s", why.text);
	return 0;
}

/* Identify Controller holds serial and model as printable ASCII. */
static int decode_ascii(struct weft_decoder *d, const struct weft_schema_field *field,
			json_t *value, void *out)
{
	int rc = weft_decode_text(d, field, value, out);

	for (const char *at = out; !rc && *at; at++) {
		if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
			rc = weft_decode_expected(d, value, "printable ASCII");
	}
	return rc;
}

static int decode_state(struct weft_decoder *d, const struct weft_schema_field *field,
			json_t *value, void *out)
{
	const char *text = json_string_value(value);

	if (!text || strncmp(text, "file:", 5) || !text[5] || strlen(text) > field->max)
		return weft_decode_expected(d, value, "file:PATH");
	strcpy(out, text);
	return 0;
}

static bool is_uuid(const char *text)
{
	const char *shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	for (; *shape; text++, shape++) {
		if (*shape == 'x' ? !isxdigit((unsigned char)*text) : *text != '-')
			return false;
	}
	return !*text;
}

static int decode_uuid(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		       void *out)
{
	const char *text = json_string_value(value), *nil = "-0";

	if (!text || !is_uuid(text) || strspn(text, nil) == strlen(text))
		return weft_decode_expected(d, value, "a UUID that is not all zero");
	strcpy(out, text);
	return 0;
}

static int decode_block(struct weft_decoder *d, const struct weft_schema_field *field,
			json_t *value, void *out)
{
	json_int_t block = json_integer_value(value);

	if (block != 512 && block != 4096)
		return weft_decode_expected(d, value, "512 or 4096");
	*(uint32_t *)out = (uint32_t)block;
	return 0;
}

static int decode_access(struct weft_decoder *d, const struct weft_schema_field *field,
			 json_t *value, void *out)
{
	bool any;
	int rc = weft_decode_bool(d, field, value, &any);

	if (!rc)
		*(enum weft_allowed_hosts *)out = any ? WEFT_ALLOWED_ANY : WEFT_ALLOWED_LISTED;
	return rc;
}

static int decode_cpus(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		       void *out)
{
	struct weft_err why = { "" };
	struct weft_number_text number;
	const char *text = weft_decode_as_text(d, value, "CPUs such as 0-3,5", &number);

	if (!text)
		return -EINVAL;
	if (weft_cpus_parse_usable(text, out, &why) < 0)
		return weft_decode_fail(d, "%s", why.text);
	return 0;
}

/* --- schemas ---------------------------------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct weft_ns_config, member)
static const struct weft_schema_field ns_fields[] = {
	{ "nsid", weft_decode_number, AT(nsid), .min = 1, .max = WEFT_NSID_MAX },
	{ "backend", decode_spec, AT(spec), .required = true, .expected = "a SPEC such as mem:1G" },
	{ "block", decode_block, AT(block) },
	{ "uuid", decode_uuid, AT(uuid) },
	{ "ro", weft_decode_bool, AT(read_only) },
	{ "ana_group", weft_decode_number, AT(ana_group), .min = 1, .max = WEFT_ANA_GROUP_MAX },
	{},
};
#undef AT

const struct weft_schema weft_ns_schema = { ns_fields, weft_config_check_ns };

static const struct weft_schema_field ns_item = { .decode = weft_decode_map,
						  .map = &weft_ns_schema };
static const struct weft_schema_field host_item = { .decode = weft_decode_hostnqn };

#define AT(member) .offset = offsetof(struct weft_ana_rule, member)
static const struct weft_schema ana_map = { (const struct weft_schema_field[]){
	{ "group", weft_decode_number, AT(group), .required = true, .min = 1,
	  .max = WEFT_ANA_GROUP_MAX },
	{ "state", weft_decode_word, AT(state), .required = true, .words = weft_ana_names },
	{ "portid", weft_decode_number, AT(portid), .min = 1, .max = 65535 },
	{ "hostnqn", weft_decode_hostnqn, AT(hostnqn) },
	{},
} };
#undef AT

const struct weft_schema_field weft_ana_item = { .decode = weft_decode_map, .map = &ana_map };

#define AT(member) .offset = offsetof(struct weft_cluster_config, member)
static const struct weft_schema_field cluster_fields[] = {
	{ "node", weft_decode_number, AT(node), .required = true, .min = 1, .max = WEFT_NODES_MAX },
	{ "of", weft_decode_number, AT(nodes), .required = true, .min = 2, .max = WEFT_NODES_MAX },
	{},
};
#undef AT

static const struct weft_schema cluster_map = { cluster_fields, weft_config_check_cluster };

#define AT(member) .offset = offsetof(struct weft_subsys_config, member)
static const struct weft_schema_field subsys_fields[] = {
	{ "nqn", decode_subsys_nqn, AT(nqn), .required = true },
	{ "serial", decode_ascii, AT(serial), .min = 1, .max = 20 },
	{ "model", decode_ascii, AT(model), .min = 1, .max = 40 },
	{ "state", decode_state, AT(state), .max = WEFT_STATE_MAX },
	{ "cluster", weft_decode_map, AT(cluster), .map = &cluster_map },
	{ "allow_any_host", decode_access, AT(access) },
	{ "hosts", weft_decode_list, AT(hosts), .item = &host_item, .item_size = WEFT_NQN_MAX + 1 },
	{ "namespaces", weft_decode_list, AT(namespaces), .item = &ns_item,
	  .item_size = sizeof(struct weft_ns_config) },
	{ "ana", weft_decode_list, AT(ana), .item = &weft_ana_item,
	  .item_size = sizeof(struct weft_ana_rule) },
	{},
};
#undef AT

const struct weft_schema weft_subsys_schema = { subsys_fields, weft_config_check_subsys };

static const struct weft_schema_field listen_item = { .decode = weft_decode_listen };
static const struct weft_schema_field subsys_item = { .decode = weft_decode_map,
						      .map = &weft_subsys_schema };

static const char *const engines[] = {
	[WEFT_ENGINE_AUTO] = "auto",
	[WEFT_ENGINE_URING] = "uring",
	[WEFT_ENGINE_EPOLL] = "epoll",
	NULL,
};

#define AT(member) .offset = offsetof(struct weft_config, member)
static const struct weft_schema_field config_fields[] = {
	{ "listen", weft_decode_list, AT(listen), .item = &listen_item,
	  .item_size = sizeof(struct weft_uri) },
	{ "control", weft_decode_text, AT(control), .min = 1, .max = WEFT_CONTROL_MAX },
	{ "cpus", decode_cpus, AT(cpus) },
	{ "engine", weft_decode_word, AT(engine), .words = engines },
	{ "poll", weft_decode_bool, AT(poll) },
	{ "depth", weft_decode_number, AT(depth), .min = 2, .max = 65535 },
	{ "queues", weft_decode_number, AT(queues), .min = 1, .max = 65534 },
	{ "max_queues", weft_decode_number, AT(queues_max), .min = 2, .max = 1000000 },
	{ "subsystems", weft_decode_list, AT(subsystems), .item = &subsys_item,
	  .item_size = sizeof(struct weft_subsys_config) },
	{},
};
#undef AT

static const struct weft_schema config_map = { config_fields, weft_config_check };

/* --- the configuration ------------------------------------------------------------------------ */

static int set_defaults(struct weft_config *config, struct weft_err *err)
{
	memset(config, 0, sizeof(*config));
	config->depth = 1024;
	config->queues = 128;
	config->queues_max = 16384;
	if (sched_getaffinity(0, sizeof(config->cpus), &config->cpus) < 0)
		return weft_fail(err, -errno, "sched_getaffinity: %s", strerror(errno));
	return 0;
}

static int listen_by_default(struct weft_config *config, struct weft_err *err)
{
	config->listen.at = calloc(1, sizeof(struct weft_uri));
	if (!config->listen.at)
		return -ENOMEM;
	config->listen.count = 1;
	return weft_uri_parse("nvme+tcp://127.0.0.1:4420", config->listen.at, err);
}

int weft_config_read(struct weft_config *config, const struct weft_doc *doc, struct weft_err *err)
{
	int rc;

	rc = set_defaults(config, err);
	if (!rc)
		rc = weft_decode(doc, &config_map, config, err);
	if (!rc && !config->listen.at)
		rc = listen_by_default(config, err);
	if (!rc)
		weft_config_assign_portids(config);
	if (!rc && !config->control[0]) {
		config->control_default = true;
		weft_control_socket_default_path(config->control);
	}
	if (rc < 0)
		weft_config_free(config);
	return rc < 0 ? weft_fail(err, rc, "%s", strerror(-rc)) : 0;
}

struct weft_subsys_config *weft_config_subsys(struct weft_config *config, const char *nqn)
{
	struct weft_subsys_config *subsys = config->subsystems.at;

	for (unsigned i = 0; i < config->subsystems.count; i++)
		if (!strcmp(subsys[i].nqn, nqn))
			return &subsys[i];
	return NULL;
}

struct weft_ns_config *weft_config_ns(struct weft_config *config, const char *nqn, uint32_t nsid)
{
	struct weft_subsys_config *subsys = weft_config_subsys(config, nqn);
	struct weft_ns_config *ns = subsys ? subsys->namespaces.at : NULL;

	for (unsigned i = 0; subsys && i < subsys->namespaces.count; i++)
		if (ns[i].nsid == nsid)
			return &ns[i];
	return NULL;
}

void weft_ns_config_free(struct weft_ns_config *ns)
{
	if (ns->be)
		weft_backend_close(ns->be);
	ns->be = NULL;
}

void weft_subsys_config_free(struct weft_subsys_config *subsys)
{
	struct weft_ns_config *ns = subsys->namespaces.at;

	for (unsigned i = 0; i < subsys->namespaces.count; i++)
		weft_ns_config_free(&ns[i]);
	free(subsys->namespaces.at);
	free(subsys->hosts.at);
	free(subsys->ana.at);
	memset(subsys, 0, sizeof(*subsys));
}

void weft_config_free(struct weft_config *config)
{
	struct weft_subsys_config *subsys = config->subsystems.at;

	for (unsigned i = 0; i < config->subsystems.count; i++)
		weft_subsys_config_free(&subsys[i]);
	free(config->subsystems.at);
	free(config->listen.at);
	memset(config, 0, sizeof(*config));
}

void weft_control_socket_default_path(char path[WEFT_CONTROL_MAX + 1])
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	const size_t size = WEFT_CONTROL_MAX + 1;

	if (!geteuid())
		snprintf(path, size, "/run/weft/control.sock");
	else if (run && run[0] == '/' && strlen(run) < size - sizeof("/weft/control.sock"))
		snprintf(path, size, "%s/weft/control.sock", run);
	else
		snprintf(path, size, "/tmp/weft-%u/control.sock", (unsigned)geteuid());
}
