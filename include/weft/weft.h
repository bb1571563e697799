/* weft.h - libweft: NVMe over Fabrics in user space. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; while the major number is 0, any release may change the API. */
#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

/* The version of the library in use, "MAJOR.MINOR.PATCH". A constant; never NULL. */
const char *weft_version(void);

/* The first cause of a failure, as a sentence. Start with an empty one: struct weft_err err = {}.
 * Functions that take one return -errno as well; they keep a sentence that is there already. */
struct weft_err {
	char text[512];
};

#ifdef __cplusplus
}
#endif

#endif
