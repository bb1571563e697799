/* exports.c - the NBD exports: each namespace by name, ns1, ns2, … as in `weft mount`. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "plugin.h"

#define LISTED_MAX    1024
#define PREFERRED     4096       /* bytes, at least */
#define PREFERRED_MAX (32 << 20) /* NBD's limits */
#define MAXIMUM       (32 << 20)

/* The first namespace is chosen once: when it goes, the export "" does not become another disk. */
static int first_nsid(uint32_t *nsid, struct weft_err *err)
{
	static atomic_uint chosen;
	unsigned none = 0;
	int n;

	*nsid = atomic_load(&chosen);
	if (*nsid)
		return 0;
	n = weft_volume_conn_list_ns(plugin_conn, nsid, 1, err);
	if (n == 0)
		return weft_fail(err, -ENOENT, "the subsystem has no namespace");
	if (n > 0 && !atomic_compare_exchange_strong(&chosen, &none, *nsid))
		*nsid = none;
	return n < 0 ? n : 0;
}

/* The nsid of "ns7"; 0: @name is not of that form. */
static uint32_t parse_export_name(const char *name)
{
	char again[EXPORT_NAME_MAX];
	unsigned nsid;

	if (sscanf(name, "ns%u", &nsid) != 1)
		return 0;
	snprintf(again, sizeof(again), "ns%u", nsid);
	return strcmp(name, again) ? 0 : nsid;
}

int export_nsid(const char *name, uint32_t *nsid, struct weft_err *err)
{
	uint32_t only = weft_volume_conn_info(plugin_conn)->nsid;

	*nsid = name[0] ? parse_export_name(name) : only;
	if (!name[0] && !only)
		return first_nsid(nsid, err);
	if (*nsid && (!only || *nsid == only))
		return 0;
	return weft_fail(err, -ENOENT, "no export \"%.64s\"; they are called ns1, ns2, …", name);
}

static int add_ns_export(struct nbdkit_exports *exports, uint32_t nsid)
{
	char name[EXPORT_NAME_MAX];

	snprintf(name, sizeof(name), "ns%u", nsid);
	return nbdkit_add_export(exports, name, NULL);
}

int export_list(int readonly, int is_tls, struct nbdkit_exports *exports)
{
	uint32_t nsids[LISTED_MAX], nsid = weft_volume_conn_info(plugin_conn)->nsid;
	struct weft_err err = {};
	int n, rc = 0;

	if (nsid)
		return add_ns_export(exports, nsid);
	n = weft_volume_conn_list_ns(plugin_conn, nsids, LISTED_MAX, &err);
	if (n < 0)
		return plugin_fail(n, &err);
	for (int i = 0; rc == 0 && i < n && i < LISTED_MAX; i++)
		rc = add_ns_export(exports, nsids[i]);
	return rc;
}

const char *export_default(int readonly, int is_tls)
{
	struct weft_err err = {};
	char name[EXPORT_NAME_MAX];
	uint32_t nsid;
	int rc = export_nsid("", &nsid, &err);

	if (rc < 0) {
		plugin_fail(rc, &err);
		return NULL;
	}
	snprintf(name, sizeof(name), "ns%u", nsid);
	return nbdkit_strdup_intern(name);
}

static int open_volume(struct export *export, struct weft_err *err)
{
	uint32_t nsid;
	int rc = export_nsid(nbdkit_export_name(), &nsid, err);

	if (rc == 0)
		rc = weft_volume_open(plugin_conn, nsid, &export->volume, err);
	if (rc < 0)
		return rc;
	weft_volume_info(export->volume, &export->info);
	export->flush_reported = weft_volume_flush_reported(export->volume);
	return 0;
}

void *export_open(int readonly)
{
	_cleanup_(weft_freep) struct export *export = calloc(1, sizeof(*export));
	struct weft_err err = {};
	int rc = export ? open_volume(export, &err) : -ENOMEM;

	if (rc < 0) {
		plugin_fail(rc, &err);
		return NULL;
	}
	return take_ptr(&export);
}

void export_close(void *handle)
{
	struct export *export = handle;

	weft_volume_close(export->volume);
	free(export);
}

int64_t export_size(void *handle)
{
	const struct export *export = handle;

	return (int64_t) export->info.size;
}

static uint32_t preferred_size(const struct weft_ns_info *info)
{
	uint32_t size = info->optimal_write;

	if (size < PREFERRED || size > PREFERRED_MAX || (size & (size - 1)))
		size = PREFERRED;
	return size > info->block_size ? size : info->block_size;
}

int export_block_size(void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
	const struct export *export = handle;

	*minimum = export->info.block_size;
	*preferred = preferred_size(&export->info);
	*maximum = MAXIMUM;
	return 0;
}

int export_can_write(void *handle)
{
	const struct export *export = handle;

	return !export->info.read_only;
}
