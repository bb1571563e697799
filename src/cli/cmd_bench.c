/* cmd_bench.c - weft bench: the load generator and verifier. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/draft.h"
#include "cli/bench/result.h"
#include "cli/cli.h"

/* Seconds and rates do not need 17 digits. */
static void print_json(const json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	putchar('\n');
}

static int report(const char *command, const struct bench_result *result)
{
	json_auto_t *json = result->config->json ? bench_report_json(result) : NULL;
	struct weft_err err = {};

	if (json)
		print_json(json);
	else
		bench_report_text(result);
	weft_cli_flush();
	bench_report_problems(result, command);
	if (result->config->plot && bench_plot(result, result->config->plot, &err) < 0)
		return weft_cli_failed(command, err.text);
	if (!bench_result_fine(result, &err))
		return weft_cli_failed(command, err.text);
	return EXIT_OK;
}

/* Rather before ten minutes of load than after them: whether it can be made. By its name, what it
 * replaces is an older plot. */
static int check_plot(const char *path, struct weft_err *err)
{
	_cleanup_(weft_draft_free) struct weft_draft draft = {};
	int rc = path ? weft_draft_place(&draft, path, true, err) : 0;

	if (!path || rc < 0)
		return rc;
	if (faccessat(draft.at.folder, ".", W_OK, 0) < 0)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

int weft_cmd_bench(int argc, char **argv)
{
	struct bench_config config;
	struct bench_result *result;
	struct weft_err err = {};
	int code = bench_args(argc, argv, &config);

	if (code != EXIT_OK)
		return code;
	if (config.help) {
		bench_usage();
		return EXIT_OK;
	}
	result = calloc(1, sizeof(*result));
	if (!result)
		return weft_cli_failed(argv[0], "no memory");
	if (check_plot(config.plot, &err) < 0 || bench_run(&config, result, &err) < 0)
		code = weft_cli_failed(argv[0], err.text);
	else
		code = report(argv[0], result);
	/* I/Os are still in flight on memory that must not be freed. */
	if (result->left)
		_exit(weft_cli_end(argv[0], code));
	bench_result_free(result);
	free(result);
	return code;
}
