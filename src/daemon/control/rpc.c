/* rpc.c - JSON-RPC 2.0: check a request, call its method, encode the answer. */
#include "daemon/control/rpc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* --- answers ---------------------------------------------------------------------------------- */

json_t *weft_json_printable(const char *text)
{
	size_t size = WEFT_UTF8_ESCAPE * strlen(text) + 1;
	_cleanup_(weft_freep) char *seen = malloc(size);

	if (!seen)
		return NULL;
	weft_utf8_show(seen, size, text);
	return json_string(seen);
}

static char *to_line(json_t *answer)
{
	char *text = json_dumps(answer, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;
	char *line = text ? realloc(text, len + 2) : NULL;

	json_decref(answer);
	if (!line) {
		free(text);
		return NULL;
	}
	strcpy(line + len, "\n");
	return line;
}

/* Owns @body. @id may be NULL: the answer has null, as the specification wants it if no id could be
 * read. */
static char *answer_line(json_t *id, const char *kind, json_t *body)
{
	json_t *answer = json_pack("{s:s, s:O?, s:o}", "jsonrpc", "2.0", "id", id, kind, body);

	return answer ? to_line(answer) : NULL;
}

static json_t *error_body(int code, const char *sentence, int rc)
{
	const char *name = rc ? strerrorname_np(-rc) : NULL;
	json_t *body = json_pack("{s:i, s:o}", "code", code, "message",
				 weft_json_printable(sentence));

	if (name)
		json_object_set_new(body, "data", json_pack("{s:s}", "errno", name));
	return body;
}

char *weft_rpc_error_line(int code, const char *sentence)
{
	return answer_line(NULL, "error", error_body(code, sentence, 0));
}

static void rpc_answer(struct weft_rpc_call *call, const char *kind, json_t *body)
{
	json_t *id = take_ptr(&call->id);
	char *line = NULL;

	assert(call->answer);
	if (id)
		line = answer_line(id, kind, body);
	else
		json_decref(body);
	json_decref(id);
	call->answer(call, line);
}

void weft_rpc_result(struct weft_rpc_call *call, json_t *result)
{
	assert(call->method);
	rpc_answer(call, "result", result);
}

static void call_error(struct weft_rpc_call *call, int code, const char *sentence, int rc)
{
	rpc_answer(call, "error", error_body(code, sentence, rc));
}

void weft_rpc_fail(struct weft_rpc_call *call, int rc, const struct weft_err *err)
{
	assert(rc < 0);
	int code = rc == -EINVAL ? WEFT_RPC_INVALID_PARAMS : WEFT_RPC_FAILED;

	call_error(call, code, err && err->text[0] ? err->text : strerror(-rc), rc);
}

/* --- requests --------------------------------------------------------------------------------- */

static const struct weft_rpc_method *find_method(const struct weft_rpc *rpc, const char *name)
{
	for (const struct weft_rpc_method *m = rpc->methods; m->name; m++) {
		if (!strcmp(m->name, name))
			return m;
	}
	return NULL;
}

/* Parameters are given by name; none at all is an empty map. */
static void run_method(struct weft_rpc_call *call, json_t *params)
{
	json_auto_t *none = json_object();
	struct weft_doc doc = { .root = params ? params : none };
	_cleanup_(weft_freep) void *decoded = calloc(1, call->method->params_size + 1);
	const struct weft_rpc_method *method = call->method;
	struct weft_err err = { "" };
	int rc;

	rc = weft_decode(&doc, method->params, decoded, &err);
	if (rc < 0)
		weft_rpc_fail(call, -EINVAL, &err);
	else
		method->run(call, decoded);
	if (method->params_free)
		method->params_free(decoded);
}

static void run_request(struct weft_rpc_call *call, json_t *request)
{
	json_t *method = json_object_get(request, "method");
	char sentence[128];

	call->method = find_method(call->rpc, json_string_value(method));
	if (call->method) {
		run_method(call, json_object_get(request, "params"));
		return;
	}
	snprintf(sentence, sizeof(sentence), "no such method: %.64s; \"methods\" lists them",
		 json_string_value(method));
	call_error(call, WEFT_RPC_NO_METHOD, sentence, 0);
}

static bool is_id(json_t *id)
{
	return json_is_string(id) || json_is_number(id) || json_is_null(id);
}

/* What is wrong with the request object, or NULL. */
static const char *check_request(json_t *request)
{
	const char *version = json_string_value(json_object_get(request, "jsonrpc"));
	json_t *id = json_object_get(request, "id");

	if (json_is_array(request))
		return "batches are not understood; send one request per line";
	if (!json_is_object(request))
		return "a request is an object";
	if (!version || strcmp(version, "2.0"))
		return "\"jsonrpc\" must be \"2.0\"";
	if (id && !is_id(id))
		return "\"id\" must be a string or a number";
	if (!json_is_string(json_object_get(request, "method")))
		return "\"method\" must be a string";
	return NULL;
}

/* A malformed request is always answered: it may not have been a notification. */
static void refuse_request(struct weft_rpc_call *call, int code, json_t *request,
			   const char *sentence)
{
	json_t *id = json_object_get(request, "id");

	call->answer(call,
		     answer_line(is_id(id) ? id : NULL, "error", error_body(code, sentence, 0)));
}

void weft_rpc_handle(const struct weft_rpc *rpc, struct weft_rpc_call *call, const char *line,
		     size_t len)
{
	char sentence[JSON_ERROR_TEXT_LENGTH + 64];
	json_error_t error;
	json_auto_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
					  &error);
	const char *wrong = request ? check_request(request) : NULL;

	call->rpc = rpc;
	call->id = NULL;
	if (!request) {
		snprintf(sentence, sizeof(sentence), "not JSON: %s (column %d)", error.text,
			 error.column);
		refuse_request(call, WEFT_RPC_PARSE_ERROR, NULL, sentence);
	} else if (wrong) {
		refuse_request(call, WEFT_RPC_INVALID_REQUEST, request, wrong);
	} else {
		call->id = json_incref(json_object_get(request, "id"));
		run_request(call, request);
	}
}
