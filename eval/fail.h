/* fail.h - errors of this folder, as the library has them, and what all its files share. */
#ifndef DPI_EVAL_FAIL_H
#define DPI_EVAL_FAIL_H

#include "dpinfer/status.h"

/* Fills in *err (may be NULL) and returns the status. */
dpi_status eval_fail(dpi_error *err, dpi_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for memory that there is not: eval_no_memory(err, "%d texts", n). */
#define eval_no_memory(err, ...) eval_fail(err, DPI_STATUS_MEMORY, "no memory for " __VA_ARGS__)

#define EVAL_TRY(expression)                        \
    do {                                            \
        const dpi_status eval_status = (expression); \
        if (eval_status != DPI_STATUS_OK)           \
            return eval_status;                     \
    } while (0)

#endif
