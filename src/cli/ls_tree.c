/* ls_tree.c - what weft ls has found, as a tree.
 *
 *   nqn.2026-11.io.weft:default
 *   ├─ nvme+tcp://127.0.0.1:4420  live, controller 1, 2 queues of 128
 *   │     Weft NVMe-oF Target, serial 0123, firmware 0.1.0, NVMe 2.0
 *   └─ namespace 1  1 GiB, 4 KiB blocks, 0 bytes used
 *         uuid 01234567-… */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "base/units.h"
#include "cli/ls.h"
#include "cli/print.h"
#include "cli/progress.h"

/* In front of a branch, of the last one, of more lines about either. */
struct lines {
	const char *branch, *last, *more, *nothing;
};

static const struct lines unicode = { "├─ ", "└─ ", "│     ", "      " };
static const struct lines ascii = { "|- ", "`- ", "|     ", "      " };

/* Who told of the path, if nobody gave it. */
static void print_origin(json_t *ctrl, const char *more)
{
	const char *from = weft_json_text(ctrl, "from");

	if (*from)
		printf("%slisted by %s\n", more, from);
}

static void print_ctrl(json_t *ctrl, const struct lines *lines, bool last)
{
	const char *more = last ? lines->nothing : lines->more;
	const char *error = weft_json_text(ctrl, "error");

	printf("%s%s  %s", last ? lines->last : lines->branch, weft_json_text(ctrl, "uri"),
	       weft_json_text(ctrl, "state"));
	if (*error) {
		printf("\n%s%s\n", more, error);
		print_origin(ctrl, more);
		return;
	}
	printf(", controller %lld, %lld queue%s of %lld\n",
	       (long long)weft_json_number(ctrl, "cntlid"),
	       (long long)weft_json_number(ctrl, "queues"),
	       weft_plural((uint64_t)weft_json_number(ctrl, "queues")),
	       (long long)weft_json_number(ctrl, "depth"));
	printf("%s%s, serial %s, firmware %s, NVMe %s\n", more, weft_json_text(ctrl, "model"),
	       weft_json_text(ctrl, "serial"), weft_json_text(ctrl, "firmware"),
	       weft_json_text(ctrl, "version"));
	print_origin(ctrl, more);
}

/* A target that does not follow what is used says that all of it is. */
static void print_used(json_t *ns)
{
	uint64_t size = (uint64_t)weft_json_number(ns, "size");
	uint64_t used = (uint64_t)weft_json_number(ns, "used");

	if (used != size)
		printf(", %s used", weft_size_text(used).s);
}

static const char *uri_of(json_t *ctrls, json_int_t path)
{
	json_t *ctrl;
	size_t index;

	json_array_foreach(ctrls, index, ctrl) {
		if (weft_json_number(ctrl, "path") == path)
			return weft_json_text(ctrl, "uri");
	}
	return "";
}

/* Through a single path that is as good as can be, that goes without saying. */
static bool is_plain(json_t *paths)
{
	return json_array_size(paths) < 2 &&
	       !strcmp(weft_json_text(json_array_get(paths, 0), "ana_state"), "optimized");
}

static void print_access(json_t *ns, json_t *ctrls, const char *more)
{
	json_t *paths = json_object_get(ns, "paths"), *path;
	size_t index;

	if (is_plain(paths))
		return;
	json_array_foreach(paths, index, path) {
		printf("%s%s through %s\n", more, weft_json_text(path, "ana_state"),
		       uri_of(ctrls, weft_json_number(path, "path")));
	}
}

static void print_ns(json_t *ns, json_t *ctrls, const struct lines *lines, bool last)
{
	const char *error = weft_json_text(ns, "error"), *uuid = weft_json_text(ns, "uuid");

	printf("%snamespace %lld  ", last ? lines->last : lines->branch,
	       (long long)weft_json_number(ns, "nsid"));
	if (*error) {
		printf("%s\n", error);
		return;
	}
	printf("%s, blocks of %lld", weft_size_text((uint64_t)weft_json_number(ns, "size")).s,
	       (long long)weft_json_number(ns, "block_size"));
	print_used(ns);
	printf("%s\n", json_is_true(json_object_get(ns, "read_only")) ? ", read-only" : "");
	if (*uuid)
		printf("%suuid %s\n", last ? lines->nothing : lines->more, uuid);
	print_access(ns, ctrls, last ? lines->nothing : lines->more);
}

static void print_subsystem(json_t *subsys, const struct lines *lines)
{
	json_t *ctrls = json_object_get(subsys, "controllers");
	json_t *namespaces = json_object_get(subsys, "namespaces"), *item;
	size_t left = json_array_size(ctrls) + json_array_size(namespaces), index;

	printf("%s\n", weft_json_text(subsys, "subnqn"));
	json_array_foreach(ctrls, index, item)
		print_ctrl(item, lines, --left == 0);
	json_array_foreach(namespaces, index, item)
		print_ns(item, ctrls, lines, --left == 0);
}

void weft_ls_print_tree(json_t *subsystems)
{
	const struct lines *lines = weft_utf8_locale() ? &unicode : &ascii;
	json_t *subsys;
	size_t index;

	json_array_foreach(subsystems, index, subsys) {
		if (index)
			printf("\n");
		print_subsystem(subsys, lines);
	}
}
