/* cmd_version.c - weft version: the version, and the features that were built in. */
#include <getopt.h>
#include <isa-l.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/weft.h>
#include <yaml.h>

#include "cli/cli.h"
#include "cli/host_options.h"
#include "cli/print.h"
#include "reactor/reactor.h"

#define TEXT_(x)  #x
#define TEXT(x)   TEXT_(x)
#define ISAL_TEXT TEXT(ISAL_MAJOR_VERSION) "." TEXT(ISAL_MINOR_VERSION) "." TEXT(ISAL_PATCH_VERSION)

static const char usage[] =
	"usage: weft version [--json]\n"
	"\n"
	"The version, what is built in, and the name that this host connects with as this\n"
	"user.\n"
	"\n"
	"      --json   as JSON\n"
	"  -h, --help   this text\n";

/* Whether it is there is the kernel's to say, and containers often forbid it. */
static json_t *uring_json(void)
{
	const struct weft_reactor_options wanted = { .engine = WEFT_ENGINE_URING, .cpu = -1 };
	struct weft_err err = { "" };
	struct weft_reactor *r;
	int rc = weft_reactor_create(&r, &wanted, &err);

	if (rc < 0)
		return json_pack("{s:s, s:b, s:s}", "built_with", "liburing " WEFT_URING_VERSION,
				 "usable", 0, "why_not", err.text);
	weft_reactor_destroy(r);
	return json_pack("{s:s, s:b}", "built_with", "liburing " WEFT_URING_VERSION, "usable", 1);
}

static json_t *version_json(void)
{
	char hostnqn[224];

	weft_host_name(hostnqn, sizeof(hostnqn));
	return json_pack("{s:s, s:s, s:{s:o, s:b, s:s, s:s, s:s, s:s?, s:s?, s:b, s:s?}}",
			 "version", weft_version(), "hostnqn", hostnqn, "features", "io_uring",
			 uring_json(), "epoll", 1, "crc32c", "ISA-L " ISAL_TEXT, "json",
			 "jansson " JANSSON_VERSION, "yaml", yaml_get_version_string(), "fuse",
			 *WEFT_FUSE ? WEFT_FUSE : NULL, "nbdkit_plugin",
			 *WEFT_NBDKIT ? WEFT_NBDKIT : NULL, "tls", 0, "rdma",
			 *WEFT_RDMA_VERSION ? WEFT_RDMA_VERSION : NULL);
}

/* The NQN ends its line, where scripts look for it. */
static void print_host(void)
{
	char hostnqn[224];
	bool hostnqn_generated = weft_host_name(hostnqn, sizeof(hostnqn));

	printf("  this host is %s\n", hostnqn);
	if (hostnqn_generated)
		printf("    a name made from the machine's id and user %u; another user has another\n",
		       geteuid());
	else
		printf("    the name in /etc/nvme/hostnqn\n");
}

static void print_version_text(json_t *version)
{
	json_t *features = json_object_get(version, "features");
	json_t *uring = json_object_get(features, "io_uring");
	const char *why_not = json_string_value(json_object_get(uring, "why_not"));

	printf("weft %s\n", weft_version());
	printf("  io_uring  liburing %s, %s\n", WEFT_URING_VERSION,
	       why_not ? why_not : "and this kernel allows it");
	printf("  epoll     yes\n");
	printf("  CRC32C    ISA-L %s\n", ISAL_TEXT);
	printf("  JSON      jansson %s\n", JANSSON_VERSION);
	printf("  YAML      libyaml %s\n", yaml_get_version_string());
	printf("  FUSE      %s\n", *WEFT_FUSE ? WEFT_FUSE : "no");
	printf("  nbdkit    %s\n", *WEFT_NBDKIT ? WEFT_NBDKIT : "no");
	printf("  TLS       no\n");
	printf("  RDMA      %s\n", *WEFT_RDMA_VERSION ? WEFT_RDMA_VERSION : "no");
	print_host();
}

struct version_command {
	bool json;
};

static const struct weft_cli_option options[] = {
	WEFT_CLI_FLAG("json", 0, struct version_command, json),
	{},
};

int weft_cmd_version(int argc, char **argv)
{
	struct version_command command = { .json = false };
	json_auto_t *version = NULL;
	int status = weft_cli_options(argc, argv, options, usage, &command);

	if (status != WEFT_CLI_GO_ON)
		return status;
	if (optind < argc)
		return weft_cli_usage_error(argv[0], "unexpected \"%s\"", argv[optind]);
	version = version_json();
	if (command.json)
		weft_print_json(version, false);
	else
		print_version_text(version);
	return EXIT_OK;
}
