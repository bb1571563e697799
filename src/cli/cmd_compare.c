/* cmd_compare.c - weft compare: whether a range of a namespace is equal to a file or a pipe.
 *
 * The controller compares: the data travels to it, and nothing comes back. It reports that a piece
 * differs and not where; halving the piece finds the block. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <weft/memory.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/host_options.h"
#include "cli/input.h"
#include "cli/print.h"
#include "cli/progress.h"

static const char usage[] =
	"usage: weft compare [OPTION]... URI\n"
	"\n"
	"Compares standard input with a namespace: nvme+tcp://HOST:PORT/SUBNQN?nsid=N,\n"
	"where nsid may be left out if there is only one. The controller does it, with\n"
	"Compare: nothing is read back. Ends with 1, and says where, if they differ.\n"
	"\n"
	"      --offset N      from this byte on, a multiple of the block size (0)\n"
	"      --length N      only so many bytes of the input (all of it)\n"
	"  -i, --input FILE    this file instead of standard input\n"
	"      --pad           the rest of the last block has to be zeroes\n"
	"      --json          what was found, as JSON\n"
	"  -q, --quiet         no progress, no summary\n" WEFT_NS_USAGE WEFT_HOST_USAGE
	"  -h, --help          this text\n"
	"\n"
	"Numbers may end in K, M, G or T.\n" WEFT_URI_USAGE "\n"
	"  weft compare -i disk.img nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:default\n";

#define PIECE (1u << 20)

struct flags {
	const char *command, *uri, *input;
	struct weft_options connect;
	uint32_t nsid;
	uint64_t offset, length; /* WEFT_CLI_ALL: what the input has */
	bool pad, json, quiet;
};

static const struct weft_cli_option options[] = {
	WEFT_CLI_SIZE("offset", struct flags, offset),
	WEFT_CLI_SIZE("length", struct flags, length),
	WEFT_CLI_TEXT("input", 'i', struct flags, input),
	WEFT_CLI_FLAG("pad", 0, struct flags, pad),
	WEFT_CLI_FLAG("json", 0, struct flags, json),
	WEFT_CLI_FLAG("quiet", 'q', struct flags, quiet),
	WEFT_NS_OPTION(struct flags, nsid),
	WEFT_HOST_OPTIONS(struct flags, connect),
	{},
};

struct compare {
	const struct flags *flags;
	struct weft_remote *remote;
	struct weft_queue *queue;
	struct weft_input input;
	char *buf;
	uint64_t done;    /* bytes that are equal … */
	uint64_t padding; /* … so many of them behind the end of the input */
	bool differs;
	uint64_t at; /* in the namespace: the first block that differs */
};

/* --- the input -------------------------------------------------------------------------------- */

/* For the progress bar; 0: a pipe of unknown length. */
static uint64_t input_length(const struct compare *c)
{
	struct stat st;

	if (c->flags->length != WEFT_CLI_ALL)
		return c->flags->length;
	return fstat(c->input.fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* With --pad to the end of the last block. */
static uint64_t padded(const struct compare *c, uint64_t length)
{
	uint64_t block = c->remote->ns_info.block_size;

	return c->flags->pad && length != WEFT_CLI_ALL ? (length + block - 1) / block * block :
							 length;
}

/* --- comparing -------------------------------------------------------------------------------- */

/* 0: equal; -EILSEQ: not. */
static int compare_range(struct compare *c, size_t from, size_t length, struct weft_err *err)
{
	struct iovec iov = { c->buf + from, length };
	struct weft_cmd cmd = {
		.op = WEFT_COMPARE,
		.ns = c->remote->ns,
		.offset = c->flags->offset + c->done + from,
		.length = length,
		.iov = &iov,
		.iovcnt = 1,
	};

	return weft_remote_run(c->remote, c->queue, &cmd, err);
}

/* If the first half is equal, the difference is in the second. */
static int find_block(struct compare *c, size_t length, struct weft_err *err)
{
	size_t block = c->remote->ns_info.block_size, blocks = length / block, from = 0;

	while (blocks > 1) {
		struct weft_err why = { "" };
		size_t half = blocks / 2;
		int rc = compare_range(c, from * block, half * block, &why);

		if (rc < 0 && rc != -EILSEQ)
			return weft_fail(err, rc, "%s: %s", c->flags->uri, why.text);
		from += rc == 0 ? half : 0;
		blocks = rc == 0 ? blocks - half : half;
	}
	c->differs = true;
	c->at = c->flags->offset + c->done + from * block;
	return 0;
}

static int compare_piece(struct compare *c, size_t length, struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = compare_range(c, 0, length, &why);

	if (rc == -EILSEQ)
		return find_block(c, length, err);
	if (rc < 0)
		return weft_fail(err, rc, "%s: %s", c->flags->uri, why.text);
	c->done += length;
	return 0;
}

static int check_input_end(const struct compare *c, size_t got, bool ended, struct weft_err *err)
{
	const struct weft_ns_info *info = &c->remote->ns_info;
	uint64_t total = c->done + got, rest = padded(c, total) % info->block_size;

	if (ended && c->flags->length != WEFT_CLI_ALL && total < c->flags->length)
		return weft_fail(err, -EINVAL, "%s ended after %" PRIu64 " of %" PRIu64 " bytes",
				 c->input.name, total, c->flags->length);
	if (rest)
		return weft_fail(err, -EINVAL,
				 "%s ended after %s, inside a block of %" PRIu32
				 "; --pad compares the rest of it with zeroes",
				 c->input.name, weft_exact_text(total).s, info->block_size);
	if (padded(c, got) > info->size - c->flags->offset - c->done)
		return weft_fail(err, -ERANGE, "%s goes beyond the end of %s, which has %s",
				 c->input.name, c->flags->uri, weft_exact_text(info->size).s);
	return 0;
}

/* @got bytes of the input; fewer than a piece, they are its last ones. */
static int compare_input(struct compare *c, size_t got, struct weft_err *err)
{
	size_t whole = (size_t)padded(c, got);
	int rc;

	memset(c->buf + got, 0, whole - got);
	rc = whole ? compare_piece(c, whole, err) : 0;
	if (rc == 0 && !c->differs)
		c->padding = whole - got;
	return rc;
}

static int compare_all(struct compare *c, struct weft_err *err)
{
	uint64_t length = c->flags->length;
	struct weft_progress progress;
	int rc = 0;

	weft_progress_start(&progress, "comparing", input_length(c), c->flags->quiet);
	while (rc == 0 && !c->differs && c->done < length) {
		size_t want = length - c->done < PIECE ? (size_t)(length - c->done) : PIECE;
		ssize_t got = weft_input_fill(&c->input, c->buf, want, err);

		rc = got < 0 ? (int)got : check_input_end(c, (size_t)got, (size_t)got < want, err);
		if (rc == 0)
			rc = compare_input(c, (size_t)got, err);
		weft_progress_show(&progress, c->done);
		if (got < (ssize_t)want)
			break;
	}
	weft_progress_clear(&progress);
	return rc;
}

static int compare(struct compare *c, struct weft_err *err)
{
	int rc = weft_range_check(c->flags->uri, &c->remote->ns_info, c->flags->offset,
				  padded(c, c->flags->length), err);

	if (rc == 0)
		rc = weft_remote_queue_open(c->remote, &c->queue, err);
	if (rc < 0)
		return rc;
	c->buf = weft_memory_alloc(PIECE);
	rc = c->buf ? compare_all(c, err) : weft_fail(err, -ENOMEM, "no memory");
	weft_queue_close(c->queue);
	weft_memory_free(c->buf);
	return rc;
}

/* --- the command ------------------------------------------------------------------------------ */

static void print_equal(const struct compare *c)
{
	uint64_t bytes = c->done - c->padding;

	printf("%s at %" PRIu64 " are equal", weft_size_text(bytes).s, c->flags->offset);
	if (c->padding)
		printf("; %s from %" PRIu64 " on are zeroes, to the end of the block",
		       weft_size_text(c->padding).s, c->flags->offset + bytes);
	printf("\n");
}

static int report_result(const struct compare *c)
{
	const struct flags *flags = c->flags;
	json_auto_t *json = json_pack("{s:s, s:s, s:I, s:I, s:I, s:b}", "source", c->input.name,
				      "destination", flags->uri, "offset",
				      (json_int_t)flags->offset, "bytes",
				      (json_int_t)(c->done - c->padding), "padding",
				      (json_int_t)c->padding, "equal", !c->differs);

	if (c->differs)
		json_object_set_new(json, "differs_at", json_integer((json_int_t)c->at));
	if (flags->json)
		weft_print_json(json, false);
	else if (!c->differs && !flags->quiet)
		print_equal(c);
	if (!c->differs)
		return EXIT_OK;
	fprintf(stderr,
		"%s: %s differs from %s: the first difference is in the block at %" PRIu64 "\n",
		flags->command, flags->uri, c->input.name, c->at);
	return EXIT_FAILED;
}

static int run_compare(const struct flags *flags)
{
	struct weft_remote remote = { .ctrl = NULL };
	struct compare c = { .flags = flags, .remote = &remote };
	struct weft_err err = { "" };
	int rc = weft_input_open(&c.input, flags->input, &err);

	if (rc == 0)
		rc = weft_remote_open(&remote, flags->quiet ? NULL : flags->command, flags->uri,
				      flags->nsid, &flags->connect, &err);
	if (rc == 0)
		rc = compare(&c, &err);
	weft_remote_close(&remote);
	weft_input_close(&c.input);
	return rc < 0 ? weft_cli_failed(flags->command, err.text) : report_result(&c);
}

int weft_cmd_compare(int argc, char **argv)
{
	struct flags flags = { .command = argv[0], .input = "-", .length = WEFT_CLI_ALL };
	int status;

	weft_host_options_init(&flags.connect);
	status = weft_cli_options(argc, argv, options, usage, &flags);
	if (status != WEFT_CLI_GO_ON)
		return status;
	if (weft_host_one_uri(argc, argv, "nvme+tcp://127.0.0.1:4420/NQN -i FILE") != EXIT_OK)
		return EXIT_USAGE;
	flags.uri = argv[optind];
	if (weft_cli_is_uri(flags.input))
		return weft_cli_usage_error(argv[0], "-i takes a file; \"weft cp URI -\" reads a "
						     "namespace into a pipe");
	status = weft_host_check(argv[0], flags.uri, &flags.connect, flags.nsid, NULL);
	return status == EXIT_OK ? run_compare(&flags) : status;
}
