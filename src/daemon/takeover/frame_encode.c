/* frame_encode.c - structs become a frame, by the schemas that decode it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/takeover/frames.h"
#include "daemon/takeover/frame_schema.h"
#include "transport/tcp/state.h"

/* --- the document ----------------------------------------------------------------------------- */

static json_t *encode_map(const struct weft_schema *map, const void *at);

static json_t *encode_hex(const void *bytes, size_t len)
{
	_cleanup_(weft_freep) char *text = weft_hex_encode(bytes, len);

	return text ? json_string(text) : NULL;
}

static json_t *encode_value(const struct weft_schema_field *field, const void *at);

static json_t *encode_list(const struct weft_schema_field *field, const struct weft_items *items)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < items->count; i++)
		json_array_append_new(list,
				      encode_value(field->item,
						   (const char *)items->at + i * field->item_size));
	return list;
}

static json_t *encode_value(const struct weft_schema_field *field, const void *at)
{
	const struct weft_items *items = at;

	if (field->decode == weft_decode_number)
		return json_integer(*(const uint32_t *)at);
	if (field->decode == weft_decode_count)
		return json_integer((json_int_t)(*(const uint64_t *)at & INT64_MAX));
	if (field->decode == weft_decode_bool)
		return json_boolean(*(const bool *)at);
	if (field->decode == weft_decode_hex_name)
		return encode_hex(at, strlen(at));
	if (field->decode == weft_decode_hex_bytes)
		return encode_hex(items->at, items->count);
	if (field->decode == weft_decode_list)
		return encode_list(field, items);
	if (field->decode == weft_decode_map)
		return encode_map(field->map, at);
	return json_string(at);
}

/* A field that an older version does not know is left out if it is empty, so that that version can
 * read the rest. */
static bool is_left_out(const struct weft_schema_field *field, const void *at)
{
	const struct weft_items *items = at;

	if (field->required)
		return false;
	if (field->decode == weft_decode_list)
		return !items->count;
	if (field->decode == weft_decode_number)
		return !*(const uint32_t *)at;
	return !*(const uint64_t *)at;
}

static json_t *encode_map(const struct weft_schema *map, const void *at)
{
	json_t *object = json_object();

	for (const struct weft_schema_field *f = map->fields; f->name || f->map; f++) {
		if (f->name && is_left_out(f, (const char *)at + f->offset))
			continue;
		if (f->name) {
			json_object_set_new(object, f->name,
					    encode_value(f, (const char *)at + f->offset));
		} else {
			json_auto_t *inner = encode_map(f->map, (const char *)at + f->offset);

			json_object_update(object, inner);
		}
	}
	return object;
}

static int begin_frame(struct weft_frame *frame, const char *step, uint32_t format,
		       const struct weft_schema *map, const void *at, size_t fds)
{
	assert(format && format <= WEFT_TAKEOVER_FORMAT);
	*frame = (struct weft_frame){ .doc = encode_map(map, at) };
	frame->fds.at = calloc(fds ? fds : 1, sizeof(int));
	if (!frame->doc || !frame->fds.at)
		return -ENOMEM;
	json_object_set_new(frame->doc, "step", json_string(step));
	json_object_set_new(frame->doc, "format", json_integer(format));
	return 0;
}

static void add_fd(struct weft_frame *frame, int fd)
{
	assert(fd >= 0);
	((int *)frame->fds.at)[frame->fds.count++] = fd;
}

void weft_frame_free_borrowed(struct weft_frame *frame)
{
	frame->fds.count = 0;
	weft_frame_free(frame);
}

/* --- frames ----------------------------------------------------------------------------------- */

int weft_running_config_encode(const struct weft_running_config *running, struct weft_frame *frame)
{
	const struct weft_running_subsys *s = running->subsystems.at;
	size_t fds = 0;
	int rc;

	for (unsigned i = 0; i < running->subsystems.count; i++)
		fds += s[i].namespaces.count;
	rc = begin_frame(frame, "prepare", running->format, &weft_running_config_schema, running,
			 fds);
	for (unsigned i = 0; i < running->subsystems.count && !rc; i++) {
		const struct weft_running_ns *ns = s[i].namespaces.at;

		for (unsigned j = 0; j < s[i].namespaces.count; j++)
			if (ns[j].has_fd)
				add_fd(frame, ns[j].fd);
	}
	return rc;
}

static size_t count_bytes(const struct weft_target_state *target)
{
	const struct weft_subsys_state *subsystems = target->subsystems.at;
	const struct weft_queue_state *queues = target->queues.at;
	size_t size = 0;

	for (unsigned i = 0; i < target->subsystems.count; i++)
		size += subsystems[i].store.records.count;
	for (unsigned i = 0; i < target->queues.count; i++)
		size += queues[i].qpair.nbytes;
	return size;
}

static void add_bytes(struct weft_frame *frame, const void *bytes, unsigned count)
{
	if (count)
		memcpy((char *)frame->bytes.at + frame->bytes.count, bytes, count);
	frame->bytes.count += count;
}

static void add_target(struct weft_frame *frame, const struct weft_target_state *target)
{
	const struct weft_subsys_state *subsystems = target->subsystems.at;
	const struct weft_listener_state *listeners = target->listeners.at;
	struct weft_queue_state *queues = target->queues.at;

	for (unsigned i = 0; i < target->subsystems.count; i++) {
		const struct weft_store_state *store = &subsystems[i].store;

		add_bytes(frame, store->records.at, store->records.count);
		if (store->has_fd)
			add_fd(frame, store->fd);
	}
	for (unsigned i = 0; i < target->listeners.count; i++)
		add_fd(frame, listeners[i].fd);
	for (unsigned i = 0; i < target->queues.count; i++) {
		add_bytes(frame, queues[i].qpair.bytes, queues[i].qpair.nbytes);
		add_fd(frame, tcp_conn_state(&queues[i].qpair)->fd);
	}
}

int weft_takeover_state_encode(const struct weft_takeover_state *state, struct weft_frame *frame)
{
	const struct weft_target_state *target = &state->target;
	size_t size = count_bytes(target);
	int rc = begin_frame(frame, "state", state->format, &weft_takeover_state_schema, state,
			     1 + target->subsystems.count + target->listeners.count +
				     target->queues.count);

	if (rc < 0)
		return rc;
	frame->bytes.at = size <= UINT32_MAX ? malloc(size + 1) : NULL;
	if (!frame->bytes.at)
		return -ENOMEM;
	add_fd(frame, state->control);
	add_target(frame, target);
	assert(frame->bytes.count == size); /* there is room for so many */
	return 0;
}
