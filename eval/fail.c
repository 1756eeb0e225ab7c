/* fail.c - see fail.h. */
#include "eval/fail.h"

#include <stdarg.h>
#include <stdio.h>

dpi_status eval_fail(dpi_error *err, dpi_status status, const char *format, ...) {
    if (err) {
        va_list list;
        *err = (dpi_error){.code = status, .offset = UINT64_MAX};
        va_start(list, format);
        vsnprintf(err->message, sizeof err->message, format, list);
        va_end(list);
    }
    return status;
}
