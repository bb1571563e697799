/* path.c - the way to the controller: which adapter and port, or which address, its commands leave
 * by. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/id/id.h"

/* Packets are as long as the end with the shorter ones wants them. */
static bool mtus_differ(const struct weft_path *path, char *text, size_t size)
{
	if (!path->mtu || !path->port_mtu || path->mtu == path->port_mtu)
		return false;
	snprintf(text, size,
		 "warning: this port would do %" PRIu32 ": give both ends, and the switches "
		 "between them, the same MTU",
		 path->port_mtu);
	return true;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void add_adapter(json_t *object, const struct weft_path *path)
{
	char warning[160];

	json_object_update_new(object,
			       json_pack("{s:s, s:I, s:s, s:s, s:I, s:I}", "device", path->device,
					 "port", (json_int_t)path->port, "kind", path->kind, "gid",
					 path->gid, "mtu", (json_int_t)path->mtu, "port_mtu",
					 (json_int_t)path->port_mtu));
	if (mtus_differ(path, warning, sizeof(warning)))
		json_object_set_new(object, "warning", json_string(warning));
}

json_t *weft_id_path_json(const struct weft_path *path)
{
	json_t *object = json_pack("{s:s, s:s}", "transport", path->transport, "local",
				   path->local);

	if (*path->device)
		add_adapter(object, path);
	return object;
}

/* --- lines ------------------------------------------------------------------------------------ */

static void print_mtu(const struct weft_path *path)
{
	char value[16], text[160] = "bytes of data in a packet";

	/* iWARP leaves it to TCP. */
	if (!path->mtu)
		return;
	snprintf(value, sizeof(value), "%" PRIu32, path->mtu);
	weft_id_print_line("MTU", value, text);
	if (mtus_differ(path, text, sizeof(text)))
		weft_id_print_line("", "", text);
}

static void print_adapter(const struct weft_path *path)
{
	char text[64];

	snprintf(text, sizeof(text), "port %" PRIu32 ", %s", path->port, path->kind);
	weft_id_print_line("DEVICE", path->device, text);
	weft_id_print_line("GID", path->gid, "");
	print_mtu(path);
}

void weft_id_path_print(const struct weft_path *path)
{
	char text[160];

	snprintf(text, sizeof(text), "from %s", path->local);
	weft_id_print_line("TRANSPORT", path->transport, *path->local ? text : "");
	if (*path->device)
		print_adapter(path);
}
