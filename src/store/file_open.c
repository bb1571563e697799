/* file_open.c - a state file is opened: made where there is none, joined, read. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/sync.h"
#include "store/file.h"

static int open_file(struct file_store *f, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return -EINVAL;
	f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	return f->fd < 0 ? -errno : weft_sync_name(path);
}

static int join(struct file_store *f, const struct weft_store_options *options)
{
	struct store_records *nothing = store_records_new(0, 0, 0);
	int rc;

	if (!nothing)
		return -ENOMEM;
	f->cycle = (struct store_cycle){
		.fd = f->fd,
		.path = f->path,
		.node = options->node,
		.nodes = options->nodes,
		.records = nothing,
	};
	rc = store_cycle_join(&f->cycle);
	store_records_free(nothing);
	if (rc < 0)
		return rc;
	f->store.records = take_ptr(&f->cycle.fresh);
	memcpy(f->store.members, f->cycle.members, sizeof(f->store.members));
	return 0;
}

int store_file_open(struct file_store *f, const struct weft_store_options *options,
		    const char *path)
{
	int rc;

	f->path = strdup(path);
	if (!f->path)
		return -ENOMEM;
	if (options->heir) {
		f->store.records = store_records_new(0, 0, 0);
		return f->store.records ? 0 : -ENOMEM;
	}
	rc = open_file(f, path);
	return rc < 0 ? rc : join(f, options);
}

int store_file_explain(const char *path, unsigned node, int rc, struct weft_err *err)
{
	switch (rc) {
	case -EBUSY:
		return weft_fail(err, rc, "%s: another process has it open as node %u", path, node);
	case -EPROTO:
		return weft_fail(
			err, rc,
			"%s: its members do not agree on how many they are; \"of\" must be the "
			"same for all",
			path);
	case -EINVAL:
		return weft_fail(err, rc, "%s: it is not a state file of Weft", path);
	case -EUCLEAN:
		return weft_fail(err, rc,
				 "%s: both copies of the state in it are damaged; restore it, or "
				 "remove it to begin without any",
				 path);
	default:
		return weft_fail(err, rc, "%s: cannot open it: %s", path, strerror(-rc));
	}
}
