/* lines.h - what every member says of itself in the file. */
#ifndef WEFT_STORE_LINES_H
#define WEFT_STORE_LINES_H

#include "store/store.h"

enum store_stage {
	STORE_SILENT,  /* an older Weft wrote it, and says nothing of this */
	STORE_JOINING, /* it asks whether all who live show here, and is no member yet */
	STORE_MEMBER,
	STORE_LEFT, /* it went by itself, or was found to be gone */
};

struct store_line {
	uint64_t stage;
	uint64_t incarnation; /* whose it is, of those that had this node's number; they ascend */
	uint64_t acked;
	uint64_t locks; /* where its writer's locks show: store_locks_here(); 0: it tells nobody */
	uint64_t heard; /* store_lines_asked(), as it saw it last */
};

/* By node; incarnation 0: there is no line that is whole. */
struct store_lines {
	struct store_line at[WEFT_STORE_NODES_MAX + 1];
};

int store_lines_read(int fd, struct store_lines *lines);
int store_line_write(int fd, unsigned node, const struct store_line *line);
/* Something else whenever somebody else joins. */
uint64_t store_lines_asked(const struct store_lines *lines, unsigned self);
/* An incarnation behind @line's, which nobody else has. */
uint64_t store_line_next(const struct store_line *line);

/* The same for two descriptors only if one kernel keeps their locks in one place: the same boot, the
 * same mounted file system. */
uint64_t store_locks_here(int fd);
/* Pages, and the size, may be older here than what another machine wrote. */
void store_forget_cached(int fd);

#endif
