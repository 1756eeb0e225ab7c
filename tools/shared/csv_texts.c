/* csv_texts.c - see csv_texts.h. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "dpinfer/memory.h"
#include "tools/shared/csv_texts.h"

bool csv_wanted(const char *path) {
    const size_t n = path ? strlen(path) : 0;
    return n > 4 && strcasecmp(path + n - 4, ".csv") == 0;
}

void csv_head(const dpi_claim *claim, bool labels, char row[CSV_BYTES]) {
    snprintf(row, CSV_BYTES, "index,%stext,n_tokens,ended,private%s\r\n",
             labels ? "text_label," : "", dpi_claim_is_private(claim) ? "" : ",label");
}

void csv_end(const dpi_claim *claim, int32_t n_tokens, bool ended, char row[CSV_BYTES]) {
    const bool is_private = dpi_claim_is_private(claim);
    char label[160], column[200] = "";
    dpi_claim_label(claim, label, sizeof label);
    if (!is_private)
        snprintf(column, sizeof column, ",\"%s\"", label);
    snprintf(row, CSV_BYTES, "\",%d,%s,%s%s\r\n", n_tokens, ended ? "true" : "false",
             is_private ? "true" : "false", column);
}

char *csv_quote(const char *text, size_t n_bytes, size_t *n_quoted) {
    char *quoted = n_bytes < SIZE_MAX / 2 ? dpi_private_malloc(2 * n_bytes + 1) : NULL;
    size_t n = 0;
    for (size_t i = 0; quoted && i < n_bytes; i++) {
        if (text[i] == '"')
            quoted[n++] = '"';
        quoted[n++] = text[i];
    }
    *n_quoted = n;
    return quoted;
}

char *csv_begin(int32_t index, const char *label, size_t n_label, size_t *n_bytes) {
    size_t n_quoted = 0;
    char *quoted = label ? csv_quote(label, n_label, &n_quoted) : NULL;
    char *row = label && !quoted ? NULL : dpi_private_malloc(n_quoted + 32);
    if (row) {
        size_t n = (size_t)snprintf(row, 16, "%d,", index);
        if (label) {
            row[n++] = '"';
            memcpy(row + n, quoted, n_quoted);
            n += n_quoted;
            memcpy(row + n, "\",", 2);
            n += 2;
        }
        row[n++] = '"';
        *n_bytes = n;
    }
    dpi_private_free(quoted);
    return row;
}
