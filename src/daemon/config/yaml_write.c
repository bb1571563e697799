/* yaml_write.c - write a tree of JSON values as YAML, in the order of its keys. */
#include "daemon/config/doc.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

static int emit_value(yaml_emitter_t *emitter, json_t *value);

/* The emitter owns the event, also when it fails. */
static int emit_event(yaml_emitter_t *emitter, yaml_event_t *event, int made)
{
	return made && yaml_emitter_emit(emitter, event) ? 0 : -EIO;
}

static int emit_text(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
	yaml_event_t event;
	int made = yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
						(int)strlen(text), 1, 1, style);

	return emit_event(emitter, &event, made);
}

/* Quotes a string that would be read back as something else, or that people might misread. */
static int emit_string(yaml_emitter_t *emitter, json_t *value)
{
	const char *text = json_string_value(value);
	json_auto_t *plain = weft_yaml_scalar(text, strlen(text));
	bool same = json_equal(plain, value) && text[strspn(text, "0123456789+-._eEoxX:")];

	return emit_text(emitter, text,
			 same ? YAML_ANY_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static int emit_integer(yaml_emitter_t *emitter, json_t *value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return emit_text(emitter, text, YAML_PLAIN_SCALAR_STYLE);
}

static int emit_list(yaml_emitter_t *emitter, json_t *list)
{
	yaml_sequence_style_t style = json_array_size(list) ? YAML_BLOCK_SEQUENCE_STYLE :
							      YAML_FLOW_SEQUENCE_STYLE;
	yaml_event_t event;
	json_t *item;
	size_t index;
	int rc = emit_event(emitter, &event,
			    yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style));

	json_array_foreach(list, index, item) {
		if (!rc)
			rc = emit_value(emitter, item);
	}
	if (rc)
		return rc;
	return emit_event(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

static int emit_map(yaml_emitter_t *emitter, json_t *map)
{
	yaml_event_t event;
	const char *key;
	json_t *value;
	int rc = emit_event(emitter, &event,
			    yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
								YAML_BLOCK_MAPPING_STYLE));

	json_object_foreach(map, key, value) {
		if (!rc)
			rc = emit_text(emitter, key, YAML_ANY_SCALAR_STYLE);
		if (!rc)
			rc = emit_value(emitter, value);
	}
	if (rc)
		return rc;
	return emit_event(emitter, &event, yaml_mapping_end_event_initialize(&event));
}

static int emit_value(yaml_emitter_t *emitter, json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return emit_map(emitter, value);
	case JSON_ARRAY:
		return emit_list(emitter, value);
	case JSON_STRING:
		return emit_string(emitter, value);
	case JSON_INTEGER:
		return emit_integer(emitter, value);
	case JSON_TRUE:
		return emit_text(emitter, "true", YAML_PLAIN_SCALAR_STYLE);
	case JSON_FALSE:
		return emit_text(emitter, "false", YAML_PLAIN_SCALAR_STYLE);
	default:
		return -EINVAL;
	}
}

static int emit_document(yaml_emitter_t *emitter, json_t *root)
{
	yaml_event_t event;
	int rc;

	rc = emit_event(emitter, &event,
			yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
	if (!rc)
		rc = emit_event(emitter, &event,
				yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
	if (!rc)
		rc = emit_value(emitter, root);
	if (!rc)
		rc = emit_event(emitter, &event, yaml_document_end_event_initialize(&event, 1));
	if (!rc)
		rc = emit_event(emitter, &event, yaml_stream_end_event_initialize(&event));
	return rc;
}

int weft_yaml_write(FILE *file, json_t *root)
{
	yaml_emitter_t emitter;
	int rc;

	if (!yaml_emitter_initialize(&emitter))
		return -ENOMEM;
	yaml_emitter_set_output_file(&emitter, file);
	yaml_emitter_set_unicode(&emitter, 1);
	yaml_emitter_set_width(&emitter, -1);
	rc = emit_document(&emitter, root);
	yaml_emitter_delete(&emitter);
	return rc;
}
