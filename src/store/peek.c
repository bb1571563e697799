/* peek.c - look into a state file without joining: to say who has it, when joining was refused. */
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/copies.h"
#include "store/member_locks.h"

/* A process that is of no cluster holds the locks of all nodes. */
static bool is_locked_as_member(int fd, unsigned node)
{
	bool all = true;

	for (unsigned other = 1; other <= WEFT_STORE_NODES_MAX; other++)
		all &= store_member_is_locked(fd, other) > 0;
	return !all && store_member_is_locked(fd, node) > 0;
}

static void peek_record(int fd, const char *key, struct weft_store_peek *peek)
{
	const struct weft_store_record *record;
	struct store_records *records = NULL;

	if (store_copies_load(fd, 0, &records) < 0 || !records)
		return;
	record = store_records_find(records, key);
	if (record && record->len <= sizeof(peek->value)) {
		peek->session = records->session;
		peek->len = record->len;
		memcpy(peek->value, record->value, record->len);
	}
	store_records_free(records);
}

bool weft_store_peek(const char *spec, unsigned node, const char *key, struct weft_store_peek *peek)
{
	_cleanup_(weft_closep) int fd = -1;

	peek->len = 0;
	if (strncmp(spec, "file:", 5))
		return false;
	fd = open(spec + 5, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || !is_locked_as_member(fd, node))
		return false;
	peek_record(fd, key, peek);
	return true;
}
