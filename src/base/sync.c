/* sync.c - a file's name, on the disk. */
#include "base/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>

#include "base/cleanup.h"

int weft_sync_name(const char *path)
{
	_cleanup_(weft_freep) char *copy = strdup(path);
	_cleanup_(weft_closep) int fd = -1;

	if (!copy)
		return -ENOMEM;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}
