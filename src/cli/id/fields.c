/* fields.c - from a table of fields and a page to JSON, and to lines of 80 columns.
 *
 *   ONCS      0x01dd       optional I/O commands: compare, deallocate, write zeroes, save,
 *                          timestamp, verify, copy
 *
 * The page is the peer's: texts may hold any byte, and what is not printable is shown as "?". */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/id/id.h"

#define COLUMNS 80
#define NAME    10
#define VALUE   12
#define INDENT  (2 + NAME + VALUE)

static uint64_t number_of(const struct id_field *field, const void *page)
{
	const uint8_t *at = (const uint8_t *)page + field->offset;
	size_t size = field->size < 8 ? field->size : 8;
	uint64_t value = 0;

	for (size_t i = size; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

static bool is_wider(const struct id_field *field, const void *page)
{
	const uint8_t *at = (const uint8_t *)page + field->offset;

	for (size_t i = 8; i < field->size; i++) {
		if (at[i])
			return true;
	}
	return false;
}

static double wide_number(const struct id_field *field, const void *page)
{
	const uint8_t *at = (const uint8_t *)page + field->offset;
	double value = 0;

	for (size_t i = field->size; i-- > 0;)
		value = value * 256 + at[i];
	return value;
}

static bool is_left_out(const struct id_field *field, const void *page)
{
	return field->optional && !number_of(field, page);
}

static void copy_text(const struct id_field *field, const void *page, char *text, size_t size)
{
	weft_utf8_copy(text, (const char *)page + field->offset,
		       field->size < size ? field->size : size - 1);
}

static void copy_data(const struct id_field *field, const void *page, char *text, size_t size)
{
	const uint8_t *at = (const uint8_t *)page + field->offset;

	for (size_t i = 0; i < field->size && 2 * i + 2 < size; i++)
		sprintf(text + 2 * i, "%02x", at[i]);
}

static void value_text(const struct id_field *field, const void *page, char *text, size_t size)
{
	uint64_t value = number_of(field, page);

	if (field->kind == ID_TEXT)
		copy_text(field, page, text, size);
	else if (field->kind == ID_DATA)
		copy_data(field, page, text, size);
	else if (field->kind == ID_HEX)
		snprintf(text, size, "0x%0*" PRIx64, (int)field->size * 2, value);
	else if (is_wider(field, page))
		snprintf(text, size, ">= 2^64");
	else
		snprintf(text, size, "%" PRIu64, value);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *value_json(const struct id_field *field, const void *page)
{
	uint64_t value = number_of(field, page);
	char text[300];

	/* JSON's integers end at 2^63 here, and those of many readers at 2^53. */
	if (field->kind == ID_TEXT || field->kind == ID_DATA ||
	    (field->kind == ID_HEX && field->size == 8)) {
		value_text(field, page, text, sizeof(text));
		return json_string(text);
	}
	if (value > INT64_MAX || is_wider(field, page))
		return json_real(wide_number(field, page));
	return json_integer((json_int_t)value);
}

json_t *weft_id_json(const struct id_field *fields, const void *page)
{
	json_t *object = json_object();

	for (; fields->name; fields++) {
		if (!is_left_out(fields, page))
			json_object_set_new(object, fields->name, value_json(fields, page));
	}
	return object;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Breaks @text between words; @column is where the first line begins. */
static void print_wrapped(const char *text, size_t column)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (column + len > COLUMNS && column > INDENT) {
			printf("\n%*s", INDENT, "");
			column = INDENT;
		}
		printf("%.*s", (int)len, text);
		column += len;
		text += len;
		if (*text == ' ') {
			column++;
			text++;
			if (column + strcspn(text, " ") <= COLUMNS)
				putchar(' ');
		}
	}
	putchar('\n');
}

void weft_id_print_line(const char *name, const char *value, const char *text)
{
	size_t width = strlen(value) < VALUE - 1 ? VALUE - 1 : strlen(value);

	printf("  %-*s", NAME, name);
	if (!*text) {
		printf("%s\n", value);
		return;
	}
	printf("%-*s ", (int)width, value);
	print_wrapped(text, 2 + NAME + width + 1);
}

static void bits_text(const struct id_bit *bits, uint64_t value, char *text, size_t size)
{
	size_t at = 0;

	for (; bits->text; bits++) {
		if (value >> bits->bit & 1 && at < size)
			at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
					       bits->text);
	}
	if (!at)
		snprintf(text, size, "none");
}

static void meaning_text(const struct id_field *field, const void *page, char *text, size_t size)
{
	uint64_t number = number_of(field, page);

	if (field->bits)
		bits_text(field->bits, number, text, size);
	else if (field->explain)
		field->explain(page, number, text, size);
}

void weft_id_print(const struct id_field *fields, const void *page)
{
	for (; fields->name; fields++) {
		char name[16] = "", value[300] = "", meaning[600] = "", text[700];

		for (size_t i = 0; fields->name[i] && i < sizeof(name) - 1; i++)
			name[i] = (char)toupper((unsigned char)fields->name[i]);
		value_text(fields, page, value, sizeof(value));
		meaning_text(fields, page, meaning, sizeof(meaning));
		snprintf(text, sizeof(text), "%s%s%s", fields->label, *meaning ? ": " : "",
			 meaning);
		weft_id_print_line(name, value, text);
	}
}

static int longest_name(const struct id_field *fields)
{
	size_t longest = 0;

	for (; fields->name; fields++) {
		if (strlen(fields->name) > longest)
			longest = strlen(fields->name);
	}
	return (int)longest;
}

void weft_id_print_names(const struct id_field *fields, const void *page)
{
	int width = longest_name(fields);

	for (; fields->name; fields++) {
		char value[300] = "", meaning[600] = "";

		if (is_left_out(fields, page))
			continue;
		value_text(fields, page, value, sizeof(value));
		meaning_text(fields, page, meaning, sizeof(meaning));
		printf("  %-*s  %-*s%s\n", width, fields->name, *meaning ? VALUE : 0, value,
		       meaning);
	}
}
