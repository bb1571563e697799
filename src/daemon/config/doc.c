/* doc.c - settings as a tree of JSON values, and the line or flag where each of them was
 * written. */
#include "daemon/config/doc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int weft_doc_init(struct weft_doc *doc)
{
	doc->file = NULL;
	doc->root = json_object();
	doc->places = json_object();
	if (doc->root && doc->places)
		return 0;
	weft_doc_free(doc);
	return -ENOMEM;
}

void weft_doc_free(struct weft_doc *doc)
{
	json_decref(doc->root);
	json_decref(doc->places);
	free(doc->file);
	memset(doc, 0, sizeof(*doc));
}

void weft_doc_set(struct weft_doc *doc, const char *key, json_t *value, const char *flag)
{
	json_object_set_new(doc->root, key, value);
	weft_doc_place_flag(doc, key, flag);
}

void weft_doc_place_flag(struct weft_doc *doc, const char *path, const char *flag)
{
	json_object_set_new(doc->places, path, json_string(flag));
}

void weft_doc_place_line(struct weft_doc *doc, const char *path, size_t line)
{
	json_object_set_new(doc->places, path, json_integer((json_int_t)line));
}

/* Cuts the last step off a path: "a[0].b" ─▶ "a[0]" ─▶ "a" ─▶ "". */
static void cut_last_component(char *path)
{
	char *dot = strrchr(path, '.'), *bracket = strrchr(path, '[');
	char *last = dot > bracket ? dot : bracket;

	*(last ? last : path) = '\0';
}

static json_t *find_origin(const struct weft_doc *doc, const char *path)
{
	struct weft_doc_path at;
	json_t *place;

	snprintf(at.text, sizeof(at.text), "%s", path);
	for (;;) {
		place = json_object_get(doc->places, at.text);
		if (place || !at.text[0])
			return place;
		cut_last_component(at.text);
	}
}

int weft_doc_fail(const struct weft_doc *doc, struct weft_err *err, const char *path,
		  const char *fmt, ...)
{
	json_t *place = find_origin(doc, path);
	char sentence[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	if (json_is_string(place))
		return weft_fail(err, -EINVAL, "%s: %s", json_string_value(place), sentence);
	if (json_is_integer(place))
		return weft_fail(err, -EINVAL, "%s:%" JSON_INTEGER_FORMAT ": %s%s%s", doc->file,
				 json_integer_value(place), path, *path ? ": " : "", sentence);
	return weft_fail(err, -EINVAL, "%s%s%s", path, *path ? ": " : "", sentence);
}

void weft_doc_where(const struct weft_doc *doc, const char *path, char *text, size_t size)
{
	json_t *place = find_origin(doc, path);

	if (json_is_integer(place))
		snprintf(text, size, "line %" JSON_INTEGER_FORMAT, json_integer_value(place));
	else
		snprintf(text, size, "%s", json_is_string(place) ? json_string_value(place) : path);
}

static size_t path_append(struct weft_doc_path *path, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A path that does not fit is cut: it is only shown to people. */
static size_t path_append(struct weft_doc_path *path, const char *fmt, ...)
{
	size_t room = sizeof(path->text) - path->len, old = path->len;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(path->text + path->len, room, fmt, ap);
	va_end(ap);
	path->len += (size_t)len < room ? (size_t)len : room - 1;
	return old;
}

size_t weft_doc_path_push_key(struct weft_doc_path *path, const char *key)
{
	return path_append(path, "%s%s", path->len ? "." : "", key);
}

size_t weft_doc_path_push_index(struct weft_doc_path *path, size_t index)
{
	return path_append(path, "[%zu]", index);
}

void weft_doc_path_pop(struct weft_doc_path *path, size_t len)
{
	path->len = len;
	path->text[len] = '\0';
}
