/* warnings.c - warnings: sentences about settings that are accepted and may not be what was meant.
 *
 * A warning goes to the caller, from --check or with the result of a call, and into the log. */
#include "base/log.h"
#include "base/size.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"

void weft_warn_spec(json_t *warnings, const struct weft_spec *spec)
{
	struct weft_err why = { "" };

	if (weft_spec_warning(spec, &why))
		json_array_append_new(warnings, json_string(why.text));
}

/* --- ANA rules about ports and groups that do not exist --------------------------------------- */

/* In a cluster we do not know the ports of other members. */
static bool is_our_port(const struct weft_ana_known *known, uint32_t portid)
{
	return !known->node || (portid - 1) / WEFT_NODE_PORTS == known->node - 1;
}

static bool has_number(json_t *list, uint32_t number)
{
	json_t *item;
	size_t index;

	json_array_foreach(list, index, item)
		if (json_integer_value(item) == number)
			return true;
	return false;
}

void weft_warn_ana(json_t *warnings, const struct weft_ana_known *known,
		   const struct weft_items *rules)
{
	const struct weft_ana_rule *rule = rules->at;

	for (unsigned i = 0; i < rules->count; i++) {
		if (rule[i].portid && is_our_port(known, rule[i].portid) &&
		    !has_number(known->ports, rule[i].portid))
			json_array_append_new(
				warnings,
				json_sprintf("%s: a rule is for port id %u, which no listener has",
					     known->nqn, rule[i].portid));
		if (!has_number(known->groups, rule[i].group))
			json_array_append_new(
				warnings,
				json_sprintf("%s: a rule is for group %u, which no namespace is in",
					     known->nqn, rule[i].group));
	}
}

static void warn_config_ana(json_t *warnings, const struct weft_config *config,
			    const struct weft_subsys_config *subsys)
{
	json_auto_t *ports = json_array(), *groups = json_array();
	const struct weft_ana_known known = { subsys->nqn, subsys->cluster.node, ports, groups };
	const struct weft_ns_config *ns = subsys->namespaces.at;
	const struct weft_uri *uri = config->listen.at;

	for (unsigned i = 0; i < config->listen.count; i++)
		json_array_append_new(ports, json_integer(uri[i].portid));
	for (unsigned i = 0; i < subsys->namespaces.count; i++)
		json_array_append_new(groups, json_integer(ns[i].ana_group ? ns[i].ana_group : 1));
	weft_warn_ana(warnings, &known, &subsys->ana);
}

/* --- sizes that were changed and not saved ---------------------------------------------------- */

void weft_warn_size(json_t *warnings, struct weft_daemon *d, const char *nqn, uint32_t nsid,
		    uint64_t size)
{
	const struct weft_ns_config *ns = weft_config_ns(d->config, nqn, nsid);
	const char *file = d->doc->file;
	char said[32];

	if (!ns || !ns->config_size || ns->config_size == size)
		return;
	weft_size_format(ns->config_size, said, sizeof(said));
	json_array_append_new(
		warnings,
		json_sprintf("%s namespace %u: %s still says %s, and the next start goes by that; "
			     "weft ctl save %swrites what runs%s",
			     nqn, nsid, file ? file : "the command that started this target", said,
			     file ? "" : "path=FILE ", file ? "" : ", for weft serve -c FILE"));
}

/* --- changes that other members of a cluster do not get --------------------------------------- */

void weft_warn_members(json_t *warnings, struct weft_daemon *d, const char *nqn)
{
	unsigned node = weft_daemon_cluster_node(d, nqn);

	if (node)
		json_array_append_new(
			warnings,
			json_sprintf(
				"%s: this changed the list of hosts of node %u only; each member of "
				"a cluster has its own: call the others too",
				nqn, node));
}

void weft_warn_members_ns(json_t *warnings, struct weft_daemon *d, char nqn[WEFT_NQN_MAX + 1],
			  uint32_t nsid, const char *done)
{
	struct weft_subsys *s;

	if (weft_daemon_find_subsys(d, nqn, &s, NULL) < 0 || weft_ns_is_everywhere(s, nsid))
		return;
	json_array_append_new(
		warnings,
		json_sprintf("%s: namespace %u is %s on node %u only; each member of a cluster has "
			     "its own namespaces: call the others too, before the group moves",
			     nqn, nsid, done, weft_subsys_node(s)));
}

/* --- a configuration, a subsystem ------------------------------------------------------------- */

void weft_warn_subsys(json_t *warnings, const struct weft_subsys_config *subsys)
{
	const struct weft_ns_config *ns = subsys->namespaces.at;

	if (weft_nqn_check(subsys->nqn, NULL) < 0)
		json_array_append_new(warnings,
				      json_sprintf("%s is not of the form nqn.YYYY-MM.DOMAIN:NAME; "
						   "some hosts may refuse it",
						   subsys->nqn));
	for (unsigned i = 0; i < subsys->namespaces.count; i++)
		weft_warn_spec(warnings, &ns[i].spec);
}

json_t *weft_config_warnings(const struct weft_config *config)
{
	const struct weft_subsys_config *subsys = config->subsystems.at;
	json_t *warnings = json_array();

	for (unsigned i = 0; i < config->subsystems.count; i++) {
		weft_warn_subsys(warnings, &subsys[i]);
		warn_config_ana(warnings, config, &subsys[i]);
	}
	return warnings;
}

void weft_daemon_log_warnings(json_t *warnings)
{
	json_t *warning;
	size_t index;

	json_array_foreach(warnings, index, warning)
		weft_warn("%s", json_string_value(warning));
}

void weft_rpc_result_warned(struct weft_rpc_call *call, json_t *result, json_t *warnings)
{
	weft_daemon_log_warnings(warnings);
	if (json_array_size(warnings))
		json_object_set(result, "warnings", warnings);
	json_decref(warnings);
	weft_rpc_result(call, result);
}
