/* handoff.c - from a frame to what it tells; nothing in it is believed before it was checked. */
#include "daemon/handoff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/handoff_tables.h"

static int decode_frame(struct weft_frame *frame, const struct weft_map *map, void *out,
			uint32_t *number, struct weft_err *err)
{
	struct weft_doc doc = { .root = frame->doc };
	json_int_t format = json_integer_value(json_object_get(frame->doc, "format"));

	if (format < 1 || format > WEFT_HANDOFF_FORMAT)
		return weft_fail(err, -EPROTONOSUPPORT,
				 "the running target hands over in format %lld, and this one knows "
				 "formats 1 to %d; stop it and start this one",
				 (long long)format, WEFT_HANDOFF_FORMAT);
	*number = (uint32_t)format;
	json_object_del(frame->doc, "format");
	json_object_del(frame->doc, "step");
	return weft_decode(&doc, map, out, err);
}

/* Descriptors and bytes come in the order of what they belong to. */
struct rest {
	struct weft_frame *frame;
	unsigned fds;
	size_t bytes;
};

static int take_next_fd(struct rest *rest, int *fd, struct weft_err *err)
{
	if (rest->fds == rest->frame->fds.count)
		return weft_fail(err, -EPROTO, "takeover: a descriptor is missing");
	*fd = take_fd((int *)rest->frame->fds.at + rest->fds++);
	return 0;
}

/* NULL and the sentence set: there are fewer. */
static void *take_next_bytes(struct rest *rest, size_t count, struct weft_err *err)
{
	void *bytes = NULL;

	if (count > rest->frame->bytes.count - rest->bytes) {
		weft_fail(err, -EPROTO, "takeover: bytes are missing");
		return NULL;
	}
	bytes = malloc(count + 1);
	if (!bytes) {
		weft_fail(err, -ENOMEM, "out of memory");
		return NULL;
	}
	memcpy(bytes, (char *)rest->frame->bytes.at + rest->bytes, count);
	rest->bytes += count;
	return bytes;
}

static int check_end(const struct rest *rest, struct weft_err *err)
{
	if (rest->fds == rest->frame->fds.count && rest->bytes == rest->frame->bytes.count)
		return 0;
	return weft_fail(err, -EPROTO, "takeover: more descriptors or bytes than it speaks of");
}

static int take_storage(struct rest *rest, struct weft_running *running, struct weft_err *err)
{
	struct weft_running_subsys *s = running->subsystems.at;
	int rc = 0;

	for (unsigned i = 0; i < running->subsystems.count; i++) {
		struct weft_running_ns *ns = s[i].namespaces.at;

		for (unsigned j = 0; j < s[i].namespaces.count && !rc; j++) {
			ns[j].fd = -1;
			if (ns[j].has_fd)
				rc = take_next_fd(rest, &ns[j].fd, err);
		}
	}
	return rc < 0 ? rc : check_end(rest, err);
}

int weft_running_read(struct weft_frame *frame, struct weft_running *running, struct weft_err *err)
{
	struct rest rest = { .frame = frame };
	int rc;

	*running = (struct weft_running){ 0 };
	rc = decode_frame(frame, &weft_running_map, running, &running->format, err);
	if (!rc)
		rc = take_storage(&rest, running, err);
	if (rc < 0)
		weft_running_free(running);
	return rc;
}

static int take_store(struct rest *rest, struct weft_store_state *store, struct weft_err *err)
{
	store->fd = -1;
	store->records.at = take_next_bytes(rest, store->records.count, err);
	if (!store->records.at)
		return -EPROTO;
	return store->has_fd ? take_next_fd(rest, &store->fd, err) : 0;
}

static int take_queue(struct rest *rest, struct weft_qpair_state *qpair, struct weft_err *err)
{
	qpair->bytes = take_next_bytes(rest, qpair->nbytes, err);
	return qpair->bytes ? take_next_fd(rest, &qpair->fd, err) : -EPROTO;
}

static int take_rest(struct rest *rest, struct weft_state *state, struct weft_err *err)
{
	struct weft_subsys_state *subsystems = state->target.subsystems.at;
	struct weft_listener_state *listeners = state->target.listeners.at;
	struct weft_queue_state *queues = state->target.queues.at;
	int rc = take_next_fd(rest, &state->control, err);

	for (unsigned i = 0; i < state->target.subsystems.count && !rc; i++)
		rc = take_store(rest, &subsystems[i].store, err);
	for (unsigned i = 0; i < state->target.listeners.count && !rc; i++)
		rc = take_next_fd(rest, &listeners[i].fd, err);
	for (unsigned i = 0; i < state->target.queues.count && !rc; i++)
		rc = take_queue(rest, &queues[i].qpair, err);
	return rc < 0 ? rc : check_end(rest, err);
}

int weft_state_read(struct weft_frame *frame, struct weft_state *state, struct weft_err *err)
{
	struct rest rest = { .frame = frame };
	int rc;

	*state = (struct weft_state){ .control = -1 };
	rc = decode_frame(frame, &weft_state_map, state, &state->format, err);
	if (!rc)
		rc = take_rest(&rest, state, err);
	if (rc < 0)
		weft_target_state_free(&state->target);
	return rc;
}

void weft_running_free(struct weft_running *running)
{
	struct weft_running_subsys *s = running->subsystems.at;

	for (unsigned i = 0; i < running->subsystems.count; i++) {
		free(s[i].hosts.at);
		free(s[i].namespaces.at);
	}
	free(s);
	*running = (struct weft_running){ 0 };
}
