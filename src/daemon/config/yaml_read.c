/* yaml_read.c - read a YAML file into a tree of JSON values, with the line of every path.
 *
 * YAML has more than settings need. Syntax that would silently mean something else is refused: a
 * duplicate key, a tag, a second document. Aliases are followed, within a limit. */
#include "daemon/config/doc.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#define DEPTH_MAX 16
#define NODES_MAX 200000

struct reader {
	struct weft_doc *doc;
	struct weft_err *err;
	yaml_document_t *yaml;
	struct weft_doc_path path;
	unsigned depth, nodes;
};

static json_t *convert_node(struct reader *r, yaml_node_t *node);

static json_t *refuse_node(struct reader *r, yaml_node_t *node, const char *why)
{
	weft_fail(r->err, -EINVAL, "%s:%zu: %s%s%s", r->doc->file, node->start_mark.line + 1,
		  r->path.text, r->path.len ? ": " : "", why);
	return NULL;
}

static void record_line(struct reader *r, yaml_node_t *node)
{
	weft_doc_place_line(r->doc, r->path.text, node->start_mark.line + 1);
}

static json_t *convert_scalar(struct reader *r, yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;
	size_t len = node->data.scalar.length;

	if (strlen(text) != len)
		return refuse_node(r, node, "a NUL byte is not text");
	if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return weft_yaml_scalar(text, len);
	return json_stringn(text, len);
}

static json_t *convert_list(struct reader *r, yaml_node_t *node)
{
	json_t *list = json_array(), *item;
	yaml_node_item_t *at = node->data.sequence.items.start;
	size_t index = 0, old;

	for (; at < node->data.sequence.items.top; at++) {
		yaml_node_t *child = yaml_document_get_node(r->yaml, *at);

		old = weft_doc_path_push_index(&r->path, index++);
		record_line(r, child);
		item = convert_node(r, child);
		weft_doc_path_pop(&r->path, old);
		if (json_array_append_new(list, item) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static int convert_pair(struct reader *r, json_t *map, yaml_node_pair_t *pair)
{
	yaml_node_t *key = yaml_document_get_node(r->yaml, pair->key);
	const char *name = (const char *)key->data.scalar.value;
	json_t *value = NULL;
	size_t old;

	if (key->type != YAML_SCALAR_NODE || strlen(name) != key->data.scalar.length)
		return refuse_node(r, key, "a key is a word") ? 0 : -1;
	old = weft_doc_path_push_key(&r->path, name);
	if (json_object_get(map, name)) {
		refuse_node(r, key, "given twice");
	} else {
		record_line(r, key);
		value = convert_node(r, yaml_document_get_node(r->yaml, pair->value));
	}
	weft_doc_path_pop(&r->path, old);
	return json_object_set_new(map, name, value);
}

static json_t *convert_map(struct reader *r, yaml_node_t *node)
{
	yaml_node_pair_t *at = node->data.mapping.pairs.start;
	json_t *map = json_object();

	for (; at < node->data.mapping.pairs.top; at++) {
		if (convert_pair(r, map, at) < 0) {
			json_decref(map);
			return NULL;
		}
	}
	return map;
}

/* The loader gives every node without a tag the default one of its kind. */
static bool is_tagged(yaml_node_t *node)
{
	static const char *const untagged[] = {
		[YAML_SCALAR_NODE] = YAML_DEFAULT_SCALAR_TAG,
		[YAML_SEQUENCE_NODE] = YAML_DEFAULT_SEQUENCE_TAG,
		[YAML_MAPPING_NODE] = YAML_DEFAULT_MAPPING_TAG,
	};

	return node->tag && strcmp((const char *)node->tag, untagged[node->type]);
}

static json_t *convert_kind(struct reader *r, yaml_node_t *node)
{
	switch (node->type) {
	case YAML_SCALAR_NODE:
		return convert_scalar(r, node);
	case YAML_SEQUENCE_NODE:
		return convert_list(r, node);
	case YAML_MAPPING_NODE:
		return convert_map(r, node);
	default:
		return refuse_node(r, node, "not a scalar, a list or a map");
	}
}

/* An alias may stand for a large tree, or for itself; depth and count limit both. */
static json_t *convert_node(struct reader *r, yaml_node_t *node)
{
	json_t *value;

	if (is_tagged(node))
		return refuse_node(r, node, "tags are not understood here");
	if (r->depth == DEPTH_MAX || r->nodes == NODES_MAX)
		return refuse_node(r, node, "nested too deeply, or too much of it");
	r->depth++;
	r->nodes++;
	value = convert_kind(r, node);
	r->depth--;
	return value;
}

/* The scanner stops in front of the text that it cannot read, and has it as UTF-8. */
static bool stopped_at_tab(const yaml_parser_t *parser)
{
	return parser->error == YAML_SCANNER_ERROR &&
	       parser->buffer.pointer < parser->buffer.last && *parser->buffer.pointer == '\t';
}

static int fail_parse(struct reader *r, const yaml_parser_t *parser)
{
	const char *context = parser->context;

	return weft_fail(r->err, -EINVAL, "%s:%zu: not YAML: %s%s%s%s", r->doc->file,
			 parser->problem_mark.line + 1, context ? context : "", context ? ", " : "",
			 parser->problem ? parser->problem : "out of memory",
			 stopped_at_tab(parser) ? "; YAML takes no tabs there, only spaces" : "");
}

static int read_root(struct reader *r)
{
	yaml_node_t *root = yaml_document_get_root_node(r->yaml);

	if (!root)
		return weft_fail(r->err, -EINVAL, "%s: there is nothing in this file",
				 r->doc->file);
	record_line(r, root);
	json_decref(r->doc->root);
	r->doc->root = convert_node(r, root);
	return r->doc->root ? 0 : weft_fail(r->err, -EINVAL, "%s: cannot be read", r->doc->file);
}

static int read_end(struct reader *r, yaml_parser_t *parser)
{
	yaml_node_t *root;
	yaml_document_t more;
	int rc = 0;

	if (!yaml_parser_load(parser, &more))
		return fail_parse(r, parser);
	root = yaml_document_get_root_node(&more);
	if (root)
		rc = weft_fail(r->err, -EINVAL, "%s:%zu: a second document in one file",
			       r->doc->file, root->start_mark.line + 1);
	yaml_document_delete(&more);
	return rc;
}

static int read_document(struct reader *r, yaml_parser_t *parser)
{
	yaml_document_t yaml;
	int rc;

	if (!yaml_parser_load(parser, &yaml))
		return fail_parse(r, parser);
	r->yaml = &yaml;
	rc = read_root(r);
	yaml_document_delete(&yaml);
	return rc < 0 ? rc : read_end(r, parser);
}

/* open() succeeds on a folder, read() does not. */
static FILE *open_file(const char *name)
{
	FILE *file = fopen(name, "re");
	int first = file ? getc(file) : EOF, saved = errno;

	if (file && first == EOF && ferror(file)) {
		fclose(file);
		errno = saved;
		return NULL;
	}
	if (first != EOF)
		ungetc(first, file);
	return file;
}

static int read_file(struct reader *r, FILE *file)
{
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_file(&parser, file);
	rc = read_document(r, &parser);
	yaml_parser_delete(&parser);
	return rc;
}

int weft_doc_read(struct weft_doc *doc, const char *name, struct weft_err *err)
{
	struct reader r = { .doc = doc, .err = err };
	FILE *file;
	int rc;

	rc = weft_doc_init(doc);
	if (rc < 0)
		return rc;
	file = open_file(name);
	if (!file)
		return weft_fail(err, -errno, "%s: %s", name, strerror(errno));
	doc->file = strdup(name);
	rc = doc->file ? read_file(&r, file) : -ENOMEM;
	fclose(file);
	return rc;
}
