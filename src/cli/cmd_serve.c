/* cmd_serve.c - weft serve: flags become a tree of settings as a file does, and the daemon runs
 * it. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/detach.h"
#include "cli/print.h"
#include "daemon/daemon.h"
#include "target/target.h"

static const char usage[] =
	"usage: weft serve -c FILE [OPTION]...\n"
	"       weft serve --ns SPEC [--ns SPEC]... [OPTION]...\n"
	"\n"
	"Exports storage over NVMe/TCP and NVMe/RDMA, with a discovery service, until\n"
	"SIGTERM or Ctrl-C.\n"
	"\n"
	"  -c, --config FILE    what to serve, in YAML: see weft.yaml(5)\n"
	"      --ns SPEC        a namespace; the first gets id 1, and so on\n"
	"      --nqn NQN        the subsystem's name (" WEFT_NQN_DEFAULT ")\n"
	"      --allow HOSTNQN  a host that may connect; more than one may be given\n"
	"      --allow-any-host any host may connect\n"
	"      --listen URI     where to listen, nvme+tcp://… or nvme+rdma://…; more than\n"
	"                       one may be given (nvme+tcp://127.0.0.1:4420)\n"
	"      --control PATH   the control socket, for weft ctl\n"
	"                       (%s)\n"
	"      --engine ENGINE  auto, uring or epoll (auto: uring if the kernel lets us)\n"
	"      --cpus LIST      one reactor on each of these, such as 0-3,5 (all)\n"
	"      --poll           never sleep: lower latency, busy CPUs\n"
	"      --takeover       take the place of the target that answers at the control\n"
	"                       socket, with its connections; hosts wait for milliseconds\n"
	"      --drop-rdma      with --takeover: RDMA connections, which cannot be taken,\n"
	"                       are ended, and their hosts connect again\n"
	"      --detach         return when hosts are served, and serve in the background\n"
	"      --log-file FILE  where the log goes (standard error)\n"
	"      --pidfile FILE   has the pid while hosts are served\n"
	"      --check          look for mistakes in the file of -c, and serve nothing\n"
	"  -v, --verbose        log more\n"
	"  -h, --help           this text\n"
	"\n"
	"Without --allow or --allow-any-host any host may connect, and only loopback\n"
	"addresses are accepted in --listen. A SPEC is one of:\n";

static const char examples[] =
	"\nwith any of block=512|4096, nsid=N, uuid=UUID, ro; to test hosts with,\n"
	"delay=[KIND:]TIME and error=[KIND:]RATE, as in delay=5ms,error=write:1%.\n"
	"\n"
	"  weft serve --ns mem:1G\n"
	"  weft serve --ns file:/srv/disk.img,size=10G --listen nvme+tcp://0.0.0.0:4420 \\\n"
	"    --allow nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-cdef-0123-456789abcdef\n";

struct flags {
	const char *config, *nqn, *control, *engine, *cpus, *log_file, *pidfile;
	json_t *listen, *ns, *allow;
	bool any, poll, takeover, drop_rdma, detach, check, verbose, help;
};

static int append_word(const char *command, const struct weft_cli_option *option, const char *value,
		       void *to)
{
	if (!json_array_append_new(*(json_t **)to, json_string(value)))
		return 1;
	weft_cli_usage_error(command, "--%s: \"%s\" is not UTF-8", option->name, value);
	return -1;
}

static const struct weft_cli_option options[] = {
	WEFT_CLI_TEXT("config", 'c', struct flags, config),
	WEFT_CLI_OWN("ns", append_word, .to = WEFT_CLI_AT(struct flags, ns, json_t *)),
	WEFT_CLI_TEXT("nqn", 0, struct flags, nqn),
	WEFT_CLI_OWN("allow", append_word, .to = WEFT_CLI_AT(struct flags, allow, json_t *)),
	WEFT_CLI_FLAG("allow-any-host", 0, struct flags, any),
	WEFT_CLI_OWN("listen", append_word, .to = WEFT_CLI_AT(struct flags, listen, json_t *)),
	WEFT_CLI_TEXT("control", 0, struct flags, control),
	WEFT_CLI_TEXT("engine", 0, struct flags, engine),
	WEFT_CLI_TEXT("cpus", 0, struct flags, cpus),
	WEFT_CLI_FLAG("poll", 0, struct flags, poll),
	WEFT_CLI_FLAG("takeover", 0, struct flags, takeover),
	WEFT_CLI_FLAG("drop-rdma", 0, struct flags, drop_rdma),
	WEFT_CLI_FLAG("detach", 0, struct flags, detach),
	WEFT_CLI_TEXT("log-file", 0, struct flags, log_file),
	WEFT_CLI_TEXT("pidfile", 0, struct flags, pidfile),
	WEFT_CLI_FLAG("check", 0, struct flags, check),
	WEFT_CLI_FLAG("verbose", 'v', struct flags, verbose),
	WEFT_CLI_FLAG("help", 'h', struct flags, help),
	{},
};

static void print_help(void)
{
	char control[WEFT_CONTROL_MAX + 1];
	const char *spec;

	weft_control_socket_default_path(control);
	printf(usage, control);
	for (unsigned i = 0; (spec = weft_backend_usage(i)); i++)
		printf("  %s\n", spec);
	fputs(examples, stdout);
}

/* --- from flags to the tree ------------------------------------------------------------------- */

static void place_list(struct weft_doc *doc, const char *path, json_t *list, const char *flag)
{
	struct weft_doc_path at = { "" };

	weft_doc_path_push_key(&at, path);
	weft_doc_place_flag(doc, at.text, flag);
	for (size_t i = 0; i < json_array_size(list); i++) {
		size_t old = weft_doc_path_push_index(&at, i);

		weft_doc_place_flag(doc, at.text, flag);
		weft_doc_path_pop(&at, old);
	}
}

static void set_text(struct weft_doc *doc, const char *key, const char *text, const char *flag)
{
	if (text)
		weft_doc_set(doc, key, json_string(text), flag);
}

/* These may be given together with a file, and override it. */
static void set_common(struct weft_doc *doc, const struct flags *flags)
{
	_cleanup_(weft_freep) char *control = NULL;

	if (json_array_size(flags->listen)) {
		json_object_set(doc->root, "listen", flags->listen);
		place_list(doc, "listen", flags->listen, "--listen");
	}
	if (flags->control)
		control = weft_cli_absolute_path(flags->control);
	set_text(doc, "control", control, "--control");
	set_text(doc, "engine", flags->engine, "--engine");
	set_text(doc, "cpus", flags->cpus, "--cpus");
	if (flags->poll)
		weft_doc_set(doc, "poll", json_true(), "--poll");
}

static json_t *namespaces_json(const struct flags *flags)
{
	json_t *list = json_array(), *spec;
	size_t index;

	json_array_foreach(flags->ns, index, spec)
		json_array_append_new(list, json_pack("{s:O}", "backend", spec));
	return list;
}

static void set_subsystem(struct weft_doc *doc, const struct flags *flags)
{
	json_t *subsys = json_pack("{s:s, s:o}", "nqn", flags->nqn ? flags->nqn : WEFT_NQN_DEFAULT,
				   "namespaces", namespaces_json(flags));

	if (json_array_size(flags->allow))
		json_object_set(subsys, "hosts", flags->allow);
	if (flags->any)
		json_object_set_new(subsys, "allow_any_host", json_true());
	json_object_set_new(doc->root, "subsystems", json_pack("[o]", subsys));
	/* Of the subsystem as a whole, only where it can be reached may be wrong. */
	weft_doc_place_flag(doc, "subsystems[0]", "--listen");
	weft_doc_place_flag(doc, "subsystems[0].nqn", "--nqn");
	place_list(doc, "subsystems[0].namespaces", flags->ns, "--ns");
	place_list(doc, "subsystems[0].hosts", flags->allow, "--allow");
}

/* --- the command ------------------------------------------------------------------------------ */

static int parse_flags(struct flags *flags, int argc, char **argv)
{
	int status = weft_cli_options(argc, argv, options, NULL, flags);

	if (status != WEFT_CLI_GO_ON)
		return status;
	if (flags->help)
		return EXIT_OK;
	if (optind < argc)
		return weft_cli_usage_error(argv[0], "unexpected \"%s\"", argv[optind]);
	if (flags->config && (json_array_size(flags->ns) || json_array_size(flags->allow) ||
			      flags->nqn || flags->any))
		return weft_cli_usage_error(argv[0],
					    "--ns, --nqn, --allow and --allow-any-host do not "
					    "go with -c: the file says what to serve");
	if (flags->any && json_array_size(flags->allow))
		return weft_cli_usage_error(argv[0], "--allow does not go with --allow-any-host");
	if (flags->drop_rdma && !flags->takeover)
		return weft_cli_usage_error(argv[0], "--drop-rdma goes with --takeover");
	if (flags->check && !flags->config)
		return weft_cli_usage_error(argv[0], "--check goes with -c FILE");
	return EXIT_OK;
}

static int read_settings(struct weft_doc *doc, const struct flags *flags, struct weft_err *err)
{
	int rc = flags->config ? weft_doc_read(doc, flags->config, err) : weft_doc_init(doc);

	if (rc < 0 || (flags->config && !json_is_object(doc->root)))
		return rc;
	set_common(doc, flags);
	if (!flags->config)
		set_subsystem(doc, flags);
	return 0;
}

/* For status and save. Errors show the file as it was typed. */
static void make_file_absolute(struct weft_doc *doc)
{
	char *file = doc->file ? weft_cli_absolute_path(doc->file) : NULL;

	if (!file)
		return;
	free(doc->file);
	doc->file = file;
}

struct serving {
	const char *name;
	const char *log_file;
	int handle; /* of the process that waits until we are detached; -1: none does */
};

static void on_ready(void *user)
{
	const struct serving *serving = user;
	bool kept = weft_log_fd() != STDERR_FILENO || weft_detach_may_keep();

	if (!kept)
		weft_info("from here on the log is not kept; --log-file FILE keeps it");
	weft_detach_done(serving->handle, kept ? weft_log_fd() : -1);
}

/* The last line on standard error says why, and so does the log, where that is another place. */
static void on_failed(void *user, const char *why)
{
	const struct serving *serving = user;

	if (serving->log_file)
		weft_error("%s", why);
	weft_cli_failed(serving->name, why);
}

static int serve_here(const struct flags *flags, struct weft_config *config,
		      const struct weft_doc *doc, const char *name, int handle)
{
	struct serving serving = { name, flags->log_file, handle };
	const struct weft_serve_options serve_options = {
		.takeover = flags->takeover,
		.drop_rdma = flags->drop_rdma,
		.pidfile = flags->pidfile,
		.log_file = flags->log_file,
		.ready = flags->detach ? on_ready : NULL,
		.failed = on_failed,
		.user = &serving,
	};
	struct weft_err err = { "" };

	if (weft_serve(config, doc, &serve_options, &err) == 0)
		return EXIT_OK;
	on_failed(&serving, err.text);
	return EXIT_FAILED;
}

static int serve_config(const struct flags *flags, struct weft_config *config, struct weft_doc *doc,
			const char *name)
{
	struct weft_err err = { "" }, why = { "" };
	int handle = -1, rc;

	make_file_absolute(doc);
	rc = flags->log_file ? weft_log_to(flags->log_file, &why) : 0;
	if (rc < 0) {
		weft_fail(&err, rc, "--log-file %s", why.text);
		return weft_cli_failed(name, err.text);
	}
	if (flags->detach) {
		handle = weft_detach();
		if (handle < 0)
			return weft_cli_failed(name, strerror(-handle));
		setsid();
	}
	return serve_here(flags, config, doc, name, handle);
}

static void tell_checked(const struct flags *flags, const struct weft_config *config,
			 const char *name)
{
	json_auto_t *warnings = weft_config_warnings(config);

	weft_cli_warnings(name, warnings);
	printf("%s: fine\n", flags->config);
}

/* Values first: a mistyped one was meant as something. */
static int check_and_serve(const struct flags *flags, struct weft_doc *doc, const char *name)
{
	struct weft_err err = { "" };
	struct weft_config config;
	int rc, status = EXIT_OK;

	rc = weft_config_read(&config, doc, &err);
	if (rc < 0) {
		weft_cli_failed(name, err.text);
		return (rc == -EINVAL || rc == -EPERM) && !flags->config ? EXIT_USAGE : EXIT_FAILED;
	}
	if (!flags->config && !json_array_size(flags->ns))
		status = weft_cli_usage_error(name,
					      "nothing to serve; give -c FILE, or --ns SPEC as "
					      "in \"weft serve --ns mem:1G\"");
	else if (flags->check)
		tell_checked(flags, &config, name);
	else
		status = serve_config(flags, &config, doc, name);
	weft_config_free(&config);
	return status;
}

static int serve(const struct flags *flags, const char *name)
{
	struct weft_doc doc = { NULL };
	struct weft_err err = { "" };
	int status;

	if (read_settings(&doc, flags, &err) < 0)
		status = weft_cli_failed(name, err.text);
	else
		status = check_and_serve(flags, &doc, name);
	weft_doc_free(&doc);
	return status;
}

int weft_cmd_serve(int argc, char **argv)
{
	struct flags flags = { .listen = json_array(), .ns = json_array(), .allow = json_array() };
	int status = parse_flags(&flags, argc, argv);

	if (flags.verbose)
		weft_log_set_level(WEFT_LOG_DEBUG);
	if (flags.help)
		print_help();
	else if (status == EXIT_OK)
		status = serve(&flags, argv[0]);
	json_decref(flags.listen);
	json_decref(flags.ns);
	json_decref(flags.allow);
	return status;
}
