/* query.c - look something up in the running target: each function is one walk over it. */
#include "daemon/internal.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "daemon/control/methods.h"
#include "proto/nvme.h"

/* --- which subsystem -------------------------------------------------------------------------- */

enum { NAMES_MAX = 4 };

struct subsys_search {
	const char *wanted; /* "": any will do */
	char found[WEFT_NQN_MAX + 1];
	char names[400];
	bool more; /* than @names has */
	unsigned count;
};

/* The error shows a few names. */
static void add_candidate(struct subsys_search *search, const char *nqn)
{
	size_t len = strlen(search->names);

	if (search->count < NAMES_MAX && len + 2 + strlen(nqn) < sizeof(search->names))
		snprintf(search->names + len, sizeof(search->names) - len, "%s%s", len ? ", " : "",
			 nqn);
	else
		search->more = true;
}

static void match_subsys(void *arg, const struct weft_subsys_info *info)
{
	struct subsys_search *search = arg;

	if (!strcmp(info->nqn, NVME_NQN_DISCOVERY))
		return;
	if (search->wanted[0] && strcmp(info->nqn, search->wanted))
		return;
	snprintf(search->found, sizeof(search->found), "%s", info->nqn);
	add_candidate(search, info->nqn);
	search->count++;
}

static int fail_search(const struct subsys_search *search, struct weft_err *err)
{
	const char *wanted = search->wanted;
	unsigned count = search->count;

	if (wanted[0])
		return weft_fail(err, -ENOENT, "no such subsystem: %s", wanted);
	if (!count)
		return weft_fail(err, -ENOENT, "there is no subsystem; subsystem-add makes one");
	return weft_fail(err, -EINVAL, "nqn: missing, and there are %u subsystems: %s%s", count,
			 search->names, search->more ? ", …" : "");
}

/* Subsystems that a walk does not show (discovery, one that is being removed) are not found. */
int weft_daemon_find_subsys(struct weft_daemon *d, char nqn[WEFT_NQN_MAX + 1],
			    struct weft_subsys **s, struct weft_err *err)
{
	const struct weft_target_visitor visitor = { .subsys = match_subsys };
	struct subsys_search search = { .wanted = nqn };

	weft_target_visit(d->target, &visitor, &search);
	if (search.count != 1)
		return fail_search(&search, err);
	strcpy(nqn, search.found);
	*s = weft_subsys_find(d->target, nqn);
	return 0;
}

/* For one subsystem. */
struct flags_search {
	const char *nqn;
	bool any;
	unsigned node;
};

static void match_flags(void *arg, const struct weft_subsys_info *info)
{
	struct flags_search *search = arg;

	if (strcmp(info->nqn, search->nqn))
		return;
	search->any = info->allow_any_host;
	search->node = info->node;
}

bool weft_daemon_allows_any_host(struct weft_daemon *d, const char *nqn)
{
	const struct weft_target_visitor visitor = { .subsys = match_flags };
	struct flags_search search = { .nqn = nqn };

	weft_target_visit(d->target, &visitor, &search);
	return search.any;
}

unsigned weft_daemon_cluster_node(struct weft_daemon *d, const char *nqn)
{
	const struct weft_target_visitor visitor = { .subsys = match_flags };
	struct flags_search search = { .nqn = nqn };

	weft_target_visit(d->target, &visitor, &search);
	return search.node;
}

struct ana_search {
	bool here; /* the subsystem being walked is the one */
	struct weft_ana_known *known;
};

static void add_port(void *arg, const char *uri, uint16_t portid)
{
	json_array_append_new(((struct ana_search *)arg)->known->ports, json_integer(portid));
	(void)uri;
}

static void enter_ana_subsys(void *arg, const struct weft_subsys_info *info)
{
	struct ana_search *search = arg;

	search->here = !strcmp(info->nqn, search->known->nqn);
	if (search->here)
		search->known->node = info->node;
}

static void add_group(void *arg, const struct weft_target_ns_info *info)
{
	struct ana_search *search = arg;

	if (search->here)
		json_array_append_new(search->known->groups, json_integer(info->ana_group));
}

void weft_daemon_warn_ana(struct weft_daemon *d, const char *nqn, const struct weft_items *rules,
			  json_t *warnings)
{
	const struct weft_target_visitor visitor = { .listener = add_port,
						     .subsys = enter_ana_subsys,
						     .ns = add_group };
	json_auto_t *ports = json_array(), *groups = json_array();
	struct weft_ana_known known = { nqn, 0, ports, groups };
	struct ana_search search = { .known = &known };

	weft_target_visit(d->target, &visitor, &search);
	weft_warn_ana(warnings, &known, rules);
}

struct subsys_count {
	const char *nqn, *host;
	bool here; /* the subsystem being walked is the one */
	unsigned count;
};

static void enter_counted(void *arg, const struct weft_subsys_info *info)
{
	struct subsys_count *count = arg;

	count->here = !strcmp(info->nqn, count->nqn);
}

static void count_other(void *arg, const struct weft_target_ctrl_info *info)
{
	struct subsys_count *count = arg;

	count->count += count->here && strcmp(info->hostnqn, count->host);
}

unsigned weft_daemon_count_other_ctrls(struct weft_daemon *d, const char *nqn, const char *host)
{
	const struct weft_target_visitor visitor = { .subsys = enter_counted, .ctrl = count_other };
	struct subsys_count count = { .nqn = nqn, .host = host };

	weft_target_visit(d->target, &visitor, &count);
	return count.count;
}

static void count_host(void *arg, const char *hostnqn)
{
	struct subsys_count *count = arg;

	(void)hostnqn;
	count->count += count->here;
}

unsigned weft_daemon_count_hosts(struct weft_daemon *d, const char *nqn)
{
	const struct weft_target_visitor visitor = { .subsys = enter_counted, .host = count_host };
	struct subsys_count count = { .nqn = nqn };

	weft_target_visit(d->target, &visitor, &count);
	return count.count;
}

/* --- listeners -------------------------------------------------------------------------------- */

static void add_listener(void *arg, const char *uri, uint16_t portid)
{
	(void)portid;
	json_array_append_new(arg, json_string(uri));
}

json_t *weft_daemon_list_listeners(struct weft_daemon *d)
{
	const struct weft_target_visitor visitor = { .listener = add_listener };
	json_t *list = json_array();

	weft_target_visit(d->target, &visitor, list);
	return list;
}

void weft_daemon_exposed_listener(struct weft_daemon *d, char uri[WEFT_URI_MAX])
{
	json_auto_t *list = weft_daemon_list_listeners(d);
	struct weft_uri parsed;
	json_t *item;
	size_t index;

	uri[0] = '\0';
	json_array_foreach(list, index, item) {
		if (!weft_uri_parse(json_string_value(item), &parsed, NULL) &&
		    !weft_addr_is_loopback(&parsed.addr))
			snprintf(uri, WEFT_URI_MAX, "%s", json_string_value(item));
	}
}

/* --- namespaces ------------------------------------------------------------------------------- */

struct ns_search {
	const char *nqn, *uuid; /* what is looked for … */
	uint32_t nsid, group;
	const char *at;                   /* … the subsystem being walked … */
	struct weft_target_ns_info found; /* … and what was found */
	char found_who[WEFT_NQN_MAX + 32];
	bool found_group;
};

static void enter_subsys(void *arg, const struct weft_subsys_info *info)
{
	((struct ns_search *)arg)->at = info->nqn;
}

static void match_ns(void *arg, const struct weft_target_ns_info *info)
{
	struct ns_search *search = arg;

	if (search->nqn && info->nsid == search->nsid && !strcmp(search->at, search->nqn))
		search->found = *info;
	if (search->uuid && !strcasecmp(info->uuid, search->uuid))
		snprintf(search->found_who, sizeof(search->found_who), "%s namespace %u",
			 search->at, info->nsid);
	if (search->nqn && info->ana_group == search->group && !strcmp(search->at, search->nqn))
		search->found_group = true;
}

static const struct weft_target_visitor search_visitor = { .subsys = enter_subsys, .ns = match_ns };

bool weft_daemon_find_ns(struct weft_daemon *d, const char *nqn, uint32_t nsid,
			 struct weft_target_ns_info *info)
{
	struct ns_search search = { .nqn = nqn, .nsid = nsid };

	weft_target_visit(d->target, &search_visitor, &search);
	*info = search.found;
	return info->nsid;
}

bool weft_daemon_has_ana_group(struct weft_daemon *d, const char *nqn, uint32_t group)
{
	struct ns_search search = { .nqn = nqn, .group = group };

	weft_target_visit(d->target, &search_visitor, &search);
	return search.found_group;
}

bool weft_daemon_uuid_is_taken(struct weft_daemon *d, const char *uuid, char *who, size_t size)
{
	struct ns_search search = { .uuid = uuid };

	weft_target_visit(d->target, &search_visitor, &search);
	snprintf(who, size, "%s", search.found_who);
	return who[0];
}
