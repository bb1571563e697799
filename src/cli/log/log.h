/* log.h - the parts of weft log: which pages there are, how they are read, and what is in them.
 *
 *   name ─▶ page ─▶ read ─▶ bytes ─▶ json() or print(), or as they are
 *
 * The bytes are the peer's. A page's functions get as many as were asked for, all of which have
 * come, and look at no others whatever the page says of itself. */
#ifndef WEFT_CLI_LOG_LOG_H
#define WEFT_CLI_LOG_LOG_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/host.h>

#include "proto/nvme.h"

struct log_page {
	const char *name, *also; /* NULL: the end; nvme-cli's name for it */
	const char *title;       /* the specification's */
	uint8_t lid;
	bool of_ns, of_group; /* there may be one of each namespace, of each endurance group */
	/* Bytes to read, a multiple of 4. */
	uint32_t (*size)(const struct nvme_id_ctrl *id);
	json_t *(*json)(const void *page, size_t size);
	void (*print)(const void *page, size_t size);
};

extern const struct log_page weft_log_pages[];
/* By either name; NULL: there is none. */
const struct log_page *weft_log_page_named(const char *name);
const struct log_page *weft_log_page_numbered(uint8_t lid);

/* What to ask for. */
struct log_ask {
	uint8_t lid;
	uint32_t nsid;
	uint16_t lsi; /* the endurance group, of pages that there is one of each of */
	uint64_t offset;
	uint32_t length; /* a multiple of 4 */
};

/* In pieces of @piece bytes. 0, -errno, or the status with which the controller refused it, and
 * then no sentence in @err. */
int weft_log_read(struct weft_ctrl *ctrl, const struct log_ask *ask, uint32_t piece, void *buf,
		  struct weft_err *err);

/* health.c */
json_t *weft_log_smart_json(const void *page, size_t size);
void weft_log_smart_print(const void *page, size_t size);
json_t *weft_log_endurance_json(const void *page, size_t size);
void weft_log_endurance_print(const void *page, size_t size);

/* error.c */
json_t *weft_log_error_json(const void *page, size_t size);
void weft_log_error_print(const void *page, size_t size);

/* lists.c */
json_t *weft_log_supported_json(const void *page, size_t size);
void weft_log_supported_print(const void *page, size_t size);
json_t *weft_log_effects_json(const void *page, size_t size);
void weft_log_effects_print(const void *page, size_t size);
json_t *weft_log_features_json(const void *page, size_t size);
void weft_log_features_print(const void *page, size_t size);
json_t *weft_log_changed_json(const void *page, size_t size);
void weft_log_changed_print(const void *page, size_t size);

#endif
