/* save.c - the running configuration as a file: whole or not at all, on the disk when we say so.
 *
 *   status ─▶ what a configuration says of it ─▶ FILE.XXXXXX ─▶ fsync ─▶ rename ─▶ fsync folder
 *
 * Settings that cannot change while running are those of the start. Identities that were derived
 * (serial, UUID) are written out, so that they stay. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sync.h"
#include "daemon/methods.h"
#include "daemon/state.h"

/* --- what to write ---------------------------------------------------------------------------- */

static void copy_keys(json_t *to, json_t *from, const char *const *keys)
{
	for (; *keys; keys++)
		json_object_set(to, *keys, json_object_get(from, *keys));
}

static json_t *namespaces_json(json_t *shown)
{
	static const char *const keys[] = { "nsid", "backend", "block", "uuid", "ana_group", NULL };
	json_t *list = json_array(), *ns, *item;
	size_t index;

	json_array_foreach(shown, index, ns) {
		item = json_object();
		copy_keys(item, ns, keys);
		json_array_append_new(list, item);
	}
	return list;
}

static json_t *cluster_json(json_t *shown)
{
	static const char *const keys[] = { "node", "of", NULL };
	json_t *cluster = json_object();

	copy_keys(cluster, shown, keys);
	return cluster;
}

/* Nothing is said of hosts where nothing was: open on loopback must not become open. A list that
 * does not count is left out: a file may not say both. */
static json_t *subsys_json(struct weft_daemon *d, json_t *shown)
{
	static const char *const keys[] = { "nqn", "serial", "model", "state", NULL };
	static const char *const listed_keys[] = { "allow_any_host", "hosts", NULL };
	static const char *const any_keys[] = { "allow_any_host", NULL };
	const char *nqn = json_string_value(json_object_get(shown, "nqn"));
	json_t *subsys = json_object();

	copy_keys(subsys, shown, keys);
	if (json_object_get(shown, "cluster"))
		json_object_set_new(subsys, "cluster",
				    cluster_json(json_object_get(shown, "cluster")));
	if (!json_object_get(d->open_by_default, nqn))
		copy_keys(subsys, shown,
			  json_is_true(json_object_get(shown, "allow_any_host")) ? any_keys :
										   listed_keys);
	if (json_array_size(json_object_get(shown, "ana")))
		json_object_set(subsys, "ana", json_object_get(shown, "ana"));
	json_object_set_new(subsys, "namespaces",
			    namespaces_json(json_object_get(shown, "namespaces")));
	return subsys;
}

static json_t *subsystems_json(struct weft_daemon *d, json_t *status)
{
	json_t *list = json_array(), *shown;
	size_t index;

	json_array_foreach(json_object_get(status, "subsystems"), index, shown)
		json_array_append_new(list, subsys_json(d, shown));
	return list;
}

/* With their port ids: rules may name them. */
static json_t *listen_json(json_t *status)
{
	json_t *list = json_array(), *shown;
	size_t index;

	json_array_foreach(json_object_get(status, "listeners"), index, shown)
		json_array_append_new(list,
				      json_sprintf("%s?portid=%lld",
						   json_string_value(json_object_get(shown, "uri")),
						   json_integer_value(
							   json_object_get(shown, "portid"))));
	return list;
}

/* The configuration that would start what is running. */
static json_t *all_json(struct weft_daemon *d)
{
	json_auto_t *status = weft_status_json(d);
	json_t *root = json_object(), *value;
	const char *key;

	json_object_set_new(root, "listen", listen_json(status));
	json_object_foreach(d->doc->root, key, value) {
		if (strcmp(key, "listen") && strcmp(key, "subsystems"))
			json_object_set(root, key, value);
	}
	json_object_set_new(root, "subsystems", subsystems_json(d, status));
	return root;
}

/* --- how to write it -------------------------------------------------------------------------- */

/* Whoever could read the old file can read the new one. */
static int set_mode(int fd, const char *path)
{
	struct stat st;

	return fchmod(fd, stat(path, &st) < 0 ? 0600 : st.st_mode & 07777) < 0 ? -errno : 0;
}

static int write_file(FILE *file, json_t *root)
{
	int rc;

	fprintf(file, "# Written by `weft ctl save`; weft.yaml(5) explains the keys.\n");
	rc = weft_yaml_write(file, root);
	if (!rc && (fflush(file) || ferror(file) || fsync(fileno(file)) < 0))
		rc = errno ? -errno : -EIO;
	return rc;
}

static int write_temporary(int fd, const char *path, json_t *root)
{
	FILE *file = fdopen(fd, "w");
	int rc;

	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	rc = set_mode(fd, path);
	if (!rc)
		rc = write_file(file, root);
	if (fclose(file) && !rc)
		rc = -errno;
	return rc;
}

static int replace_file(const char *path, json_t *root)
{
	char temporary[PATH_MAX + 8];
	int fd, rc;

	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = write_temporary(fd, path, root);
	if (!rc && rename(temporary, path) < 0)
		rc = -errno;
	if (rc < 0)
		unlink(temporary);
	return rc < 0 ? rc : weft_sync_name(path);
}

/* --- the method ------------------------------------------------------------------------------- */

/* Through a symbolic link to the file behind it; a new file is where it says. */
static int choose_path(struct weft_daemon *d, const char *wanted, char path[PATH_MAX],
		       struct weft_err *err)
{
	if (!wanted[0] && !d->doc->file)
		return weft_fail(err, -EINVAL,
				 "there is no file to write back to: the target was started without "
				 "-c; give path=/a/file.yaml");
	if (wanted[0] && wanted[0] != '/')
		return weft_fail(err, -EINVAL, "path: expected one that begins with /, got \"%s\"",
				 wanted);
	if (!realpath(wanted[0] ? wanted : d->doc->file, path))
		snprintf(path, PATH_MAX, "%s", wanted[0] ? wanted : d->doc->file);
	return path[0] == '/' ? 0 :
				weft_fail(err, -ENOENT, "%s is gone; give path=/a/file.yaml", path);
}

void weft_method_save(struct weft_call *call, void *params)
{
	const struct weft_save_params *p = params;
	struct weft_daemon *d = call->rpc->daemon;
	json_auto_t *root = all_json(d);
	struct weft_err err = { "" };
	char path[PATH_MAX];
	int rc;

	rc = choose_path(d, p->path, path, &err);
	if (!rc)
		rc = replace_file(path, root);
	if (rc < 0) {
		weft_fail(&err, rc, "%s: %s", path, strerror(-rc));
		weft_call_fail(call, rc, &err);
		return;
	}
	weft_info("saved the configuration to %s", path);
	weft_call_result(call, json_pack("{s:s}", "path", path));
}
