/* decode.c - decode a tree of JSON values into a struct, by schemas; errors say where, what was
 * expected and what was found. */
#include "daemon/config/decode.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/size.h"

static int fail_va(struct weft_decoder *d, const char *fmt, va_list ap)
{
	char sentence[sizeof(d->err->text)];

	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	return weft_doc_fail(d->doc, d->err, d->path.text, "%s", sentence);
}

int weft_decode_fail(struct weft_decoder *d, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = fail_va(d, fmt, ap);
	va_end(ap);
	return rc;
}

int weft_decode_fail_at(struct weft_decoder *d, const char *key, const char *fmt, ...)
{
	size_t old = weft_doc_path_push_key(&d->path, key);
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = fail_va(d, fmt, ap);
	va_end(ap);
	weft_doc_path_pop(&d->path, old);
	return rc;
}

/* --- what was found, as a sentence ------------------------------------------------------------ */

static void describe_value(json_t *value, char *text, size_t size)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "a map", [JSON_ARRAY] = "a list", [JSON_NULL] = "nothing"
	};
	_cleanup_(weft_freep) char *dump = NULL;

	if (json_is_object(value) || json_is_array(value) || json_is_null(value)) {
		snprintf(text, size, "%s", names[json_typeof(value)]);
		return;
	}
	dump = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	snprintf(text, size, "%s", dump ? dump : "something");
	if (dump && strlen(dump) >= size)
		strcpy(text + size - 4, "...");
}

int weft_decode_expected(struct weft_decoder *d, json_t *value, const char *what)
{
	char got[80];

	describe_value(value, got, sizeof(got));
	return weft_decode_fail(d, "expected %s, got %s", what, got);
}

/* --- leaves ----------------------------------------------------------------------------------- */

const char *weft_decode_as_text(struct weft_decoder *d, json_t *value, const char *what,
				struct weft_number_text *text)
{
	if (json_is_string(value))
		return json_string_value(value);
	if (!json_is_integer(value)) {
		weft_decode_expected(d, value, what);
		return NULL;
	}
	snprintf(text->number, sizeof(text->number), "%" JSON_INTEGER_FORMAT,
		 json_integer_value(value));
	return text->number;
}

int weft_decode_text(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		     void *out)
{
	struct weft_number_text number;
	const char *text;
	char what[64];

	snprintf(what, sizeof(what), "a text of %u to %u bytes", field->min, field->max);
	text = weft_decode_as_text(d, value, what, &number);
	if (!text)
		return -EINVAL;
	if (strlen(text) < field->min || strlen(text) > field->max)
		return weft_decode_expected(d, value, what);
	strcpy(out, text);
	return 0;
}

int weft_decode_number(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		       void *out)
{
	json_int_t number = json_integer_value(value);
	char what[64];

	if (json_is_integer(value) && number >= field->min && number <= field->max) {
		*(uint32_t *)out = (uint32_t)number;
		return 0;
	}
	snprintf(what, sizeof(what), "a number from %u to %u", field->min, field->max);
	return weft_decode_expected(d, value, what);
}

int weft_decode_count(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		      void *out)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return weft_decode_expected(d, value, "a number from 0 on");
	*(uint64_t *)out = (uint64_t)json_integer_value(value);
	return 0;
}

int weft_decode_bool(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		     void *out)
{
	if (!json_is_boolean(value))
		return weft_decode_expected(d, value, "true or false");
	*(bool *)out = json_is_true(value);
	return 0;
}

/* "a, b or c" */
static void list_words(const char *const *words, char *text, size_t size)
{
	size_t len = 0;

	for (unsigned i = 0; words[i] && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s",
					!i           ? "" :
					words[i + 1] ? ", " :
						       " or ",
					words[i]);
}

int weft_decode_word(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		     void *out)
{
	const char *text = json_string_value(value);
	char what[128];

	for (unsigned i = 0; text && field->words[i]; i++) {
		if (!strcmp(text, field->words[i])) {
			*(unsigned *)out = i;
			return 0;
		}
	}
	list_words(field->words, what, sizeof(what));
	return weft_decode_expected(d, value, what);
}

int weft_decode_size(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		     void *out)
{
	const char *what = "a size such as 1048576, \"128M\" or \"10G\"";
	struct weft_err why = { "" };
	struct weft_number_text number;
	const char *text = weft_decode_as_text(d, value, what, &number);

	if (!text)
		return -EINVAL;
	if (weft_size_is_ambiguous(text, &why))
		return weft_decode_fail(d, "%s", why.text);
	if (weft_size_parse(text, out) < 0 || !*(uint64_t *)out)
		return weft_decode_expected(d, value, what);
	return 0;
}

/* --- lists ------------------------------------------------------------------------------------ */

int weft_decode_list(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		     void *out)
{
	struct weft_items *items = out;
	size_t count = json_array_size(value), old;
	int rc = 0;

	if (!json_is_array(value))
		return weft_decode_expected(d, value, "a list");
	items->at = calloc(count ? count : 1, field->item_size);
	if (!items->at)
		return -ENOMEM;
	for (size_t i = 0; i < count && !rc; i++) {
		old = weft_doc_path_push_index(&d->path, i);
		items->count++;
		rc = field->item->decode(d, field->item, json_array_get(value, i),
					 (char *)items->at + i * field->item_size);
		weft_doc_path_pop(&d->path, old);
	}
	return rc;
}

/* --- maps ------------------------------------------------------------------------------------- */

static bool is_end_of_fields(const struct weft_schema_field *field)
{
	return !field->name && !field->map;
}

static const struct weft_schema_field *find_field(const struct weft_schema *map, const char *name)
{
	const struct weft_schema_field *inner;

	for (const struct weft_schema_field *f = map->fields; !is_end_of_fields(f); f++) {
		if (f->name && !strcmp(f->name, name))
			return f;
		inner = f->name ? NULL : find_field(f->map, name);
		if (inner)
			return inner;
	}
	return NULL;
}

static void list_keys(const struct weft_schema *map, char *text, size_t size)
{
	size_t len;

	for (const struct weft_schema_field *f = map->fields; !is_end_of_fields(f); f++) {
		len = strlen(text);
		if (f->name)
			snprintf(text + len, size - len, "%s%s", len ? ", " : "", f->name);
		else
			list_keys(f->map, text, size);
	}
}

static int refuse_unknown(struct weft_decoder *d, const struct weft_schema *map, json_t *object)
{
	char known[256] = "";
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) {
		if (find_field(map, key))
			continue;
		list_keys(map, known, sizeof(known));
		if (!known[0])
			return weft_decode_fail_at(d, key, "no such key; there are none here");
		return weft_decode_fail_at(d, key, "no such key; the keys are %s", known);
	}
	return 0;
}

static int decode_fields(struct weft_decoder *d, const struct weft_schema *map, json_t *object,
			 void *out);

static int decode_field(struct weft_decoder *d, const struct weft_schema_field *field,
			json_t *object, void *out)
{
	json_t *value;
	size_t old;
	int rc;

	if (!field->name)
		return decode_fields(d, field->map, object, out);
	value = json_object_get(object, field->name);
	if (!value && !field->required)
		return 0;
	if (!value)
		return weft_decode_fail_at(d, field->name, "missing%s%s",
					   field->expected ? "; expected " : "",
					   field->expected ? field->expected : "");
	old = weft_doc_path_push_key(&d->path, field->name);
	rc = field->decode(d, field, value, out);
	weft_doc_path_pop(&d->path, old);
	return rc;
}

static int decode_fields(struct weft_decoder *d, const struct weft_schema *map, json_t *object,
			 void *out)
{
	int rc;

	for (const struct weft_schema_field *f = map->fields; !is_end_of_fields(f); f++) {
		rc = decode_field(d, f, object, (char *)out + f->offset);
		if (rc < 0)
			return rc;
	}
	return map->finish ? map->finish(d, out) : 0;
}

static int decode_object(struct weft_decoder *d, const struct weft_schema *map, json_t *value,
			 void *out)
{
	int rc;

	if (!json_is_object(value))
		return weft_decode_expected(d, value, "a map of keys and values");
	rc = refuse_unknown(d, map, value);
	return rc < 0 ? rc : decode_fields(d, map, value, out);
}

int weft_decode_map(struct weft_decoder *d, const struct weft_schema_field *field, json_t *value,
		    void *out)
{
	return decode_object(d, field->map, value, out);
}

int weft_decode(const struct weft_doc *doc, const struct weft_schema *map, void *out,
		struct weft_err *err)
{
	struct weft_decoder d = { .doc = doc, .err = err };

	return decode_object(&d, map, doc->root, out);
}
