/* chase.h - what a name in the file system leads to, and whether a neighbour could have put it there.
 *
 * In a folder that everybody can write to, another user may be first: with a file of his, a link to
 * a file that he may not write to himself, a FIFO that he reads, a folder. What counts there is
 * ours, root's or the folder's owner's, and a file has no other name. Everywhere else the owner of
 * the folder says who may put what into it, and whoever names the folder trusts him.
 *
 * The kernel has such a rule (fs.protected_*) for some of it, in folders with the sticky bit, where
 * it is turned on. All files that Weft writes are opened and made through this header or draft.h. */
#ifndef WEFT_BASE_CHASE_H
#define WEFT_BASE_CHASE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/err.h"

/* Where a path has led to. What is done there is done in @folder, by @name: a path that is resolved
 * a second time may lead elsewhere. */
struct weft_chased {
	char path[PATH_MAX];     /* absolute, without links; for people. "": nothing is held */
	int folder;              /* O_PATH. -1: a folder was found without a name, "/" or "." */
	char name[NAME_MAX + 1]; /* in @folder */
	bool there;
	int fd; /* of what is there, O_PATH: as long as it is held, no other has its inode */
	struct stat st; /* of what is there */
	bool of_kernel; /* the last name is a link of /proc */
	bool fixed;     /* only root and this user can make @path lead elsewhere */
};

/* Follows @path to its end, which may have nothing there; its folder has to be. On 0 the caller
 * closes @chased. -EPERM, with a sentence, when it goes through something that a neighbour could
 * have put there; -EINVAL, with a sentence, for ".." after a link of /proc; any other -errno
 * without one. */
int weft_chase(struct weft_chased *chased, const char *path, struct weft_err *err);
/* Also one that is all zeroes. */
void weft_chased_close(struct weft_chased *chased);

/* A descriptor of what is there: as open() with @flags. -ESTALE: it is another one by now. */
int weft_chased_open(const struct weft_chased *chased, int flags);
/* A descriptor of a new file with @mode. -EEXIST: there is something by now. */
int weft_chased_make(const struct weft_chased *chased, int flags, mode_t mode);
/* A descriptor to write to a regular file with, for a daemon's log and pid; the file is made, with
 * @mode, if it is not there. @flags: O_APPEND, or 0. On -errno @err names @path. */
int weft_chase_or_make(const char *path, int flags, mode_t mode, struct weft_err *err);
/* -EEXIST likewise. */
int weft_chased_make_folder(const struct weft_chased *chased, mode_t mode);
int weft_chased_remove(const struct weft_chased *chased);
/* That the name is there survives a crash as well as what is in the file. */
int weft_chased_sync(const struct weft_chased *chased);
/* The address of a socket of that name, for as long as @chased is held: its path, which others then
 * see, if that is fixed and short enough. */
int weft_chased_addr(const struct weft_chased *chased, struct sockaddr_un *addr);

#endif
