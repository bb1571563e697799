/* draft.h - a file that is made under another name, FILE.part, until it is complete.
 *
 *   place ─▶ make ─▶ the caller writes ─▶ complete: FILE, durable
 *                                     └─▶ remove
 *
 * Under its own name there is never half a file, and what was there before stays until then. The
 * draft is new, never one that was there: nobody but its owner could have opened it before it has
 * all its bytes. One that a process left when it was killed is recognized and removed, and nothing
 * else is: draft.c. */
#ifndef WEFT_BASE_DRAFT_H
#define WEFT_BASE_DRAFT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/chase.h"

struct weft_draft {
	struct weft_chased at; /* where it ends up, and the file there that it is to replace */
	char *name;            /* until then, in that folder; NULL: not made yet, or no more */
	bool replaces;         /* whatever file is there when it is complete */
	mode_t mode;           /* when it is complete */
};

/* -EEXIST, without a sentence: there is a file, and it may not be replaced. */
int weft_draft_place(struct weft_draft *draft, const char *path, bool replace,
		     struct weft_err *err);
/* A new file gets @mode, less the umask, and not 0600; one that replaces another keeps its mode. */
void weft_draft_set_mode(struct weft_draft *draft, mode_t mode);
/* Its descriptor, which the caller owns, and which locks it. -EBUSY: another process writes it. */
int weft_draft_make(struct weft_draft *draft, struct weft_err *err);
/* On 0 it is durable under its own name. */
int weft_draft_complete(struct weft_draft *draft, int fd, struct weft_err *err);
void weft_draft_remove(struct weft_draft *draft);
/* Makes it with what @write puts into @to, and completes it; or there is none, and a sentence. */
int weft_draft_write(struct weft_draft *draft, int (*write)(FILE *to, const void *what),
		     const void *what, struct weft_err *err);
void weft_draft_free(struct weft_draft *draft);

#endif
