/* nearest.h - "did you mean": the known name that a mistyped word is closest to. */
#ifndef DPI_NEAREST_H
#define DPI_NEAREST_H

#include <stddef.h>

/* The i-th known name, NULL after the last one; names of no interest may be "". */
typedef const char *(*nearest_name_fn)(const void *user, int i);

/* The name with the fewest edits from `word` (a letter more, less or other, or two exchanged), or
 * one that begins with it; NULL if no name is within a third of the word's letters. */
const char *nearest_name(const char *word, nearest_name_fn name_at, const void *user);

#endif
