/* invalid_field.h - which field a controller refused a command for (Invalid Field), from its error
 * log. */
#ifndef WEFT_CLI_INVALID_FIELD_H
#define WEFT_CLI_INVALID_FIELD_H

#include <stdbool.h>
#include <weft/host.h>

/* Each returns whether that is the reason, and then the sentence is set. @uri: as the user wrote
 * it. */

/* Reservations of the namespace do not persist through power loss. */
bool weft_invalid_field_ptpl(struct weft_ctrl *ctrl, const char *uri, uint32_t nsid,
			     struct weft_err *err);
/* The controller does not have the feature, and says so in its log page of features. */
bool weft_invalid_field_feature(struct weft_ctrl *ctrl, const char *uri, uint8_t fid,
				const char *name, struct weft_err *err);

#endif
