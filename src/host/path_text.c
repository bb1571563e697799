/* path_text.c - why no path can be used, in words: each path, and what is the matter there now.
 *
 *   "127.0.0.1:4420 inaccessible (ANA group 7), 127.0.0.1:4421 reconnecting: connect: …" */
#include <stdio.h>
#include <string.h>

#include "host/internal.h"

const char *host_address_text(const char *address)
{
	const char *scheme = strstr(address, "://");

	return scheme ? scheme + 3 : address;
}

static void put_path(const struct host_path *path, const struct weft_ns *ns, char *text,
		     size_t size)
{
	const struct host_published *pub = &path->pub;
	const char *address = host_address_text(pub->address);
	struct weft_ns_path through = { 0 };

	assert_locked(&path->ctrl->lock);
	if (pub->state != WEFT_LIVE || !ns) {
		snprintf(text, size, "%s %s%s%s", address, weft_state_text(pub->state),
			 pub->state != WEFT_LIVE && pub->why.text[0] ? ": " : "",
			 pub->state != WEFT_LIVE ? pub->why.text : "");
		return;
	}
	host_ns_path(path, ns, &through);
	if (ns->views[path->index].refused_ns)
		snprintf(text, size, "%s cannot look at it: %s", address, ns->scan_error.text);
	else if (through.ana_group)
		snprintf(text, size, "%s %s (ANA group %u)", address,
			 weft_access_text(through.access), through.ana_group);
	else
		snprintf(text, size, "%s %s", address, weft_access_text(through.access));
}

void host_paths_text(struct weft_ctrl *ctrl, const struct weft_ns *ns, char *text, size_t size)
{
	struct host_path *paths[HOST_PATHS_MAX];
	unsigned n = host_paths_by_id(ctrl, paths);
	size_t at = 0;

	*text = '\0';
	for (unsigned i = 0; i < n && at + 2 < size; i++) {
		at += (size_t)snprintf(text + at, size - at, "%s", i ? ", " : "");
		put_path(paths[i], ns, text + at, size - at);
		at += strlen(text + at);
	}
}
