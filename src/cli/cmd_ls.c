/* cmd_ls.c - weft ls: subsystems, the paths to them, their namespaces.
 *
 * The result is a tree of JSON first; --json prints that, ls_tree.c prints it for people.
 *
 *  { subsystems: [ { subnqn, controllers: [ { uri, state, … | error } ], namespaces: [ … ] } ] } */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plural.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "cli/ls.h"
#include "cli/print.h"
#include "cli/progress.h"

static const char usage[] =
	"usage: weft ls [OPTION]... URI\n"
	"\n"
	"A tree of subsystems, the controllers that lead to them, and their namespaces.\n"
	"With the URI of a discovery service (nvme+tcp://HOST:PORT), of every subsystem\n"
	"that it and its referrals list; with that of a subsystem, of this one. With\n"
	"several, \"URI,URI\", of the paths to it.\n"
	"\n"
	"      --json          as JSON\n"
	"      --ns N          only this namespace; instead of nsid=N in the URI\n" WEFT_HOST_USAGE
	"  -h, --help          this text\n" WEFT_URI_USAGE "\n"
	"  weft ls nvme+tcp://127.0.0.1:4420\n";

struct ls {
	const char *command, *uri;
	struct weft_options connect;
	uint32_t nsid; /* of --ns; 0: not given */
	bool json;
	json_t *subsystems;
	unsigned controllers, failed;
	struct weft_err first; /* why the first of them failed */
};

static const struct weft_cli_option options[] = {
	WEFT_CLI_FLAG("json", 0, struct ls, json),
	WEFT_NS_OPTION(struct ls, nsid),
	WEFT_HOST_OPTIONS(struct ls, connect),
	{},
};

/* --- namespaces ------------------------------------------------------------------------------- */

static json_t *ns_json(const struct weft_ns_info *info)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:[]}", "nsid",
			 (json_int_t)info->nsid, "size", (json_int_t)info->size, "capacity",
			 (json_int_t)info->capacity, "used", (json_int_t)info->used, "block_size",
			 (json_int_t)info->block_size, "uuid", info->uuid, "read_only",
			 info->read_only, "paths");
}

/* The entry that another controller's list has made; NULL: there is none, and its place is @at.
 * Both lists are in the order of their ids, so all lookups together walk the list once. */
static json_t *find_ns(json_t *list, uint32_t nsid, size_t *at)
{
	json_t *ns;

	for (; (ns = json_array_get(list, *at)); ++*at) {
		if (weft_json_number(ns, "nsid") >= nsid)
			break;
	}
	return weft_json_number(ns, "nsid") == nsid ? ns : NULL;
}

static void list_ns(struct weft_ctrl *ctrl, uint32_t nsid, size_t base, json_t *list, size_t *at)
{
	json_t *json = find_ns(list, nsid, at);
	struct weft_err err = { "" };
	struct weft_ns_info info;
	struct weft_ns *ns;

	if (weft_ns_open(ctrl, nsid, &ns, &err) < 0) {
		if (!json)
			json_array_insert_new(list, *at,
					      json_pack("{s:I, s:s}", "nsid", (json_int_t)nsid,
							"error", err.text));
		return;
	}
	weft_ns_info(ns, &info);
	if (!json) {
		json = ns_json(&info);
		json_array_insert_new(list, *at, json);
	}
	weft_ls_add_access(ctrl, ns, strcmp(weft_json_text(json, "uuid"), info.uuid), base,
			   json_object_get(json, "paths"));
	weft_ns_close(ns);
}

/* @only: 0, or the one that is wanted. */
static int list_namespaces(struct weft_ctrl *ctrl, uint32_t only, size_t base, json_t *list,
			   struct weft_err *err)
{
	int count = weft_ns_list(ctrl, NULL, 0, err), got;
	_cleanup_(weft_freep) uint32_t *nsids = NULL;
	size_t at = 0;

	if (count <= 0)
		return count;
	nsids = calloc((size_t)count, sizeof(*nsids));
	if (!nsids)
		return weft_fail(err, -ENOMEM, "no memory for %d namespaces", count);
	got = weft_ns_list(ctrl, nsids, (unsigned)count, err);
	for (int i = 0; i < got && i < count; i++) {
		if (!only || only == nsids[i])
			list_ns(ctrl, nsids[i], base, list, &at);
	}
	return got < 0 ? got : 0;
}

/* --- controllers ------------------------------------------------------------------------------ */

static json_t *find_subsystem(struct ls *ls, const char *nqn)
{
	json_t *subsys;
	size_t index;

	json_array_foreach(ls->subsystems, index, subsys) {
		if (!strcmp(weft_json_text(subsys, "subnqn"), nqn))
			return subsys;
	}
	subsys = json_pack("{s:s, s:[], s:[]}", "subnqn", nqn, "controllers", "namespaces");
	json_array_append_new(ls->subsystems, subsys);
	return subsys;
}

static void add_failed(struct ls *ls, const char *nqn, const char *address, const char *why)
{
	json_t *list = json_object_get(find_subsystem(ls, nqn), "controllers");

	ls->failed++;
	weft_fail(&ls->first, 0, "%s", why);
	json_array_append_new(list,
			      json_pack("{s:s, s:s, s:s, s:I}", "uri", address, "state", "failed",
					"error", why, "path", (json_int_t)json_array_size(list)));
}

static uint32_t wanted_ns(const struct ls *ls, const struct weft_ctrl_info *info)
{
	return ls->nsid ? ls->nsid : info->nsid;
}

static void add_live(struct ls *ls, struct weft_ctrl *ctrl)
{
	struct weft_err err = { "" };
	struct weft_ctrl_info info;
	json_t *subsys, *list;
	size_t base;

	weft_ctrl_info(ctrl, &info);
	subsys = find_subsystem(ls, info.subnqn);
	list = json_object_get(subsys, "controllers");
	base = json_array_size(list);
	weft_ls_wait(ctrl);
	ls->failed += weft_ls_add_paths(ctrl, base, list, &ls->first);
	if (list_namespaces(ctrl, wanted_ns(ls, &info), base, json_object_get(subsys, "namespaces"),
			    &err) < 0)
		add_failed(ls, info.subnqn, info.address, err.text);
}

/* What stood behind "?" in the user's URI is meant for the subsystems too. */
static void entry_uri(const struct ls *ls, const struct weft_discovered *e, char *uri, size_t size)
{
	const char *query = strchr(ls->uri, '?');

	snprintf(uri, size, "%s%s", e->uri, query ? query : "");
}

static void list_entry(struct ls *ls, const struct weft_discovered *e)
{
	struct weft_err err = { "" };
	struct weft_path_wait waiting;
	struct weft_ctrl *ctrl;
	char uri[1100];

	ls->controllers++;
	if (!*e->uri) {
		snprintf(uri, sizeof(uri), "%s %s", e->transport, e->address);
		snprintf(err.text, sizeof(err.text),
			 "%s is not built in, or this is no address there; names in a log are not "
			 "looked up",
			 e->transport);
		add_failed(ls, e->subnqn, uri, err.text);
		return;
	}
	entry_uri(ls, e, uri, sizeof(uri));
	if (weft_host_connect(ls->command, uri, &ls->connect, &ctrl, &err) < 0) {
		snprintf(uri, sizeof(uri), "nvme+%s://%s:%s", e->transport, e->address, e->service);
		add_failed(ls, e->subnqn, uri, err.text);
		return;
	}
	weft_host_path_wait(&waiting, ls->command, uri, &ls->connect, ctrl, NULL);
	weft_path_wait_asked(&waiting, NULL);
	add_live(ls, ctrl);
	weft_host_disconnect(&waiting, NULL, ctrl);
}

/* Places that a service lists are looked at as long as a discovery may take. */
static void list_entries(struct ls *ls, const struct weft_discovery *log, const char *command)
{
	double until_s = weft_now_s() + log->left_ms / 1e3;
	unsigned late = 0;

	for (unsigned i = 0; i < log->count; i++) {
		if (log->entries[i].subtype != 2)
			continue;
		if (weft_now_s() < until_s)
			list_entry(ls, &log->entries[i]);
		else
			late++;
	}
	if (!late)
		return;
	fprintf(stderr,
		"%s: warning: %u controller%s not looked at: discovery took too long "
		"(discovery_timeout)\n",
		command, late, late == 1 ? " was" : "s were");
	weft_fail(&ls->first, 0, "discovery took too long");
	ls->controllers += late;
	ls->failed += late;
}

static int list_discovered(struct ls *ls, const char *command, struct weft_err *err)
{
	struct weft_discovery log = { 0 };
	struct weft_path_wait waiting;
	int rc;

	weft_host_path_wait(&waiting, command, ls->uri, &ls->connect, NULL, NULL);
	rc = weft_discover(ls->uri, &ls->connect, &log, err);
	weft_path_wait_end(&waiting);
	if (rc < 0)
		return rc;
	list_entries(ls, &log, command);
	weft_host_print_unfollowed(command, &log);
	weft_discovery_free(&log);
	return 0;
}

/* Of several subsystems, some may not have it; where one was named, it has to. */
static int list_subsystem(struct ls *ls, struct weft_ctrl *ctrl, const struct weft_ctrl_info *info,
			  struct weft_err *err)
{
	json_t *subsys;

	ls->controllers += weft_ctrl_paths(ctrl, NULL, 0);
	add_live(ls, ctrl);
	subsys = find_subsystem(ls, info->subnqn);
	if (!wanted_ns(ls, info) || ls->failed ||
	    json_array_size(json_object_get(subsys, "namespaces")))
		return 0;
	return weft_host_no_ns(ls->uri, wanted_ns(ls, info), err);
}

static int list_target(struct ls *ls, const char *command, struct weft_err *err)
{
	struct weft_ctrl_info info;
	struct weft_path_wait waiting;
	struct weft_ctrl *ctrl;
	int rc = weft_host_connect(command, ls->uri, &ls->connect, &ctrl, err);

	if (rc < 0)
		return rc;
	weft_ctrl_info(ctrl, &info);
	weft_host_path_wait(&waiting, command, ls->uri, &ls->connect, ctrl, NULL);
	weft_path_wait_asked(&waiting, NULL);
	if (!info.discovery)
		rc = list_subsystem(ls, ctrl, &info, err);
	weft_host_disconnect(&waiting, NULL, ctrl);
	return info.discovery ? list_discovered(ls, command, err) : rc;
}

/* --- the command ------------------------------------------------------------------------------ */

/* A target shows a host that is not on its lists the same as one without subsystems. */
static int print_result(struct ls *ls, const char *command)
{
	json_auto_t *all = json_pack("{s:O}", "subsystems", ls->subsystems);

	weft_ls_complete_access(ls->subsystems);
	if (ls->json)
		weft_print_json(all, false);
	else if (!json_array_size(ls->subsystems))
		weft_host_print_nothing("no subsystem is exported to this host", ls->uri,
					&ls->connect);
	else
		weft_ls_print_tree(ls->subsystems);
	if (!ls->failed)
		return EXIT_OK;
	fprintf(stderr, "%s: %u of %u controller%s could not be looked at: %s\n", command,
		ls->failed, ls->controllers, weft_plural(ls->controllers), ls->first.text);
	return EXIT_FAILED;
}

static int run_ls(const char *command, struct ls *ls)
{
	struct weft_err err = { "" };
	int status;

	ls->subsystems = json_array();
	status = list_target(ls, command, &err) < 0 ? weft_cli_failed(command, err.text) :
						      print_result(ls, command);
	json_decref(ls->subsystems);
	return status;
}

int weft_cmd_ls(int argc, char **argv)
{
	struct ls ls = { .command = argv[0] };
	int status;

	weft_host_options_init(&ls.connect);
	status = weft_cli_options(argc, argv, options, usage, &ls);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (weft_host_one_uri(argc, argv, "nvme+tcp://127.0.0.1:4420") != EXIT_OK)
		return EXIT_USAGE;
	ls.uri = argv[optind];
	status = weft_host_check(argv[0], ls.uri, &ls.connect, ls.nsid, NULL);
	return status == EXIT_OK ? run_ls(argv[0], &ls) : status;
}
