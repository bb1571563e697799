/* ctl_call.c - call a method of the target, and print that it waits if no answer comes. */
#include <stdio.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/ctl.h"
#include "cli/path_wait.h"
#include "daemon/control/client.h"

#define LIMIT_MS 10000

int weft_ctl_timeout(struct ctl_target *ask, const char *value)
{
	if (!weft_ms_parse(value, &ask->limit_ms) && ask->limit_ms)
		return 0;
	weft_cli_usage_error(ask->command,
			     "--timeout: expected a time such as 500ms or 5s, got \"%s\"", value);
	return -1;
}

/* A change takes as long as it takes, and one that is given up may still be made: only who asks for
 * a limit gets one. */
static struct weft_ctl_limit limit_of(const struct ctl_target *ask, const char *method)
{
	uint32_t ms = ask->limit_ms                     ? ask->limit_ms :
		      weft_ctl_needs_its_answer(method) ? LIMIT_MS :
							  0;

	return (struct weft_ctl_limit){ ms, "--timeout" };
}

json_t *weft_ctl_ask(const struct ctl_target *ask, const char *method, json_t *params,
		     struct weft_err *err)
{
	struct weft_ctl_limit limit = limit_of(ask, method);
	struct weft_path_wait waiting = {
		.command = ask->command,
		.uri = ask->path,
		.awaited = "an answer of the target at",
		.connect_ms = limit.ms,
	};
	json_t *result;

	weft_path_wait_begin(&waiting);
	result = weft_ctl_call(ask->path, method, params, limit, err);
	weft_path_wait_end(&waiting);
	return result;
}
