/* status.h - how library code reports failure. Internal. */
#ifndef DPI_STATUS_H
#define DPI_STATUS_H

#include "dpinfer/status.h"

#define DPI_NO_OFFSET UINT64_MAX

/* Fills *err (if not NULL) and returns `status`, so that every error path carries a message:
 *     return dpi_fail(err, DPI_STATUS_ARG, "n_threads is %d, must be 1..%d", n, max);
 * The message must not hold anything derived from private data. */
dpi_status dpi_fail(dpi_error *err, dpi_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the offset in bytes of the fault in a file. */
dpi_status dpi_fail_at(dpi_error *err, dpi_status status, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for memory that there is not, with what it was for, and its values:
 *     return dpi_no_memory(err, "a grid of %zu points", width); */
#define dpi_no_memory(err, ...) dpi_fail(err, DPI_STATUS_MEMORY, "no memory for " __VA_ARGS__)

/* Puts "context: " before the message of an error that a callee has reported (file names). */
dpi_status dpi_fail_in(dpi_error *err, dpi_status status, const char *context);

/* ARG, with the range, unless `value` is in min..max. `name` is that of a public option. */
dpi_status dpi_check_range(const char *name, int64_t value, int64_t min, int64_t max,
                           dpi_error *err);

/* Returns from the calling function if `expr` fails; for functions that own nothing yet. */
#define DPI_TRY(expr)                                      \
    do {                                                   \
        dpi_status dpi_try_status_ = (expr);               \
        if (dpi_try_status_ != DPI_STATUS_OK)              \
            return dpi_try_status_;                        \
    } while (0)

#endif
