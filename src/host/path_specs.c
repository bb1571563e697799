/* path_specs.c - parses several URIs of one subsystem, with commas between them: its paths
 * (multipath).
 *
 *   nvme+tcp://a/NQN?hdgst=1,nvme+tcp://b/NQN?nsid=2      a comma separates where "nvme+" follows
 *
 * A word of one URI applies to all that do not say otherwise. All lead to one subsystem, in the
 * name of one host. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/internal.h"

#define NEXT ",nvme+"

/* Bytes of the first URI of @uris. */
static size_t first_length(const char *uris)
{
	const char *comma = strcasestr(uris, NEXT);

	return comma ? (size_t)(comma - uris) : strlen(uris);
}

static int split_one(const char *uri, size_t length, struct weft_uri_parts *parts,
		     struct weft_err *err)
{
	char copy[WEFT_URI_MAX];
	int rc;

	if (length >= sizeof(copy))
		return weft_fail(err, -EINVAL, "an address has fewer than %d characters",
				 WEFT_URI_MAX);
	memcpy(copy, uri, length);
	copy[length] = '\0';
	rc = weft_uri_split(copy, parts, err);
	if (rc == 0 && !parts->port)
		rc = weft_fail(err, -EINVAL, "%s: a target does not listen on port 0", copy);
	return rc;
}

static int split_all(const char *uris, struct host_path_spec *specs, struct weft_err *err)
{
	int rc, count = 0;
	size_t length;

	for (const char *at = uris; *at || !count; at += length + (at[length] == ',')) {
		length = first_length(at);
		if (count == HOST_PATHS_MAX)
			return weft_fail(err, -EINVAL, "more than %d paths", HOST_PATHS_MAX);
		rc = split_one(at, length, &specs[count++].parts, err);
		if (rc < 0)
			return rc;
	}
	return count;
}

/* The words of all of them, "" or "hdgst=1&nsid=2". */
static int gather_words(const struct host_path_spec *specs, int count, char *words, size_t size,
			struct weft_err *err)
{
	size_t used = 0;

	*words = '\0';
	for (int i = 0; i < count; i++) {
		if (!specs[i].parts.query[0])
			continue;
		used += (size_t)snprintf(words + used, size - used, "%s%s", used ? "&" : "",
					 specs[i].parts.query);
		if (used >= size)
			return weft_fail(err, -EINVAL,
					 "more than %zu characters of words behind "
					 "the addresses",
					 size - 1);
	}
	return 0;
}

int host_path_specs_agree(const struct host_config *a, const struct host_config *b,
			  struct weft_err *err)
{
	if (strcmp(a->subnqn, b->subnqn))
		return weft_fail(err, -EINVAL, "paths lead to one subsystem, not to %s and %s",
				 a->subnqn, b->subnqn);
	if (strcmp(a->hostnqn, b->hostnqn) || memcmp(a->hostid, b->hostid, sizeof(a->hostid)))
		return weft_fail(err, -EINVAL,
				 "one host uses all paths: hostnqn= and hostid= "
				 "have to be the same");
	if (a->nsid != b->nsid)
		return weft_fail(err, -EINVAL, "the paths name two namespaces, %u and %u", a->nsid,
				 b->nsid);
	return 0;
}

int host_path_specs_parse(const char *uris, const struct weft_options *options,
			  struct host_path_spec *specs, struct weft_err *err)
{
	char words[WEFT_URI_MAX];
	int count = split_all(uris, specs, err), rc = 0;

	if (count < 0)
		return count;
	if (count > 1)
		rc = gather_words(specs, count, words, sizeof(words), err);
	for (int i = 0; rc == 0 && i < count; i++) {
		rc = host_config_parse(&specs[i].parts, count > 1 ? words : "", options,
				       &specs[i].config, err);
		if (rc == 0)
			rc = host_path_specs_agree(&specs[0].config, &specs[i].config, err);
	}
	return rc < 0 ? rc : count;
}
