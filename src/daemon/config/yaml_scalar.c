/* yaml_scalar.c - the type of a plain YAML scalar: null, boolean, whole number, or text. */
#include "daemon/config/doc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *text, const char *const *words)
{
	while (*words && strcmp(text, *words))
		words++;
	return *words;
}

static json_t *whole_number(const char *text)
{
	char again[24];
	long long value;
	char *end;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		return NULL;
	snprintf(again, sizeof(again), "%lld", value);
	return strcmp(text, again) ? NULL : json_integer(value);
}

json_t *weft_yaml_scalar(const char *text, size_t len)
{
	static const char *const nothing[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const yes[] = { "true", "True", "TRUE", NULL };
	static const char *const no[] = { "false", "False", "FALSE", NULL };
	json_t *number;

	if (is_one_of(text, nothing))
		return json_null();
	if (is_one_of(text, yes))
		return json_true();
	if (is_one_of(text, no))
		return json_false();
	number = whole_number(text);
	return number ? number : json_stringn(text, len);
}
