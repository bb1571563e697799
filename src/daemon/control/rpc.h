/* rpc.h - JSON-RPC 2.0: a line is a request, which calls a method and gets an answer.
 *
 *   weft_rpc_handle(line) ─▶ method->run(call, params) ┄┄▶ weft_rpc_result() ─▶ call->answer(line)
 *                                                          weft_rpc_fail()
 *
 * Invariant: every call that weft_rpc_handle() was given is answered exactly once, perhaps before
 * it returns. */
#ifndef WEFT_DAEMON_CONTROL_RPC_H
#define WEFT_DAEMON_CONTROL_RPC_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "daemon/config/decode.h"

#define WEFT_RPC_LINE_MAX (1 << 20)

enum {
	WEFT_RPC_PARSE_ERROR = -32700,
	WEFT_RPC_INVALID_REQUEST = -32600,
	WEFT_RPC_NO_METHOD = -32601,
	WEFT_RPC_INVALID_PARAMS = -32602,
	WEFT_RPC_FAILED = -32000,
};

struct weft_rpc_call {
	/* Owns @line: an answer with its newline, or NULL for a notification. The caller may free
	 * @call from now on. */
	void (*answer)(struct weft_rpc_call *call, char *line);
	const struct weft_rpc *rpc;
	json_t *id; /* NULL: a notification */
	const struct weft_rpc_method *method;
};

struct weft_rpc_method {
	const char *name, *help;
	const struct weft_schema *params;
	size_t params_size;
	void (*params_free)(void *params); /* frees what @params point to, not @params (optional) */
	/* @params are valid until this returns. */
	void (*run)(struct weft_rpc_call *call, void *params);
};

struct weft_rpc {
	const struct weft_rpc_method *methods; /* a nameless one ends them */
	void *daemon;
};

void weft_rpc_handle(const struct weft_rpc *rpc, struct weft_rpc_call *call, const char *line,
		     size_t len);
/* Owns @result. */
void weft_rpc_result(struct weft_rpc_call *call, json_t *result);
/* -EINVAL becomes "invalid params", any other error a failed operation. */
void weft_rpc_fail(struct weft_rpc_call *call, int rc, const struct weft_err *err);

/* @text from outside, escaped for people: always a string (base/utf8.h). */
json_t *weft_json_printable(const char *text);

/* An error that answers no call, as a line. */
char *weft_rpc_error_line(int code, const char *sentence);

#endif
