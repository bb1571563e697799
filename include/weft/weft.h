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

#ifdef __cplusplus
}
#endif

#endif
