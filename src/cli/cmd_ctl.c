/* cmd_ctl.c - weft ctl: call a method of a running target and show its result. */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/ctl.h"
#include "cli/print.h"
#include "daemon/config/config.h"
#include "daemon/control/client.h"

static const char usage[] =
	"usage: weft ctl [OPTION]... METHOD [JSON | KEY=VALUE...]\n"
	"\n"
	"Calls a method of a running target. nqn may be left out where there is one\n"
	"subsystem. A relative path in KEY=VALUE is relative to where this runs.\n"
	"\n"
	"  status                                   what is running\n"
	"  subsystem-add nqn=NQN [hosts=[...]] ...  item of subsystems: in weft.yaml(5)\n"
	"  subsystem-remove nqn=NQN\n"
	"  namespace-add [nqn=NQN] backend=SPEC ... item of namespaces: in weft.yaml(5)\n"
	"  namespace-resize [nqn=NQN] nsid=N size=SIZE [shrink=true]\n"
	"  namespace-remove [nqn=NQN] nsid=N\n"
	"  ana-set [nqn=NQN] rules=[...] [replace=true]\n"
	"                                           items of ana: in weft.yaml(5)\n"
	"  drain, undrain [nqn=NQN]                 of a cluster: serve no group, or some\n"
	"  move [nqn=NQN] [group=N] node=N          of a cluster: who serves it, or all\n"
	"  host-allow, host-refuse [nqn=NQN] host=HOSTNQN|any\n"
	"  listener-add, listener-remove listen=URI\n"
	"  save [path=FILE] [force=true]            write the running configuration\n"
	"  methods                                  this list, from the target itself\n"
	"\n"
	"      --control PATH  the target's control socket (%s)\n"
	"      --timeout TIME  for an answer, such as 500ms or 5s (10s for status and\n"
	"                      methods; others wait until the target has done it)\n"
	"      --json          JSON also where a terminal would get a table\n"
	"  -h, --help          this text\n"
	"\n"
	"  weft ctl namespace-add backend=mem:1G block=4096\n"
	"  weft ctl subsystem-add nqn=nqn.2026-11.com.example:a allow_any_host=true\n"
	"  weft ctl ana-set 'rules=[{\"group\": 1, \"portid\": 2, \"state\": \"inaccessible\"}]'\n"
	"  weft ctl host-allow '{\"host\": \"nqn.2014-08.com.example:host\"}'\n";

static void print_methods(json_t *methods)
{
	json_t *method;
	size_t index;

	json_array_foreach(methods, index, method)
		printf("  %-17s %s\n", json_string_value(json_object_get(method, "name")),
		       json_string_value(json_object_get(method, "help")));
}

static void print_result(const char *method, json_t *result, bool json)
{
	if (!json && !strcmp(method, "status")) {
		weft_ctl_print_status(result);
	} else if (!json && !strcmp(method, "methods")) {
		print_methods(result);
	} else {
		json_dumpf(result, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
		putchar('\n');
	}
}

static bool is_listed(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

/* The target may be of a later version, and have methods that we do not know. */
static bool target_has_method(const struct ctl_target *ask, const char *name)
{
	struct weft_err ignored = { "" };
	json_auto_t *methods = weft_ctl_ask(ask, "methods", json_object(), &ignored);
	json_t *method;
	size_t index;

	json_array_foreach(methods, index, method) {
		if (!strcmp(weft_json_text(method, "name"), name))
			return true;
	}
	return false;
}

static int check_method(const struct ctl_target *ask, const char *name)
{
	const char *names[WEFT_CTL_METHODS_MAX + 1];

	weft_ctl_methods(names);
	if (is_listed(name, names) || target_has_method(ask, name))
		return EXIT_OK;
	return weft_cli_unknown(ask->command, "method", name, names);
}

static int call_method(const struct ctl_target *ask, bool json, char *const *words)
{
	struct weft_err err = { "" };
	json_auto_t *result = NULL;
	json_t *params;

	params = weft_ctl_params(words + 1, &err);
	if (!params)
		return weft_cli_usage_error(ask->command, "%s", err.text);
	result = weft_ctl_ask(ask, words[0], params, &err);
	if (!result)
		return weft_cli_failed(ask->command, err.text);
	weft_cli_warnings(ask->command, json_object_get(result, "warnings"));
	print_result(words[0], result, json);
	return EXIT_OK;
}

static int take_call_timeout(const char *command, const struct weft_cli_option *option,
			     const char *value, void *to)
{
	return weft_ctl_timeout(to, value) < 0 ? -1 : 1;
}

struct ctl_command {
	struct ctl_target target;
	bool json;
};

static const struct weft_cli_option options[] = {
	WEFT_CLI_TEXT("control", 0, struct ctl_command, target.path),
	WEFT_CLI_FLAG("json", 0, struct ctl_command, json),
	WEFT_CLI_OWN("timeout", take_call_timeout,
		     .to = WEFT_CLI_AT(struct ctl_command, target, struct ctl_target)),
	{},
};

int weft_cmd_ctl(int argc, char **argv)
{
	char path_default[WEFT_CONTROL_MAX + 1], help[sizeof(usage) + WEFT_CONTROL_MAX];
	struct ctl_command command = { .target = { .command = argv[0], .path = path_default },
				       .json = !isatty(STDOUT_FILENO) };
	int status;

	weft_control_socket_default_path(path_default);
	snprintf(help, sizeof(help), usage, path_default);
	status = weft_cli_options(argc, argv, options, help, &command);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (optind == argc)
		return weft_cli_usage_error(argv[0], "which method? \"weft ctl status\", for one");
	status = check_method(&command.target, argv[optind]);
	if (status != EXIT_OK)
		return status;
	return call_method(&command.target, command.json, argv + optind);
}
