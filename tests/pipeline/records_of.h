/* records_of.h - records from strings, for the tests of what is done with them. */
#ifndef DPI_TEST_RECORDS_OF_H
#define DPI_TEST_RECORDS_OF_H

#include "dpinfer/records.h"
#include "tests/support/support.h"

/* n strings, NULL a null record. */
static inline dpi_records *records_of(const char *const *texts, size_t n) {
    dpi_records *records = NULL;
    size_t *n_bytes = calloc(n + 1, sizeof *n_bytes);
    assert_non_null(n_bytes);
    for (size_t i = 0; i < n; i++)
        n_bytes[i] = texts[i] ? strlen(texts[i]) : 0;
    assert_ok(dpi_records_create(texts, n_bytes, n, &records, ERR));
    free(n_bytes);
    return records;
}

#endif
