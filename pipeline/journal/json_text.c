/* json_text.c - see json_text.h. */
#include "pipeline/journal/json_text.h"

#include <stdlib.h>

char *dpi_json_text(const json_t *value, size_t flags, size_t *n_bytes) {
    const size_t n = json_dumpb(value, NULL, 0, flags);
    char *text = n > 0 ? malloc(n + 1) : NULL;
    if (!text || json_dumpb(value, text, n, flags) != n) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *n_bytes = n;
    return text;
}
