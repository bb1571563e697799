/* id.h - the parts of weft id: Identify pages as tables of fields, and the way they came.
 *
 * A field knows where it is in the page and what it is called; its value is the same number in
 * JSON and for people, who get it explained as well. */
#ifndef WEFT_CLI_ID_ID_H
#define WEFT_CLI_ID_ID_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/host.h>

#include "proto/nvme.h"

struct id_bit {
	unsigned bit;
	const char *text; /* NULL: the end */
};

enum id_kind {
	ID_NUMBER,
	ID_HEX,  /* a number whose bits have meanings */
	ID_TEXT, /* ASCII, padded */
	ID_DATA, /* bytes, as they are */
	ID_WIDE, /* a number of 16 bytes */
};

struct id_field {
	const char *name; /* the specification's, in lower case; NULL: the end */
	size_t offset, size;
	enum id_kind kind;
	const char *label;
	const struct id_bit *bits;
	bool optional; /* left out where it is 0 */
	/* Puts what @value means into @text, or nothing. @page is the whole page. */
	void (*explain)(const void *page, uint64_t value, char *text, size_t size);
};

extern const struct id_field weft_id_ctrl_fields[];
extern const struct id_field weft_id_ns_fields[];

json_t *weft_id_json(const struct id_field *fields, const void *page);
void weft_id_print(const struct id_field *fields, const void *page);
/* Under their names, as wide as the longest, and without labels: for names that are words. */
void weft_id_print_names(const struct id_field *fields, const void *page);
/* A line in the columns of weft_id_print(). */
void weft_id_print_line(const char *name, const char *value, const char *text);

/* The LBA formats of an Identify Namespace page. */
json_t *weft_id_lbaf_json(const struct nvme_id_ns *id);
void weft_id_lbaf_print(const struct nvme_id_ns *id);

/* The namespace's identifiers: { "uuid": "…", "nguid": "…", … } of an Identify page of CNS 3. */
json_t *weft_id_descriptors_json(const void *page);
void weft_id_descriptors_print(const json_t *descriptors);

/* The log page of asymmetric namespace access, of a controller that has one:
 * { "chgcnt", "ngrps", "groups": [ { "grpid", "chgcnt", "state", "nsids": [ … ] } ] } */
int weft_id_ana(struct weft_ctrl *ctrl, const struct nvme_id_ctrl *id, json_t **ana,
		struct weft_err *err);
/* How long that page may be, as Identify has it; and the page, when it was read. */
uint32_t weft_id_ana_size(const struct nvme_id_ctrl *id);
json_t *weft_id_ana_json(const void *page, size_t size);
void weft_id_ana_print(const json_t *ana);

/* What a connection goes through; with "warning" where its two ends are set up differently. */
json_t *weft_id_path_json(const struct weft_path *path);
void weft_id_path_print(const struct weft_path *path);

#endif
