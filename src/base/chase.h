/* chase.h - follow a path and refuse one that another user could have redirected.
 *
 * In a folder that everybody can write to, another user may be first: with a file of his, a link to
 * a file that he may not write to himself, a FIFO that he reads, a folder. There we accept only
 * what belongs to us, to root or to the folder's owner, and files that have no other name.
 * Everywhere else the folder's owner decides who may put what into it, and whoever names the folder
 * trusts him.
 *
 * The kernel has such a rule (fs.protected_*) for some of it, in folders with the sticky bit, if it
 * is turned on. Weft opens and creates all files that it writes through this header or draft.h. */
#ifndef WEFT_BASE_CHASE_H
#define WEFT_BASE_CHASE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/err.h"

/* Where a path has led to. Operations use @dirfd and @name: a path that is resolved a second time
 * may lead elsewhere. */
struct weft_chased {
	char path[PATH_MAX];     /* absolute, without links; for people. "": nothing is held */
	int dirfd;               /* O_PATH. -1: a folder was found without a name, "/" or "." */
	char name[NAME_MAX + 1]; /* in @dirfd */
	bool exists;
	int fd; /* of what is there, O_PATH: while it is open, no other file has its inode */
	struct stat st;     /* of what is there */
	bool is_magic_link; /* the last name is a magic link of /proc */
	bool fixed;         /* only root and this user can make @path lead elsewhere */
};

/* Follows @path to its end, where there may be nothing; its folder must exist. On 0 the caller
 * closes @chased. -EPERM, with a sentence: it goes through something that another user could have
 * put there; -EINVAL, with a sentence: ".." after a magic link; -ENOENT, with a sentence: its folder
 * does not exist; any other -errno has no sentence. */
int weft_chase(struct weft_chased *chased, const char *path, struct weft_err *err);
/* Also a zeroed one. */
void weft_chased_close(struct weft_chased *chased);

/* Opens what is there: as open() with @flags. -ESTALE: something else is there by now. */
int weft_chased_open(const struct weft_chased *chased, int flags);
/* Creates a file with @mode. -EEXIST: there is something by now. */
int weft_chased_create(const struct weft_chased *chased, int flags, mode_t mode);
/* Opens a regular file for writing, for a daemon's log and pid; creates it with @mode if it does
 * not exist. @flags: O_APPEND, or 0. On -errno @err names @path. */
int weft_chase_or_create(const char *path, int flags, mode_t mode, struct weft_err *err);
/* -EEXIST as above. */
int weft_chased_mkdir(const struct weft_chased *chased, mode_t mode);
int weft_chased_unlink(const struct weft_chased *chased);
/* Makes the name durable, as fsync() does the contents. */
int weft_chased_sync_dir(const struct weft_chased *chased);
/* The address of a socket of that name, valid until @chased is closed: its path, which others then
 * see, if that is fixed and short enough. */
int weft_chased_addr(const struct weft_chased *chased, struct sockaddr_un *addr);

#endif
