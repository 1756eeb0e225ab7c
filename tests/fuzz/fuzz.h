/* fuzz.h - what fuzz targets share: what must hold, and copies of the input. */
#ifndef DPI_FUZZ_H
#define DPI_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpinfer/status.h"
#include "tests/support/own.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static inline void require(bool holds) {
    if (!holds)
        abort();
}

static inline void require_ok(dpi_status status) { require(status == DPI_STATUS_OK); }

/* Whether it went well; else the error has a code and a message that ends. */
static inline bool is_ok(dpi_status status, const dpi_error *err) {
    require(status == DPI_STATUS_OK || (err->code == (int32_t)status && err->message[0] &&
                                        memchr(err->message, '\0', sizeof err->message)));
    return status == DPI_STATUS_OK;
}

/* A copy of so many bytes in room for as many, so that a sanitizer sees a read past the end; the
 * caller's. */
static inline char *copy_bytes(const void *data, size_t n_bytes, size_t room) {
    char *copy = calloc(room ? room : 1, 1);
    require(copy != NULL);
    return memcpy(copy, data, n_bytes);
}

/* One with a NUL at its end. */
static inline char *copy_text(const void *data, size_t n_bytes) {
    return copy_bytes(data, n_bytes, n_bytes + 1);
}

#endif
