/* print.c - JSON, and warnings, as several commands print them. */
#include "cli/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/cli.h"

void weft_print_json(const json_t *json, bool compact)
{
	json_dumpf(json, stdout,
		   (compact ? JSON_COMPACT : JSON_INDENT(2)) | JSON_REAL_PRECISION(12));
	putchar('\n');
	weft_cli_flush();
}

void weft_cli_warnings(const char *command, json_t *warnings)
{
	json_t *warning;
	size_t index;

	json_array_foreach(warnings, index, warning)
		fprintf(stderr, "%s: warning: %s\n", command, json_string_value(warning));
}

json_t *weft_json_hex(const void *bytes, size_t length)
{
	_cleanup_(weft_freep) char *text = calloc(length + 1, 2);

	if (!text)
		return NULL;
	for (size_t i = 0; i < length; i++)
		sprintf(text + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
	return json_string(text);
}

json_t *weft_json_seconds(double seconds)
{
	return json_real(round(seconds * 1e6) / 1e6);
}

const char *weft_json_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

json_int_t weft_json_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}
