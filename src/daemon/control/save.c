/* save.c - save: write the running configuration to a file, complete and durable or not at all.
 *
 *   status ─▶ configuration that would start it ─▶ offloaded: write a draft, sync, rename ─▶ answer
 *
 * Settings that cannot change while running are those of the start. Identities that were derived
 * (serial, UUID) are written out, so that they stay. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/draft.h"
#include "base/log.h"
#include "daemon/control/methods.h"
#include "daemon/internal.h"
#include "reactor/offload.h"

/* A file that begins with this line may be overwritten. */
#define FIRST_LINE "# Written by `weft ctl save`; weft.yaml(5) explains the keys.\n"

/* --- content ---------------------------------------------------------------------------------- */

static void copy_keys(json_t *to, json_t *from, const char *const *keys)
{
	for (; *keys; keys++)
		json_object_set(to, *keys, json_object_get(from, *keys));
}

static json_t *namespaces_json(json_t *shown)
{
	static const char *const keys[] = { "nsid", "backend", "uuid", "ana_group", NULL };
	json_t *list = json_array(), *ns, *item;
	size_t index;

	json_array_foreach(shown, index, ns) {
		item = json_object();
		copy_keys(item, ns, keys);
		json_object_set(item, "block", json_object_get(ns, "block_size"));
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

/* A subsystem without configured hosts is saved without hosts: the default, open on loopback, must
 * not become "any". A list that is not in force is left out: a file may not have both. */
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

/* With their port ids: ANA rules may name them. */
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
static json_t *running_config_json(struct weft_daemon *d, json_t *status)
{
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

/* --- writing ---------------------------------------------------------------------------------- */

static int write_file(FILE *file, const void *root)
{
	fputs(FIRST_LINE, file);
	return weft_yaml_write(file, (json_t *)root);
}

/* From here to the method everything is offloaded: it waits for a disk. */
struct saving {
	struct weft_list link; /* daemon->saves */
	struct weft_rpc_call *call;
	struct weft_save_params params;
	json_t *root, *status; /* what is written, and the status that it was made of */
	struct weft_offload offload;
	struct weft_draft draft;
	struct weft_err err;
};

/* The file that the call names, or the one that the configuration was read from. */
static int choose_path(struct weft_daemon *d, const char *wanted, struct weft_draft *draft,
		       struct weft_err *err)
{
	const char *path = wanted[0] ? wanted : d->doc->file;

	if (!path)
		return weft_fail(err, -EINVAL,
				 "there is no file to write back to: the target was started without "
				 "-c; give path=/a/file.yaml");
	if (wanted[0] && wanted[0] != '/')
		return weft_fail(err, -EINVAL, "path: expected one that begins with /, got \"%s\"",
				 wanted);
	return weft_draft_locate(draft, path, true, err);
}

static bool same_file(const struct stat *a, const char *path)
{
	struct stat b;

	return !stat(path, &b) && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

static bool was_written_by_save(const struct weft_chased *at)
{
	_cleanup_(weft_closep) int fd = weft_chased_open(at, O_RDONLY | O_NONBLOCK);
	char line[sizeof(FIRST_LINE) - 1];

	return fd >= 0 && read(fd, line, sizeof(line)) == sizeof(line) &&
	       !memcmp(line, FIRST_LINE, sizeof(line));
}

/* A file that somebody else wrote is not replaced by mistake. */
static int check_overwrite(struct weft_daemon *d, const struct weft_chased *at, bool force,
			   struct weft_err *err)
{
	if (!at->exists || force || !at->st.st_size)
		return 0;
	if ((d->doc->file && same_file(&at->st, d->doc->file)) || was_written_by_save(at))
		return 0;
	return weft_fail(err, -EEXIST,
			 "%s is there, and was not written by save; force=true replaces it",
			 at->path);
}

static int write_saved_config(struct weft_offload *offload)
{
	struct saving *saving = container_of(offload, struct saving, offload);
	struct weft_daemon *d = saving->call->rpc->daemon;
	int rc = choose_path(d, saving->params.path, &saving->draft, &saving->err);

	if (!rc)
		rc = check_overwrite(d, &saving->draft.at, saving->params.force, &saving->err);
	if (!rc)
		rc = weft_draft_write(&saving->draft, write_file, saving->root, &saving->err);
	return rc;
}

/* --- the method ------------------------------------------------------------------------------- */

static void note_saved_size(struct weft_config *config, const char *nqn, json_t *shown)
{
	uint32_t nsid = (uint32_t)json_integer_value(json_object_get(shown, "nsid"));
	struct weft_ns_config *ns = weft_config_ns(config, nqn, nsid);

	if (ns && ns->config_size)
		ns->config_size = (uint64_t)json_integer_value(json_object_get(shown, "size"));
}

/* The file that the next start reads has the sizes that ran when it was saved. */
static void note_saved_sizes(struct weft_daemon *d, json_t *status)
{
	json_t *subsys, *ns;
	size_t i, j;

	json_array_foreach(json_object_get(status, "subsystems"), i, subsys)
		json_array_foreach(json_object_get(subsys, "namespaces"), j, ns)
			note_saved_size(d->config,
					json_string_value(json_object_get(subsys, "nqn")), ns);
}

static void saving_free(struct saving *saving)
{
	weft_list_remove(&saving->link);
	json_decref(saving->root);
	json_decref(saving->status);
	weft_draft_free(&saving->draft);
	free(saving);
}

static void start_saving(struct saving *saving);

static void on_saved(struct weft_offload *offload, int rc)
{
	struct saving *saving = container_of(offload, struct saving, offload);
	struct weft_daemon *d = saving->call->rpc->daemon;
	const char *wanted = saving->params.path, *path = saving->draft.at.path;

	assert_on(d->control_reactor);
	assert(d->saves.next == &saving->link);
	if (rc < 0) {
		weft_rpc_fail(saving->call, rc, &saving->err);
	} else {
		weft_info("saved the configuration to %s", path);
		if (d->doc->file && (!wanted[0] || !strcmp(wanted, d->doc->file)))
			note_saved_sizes(d, saving->status);
		weft_rpc_result(saving->call, json_pack("{s:s}", "path", path));
	}
	saving_free(saving);
	if (!weft_list_empty(&d->saves))
		start_saving(container_of(d->saves.next, struct saving, link));
}

/* A copy that only the writing thread has. */
static json_t *copy_config_json(struct weft_daemon *d, json_t *status)
{
	json_auto_t *all = running_config_json(d, status);

	return json_deep_copy(all);
}

/* One at a time, each with the configuration at its start: the last call is the last to be
 * written. */
static void start_saving(struct saving *saving)
{
	struct weft_daemon *d = saving->call->rpc->daemon;

	assert(d->saves.next == &saving->link && !saving->root);
	saving->status = weft_status_json(d);
	saving->root = copy_config_json(d, saving->status);
	weft_offload_start(&saving->offload, d->control_reactor, write_saved_config, on_saved);
}

void weft_method_save(struct weft_rpc_call *call, void *params)
{
	struct weft_daemon *d = call->rpc->daemon;
	struct saving *saving = calloc(1, sizeof(*saving));

	if (!saving) {
		weft_rpc_fail(call, -ENOMEM, &(struct weft_err){ "out of memory" });
		return;
	}
	saving->call = call;
	saving->params = *(struct weft_save_params *)params;
	weft_list_push(&d->saves, &saving->link);
	if (d->saves.next == &saving->link)
		start_saving(saving);
}
