/* hexdump.c - bytes as lines, those that repeat left out, as hexdump -C shows them. */
#include "cli/hexdump.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void print_line(struct weft_hexdump *dump, const uint8_t *line, size_t n)
{
	fprintf(dump->out, "%08" PRIx64 " ", dump->offset);
	for (size_t i = 0; i < 16; i++) {
		fputs(i == 8 ? "  " : " ", dump->out);
		if (i < n)
			fprintf(dump->out, "%02x", line[i]);
		else
			fputs("  ", dump->out);
	}
	fputs("  |", dump->out);
	for (size_t i = 0; i < n; i++)
		fputc(line[i] >= ' ' && line[i] <= '~' ? line[i] : '.', dump->out);
	fputs("|\n", dump->out);
}

static void take_line(struct weft_hexdump *dump, const uint8_t *line, size_t n)
{
	bool same = dump->any && n == 16 && !memcmp(line, dump->last, 16);

	if (!same)
		print_line(dump, line, n);
	else if (!dump->repeats)
		fputs("*\n", dump->out);
	dump->repeats = same;
	dump->any = true;
	memcpy(dump->last, line, n);
	dump->offset += n;
}

int weft_hexdump(struct weft_hexdump *dump, const void *bytes, size_t length)
{
	const uint8_t *line = bytes;

	for (; length >= 16; length -= 16, line += 16)
		take_line(dump, line, 16);
	if (length)
		take_line(dump, line, length);
	if (!ferror(dump->out))
		return 0;
	/* What went wrong then, it does again. */
	errno = 0;
	return fflush(dump->out) && errno ? -errno : -EIO;
}

int weft_hexdump_end(struct weft_hexdump *dump)
{
	fprintf(dump->out, "%08" PRIx64 "\n", dump->offset);
	return fflush(dump->out) ? -errno : 0;
}
