/* frame_schema.c - the schemas of the "prepare" and "state" documents; one schema encodes and
 * decodes. */
#include "daemon/takeover/frame_schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/takeover/frames.h"
#include "transport/tcp/state.h"

/* --- values ----------------------------------------------------------------------------------- */

int weft_decode_hex_name(struct weft_decoder *d, const struct weft_schema_field *field,
			 json_t *value, void *out)
{
	const char *text = json_string_value(value);
	long len = text ? weft_hex_decode(text, out, field->max) : -EINVAL;

	if (len < 0 || memchr(out, '\0', (size_t)len))
		return weft_decode_expected(d, value, "a name in hexadecimal");
	((char *)out)[len] = '\0';
	return 0;
}

int weft_decode_hex_bytes(struct weft_decoder *d, const struct weft_schema_field *field,
			  json_t *value, void *out)
{
	static const char what[] = "bytes in hexadecimal";
	const char *text = json_string_value(value);
	size_t room = json_string_length(value) / 2;
	struct weft_items *bytes = out;
	long len;

	if (!text || room > field->max)
		return weft_decode_expected(d, value, what);
	bytes->at = malloc(room + 1);
	if (!bytes->at)
		return -ENOMEM;
	len = weft_hex_decode(text, bytes->at, room);
	if (len < 0)
		return weft_decode_expected(d, value, what);
	bytes->count = (unsigned)len;
	return 0;
}

/* --- schemas ---------------------------------------------------------------------------------- */

#define U32(name, type, member)                                                            \
	{                                                                                  \
		name, weft_decode_number, offsetof(struct type, member), .required = true, \
									 .max = UINT32_MAX \
	}
#define U64(name, type, member)                                                          \
	{                                                                                \
		name, weft_decode_count, offsetof(struct type, member), .required = true \
	}
#define FLAG(name, type, member)                                                        \
	{                                                                               \
		name, weft_decode_bool, offsetof(struct type, member), .required = true \
	}
#define TEXT(name, type, member, least)                                \
	{                                                              \
		name, weft_decode_text, offsetof(struct type, member), \
			.required = true, .min = least,                \
			.max = sizeof(((struct type *)0)->member) - 1  \
	}
#define NAME(name, type, member)                                                        \
	{                                                                               \
		name, weft_decode_hex_name, offsetof(struct type, member),              \
			.required = true, .max = sizeof(((struct type *)0)->member) - 1 \
	}
#define BYTES(name, type, member, most)                                                       \
	{                                                                                     \
		name, weft_decode_hex_bytes, offsetof(struct type, member), .required = true, \
									    .max = most       \
	}
#define LIST(name, type, member, of, size)                              \
	{                                                               \
		name, weft_decode_list, offsetof(struct type, member),  \
			.required = true, .item = of, .item_size = size \
	}

static const struct weft_schema running_ns_map = { (const struct weft_schema_field[]){
	U32("nsid", weft_running_ns, nsid),
	U32("block", weft_running_ns, block),
	U32("ana_group", weft_running_ns, ana_group),
	TEXT("uuid", weft_running_ns, uuid, 36),
	TEXT("backend", weft_running_ns, backend, 1),
	U64("size", weft_running_ns, size),
	FLAG("sync_failed", weft_running_ns, sync_failed),
	FLAG("descriptor", weft_running_ns, has_fd),
	{},
} };
static const struct weft_schema_field running_ns = { .decode = weft_decode_map,
						     .map = &running_ns_map };

static const struct weft_schema_field running_host = { .decode = weft_decode_text,
						       .min = 1,
						       .max = WEFT_NQN_MAX };

static const struct weft_schema running_subsys_map = { (const struct weft_schema_field[]){
	TEXT("nqn", weft_running_subsys, nqn, 1),
	TEXT("serial", weft_running_subsys, serial, 1),
	TEXT("model", weft_running_subsys, model, 1),
	TEXT("state", weft_running_subsys, state, 0),
	U32("node", weft_running_subsys, node),
	U32("of", weft_running_subsys, nodes),
	{ "access", weft_decode_number, offsetof(struct weft_running_subsys, access),
	  .max = WEFT_ALLOWED_LISTED },
	{ "hosts", weft_decode_list, offsetof(struct weft_running_subsys, hosts),
	  .item = &running_host, .item_size = WEFT_NQN_MAX + 1 },
	LIST("namespaces", weft_running_subsys, namespaces, &running_ns,
	     sizeof(struct weft_running_ns)),
	{},
} };
static const struct weft_schema_field running_subsys = { .decode = weft_decode_map,
							 .map = &running_subsys_map };

const struct weft_schema weft_running_config_schema = { (const struct weft_schema_field[]){
	U32("depth", weft_running_config, depth),
	U32("queues", weft_running_config, queues),
	LIST("subsystems", weft_running_config, subsystems, &running_subsys,
	     sizeof(struct weft_running_subsys)),
	{},
} };

static const struct weft_schema totals_map = { (const struct weft_schema_field[]){
	U64("reads", weft_totals_state, reads),
	U64("writes", weft_totals_state, writes),
	U64("read_bytes", weft_totals_state, read_bytes),
	U64("write_bytes", weft_totals_state, write_bytes),
	{ "media_errors", weft_decode_count, offsetof(struct weft_totals_state, media_errors) },
	{},
} };

static const struct weft_schema ns_errors_map = { (const struct weft_schema_field[]){
	U32("nsid", weft_ns_errors_state, nsid),
	U64("reads", weft_ns_errors_state, reads),
	U64("writes", weft_ns_errors_state, writes),
	{},
} };
static const struct weft_schema_field ns_errors = { .decode = weft_decode_map,
						    .map = &ns_errors_map };

static const struct weft_schema listener_map = { (const struct weft_schema_field[]){
	TEXT("uri", weft_listener_state, uri, 1),
	U32("portid", weft_listener_state, portid),
	{},
} };
static const struct weft_schema_field listener = { .decode = weft_decode_map,
						   .map = &listener_map };

static const struct weft_schema entry_map = { (const struct weft_schema_field[]){
	U32("id", weft_takeover_entry, id),
	U32("value", weft_takeover_entry, value),
	U64("count", weft_takeover_entry, count),
	{},
} };
static const struct weft_schema_field entry = { .decode = weft_decode_map, .map = &entry_map };

static const struct weft_schema rule_map = { (const struct weft_schema_field[]){
	U32("group", weft_ana_rule, group),
	U32("state", weft_ana_rule, state),
	U32("portid", weft_ana_rule, portid),
	TEXT("hostnqn", weft_ana_rule, hostnqn, 0),
	{},
} };
static const struct weft_schema_field rule = { .decode = weft_decode_map, .map = &rule_map };

static const struct weft_schema member_map = { (const struct weft_schema_field[]){
	U32("node", weft_store_member_state, node),
	U64("incarnation", weft_store_member_state, incarnation),
	U64("acknowledged", weft_store_member_state, acked),
	{},
} };
static const struct weft_schema_field member = { .decode = weft_decode_map, .map = &member_map };

static const struct weft_schema store_map = { (const struct weft_schema_field[]){
	U64("revision", weft_store_state, revision),
	U64("session", weft_store_state, session),
	U64("acknowledged", weft_store_state, acked),
	U64("incarnation", weft_store_state, incarnation),
	U32("nodes", weft_store_state, nodes),
	LIST("members", weft_store_state, members, &member, sizeof(struct weft_store_member_state)),
	U32("bytes", weft_store_state, records.count),
	FLAG("descriptor", weft_store_state, has_fd),
	{},
} };

static const struct weft_schema subsys_map = { (const struct weft_schema_field[]){
	TEXT("nqn", weft_subsys_state, nqn, 1),
	U32("cntlid", weft_subsys_state, cntlid),
	{ .map = &totals_map, .offset = offsetof(struct weft_subsys_state, totals) },
	{ "namespace_errors", weft_decode_list, offsetof(struct weft_subsys_state, ns_errors),
	  .item = &ns_errors, .item_size = sizeof(struct weft_ns_errors_state) },
	LIST("ana_rules", weft_subsys_state, ana_rules, &rule, sizeof(struct weft_ana_rule)),
	LIST("ana_changed", weft_subsys_state, ana_changed, &entry,
	     sizeof(struct weft_takeover_entry)),
	U64("ana_count", weft_subsys_state, ana_count),
	BYTES("served_elsewhere", weft_subsys_state, elsewhere, WEFT_ANA_GROUP_MAX / 8),
	FLAG("draining", weft_subsys_state, draining),
	{ "state", weft_decode_map, offsetof(struct weft_subsys_state, store), .required = true,
	  .map = &store_map },
	{},
} };
static const struct weft_schema_field subsys = { .decode = weft_decode_map, .map = &subsys_map };

static const struct weft_schema feature_map = { (const struct weft_schema_field[]){
	{ "fid", weft_decode_number, offsetof(struct weft_feature_state, fid), .required = true,
	  .max = 255 },
	U32("value", weft_feature_state, value),
	{},
} };
static const struct weft_schema_field feature = { .decode = weft_decode_map, .map = &feature_map };
static const struct weft_schema_field number = { .decode = weft_decode_number, .max = UINT32_MAX };

static const struct weft_schema ctrl_map = { (const struct weft_schema_field[]){
	TEXT("nqn", weft_ctrl_state, nqn, 1),
	U32("cntlid", weft_ctrl_state, cntlid),
	NAME("hostnqn", weft_ctrl_state, hostnqn),
	TEXT("hostid", weft_ctrl_state, hostid, 36),
	U32("portid", weft_ctrl_state, portid),
	U32("ciu", weft_ctrl_state, ciu),
	U32("cirn_low", weft_ctrl_state, cirn_low),
	U32("cirn_high", weft_ctrl_state, cirn_high),
	LIST("ana", weft_ctrl_state, ana, &entry, sizeof(struct weft_takeover_entry)),
	LIST("ccrs", weft_ctrl_state, ccrs, &entry, sizeof(struct weft_takeover_entry)),
	U32("cc", weft_ctrl_state, cc),
	U32("csts", weft_ctrl_state, csts),
	U32("io_queues", weft_ctrl_state, io_queues),
	U32("kato_ms", weft_ctrl_state, kato_ms),
	U32("kato_left_ms", weft_ctrl_state, kato_left_ms),
	FLAG("traffic", weft_ctrl_state, traffic),
	LIST("features", weft_ctrl_state, features, &feature, sizeof(struct weft_feature_state)),
	U64("timestamp_ms", weft_ctrl_state, timestamp_ms),
	U64("timestamp_age_ms", weft_ctrl_state, timestamp_age_ms),
	FLAG("timestamp_by_host", weft_ctrl_state, timestamp_by_host),
	LIST("events_pending", weft_ctrl_state, pending, &number, sizeof(uint32_t)),
	LIST("events_masked", weft_ctrl_state, masked, &number, sizeof(uint32_t)),
	LIST("namespaces_changed", weft_ctrl_state, changed, &number, sizeof(uint32_t)),
	U64("errors", weft_ctrl_state, nerrors),
	BYTES("error_log", weft_ctrl_state, errors, 64 << 10),
	BYTES("host_behavior", weft_ctrl_state, behavior, 512),
	U64("reservation_notices", weft_ctrl_state, resv_count),
	BYTES("reservation_log", weft_ctrl_state, resv_pages, 64 << 10),
	BYTES("reservation_masks", weft_ctrl_state, resv_masks, WEFT_NSID_MAX),
	{},
} };
static const struct weft_schema_field ctrl = { .decode = weft_decode_map, .map = &ctrl_map };

static const struct weft_schema tcp_conn_map = { (const struct weft_schema_field[]){
	FLAG("ready", tcp_conn_state, ready),
	FLAG("hdgst", tcp_conn_state, hdgst),
	FLAG("ddgst", tcp_conn_state, ddgst),
	U32("hpda", tcp_conn_state, hpda),
	U32("maxr2t", tcp_conn_state, maxr2t),
	{},
} };

static const struct weft_schema queue_map = { (const struct weft_schema_field[]){
	U32("controller", weft_queue_state, ctrl),
	{ .map = &tcp_conn_map, .offset = offsetof(struct weft_queue_state, qpair.own) },
	U32("sqid", weft_queue_state, qpair.sqid),
	U32("sqhd", weft_queue_state, qpair.sqhd),
	U32("sqsize", weft_queue_state, qpair.sqsize),
	FLAG("sq_flow", weft_queue_state, qpair.sq_flow),
	U32("bytes", weft_queue_state, qpair.nbytes),
	{ .map = &totals_map, .offset = offsetof(struct weft_queue_state, totals) },
	{},
} };
static const struct weft_schema_field queue = { .decode = weft_decode_map, .map = &queue_map };

const struct weft_schema weft_takeover_state_schema = { (const struct weft_schema_field[]){
	U64("since_ns", weft_takeover_state, since_ns),
	U64("still_ns", weft_takeover_state, still_ns),
	U64("genctr", weft_takeover_state, target.genctr),
	LIST("listeners", weft_takeover_state, target.listeners, &listener,
	     sizeof(struct weft_listener_state)),
	LIST("subsystems", weft_takeover_state, target.subsystems, &subsys,
	     sizeof(struct weft_subsys_state)),
	LIST("controllers", weft_takeover_state, target.ctrls, &ctrl,
	     sizeof(struct weft_ctrl_state)),
	LIST("queues", weft_takeover_state, target.queues, &queue, sizeof(struct weft_queue_state)),
	{},
} };
