/* text.c - see text.h. */
#include "base/format.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for n_bytes more and a NUL. */
static bool reserve(dpi_text *text, size_t n_bytes) {
    text->failed = text->failed ||
                   !dpi_grow(&text->data, &text->capacity, text->n_bytes + n_bytes + 1, 1);
    return !text->failed;
}

void dpi_text_put(dpi_text *text, const char *bytes, size_t n_bytes) {
    if (!reserve(text, n_bytes))
        return;
    memcpy(text->data + text->n_bytes, bytes, n_bytes);
    text->n_bytes += n_bytes;
    text->data[text->n_bytes] = '\0';
}

void dpi_text_add(dpi_text *text, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int n = dpi_vformat(NULL, 0, format, values);
    va_end(values);
    if (n < 0 || !reserve(text, (size_t)n))
        return;
    va_start(values, format);
    dpi_vformat(text->data + text->n_bytes, (size_t)n + 1, format, values);
    va_end(values);
    text->n_bytes += (size_t)n;
}

bool dpi_is_one_of(const char *const *list, const char *text) {
    while (*list && strcmp(*list, text) != 0)
        list++;
    return *list != NULL;
}
