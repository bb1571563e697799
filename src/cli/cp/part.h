/* part.h - a file that is made under another name until it is complete.
 *
 * Under its own name there is never half a copy, and what was there before stays until then. A copy
 * that is killed leaves FILE.part, which the next one takes over; one that fails removes it. */
#ifndef WEFT_CLI_CP_PART_H
#define WEFT_CLI_CP_PART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

struct cp_part {
	char *path;    /* where it ends up: links are followed */
	char *name;    /* until then; NULL: not made yet, or no more */
	bool replaces; /* a file that is there, with this mode */
	bool force;    /* whatever is there when it is complete is replaced */
	mode_t mode;
};

/* @old: what is there already, or NULL. -EEXIST without @force. */
int weft_part_place(struct cp_part *part, const char *path, const struct stat *old, bool force,
		    struct weft_err *err);
/* Its descriptor, which the caller owns. The file is one hole of @size bytes. */
int weft_part_make(struct cp_part *part, uint64_t size, struct weft_err *err);
/* On 0 it is durable under its own name, with @size bytes. */
int weft_part_complete(struct cp_part *part, int fd, uint64_t size, struct weft_err *err);
void weft_part_remove(struct cp_part *part);
void weft_part_free(struct cp_part *part);

#endif
