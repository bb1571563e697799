/* scan.h - the scan of the open namespaces through a path. */
#ifndef WEFT_HOST_NAMESPACE_SCAN_H
#define WEFT_HOST_NAMESPACE_SCAN_H

#include "host/path/admin.h"

struct host_path;

enum host_scan_state {
	HOST_SCAN_IDLE,
	HOST_SCAN_IDENTIFY,  /* Identify Namespace of @nsid */
	HOST_SCAN_DESC_LIST, /* its identifiers */
};

struct host_scan {
	enum host_scan_state state;
	struct host_admin cmd;
	uint32_t nsid;                 /* of the namespace that is scanned */
	bool notify;                   /* the program gets an event when the scan is done */
	char *page;                    /* twice HOST_PAGE bytes */
	struct weft_timer retry_timer; /* for namespaces whose scan was refused */
	uint32_t retry_ms;             /* its delay */
};

void host_scan_due(struct host_path *path); /* scans the namespaces that are due */
/* Scans all that are open: for the path's set-up, or the program gets an event at the end. */
void host_scan_all(struct host_path *path);
/* Scans those of @nsids (up to a 0) that are open; the program gets an event at the end. */
void host_scan_changed(struct host_path *path, const __le32 *nsids, unsigned max);
void host_scan_stop(struct host_path *path);

#endif
