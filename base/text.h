/* text.h - a text that grows, for reports and statements; a text in a list. Internal. */
#ifndef DPI_BASE_TEXT_H
#define DPI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Begins as {0}. data [n_bytes] has a NUL behind it, and is the owner's to free with free; NULL
 * before the first byte. */
typedef struct dpi_text {
    char *data;
    size_t n_bytes, capacity;
    bool failed; /* out of memory: what came after that is missing */
} dpi_text;

/* Whether `text` is one of a list that ends with NULL. */
bool dpi_is_one_of(const char *const *list, const char *text);

void dpi_text_put(dpi_text *text, const char *bytes, size_t n_bytes);
void dpi_text_add(dpi_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
