/* check.c - checks of a configuration that need more than one value: duplicate names and ids,
 * shared storage, which hosts may connect.
 *
 * All checks run before anything is opened, so that a wrong configuration changes nothing. */
#include "daemon/config/check.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "daemon/config/config.h"

/* --- a namespace: a SPEC may carry nsid=, block= and uuid= as well ---------------------------- */

static int merge_number(struct weft_decoder *d, const char *key, uint32_t *own, uint32_t in_spec)
{
	if (*own && in_spec && *own != in_spec)
		return weft_decode_fail_at(d, key, "%u here, but the backend says %s=%u", *own, key,
					   in_spec);
	if (!*own)
		*own = in_spec;
	return 0;
}

static int merge_uuid(struct weft_decoder *d, struct weft_ns_config *ns)
{
	if (ns->uuid[0] && ns->spec.uuid[0] && strcasecmp(ns->uuid, ns->spec.uuid))
		return weft_decode_fail_at(d, "uuid", "%s here, but the backend says uuid=%s",
					   ns->uuid, ns->spec.uuid);
	if (!ns->uuid[0])
		strcpy(ns->uuid, ns->spec.uuid);
	for (char *at = ns->uuid; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return 0;
}

static int check_size(struct weft_decoder *d, const struct weft_ns_config *ns)
{
	if (ns->block && ns->spec.size % ns->block)
		return weft_decode_fail_at(d, "block", "the backend's size is not a multiple of %u",
					   ns->block);
	return 0;
}

int weft_config_check_ns(struct weft_decoder *d, void *out)
{
	struct weft_ns_config *ns = out;
	int rc;

	rc = merge_number(d, "nsid", &ns->nsid, ns->spec.nsid);
	if (!rc)
		rc = merge_number(d, "block", &ns->block, ns->spec.block);
	if (!rc)
		rc = merge_uuid(d, ns);
	if (!rc)
		rc = check_size(d, ns);
	ns->config_size = ns->spec.size;
	ns->spec.block = ns->block;
	ns->spec.read_only |= ns->read_only;
	return rc;
}

/* --- duplicates ------------------------------------------------------------------------------- */

static bool is_command_line(const struct weft_doc *doc)
{
	return !doc->file && json_object_size(doc->places);
}

/* Notes that @d is where @name was given as its @member; fails if it was given before. */
static int refuse_duplicate(struct weft_decoder *d, json_t *seen, const char *member,
			    const char *name)
{
	const char *before = json_string_value(json_object_get(seen, name));
	char where[128];

	if (!before)
		return json_object_set_new(seen, name, json_string(d->path.text)) < 0 ? -ENOMEM : 0;
	weft_doc_where(d->doc, before, where, sizeof(where));
	if (is_command_line(d->doc))
		return weft_fail(d->err, -EINVAL, "two %s have %s %s", where, member, name);
	return weft_decode_fail_at(d, member, "%s %s is given twice, first in %s", member, name,
				   where);
}

static size_t push_list_item(struct weft_decoder *d, const char *list, unsigned index)
{
	size_t old = weft_doc_path_push_key(&d->path, list);

	weft_doc_path_push_index(&d->path, index);
	return old;
}

static int check_nsid(struct weft_decoder *d, json_t *seen, const struct weft_ns_config *ns)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", ns->nsid);
	return ns->nsid ? refuse_duplicate(d, seen, "nsid", name) : 0;
}

static int check_nsids(struct weft_decoder *d, struct weft_subsys_config *subsys, json_t *seen)
{
	struct weft_ns_config *ns = subsys->namespaces.at;
	size_t old;
	int rc = 0;

	if (subsys->namespaces.count > WEFT_NSID_MAX)
		return weft_decode_fail_at(d, "namespaces", "expected at most %d, got %u",
					   WEFT_NSID_MAX, subsys->namespaces.count);
	for (unsigned i = 0; i < subsys->namespaces.count && !rc; i++) {
		old = push_list_item(d, "namespaces", i);
		rc = check_nsid(d, seen, &ns[i]);
		weft_doc_path_pop(&d->path, old);
	}
	return rc;
}

/* Namespaces without a number get the lowest that nobody asked for, in order. */
static void assign_nsids(struct weft_subsys_config *subsys, json_t *seen)
{
	struct weft_ns_config *ns = subsys->namespaces.at;
	uint32_t next = 1;
	char name[16];

	for (unsigned i = 0; i < subsys->namespaces.count; i++) {
		if (ns[i].nsid)
			continue;
		do
			snprintf(name, sizeof(name), "%u", next++);
		while (json_object_get(seen, name));
		ns[i].nsid = next - 1;
		assert(ns[i].nsid <= WEFT_NSID_MAX);
	}
}

static int check_uuids(struct weft_decoder *d, const struct weft_subsys_config *subsys,
		       json_t *seen)
{
	const struct weft_ns_config *ns = subsys->namespaces.at;
	size_t old;
	int rc = 0;

	for (unsigned i = 0; i < subsys->namespaces.count && !rc; i++) {
		old = push_list_item(d, "namespaces", i);
		if (ns[i].uuid[0])
			rc = refuse_duplicate(d, seen, "uuid", ns[i].uuid);
		weft_doc_path_pop(&d->path, old);
	}
	return rc;
}

static int refuse_same_storage(struct weft_decoder *d, json_t *before, const struct weft_spec *spec)
{
	const char *path = json_string_value(json_object_get(before, "path"));
	const char *backend = json_string_value(json_object_get(before, "backend"));
	char where[128];

	if (is_command_line(d->doc))
		return weft_fail(d->err, -EINVAL, "two --ns have the same storage, %s and %s:%s",
				 backend, spec->type, spec->arg);
	weft_doc_where(d->doc, path, where, sizeof(where));
	return weft_decode_fail_at(d, "backend", "%s:%s is the storage of %s in %s, too",
				   spec->type, spec->arg, backend, where);
}

/* Namespaces that only read may share a file, as their locks allow; a block device has one user. */
static int check_storage(struct weft_decoder *d, json_t *seen, const struct weft_spec *spec)
{
	bool shared = spec->read_only && !spec->ops->exclusive;
	char name[WEFT_STORAGE_NAME_MAX];
	json_t *before;

	if (!weft_spec_storage_name(spec, name))
		return 0;
	before = json_object_get(seen, name);
	if (before && !(shared && json_is_true(json_object_get(before, "shared"))))
		return refuse_same_storage(d, before, spec);
	if (before)
		return 0;
	before = json_pack("{s:s, s:o, s:b}", "path", d->path.text, "backend",
			   json_sprintf("%s:%s", spec->type, spec->arg), "shared", shared);
	return json_object_set_new_nocheck(seen, name, before) < 0 ? -ENOMEM : 0;
}

static int check_storages(struct weft_decoder *d, const struct weft_subsys_config *subsys,
			  json_t *seen)
{
	const struct weft_ns_config *ns = subsys->namespaces.at;
	size_t old;
	int rc = 0;

	for (unsigned i = 0; i < subsys->namespaces.count && !rc; i++) {
		old = push_list_item(d, "namespaces", i);
		rc = check_storage(d, seen, &ns[i].spec);
		weft_doc_path_pop(&d->path, old);
	}
	return rc;
}

static int check_ana(struct weft_decoder *d, const struct weft_subsys_config *subsys)
{
	const struct weft_ana_rule *rule = subsys->ana.at;
	char path[32];

	for (unsigned i = 1; i < subsys->ana.count; i++) {
		for (unsigned j = 0; j < i; j++) {
			if (!weft_ana_rule_same(&rule[i], &rule[j]))
				continue;
			snprintf(path, sizeof(path), "ana[%u]", i);
			return weft_decode_fail_at(
				d, path,
				"group %u: another rule is for the same portid and hostnqn",
				rule[i].group);
		}
	}
	return 0;
}

/* --- clusters --------------------------------------------------------------------------------- */

int weft_config_check_cluster(struct weft_decoder *d, void *out)
{
	const struct weft_cluster_config *cluster = out;

	if (cluster->node > cluster->nodes)
		return weft_decode_fail_at(d, "node", "%u here, but there are %u of them",
					   cluster->node, cluster->nodes);
	return 0;
}

/* Storage is opened as our node. */
static int check_cluster_storage(struct weft_decoder *d, struct weft_subsys_config *subsys)
{
	struct weft_ns_config *ns = subsys->namespaces.at;
	int rc = 0;

	if (!subsys->cluster.node)
		return 0;
	if (!subsys->state[0])
		return weft_decode_fail_at(
			d, "cluster", "its members need a state in common; add state: file:PATH");
	for (unsigned i = 0; i < subsys->namespaces.count && !rc; i++) {
		size_t old = push_list_item(d, "namespaces", i);

		ns[i].spec.node = subsys->cluster.node;
		if (!ns[i].spec.ops->node_active)
			rc = weft_decode_fail_at(
				d, "backend",
				"%s: is not storage that the members of a cluster share",
				ns[i].spec.type);
		weft_doc_path_pop(&d->path, old);
	}
	return rc;
}

int weft_config_check_subsys(struct weft_decoder *d, void *out)
{
	struct weft_subsys_config *subsys = out;
	json_auto_t *nsids = json_object(), *uuids = json_object(), *storages = json_object();
	int rc;

	if (subsys->access == WEFT_ALLOWED_ANY && subsys->hosts.at)
		return weft_decode_fail_at(d, "allow_any_host",
					   "true does not go with hosts; leave one of them out");
	/* An empty list is a list: no host may connect. */
	if (subsys->access == WEFT_ALLOWED_DEFAULT && subsys->hosts.at)
		subsys->access = WEFT_ALLOWED_LISTED;
	rc = check_nsids(d, subsys, nsids);
	if (!rc)
		rc = check_uuids(d, subsys, uuids);
	if (!rc)
		rc = check_storages(d, subsys, storages);
	if (!rc)
		rc = check_ana(d, subsys);
	if (!rc)
		rc = check_cluster_storage(d, subsys);
	if (!rc)
		assign_nsids(subsys, nsids);
	return rc;
}

/* --- listeners, and the hosts that may connect through them ----------------------------------- */

/* Port 0 stands for any free one, so the same address twice is two listeners. */
static bool same_listener(const struct weft_uri *a, const struct weft_uri *b)
{
	return weft_addr_port(&a->addr) && a->trtype == b->trtype &&
	       weft_addr_equal(&a->addr, &b->addr);
}

/* Refuses what two listeners cannot both have. */
static int check_listener_pair(struct weft_decoder *d, const char *path, const struct weft_uri *a,
			       const struct weft_uri *b)
{
	char text[WEFT_URI_MAX];

	weft_uri_format(a->trtype, &a->addr, text, sizeof(text));
	if (same_listener(a, b))
		return weft_decode_fail_at(d, path, "%s is given twice", text);
	if (a->portid && a->portid == b->portid)
		return weft_decode_fail_at(d, path, "portid %u is given twice", a->portid);
	return 0;
}

static int check_listen(struct weft_decoder *d, const struct weft_config *config)
{
	const struct weft_uri *uri = config->listen.at;
	char path[32];
	int rc = 0;

	for (unsigned i = 1; i < config->listen.count; i++) {
		snprintf(path, sizeof(path), "listen[%u]", i);
		for (unsigned j = 0; j < i && !rc; j++)
			rc = check_listener_pair(d, path, &uri[i], &uri[j]);
	}
	return rc;
}

static bool portid_given(const struct weft_config *config, unsigned portid)
{
	const struct weft_uri *uri = config->listen.at;

	for (unsigned i = 0; i < config->listen.count; i++)
		if (uri[i].portid == portid)
			return true;
	return false;
}

/* The port ids of two members of a cluster never overlap. */
static unsigned first_portid(const struct weft_config *config)
{
	const struct weft_subsys_config *subsys = config->subsystems.at;

	for (unsigned i = 0; i < config->subsystems.count; i++)
		if (subsys[i].cluster.node)
			return (subsys[i].cluster.node - 1) * WEFT_NODE_PORTS + 1;
	return 1;
}

void weft_config_assign_portids(struct weft_config *config)
{
	struct weft_uri *uri = config->listen.at;
	unsigned next = first_portid(config);

	for (unsigned i = 0; i < config->listen.count; i++) {
		if (uri[i].portid)
			continue;
		while (portid_given(config, next))
			next++;
		uri[i].portid = (uint16_t)next;
		uri[i].portid_chosen = true;
	}
}

/* The first address that other machines can reach, or "". */
static void find_exposed(const struct weft_config *config, char *text, size_t size)
{
	const struct weft_uri *uri = config->listen.at;

	text[0] = '\0';
	for (unsigned i = 0; i < config->listen.count && !text[0]; i++) {
		if (!weft_addr_is_loopback(&uri[i].addr))
			weft_uri_format(uri[i].trtype, &uri[i].addr, text, size);
	}
}

int weft_config_check_allowed(const struct weft_subsys_config *subsys, const char *exposed,
			      const struct weft_doc *doc, const char *path, struct weft_err *err)
{
	if (!exposed || subsys->access != WEFT_ALLOWED_DEFAULT)
		return 0;
	weft_doc_fail(doc, err, path, "%s is not loopback, so %s must say who may connect: %s",
		      exposed, subsys->nqn,
		      is_command_line(doc) ? "add --allow HOSTNQN, or --allow-any-host" :
					     "add hosts, or allow_any_host: true");
	return -EPERM;
}

static int check_subsystems(struct weft_decoder *d, const struct weft_config *config,
			    const char *exposed)
{
	const struct weft_subsys_config *subsys = config->subsystems.at;
	json_auto_t *nqns = json_object(), *uuids = json_object(), *storages = json_object();
	size_t old;
	int rc = 0;

	for (unsigned i = 0; i < config->subsystems.count && !rc; i++) {
		old = push_list_item(d, "subsystems", i);
		rc = refuse_duplicate(d, nqns, "nqn", subsys[i].nqn);
		if (!rc)
			rc = check_uuids(d, &subsys[i], uuids);
		if (!rc)
			rc = check_storages(d, &subsys[i], storages);
		if (!rc)
			rc = weft_config_check_allowed(&subsys[i], exposed, d->doc, d->path.text,
						       d->err);
		weft_doc_path_pop(&d->path, old);
	}
	return rc;
}

int weft_config_check(struct weft_decoder *d, void *out)
{
	struct weft_config *config = out;
	char exposed[WEFT_URI_MAX];
	int rc;

	find_exposed(config, exposed, sizeof(exposed));
	rc = check_listen(d, config);
	return rc < 0 ? rc : check_subsystems(d, config, exposed[0] ? exposed : NULL);
}
