/* refusal.c - see refusal.h. */
#include "serve/refusal.h"

#include <stdarg.h>
#include <stdio.h>

static const char *type_of(int http) {
    switch (http) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 500:
        return "server_error";
    case 503:
        return "overloaded_error";
    default:
        return "invalid_request_error";
    }
}

bool refuse(refusal *r, int http, const char *param, const char *format, ...) {
    va_list list;
    *r = (refusal){.http = http, .type = type_of(http), .param = param};
    if (http == 503)
        r->retry_after = 2;
    va_start(list, format);
    vsnprintf(r->message, sizeof r->message, format, list);
    va_end(list);
    return false;
}

bool refuse_error(refusal *r, const dpi_error *err) {
    const int http = err->code == DPI_STATUS_ARG || err->code == DPI_STATUS_UNSUPPORTED ? 400
                     : err->code == DPI_STATUS_MEMORY                                   ? 503
                                                                                        : 500;
    return refuse(r, http, NULL, "%s", err->message);
}
