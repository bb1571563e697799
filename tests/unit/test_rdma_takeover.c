/* test_rdma_takeover.c - connections that cannot be handed over: a takeover is refused, or ends
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/methods.h"
#include "daemon/internal.h"
#include "rdma_session.h"
#include "target/takeover/takeover.h"

static char *answer;

static void on_answer(struct weft_rpc_call *call, char *line)
{
	answer = line;
}

/* `weft serve --takeover` has called; what it is told. */
static const char *takeover(struct weft_daemon *d, bool drop_rdma)
{
	const struct weft_rpc rpc = { .methods = weft_rpc_methods, .daemon = d };
	struct weft_rpc_call call = { .answer = on_answer };
	char line[200];

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"takeover\", "
		 "\"params\": {\"format\": 1, \"drop_rdma\": %s}}",
		 drop_rdma ? "true" : "false");
	free(answer);
	answer = NULL;
	weft_rpc_handle(&rpc, &call, line, strlen(line));
	assert_non_null(answer);
	return answer;
}

static void refused_while_there_are_any(void **state)
{
	struct weft_daemon d = { .control_reactor = case_control(), .target = case_target() };

	session_open();
	assert_non_null(strstr(takeover(&d, false),
			       "2 RDMA connections cannot be handed over; --drop-rdma ends them, "
			       "and their hosts connect again"));
	assert_null(d.export);
	check_alive(&admin);
	assert_non_null(strstr(takeover(&d, true), "socket"));
	assert_true(weft_takeover_export_cancel(&d)); /* nothing was ended yet */
	check_alive(&admin);
	session_close();
	assert_non_null(strstr(takeover(&d, false), "socket"));
	assert_true(weft_takeover_export_cancel(&d));
	case_turns(4);
}

struct frozen {
	bool over;
	int rc;
};

static void on_frozen(void *arg, int rc, const struct weft_err *err)
{
	struct frozen *frozen = arg;

	frozen->over = true;
	frozen->rc = rc;
}

/* Of a target that stands still nothing is left of them, and when it goes on hosts come back. */
static void ended_where_that_is_wanted(void **state)
{
	struct weft_target_state told;
	struct frozen frozen = { 0 };

	session_open();
	weft_target_freeze(case_target(), 2000, on_frozen, &frozen);
	raw_expect_end(&io);
	raw_expect_end(&admin);
	raw_close(&io);
	raw_close(&admin);
	for (unsigned i = 0; i < 1000 && !frozen.over; i++)
		case_turn();
	assert_true(frozen.over);
	assert_int_equal(frozen.rc, 0);
	assert_int_equal(weft_target_export(case_target(), &told), 0);
	assert_int_equal(told.queues.count, 0);
	assert_int_equal(told.ctrls.count, 0);
	assert_int_equal(told.listeners.count, 0);
	weft_target_state_free(&told);
	weft_target_thaw(case_target());
	session_open();
	check_alive(&admin);
	session_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refused_while_there_are_any, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ended_where_that_is_wanted, set_up, tear_down),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(answer);
	return failed;
}
