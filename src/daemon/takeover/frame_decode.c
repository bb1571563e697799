/* frame_decode.c - a received frame becomes structs. Every value is checked first: the sender may
 * be another version. */
#include "daemon/takeover/frames.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/takeover/frame_schema.h"
#include "transport/tcp/state.h"

static int decode_frame(struct weft_frame *frame, const struct weft_schema *map, void *out,
			uint32_t *number, struct weft_err *err)
{
	struct weft_doc doc = { .root = frame->doc };
	json_int_t format = json_integer_value(json_object_get(frame->doc, "format"));

	if (format < 1 || format > WEFT_TAKEOVER_FORMAT)
		return weft_fail(err, -EPROTONOSUPPORT,
				 "the running target hands over in format %lld, and this one knows "
				 "formats 1 to %d; stop it and start this one",
				 (long long)format, WEFT_TAKEOVER_FORMAT);
	*number = (uint32_t)format;
	json_object_del(frame->doc, "format");
	json_object_del(frame->doc, "step");
	return weft_decode(&doc, map, out, err);
}

/* Descriptors and bytes are in the order of the objects that they belong to. */
struct cursor {
	struct weft_frame *frame;
	unsigned fds;
	size_t bytes;
};

static int next_fd(struct cursor *cursor, int *fd, struct weft_err *err)
{
	assert(cursor->fds <= cursor->frame->fds.count);
	if (cursor->fds == cursor->frame->fds.count)
		return weft_fail(err, -EPROTO, "takeover: a descriptor is missing");
	*fd = take_fd((int *)cursor->frame->fds.at + cursor->fds++);
	return 0;
}

/* NULL and the sentence set: the frame has fewer. */
static void *next_bytes(struct cursor *cursor, size_t count, struct weft_err *err)
{
	void *bytes = NULL;

	assert(cursor->bytes <= cursor->frame->bytes.count);
	if (count > cursor->frame->bytes.count - cursor->bytes) {
		weft_fail(err, -EPROTO, "takeover: bytes are missing");
		return NULL;
	}
	bytes = malloc(count + 1);
	if (!bytes) {
		weft_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	memcpy(bytes, (char *)cursor->frame->bytes.at + cursor->bytes, count);
	cursor->bytes += count;
	return bytes;
}

static int check_frame_end(const struct cursor *cursor, struct weft_err *err)
{
	if (cursor->fds == cursor->frame->fds.count && cursor->bytes == cursor->frame->bytes.count)
		return 0;
	return weft_fail(err, -EPROTO, "takeover: more descriptors or bytes than it speaks of");
}

static int decode_storage(struct cursor *cursor, struct weft_running_config *running,
			  struct weft_err *err)
{
	struct weft_running_subsys *s = running->subsystems.at;
	int rc = 0;

	for (unsigned i = 0; i < running->subsystems.count; i++) {
		struct weft_running_ns *ns = s[i].namespaces.at;

		for (unsigned j = 0; j < s[i].namespaces.count && !rc; j++) {
			ns[j].fd = -1;
			if (ns[j].has_fd)
				rc = next_fd(cursor, &ns[j].fd, err);
		}
	}
	return rc < 0 ? rc : check_frame_end(cursor, err);
}

int weft_running_config_decode(struct weft_frame *frame, struct weft_running_config *running,
			       struct weft_err *err)
{
	struct cursor cursor = { .frame = frame };
	int rc;

	*running = (struct weft_running_config){ 0 };
	rc = decode_frame(frame, &weft_running_config_schema, running, &running->format, err);
	if (!rc)
		rc = decode_storage(&cursor, running, err);
	if (rc < 0)
		weft_running_config_free(running);
	return rc;
}

static int decode_store(struct cursor *cursor, struct weft_store_state *store, struct weft_err *err)
{
	store->fd = -1;
	store->records.at = next_bytes(cursor, store->records.count, err);
	if (!store->records.at)
		return -EPROTO;
	return store->has_fd ? next_fd(cursor, &store->fd, err) : 0;
}

/* These formats know one transport that is handed over, and do not name it. */
static int decode_queue(struct cursor *cursor, struct weft_qpair_state *qpair, struct weft_err *err)
{
	qpair->trtype = NVMF_TRTYPE_TCP;
	qpair->bytes = next_bytes(cursor, qpair->nbytes, err);
	return qpair->bytes ? next_fd(cursor, &tcp_conn_state(qpair)->fd, err) : -EPROTO;
}

static int decode_state_payload(struct cursor *cursor, struct weft_takeover_state *state,
				struct weft_err *err)
{
	struct weft_subsys_state *subsystems = state->target.subsystems.at;
	struct weft_listener_state *listeners = state->target.listeners.at;
	struct weft_queue_state *queues = state->target.queues.at;
	int rc = next_fd(cursor, &state->control, err);

	for (unsigned i = 0; i < state->target.subsystems.count && !rc; i++)
		rc = decode_store(cursor, &subsystems[i].store, err);
	for (unsigned i = 0; i < state->target.listeners.count && !rc; i++)
		rc = next_fd(cursor, &listeners[i].fd, err);
	for (unsigned i = 0; i < state->target.queues.count && !rc; i++)
		rc = decode_queue(cursor, &queues[i].qpair, err);
	return rc < 0 ? rc : check_frame_end(cursor, err);
}

int weft_takeover_state_decode(struct weft_frame *frame, struct weft_takeover_state *state,
			       struct weft_err *err)
{
	struct cursor cursor = { .frame = frame };
	int rc;

	*state = (struct weft_takeover_state){ .control = -1 };
	rc = decode_frame(frame, &weft_takeover_state_schema, state, &state->format, err);
	if (!rc)
		rc = decode_state_payload(&cursor, state, err);
	if (rc < 0)
		weft_target_state_free(&state->target);
	return rc;
}

void weft_running_config_free(struct weft_running_config *running)
{
	struct weft_running_subsys *s = running->subsystems.at;

	for (unsigned i = 0; i < running->subsystems.count; i++) {
		free(s[i].hosts.at);
		free(s[i].namespaces.at);
	}
	free(s);
	*running = (struct weft_running_config){ 0 };
}
