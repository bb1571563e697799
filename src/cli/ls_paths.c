/* ls_paths.c - the paths to a subsystem and to its namespaces, as weft ls shows them. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/ls.h"
#include "cli/print.h"

enum { LOOK_MS = 5, LOOKS_MAX = 400 };

static bool is_connecting(struct weft_ctrl *ctrl)
{
	struct weft_path_info paths[WEFT_PATHS_MAX];
	struct weft_ctrl_info info;
	unsigned n;

	weft_ctrl_info(ctrl, &info);
	if (info.discovering)
		return true;
	n = weft_ctrl_paths(ctrl, paths, WEFT_PATHS_MAX);
	for (unsigned i = 0; i < n; i++)
		if (paths[i].state == WEFT_CONNECTING)
			return true;
	return false;
}

void weft_ls_wait(struct weft_ctrl *ctrl)
{
	struct pollfd fd = { .fd = weft_ctrl_event_fd(ctrl), .events = POLLIN };
	struct weft_event event;

	while (is_connecting(ctrl)) {
		poll(&fd, 1, LOOK_MS);
		while (weft_ctrl_next_event(ctrl, &event))
			;
	}
}

static json_t *path_json(const struct weft_path_info *path, const struct weft_ctrl_info *info,
			 size_t base)
{
	char version[32];
	json_t *json;

	snprintf(version, sizeof(version), "%u.%u", info->version >> 16, info->version >> 8 & 0xff);
	json = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "uri",
			 path->address, "state", weft_state_text(path->state), "cntlid",
			 path->cntlid, "model", info->model, "serial", info->serial, "firmware",
			 info->firmware, "version", version, "queues", (json_int_t)path->queues,
			 "depth", (json_int_t)path->depth, "transfer_max",
			 (json_int_t)info->transfer_max, "path", (json_int_t)(base + path->path),
			 "reconnects", (json_int_t)path->reconnects);
	if (path->from[0])
		json_object_set_new(json, "from", json_string(path->from));
	if (path->state != WEFT_LIVE)
		json_object_set_new(json, "error", json_string(path->why.text));
	return json;
}

unsigned weft_ls_add_paths(struct weft_ctrl *ctrl, size_t base, json_t *list,
			   struct weft_err *first)
{
	struct weft_path_info paths[WEFT_PATHS_MAX];
	unsigned n = weft_ctrl_paths(ctrl, paths, WEFT_PATHS_MAX), failed = 0;
	struct weft_ctrl_info info;

	weft_ctrl_info(ctrl, &info);
	for (unsigned i = 0; i < n; i++) {
		json_array_append_new(list, path_json(&paths[i], &info, base));
		if (paths[i].state == WEFT_LIVE)
			continue;
		failed++;
		weft_fail(first, 0, "%s: %s", paths[i].address, paths[i].why.text);
	}
	return failed;
}

/* --- to a namespace --------------------------------------------------------------------------- */

static bool is_live(struct weft_ctrl *ctrl, unsigned path)
{
	struct weft_path_info paths[WEFT_PATHS_MAX];
	unsigned n = weft_ctrl_paths(ctrl, paths, WEFT_PATHS_MAX);

	for (unsigned i = 0; i < n; i++)
		if (paths[i].path == path)
			return paths[i].state == WEFT_LIVE;
	return false;
}

/* A path that lives has been asked in a moment. */
static bool is_complete(struct weft_ctrl *ctrl, const struct weft_ns_path *paths, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (paths[i].access == WEFT_ACCESS_UNKNOWN && is_live(ctrl, paths[i].path))
			return false;
	return true;
}

void weft_ls_add_access(struct weft_ctrl *ctrl, struct weft_ns *ns, bool other, size_t base,
			json_t *list)
{
	struct weft_ns_path paths[WEFT_PATHS_MAX];
	unsigned n = weft_ns_paths(ns, paths, WEFT_PATHS_MAX);

	for (int i = 0; !is_complete(ctrl, paths, n) && i < LOOKS_MAX; i++) {
		poll(NULL, 0, LOOK_MS);
		n = weft_ns_paths(ns, paths, WEFT_PATHS_MAX);
	}
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list,
				      json_pack("{s:I, s:s}", "path",
						(json_int_t)(base + paths[i].path), "ana_state",
						weft_access_text(other ? WEFT_ACCESS_ABSENT :
									 paths[i].access)));
}

/* Both lists are in the order of the numbers. */
static void complete_access(json_t *paths, json_t *ctrls)
{
	json_t *ctrl;
	size_t at;

	json_array_foreach(ctrls, at, ctrl) {
		json_int_t path = weft_json_number(ctrl, "path");
		bool live = !strcmp(weft_json_text(ctrl, "state"), "live");
		json_t *have = json_array_get(paths, at);

		if (have && weft_json_number(have, "path") == path)
			continue;
		json_array_insert_new(paths, at,
				      json_pack("{s:I, s:s}", "path", path, "ana_state",
						weft_access_text(live ? WEFT_ACCESS_ABSENT :
									WEFT_ACCESS_UNKNOWN)));
	}
}

void weft_ls_complete_access(json_t *subsystems)
{
	json_t *subsys, *ns;
	size_t i, j;

	json_array_foreach(subsystems, i, subsys) {
		json_array_foreach(json_object_get(subsys, "namespaces"), j, ns) {
			if (json_object_get(ns, "paths"))
				complete_access(json_object_get(ns, "paths"),
						json_object_get(subsys, "controllers"));
		}
	}
}
