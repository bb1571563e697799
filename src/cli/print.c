#include "cli/print.h"

#include <stdio.h>

#include "cli/cli.h"

void weft_print_json(const json_t *json, bool compact)
{
	json_dumpf(json, stdout,
		   (compact ? JSON_COMPACT : JSON_INDENT(2)) | JSON_REAL_PRECISION(9));
	putchar('\n');
	weft_cli_flush();
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
