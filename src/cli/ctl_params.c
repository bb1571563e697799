/* ctl_params.c - parameters as they are typed: one JSON object, or key=value words. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/ctl.h"

/* JSON where it is a whole number, true, false, quoted or bracketed; else the text itself. No
 * parameter is a fraction or null, so what reads like one is text: serial=1.50 */
static json_t *parse_value(const char *text)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);

	if (value && !json_is_null(value) && !json_is_real(value))
		return value;
	json_decref(value);
	return json_string(text);
}

/* Bytes before the path in a value: "file:" and "block:" in a backend; -1: it has none. */
static int path_offset(const char *key, const char *value)
{
	if (!strcmp(key, "path"))
		return 0;
	if (strcmp(key, "backend"))
		return -1;
	if (!strncmp(value, "file:", 5))
		return 5;
	return strncmp(value, "block:", 6) ? -1 : 6;
}

/* The target has another working directory: what is relative here is sent absolute. */
static json_t *make_absolute(const char *key, json_t *value)
{
	_cleanup_(weft_freep) char *path = NULL, *whole = NULL;
	const char *text = json_string_value(value);
	int offset = text ? path_offset(key, text) : -1;

	if (offset < 0 || !text[offset] || text[offset] == ',')
		return value;
	path = weft_cli_absolute_path(text + offset);
	if (!path || asprintf(&whole, "%.*s%s", offset, text, path) < 0)
		return value;
	json_string_set(value, whole);
	return value;
}

static bool in_brackets(const char *text)
{
	size_t len = strlen(text);

	return len > 1 && ((text[0] == '[' && text[len - 1] == ']') ||
			   (text[0] == '{' && text[len - 1] == '}'));
}

/* A list or a map that is mistyped is not meant as text. */
static int check_brackets(const char *key, const char *text, struct weft_err *err)
{
	json_error_t error;
	json_auto_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (value || !in_brackets(text))
		return 0;
	return weft_fail(err, -EINVAL, "%s: %s is not JSON: %s (column %d)", key, text, error.text,
			 error.column);
}

static int add_word(json_t *params, const char *word, struct weft_err *err)
{
	const char *equals = strchr(word, '=');
	char key[64];

	if (!equals || equals == word || (size_t)(equals - word) >= sizeof(key))
		return weft_fail(err, -EINVAL, "expected key=value or one JSON object, got \"%s\"",
				 word);
	memcpy(key, word, (size_t)(equals - word));
	key[equals - word] = '\0';
	if (json_object_get(params, key))
		return weft_fail(err, -EINVAL, "%s is given twice", key);
	if (check_brackets(key, equals + 1, err) < 0)
		return -EINVAL;
	if (json_object_set_new(params, key, make_absolute(key, parse_value(equals + 1))) < 0)
		return weft_fail(err, -EINVAL, "%s: not UTF-8", key);
	return 0;
}

static json_t *parse_object(const char *text, struct weft_err *err)
{
	json_error_t error;
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!object)
		weft_fail(err, -EINVAL, "not JSON: %s (column %d)", error.text, error.column);
	return object;
}

json_t *weft_ctl_params(char *const *words, struct weft_err *err)
{
	json_t *params;

	if (words[0] && words[0][0] == '{' && !words[1])
		return parse_object(words[0], err);
	params = json_object();
	for (; *words; words++) {
		if (add_word(params, *words, err) < 0) {
			json_decref(params);
			return NULL;
		}
	}
	return params;
}
