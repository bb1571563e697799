/* nearest.h - what somebody meant who typed something else. */
#ifndef WEFT_BASE_NEAREST_H
#define WEFT_BASE_NEAREST_H

/* The name in @names, NULL at the end, that somebody who typed @word meant; NULL: none is near. */
const char *weft_nearest(const char *word, const char *const *names);

#endif
