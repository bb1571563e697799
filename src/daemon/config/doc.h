/* doc.h - settings as a tree, and where each of them was written.
 *
 *   YAML file ──┐
 *   flags ──────┼─▶ tree of JSON values, place of each path ─▶ decoders (decode.h)
 *   JSON-RPC ───┘
 *
 * A path is "subsystems[0].namespaces[1].nsid"; its place is a line of the file or a flag. */
#ifndef WEFT_DAEMON_CONFIG_DOC_H
#define WEFT_DAEMON_CONFIG_DOC_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

struct weft_doc {
	json_t *root;
	json_t *places; /* path ─▶ line number, or the flag's name */
	char *file;     /* NULL: none was read */
};

/* An empty map without places. */
int weft_doc_init(struct weft_doc *doc);
void weft_doc_free(struct weft_doc *doc);
/* Reads the YAML file into @doc, which weft_doc_free() frees also when this fails. */
int weft_doc_read(struct weft_doc *doc, const char *name, struct weft_err *err);

/* Owns @value. */
void weft_doc_set(struct weft_doc *doc, const char *key, json_t *value, const char *flag);
void weft_doc_place_flag(struct weft_doc *doc, const char *path, const char *flag);
void weft_doc_place_line(struct weft_doc *doc, const char *path, size_t line);

/* "weft.yaml:12: PATH: sentence", "--flag: sentence" or "PATH: sentence"; returns -EINVAL. A path
 * without a place is reported at the place of its parent. */
int weft_doc_fail(const struct weft_doc *doc, struct weft_err *err, const char *path,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Where @path was written: "line 12", "--nqn", or the path itself. */
void weft_doc_where(const struct weft_doc *doc, const char *path, char *text, size_t size);

/* A plain scalar of YAML as a JSON value. Whole numbers become numbers only where writing them
 * again gives the same text, so that a serial of 0042 stays what it is. */
json_t *weft_yaml_scalar(const char *text, size_t len);
/* Writes @root as YAML that weft_doc_read() reads back to an equal tree. */
int weft_yaml_write(FILE *file, json_t *root);

/* A path that is built step by step; set @len back to remove the last step. */
struct weft_doc_path {
	char text[512];
	size_t len;
};

size_t weft_doc_path_push_key(struct weft_doc_path *path,
			      const char *key); /* returns the old @len */
size_t weft_doc_path_push_index(struct weft_doc_path *path, size_t index);
void weft_doc_path_pop(struct weft_doc_path *path, size_t len);

#endif
