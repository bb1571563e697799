/* suggest.h - "did you mean …?": the known word nearest to a mistyped one. */
#ifndef WEFT_BASE_SUGGEST_H
#define WEFT_BASE_SUGGEST_H

/* The name in @names, NULL at the end, that is nearest to @word; NULL: none is near. */
const char *weft_suggest_word(const char *word, const char *const *names);

#endif
