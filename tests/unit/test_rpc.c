/* test_rpc.c - JSON-RPC without a socket: bytes to lines, a line to a call, a call to its answer;
 * and where the socket may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control/line_buffer.h"
#include "daemon/control/socket.h"
#include "daemon/control/rpc.h"
#include "running.h"

/* --- lines ------------------------------------------------------------------------------------ */

static const struct {
	const char *bytes;
	size_t line_max;
	const char *lines; /* taken, each with "|" behind it; "!" at the end: too long */
} framings[] = {
	{ "", 8, "" },
	{ "abc", 8, "" },
	{ "abc\n", 8, "abc|" },
	{ "\n\n", 8, "||" },
	{ "a\nbc\ndef", 8, "a|bc|" },
	{ "12345678\n", 8, "12345678|" },
	{ "123456789\n", 8, "!" },
	{ "a\n123456789\n", 8, "a|!" },
	{ "a\n12345678\nb\n", 8, "a|12345678|b|" },
};

static void take_all(struct weft_line_buffer *lines, char *got)
{
	const char *line;
	size_t len;

	while (weft_line_buffer_take(lines, &line, &len)) {
		strncat(got, line, len);
		strcat(got, "|");
	}
}

/* Feeds @bytes in steps of @step at most. */
static void feed(struct weft_line_buffer *lines, const char *bytes, size_t step, char *got)
{
	size_t left = strlen(bytes), room;
	char *at;

	while (left) {
		at = weft_line_buffer_room(lines, &room);
		if (!at) {
			strcat(got, "!");
			return;
		}
		room = room < step ? room : step;
		room = room < left ? room : left;
		memcpy(at, bytes, room);
		weft_line_buffer_filled(lines, room);
		bytes += room;
		left -= room;
		take_all(lines, got);
	}
}

static void lines_frame(void **state)
{
	for_each_named(i, framings, bytes) {
		for (size_t step = 1; step <= 16; step++) {
			struct weft_line_buffer lines;
			char got[128] = "";

			weft_line_buffer_init(&lines, framings[i].line_max);
			feed(&lines, framings[i].bytes, step, got);
			assert_string_equal(got, framings[i].lines);
			weft_line_buffer_free(&lines);
		}
	}
}

/* A line far beyond what the buffer begins with. */
static void lines_grow(void **state)
{
	const size_t size = WEFT_RPC_LINE_MAX;
	char *bytes = malloc(size + 2), *got = malloc(size + 3);
	struct weft_line_buffer lines;

	memset(bytes, 'x', size);
	strcpy(bytes + size, "\n");
	got[0] = '\0';
	weft_line_buffer_init(&lines, size);
	feed(&lines, bytes, 65536, got);
	assert_int_equal(strlen(got), size + 1);
	weft_line_buffer_free(&lines);
	free(bytes);
	free(got);
}

/* --- calls ------------------------------------------------------------------------------------ */

struct add_params {
	uint32_t a, b;
};

static void run_add(struct weft_rpc_call *call, void *params)
{
	struct add_params *p = params;

	weft_rpc_result(call, json_integer(p->a + p->b));
}

static void run_fail(struct weft_rpc_call *call, void *params)
{
	struct weft_err err = { "" };

	weft_fail(&err, -ENOSPC, "no room");
	weft_rpc_fail(call, -ENOSPC, &err);
}

/* A sentence that was cut in the middle of a character. */
static void run_fail_cut(struct weft_rpc_call *call, void *params)
{
	struct weft_err err = { "caf\xc3" };

	weft_rpc_fail(call, -EINVAL, &err);
}

static void run_fail_silent(struct weft_rpc_call *call, void *params)
{
	weft_rpc_fail(call, -EIO, NULL);
}

static struct weft_rpc_call *later;

static void run_later(struct weft_rpc_call *call, void *params)
{
	later = call;
}

static const struct weft_schema nothing = { (const struct weft_schema_field[]){ {} } };
static const struct weft_schema add_map = { (const struct weft_schema_field[]){
	{ "a", weft_decode_number, offsetof(struct add_params, a), .required = true, .max = 9 },
	{ "b", weft_decode_number, offsetof(struct add_params, b), .max = 9 },
	{},
} };

static const struct weft_rpc_method methods[] = {
	{ "add", "", &add_map, sizeof(struct add_params), NULL, run_add },
	{ "fail", "", &nothing, 0, NULL, run_fail },
	{ "fail-cut", "", &nothing, 0, NULL, run_fail_cut },
	{ "fail-silent", "", &nothing, 0, NULL, run_fail_silent },
	{ "later", "", &nothing, 0, NULL, run_later },
	{},
};

static const struct weft_rpc rpc = { .methods = methods };

static char *answer;
static unsigned answers;

static void on_answer(struct weft_rpc_call *call, char *line)
{
	answer = line;
	answers++;
}

#define REQUEST(rest)      "{\"jsonrpc\":\"2.0\"," rest "}"
#define RESULT(id, result) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" result "}\n"
#define ERROR(id, code, say)                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" say \
	"\"}}\n"
#define ERRNO(id, code, say, name)                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" say \
	"\",\"data\":{\"errno\":\"" name "\"}}}\n"

static const struct {
	const char *line, *answer; /* NULL: none */
} calls[] = {
	{ REQUEST("\"id\":1,\"method\":\"add\",\"params\":{\"a\":1,\"b\":2}"), RESULT("1", "3") },
	{ " " REQUEST("\"id\":\"x\",\"method\":\"add\",\"params\":{\"a\":1}") "\r",
	  RESULT("\"x\"", "1") },
	{ REQUEST("\"id\":null,\"method\":\"add\",\"params\":{\"a\":1}"), RESULT("null", "1") },
	{ REQUEST("\"method\":\"add\",\"params\":{\"a\":1}"), NULL },
	{ REQUEST("\"method\":\"add\""), NULL },
	{ REQUEST("\"method\":\"nope\""), NULL },
	{ REQUEST("\"method\":\"fail\""), NULL },
	{ REQUEST("\"id\":1,\"method\":\"nope\""),
	  ERROR("1", "-32601", "no such method: nope; \\\"methods\\\" lists them") },
	{ REQUEST("\"id\":1,\"method\":\"add\""), ERRNO("1", "-32602", "a: missing", "EINVAL") },
	{ REQUEST("\"id\":1,\"method\":\"add\",\"params\":[1,2]"),
	  ERRNO("1", "-32602", "expected a map of keys and values, got a list", "EINVAL") },
	{ REQUEST("\"id\":1,\"method\":\"add\",\"params\":{\"a\":10}"),
	  ERRNO("1", "-32602", "a: expected a number from 0 to 9, got 10", "EINVAL") },
	{ REQUEST("\"id\":1,\"method\":\"fail\""), ERRNO("1", "-32000", "no room", "ENOSPC") },
	{ REQUEST("\"id\":1,\"method\":\"fail-cut\""),
	  ERRNO("1", "-32602", "caf\\\\xc3", "EINVAL") },
	{ REQUEST("\"id\":1,\"method\":\"fail-silent\""),
	  ERRNO("1", "-32000", "Input/output error", "EIO") },
	{ "", ERROR("null", "-32700", "not JSON: unexpected token near end of file (column 0)") },
	{ "{",
	  ERROR("null", "-32700", "not JSON: string or '}' expected near end of file (column 1)") },
	{ "{} {}", ERROR("null", "-32700", "not JSON: end of file expected near '{' (column 4)") },
	{ "{\"id\":1,\"id\":2}",
	  ERROR("null", "-32700", "not JSON: duplicate object key near '\\\"id\\\"' (column 12)") },
	{ "5", ERROR("null", "-32600", "a request is an object") },
	{ "[]", ERROR("null", "-32600", "batches are not understood; send one request per line") },
	{ "{\"id\":7,\"method\":\"add\"}",
	  ERROR("7", "-32600", "\\\"jsonrpc\\\" must be \\\"2.0\\\"") },
	{ REQUEST("\"id\":{},\"method\":\"add\""),
	  ERROR("null", "-32600", "\\\"id\\\" must be a string or a number") },
	{ REQUEST("\"id\":7"), ERROR("7", "-32600", "\\\"method\\\" must be a string") },
	{ REQUEST("\"id\":7,\"method\":5"),
	  ERROR("7", "-32600", "\\\"method\\\" must be a string") },
};

static void check_answer(const char *line, const char *expected)
{
	assert_int_equal(answers, 1);
	if (!answer != !expected)
		fail_msg("%s: answered %s", line, answer ? answer : "nothing");
	if (expected)
		assert_string_equal(answer, expected);
	free(answer);
	answer = NULL;
}

static void calls_are_answered(void **state)
{
	for_each_named(i, calls, line) {
		struct weft_rpc_call call = { .answer = on_answer };

		answers = 0;
		weft_rpc_handle(&rpc, &call, calls[i].line, strlen(calls[i].line));
		check_answer(calls[i].line, calls[i].answer);
	}
}

static void a_call_may_take_its_time(void **state)
{
	const char *line = REQUEST("\"id\":1,\"method\":\"later\"");
	struct weft_rpc_call call = { .answer = on_answer };

	answers = 0;
	weft_rpc_handle(&rpc, &call, line, strlen(line));
	assert_int_equal(answers, 0);
	weft_rpc_result(later, json_true());
	check_answer(line, RESULT("1", "true"));
}

/* --- where the socket is ---------------------------------------------------------------------- */

static void made_where_others_cannot_write(void **state)
{
	static const struct {
		mode_t mode;
		int rc;
	} cases[] = {
		{ 0700, 0 }, { 0755, 0 }, { 0770, -EPERM }, { 0702, -EPERM }, { 01777, -EPERM },
	};
	char dir[] = "/tmp/weft-rpc-XXXXXX", path[64];
	struct weft_err err;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	for_each_row(i, cases) {
		err.text[0] = '\0';
		assert_int_equal(chmod(dir, cases[i].mode), 0);
		fd = weft_unix_listen(path, true, &err);
		assert_int_equal(fd < 0 ? fd : 0, cases[i].rc);
		assert_int_equal(unlink(path), cases[i].rc ? -1 : 0);
		if (fd >= 0)
			close(fd);
	}
	assert_int_equal(rmdir(dir), 0);
}

int __real_bind(int fd, const struct sockaddr *addr, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t size);

static const char *moved; /* a folder that is exchanged before the socket is made in it */

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t size)
{
	char away[64];

	if (moved) {
		snprintf(away, sizeof(away), "%s-away", moved);
		assert_int_equal(rename(moved, away) | mkdir(moved, 0700), 0);
		moved = NULL;
	}
	return __real_bind(fd, addr, size);
}

/* What others see of it, as ss does. */
static void bound_to(int fd, char path[sizeof(((struct sockaddr_un *)0)->sun_path)])
{
	struct sockaddr_un addr = {};
	socklen_t size = sizeof(addr);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
	strcpy(path, addr.sun_path);
}

#define LONG_NAME \
	"a-folder-whose-name-is-too-long-for-the-path-of-a-socket-if-one-adds-some-more-of-it"

/* By its path, unless a neighbour could lead that elsewhere before the socket is made. */
static void bound_by_its_path(void **state)
{
	static const struct {
		mode_t mode;
		const char *folder; /* in the one with that mode */
		bool by_path;
	} cases[] = {
		{ 0755, "own", true },  { 01777, "own", true },     { 0777, "own", false },
		{ 0775, "own", false }, { 0755, LONG_NAME, false },
	};
	char dir[] = "/tmp/weft-rpc-XXXXXX", folder[128], path[160], got[108];
	int fd;

	assert_non_null(mkdtemp(dir));
	for_each_row(i, cases) {
		snprintf(folder, sizeof(folder), "%s/%s", dir, cases[i].folder);
		snprintf(path, sizeof(path), "%s/control.sock", folder);
		assert_int_equal(chmod(dir, cases[i].mode) | mkdir(folder, 0700), 0);
		fd = weft_unix_listen(path, false, NULL);
		assert_true(fd >= 0);
		bound_to(fd, got);
		assert_int_equal(!strcmp(got, path), cases[i].by_path);
		close(fd);
		weft_unix_remove(path);
		assert_int_equal(rmdir(folder), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void folder_moved_meanwhile(void **state)
{
	char dir[] = "/tmp/weft-rpc-XXXXXX", path[64], away[64];
	struct weft_err err = { "" };

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	snprintf(away, sizeof(away), "%s-away", dir);
	moved = dir;
	assert_int_equal(weft_unix_listen(path, false, &err), -ESTALE);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "moved"));
	assert_int_equal(unlink(path) | rmdir(dir) | rmdir(away), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_frame),
		cmocka_unit_test(lines_grow),
		cmocka_unit_test(calls_are_answered),
		cmocka_unit_test(a_call_may_take_its_time),
		cmocka_unit_test(made_where_others_cannot_write),
		cmocka_unit_test(bound_by_its_path),
		cmocka_unit_test(folder_moved_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
