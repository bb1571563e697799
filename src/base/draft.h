/* draft.h - a draft: a file that has another name, FILE.part, until it is complete and durable.
 *
 *   place ─▶ make ─▶ the caller writes ─▶ complete: FILE, durable
 *                                     └─▶ remove
 *
 * FILE is never half a file, and an old FILE stays until the new one is complete. A draft is always
 * newly created: nobody but its owner could open it before it has all its bytes. A draft that a
 * killed process left is recognized and removed, and nothing else is: draft.c. */
#ifndef WEFT_BASE_DRAFT_H
#define WEFT_BASE_DRAFT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/chase.h"

struct weft_draft {
	struct weft_chased at; /* its final place, and the file there that it is to replace */
	char *name;    /* until it is complete, in that folder; NULL: not created yet, or no more */
	bool replaces; /* replaces whatever file is there when it is complete */
	mode_t mode;   /* of the complete file */
};

/* -EEXIST, without a sentence: there is a file, and it may not be replaced. */
int weft_draft_locate(struct weft_draft *draft, const char *path, bool replace,
		      struct weft_err *err);
/* A new file gets @mode, less the umask, instead of 0600; one that replaces another keeps its
 * mode. */
void weft_draft_set_mode(struct weft_draft *draft, mode_t mode);
/* Its descriptor, which the caller owns, and which locks it. -EBUSY: another process writes it. */
int weft_draft_create(struct weft_draft *draft, struct weft_err *err);
/* On 0 FILE is durable. */
int weft_draft_commit(struct weft_draft *draft, int fd, struct weft_err *err);
void weft_draft_discard(struct weft_draft *draft);
/* Creates a draft with what @write writes to @to, and completes it; on -errno there is no file, and
 * a sentence. */
int weft_draft_write(struct weft_draft *draft, int (*write)(FILE *to, const void *what),
		     const void *what, struct weft_err *err);
void weft_draft_free(struct weft_draft *draft);

#endif
