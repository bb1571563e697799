/* methods.c - the table of control methods, and the schemas of their parameters. */
#include "daemon/control/methods.h"

#include <stdlib.h>
#include <string.h>

/* --- parameters ------------------------------------------------------------------------------- */

static const struct weft_schema no_params = { (const struct weft_schema_field[]){ {} } };

#define AT(type, member) .offset = offsetof(struct type, member)
#define NSID_RANGE       .min = 1, .max = WEFT_NSID_MAX

static const struct weft_schema subsys_params = { (const struct weft_schema_field[]){
	{ "nqn", weft_decode_subnqn, AT(weft_subsys_params, nqn), .required = true },
	{},
} };

static int decode_host(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		       void *out)
{
	const char *text = json_string_value(value);

	if (!text || strcmp(text, "any"))
		return weft_decode_hostnqn(d, field, value, out);
	strcpy(out, text);
	return 0;
}

static const struct weft_schema host_params = { (const struct weft_schema_field[]){
	{ "nqn", weft_decode_subnqn, AT(weft_host_params, nqn) },
	{ "host", decode_host, AT(weft_host_params, host), .required = true },
	{},
} };

static const struct weft_schema ns_params = { (const struct weft_schema_field[]){
	{ "nqn", weft_decode_subnqn, AT(weft_ns_params, nqn) },
	{ "nsid", weft_decode_number, AT(weft_ns_params, nsid), .required = true, NSID_RANGE },
	{},
} };

static const struct weft_schema ns_resize_params = { (const struct weft_schema_field[]){
	{ "nqn", weft_decode_subnqn, AT(weft_ns_params, nqn) },
	{ "nsid", weft_decode_number, AT(weft_ns_params, nsid), .required = true, NSID_RANGE },
	{ "size", weft_decode_size, AT(weft_ns_params, size), .required = true },
	{ "shrink", weft_decode_bool, AT(weft_ns_params, shrink) },
	{},
} };

static const struct weft_schema ns_add_params = { (const struct weft_schema_field[]){
	{ "nqn", weft_decode_subnqn, AT(weft_ns_add_params, nqn) },
	{ .map = &weft_ns_schema, AT(weft_ns_add_params, ns) },
	{},
} };

static const struct weft_schema ana_params = { (const struct weft_schema_field[]){
	{ "nqn", weft_decode_subnqn, AT(weft_ana_params, nqn) },
	{ "rules", weft_decode_list, AT(weft_ana_params, rules), .required = true,
	  .item = &weft_ana_item, .item_size = sizeof(struct weft_ana_rule) },
	{ "replace", weft_decode_bool, AT(weft_ana_params, replace) },
	{},
} };

static const struct weft_schema node_params = { (const struct weft_schema_field[]){
	{ "nqn", weft_decode_subnqn, AT(weft_subsys_params, nqn) },
	{},
} };

static const struct weft_schema move_params = { (const struct weft_schema_field[]){
	{ "nqn", weft_decode_subnqn, AT(weft_move_params, nqn) },
	{ "group", weft_decode_number, AT(weft_move_params, group), .min = 1,
	  .max = WEFT_ANA_GROUP_MAX },
	{ "node", weft_decode_number, AT(weft_move_params, node), .required = true, .min = 1,
	  .max = WEFT_NODES_MAX },
	{},
} };

static const struct weft_schema listener_params = { (const struct weft_schema_field[]){
	{ "listen", weft_decode_listen, AT(weft_listener_params, uri), .required = true },
	{},
} };

static const struct weft_schema save_params = { (const struct weft_schema_field[]){
	{ "path", weft_decode_text, AT(weft_save_params, path), .min = 1,
	  .max = sizeof(((struct weft_save_params *)0)->path) - 1 },
	{ "force", weft_decode_bool, AT(weft_save_params, force) },
	{},
} };

static const struct weft_schema takeover_params = { (const struct weft_schema_field[]){
	{ "format", weft_decode_number, AT(weft_takeover_params, format), .required = true,
	  .max = UINT32_MAX },
	{ "drop_rdma", weft_decode_bool, AT(weft_takeover_params, drop_rdma) },
	{},
} };

static void free_subsys(void *params)
{
	weft_subsys_config_free(params);
}

static void free_ns_add(void *params)
{
	weft_ns_config_free(&((struct weft_ns_add_params *)params)->ns);
}

static void free_ana(void *params)
{
	free(((struct weft_ana_params *)params)->rules.at);
}

/* --- the table -------------------------------------------------------------------------------- */

static void list_methods(struct weft_rpc_call *call, void *params);

const struct weft_rpc_method weft_rpc_methods[] = {
	{ "status", "what is running: listeners, subsystems, namespaces, controllers", &no_params,
	  0, NULL, weft_method_status },
	{ "subsystem-add", "create a subsystem, as an item of subsystems: in the file",
	  &weft_subsys_schema, sizeof(struct weft_subsys_config), free_subsys,
	  weft_method_subsys_add },
	{ "subsystem-remove", "disconnect its hosts and delete a subsystem", &subsys_params,
	  sizeof(struct weft_subsys_params), NULL, weft_method_subsys_remove },
	{ "namespace-add", "add a namespace, as an item of namespaces: in the file", &ns_add_params,
	  sizeof(struct weft_ns_add_params), free_ns_add, weft_method_ns_add },
	{ "namespace-resize", "change the size of a namespace; shrink=true lets it cut",
	  &ns_resize_params, sizeof(struct weft_ns_params), NULL, weft_method_ns_resize },
	{ "namespace-remove", "remove a namespace when the I/O to it has ended", &ns_params,
	  sizeof(struct weft_ns_params), NULL, weft_method_ns_remove },
	{ "ana-set", "set ANA rules, as in ana: of the file; replace=true drops all others",
	  &ana_params, sizeof(struct weft_ana_params), free_ana, weft_method_ana_set },
	{ "drain", "hand all groups of a cluster's subsystem to other members, and take none",
	  &node_params, sizeof(struct weft_subsys_params), NULL, weft_method_drain },
	{ "undrain", "take groups of a cluster's subsystem again", &node_params,
	  sizeof(struct weft_subsys_params), NULL, weft_method_undrain },
	{ "move", "hand a group, or all, of a cluster's subsystem to a member", &move_params,
	  sizeof(struct weft_move_params), NULL, weft_method_move },
	{ "host-allow", "let a host, or any, use a subsystem", &host_params,
	  sizeof(struct weft_host_params), NULL, weft_method_host_allow },
	{ "host-refuse", "take a host off the list and disconnect it; any: only the list counts",
	  &host_params, sizeof(struct weft_host_params), NULL, weft_method_host_refuse },
	{ "listener-add", "listen on one more address; port 0 is a free one", &listener_params,
	  sizeof(struct weft_listener_params), NULL, weft_method_listener_add },
	{ "listener-remove", "listen there no longer; connections stay", &listener_params,
	  sizeof(struct weft_listener_params), NULL, weft_method_listener_remove },
	{ "save", "write the running configuration to the file read at the start, or to path",
	  &save_params, sizeof(struct weft_save_params), NULL, weft_method_save },
	{ "takeover", "for weft serve --takeover: begins to hand everything over", &takeover_params,
	  sizeof(struct weft_takeover_params), NULL, weft_method_takeover },
	{ "methods", "this list", &no_params, 0, NULL, list_methods },
	{},
};

static void list_keys(json_t *keys, const struct weft_schema *map)
{
	for (const struct weft_schema_field *f = map->fields; f->name || f->map; f++) {
		if (f->name)
			json_array_append_new(keys, json_string(f->name));
		else
			list_keys(keys, f->map);
	}
}

static void list_methods(struct weft_rpc_call *call, void *params)
{
	json_t *list = json_array(), *keys;

	for (const struct weft_rpc_method *m = call->rpc->methods; m->name; m++) {
		keys = json_array();
		list_keys(keys, m->params);
		json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", m->name, "help",
						      m->help, "params", keys));
	}
	weft_rpc_result(call, list);
}
