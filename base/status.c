#include "base/format.h"
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint32_t dpi_abi_version(void) { return DPI_ABI_VERSION; }

const char *dpi_version(void) { return DPI_VERSION_STRING; }

const char *dpi_status_name(int32_t status) {
    switch (status) {
#define CASE(code, name, text) \
    case code:                 \
        return #name;
        DPI_STATUS_MAP(CASE)
#undef CASE
    default:
        return "unknown";
    }
}

const char *dpi_status_text(int32_t status) {
    switch (status) {
#define CASE(code, name, text) \
    case code:                 \
        return text;
        DPI_STATUS_MAP(CASE)
#undef CASE
    default:
        return "unknown";
    }
}

dpi_status dpi_status_of_errno(int32_t reason) {
    switch (reason) {
    case ENOMEM:
        return DPI_STATUS_MEMORY;
    case ENOENT: case EACCES: case EPERM: case ELOOP: case ENOTDIR: case EISDIR: case ENXIO:
    case ENODEV: case ENAMETOOLONG: case EROFS: case ETXTBSY: case EEXIST:
        return DPI_STATUS_IO;
    default:
        return DPI_STATUS_SYSTEM;
    }
}

static void fill(dpi_error *err, dpi_status status, uint64_t offset, const char *format,
                 va_list args) {
    err->code = status;
    err->reserved = 0;
    err->offset = offset;
    /* An encoding failure leaves an empty message: the code still tells. */
    if (dpi_vformat(err->message, sizeof err->message, format, args) < 0)
        err->message[0] = '\0';
}

dpi_status dpi_fail(dpi_error *err, dpi_status status, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, DPI_NO_OFFSET, format, args);
        va_end(args);
    }
    return status;
}

dpi_status dpi_fail_at(dpi_error *err, dpi_status status, uint64_t offset, const char *format,
                       ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, offset, format, args);
        va_end(args);
    }
    return status;
}

dpi_status dpi_fail_in(dpi_error *err, dpi_status status, const char *context) {
    if (err) {
        char message[sizeof err->message];
        memcpy(message, err->message, sizeof message);
        message[sizeof message - 1] = '\0';
        int n = snprintf(err->message, sizeof err->message, "%s: ", context);
        if (n < 0)
            n = 0;
        if ((size_t)n < sizeof err->message)
            snprintf(err->message + n, sizeof err->message - (size_t)n, "%s", message);
    }
    return status;
}

dpi_status dpi_check_range(const char *name, int64_t value, int64_t min, int64_t max,
                           dpi_error *err) {
    if (value >= min && value <= max)
        return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG, "%s is %lld, must be %lld..%lld", name, (long long)value,
                    (long long)min, (long long)max);
}
