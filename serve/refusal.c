/* refusal.c - see refusal.h. */
#include "serve/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *type_of(int http) {
    switch (http) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 409:
    case 422:
        return "idempotency_error";
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
    if (http == 401)
        r->code = "invalid_api_key";
    if (http == 503)
        r->retry_after = 2;
    va_start(list, format);
    vsnprintf(r->message, sizeof r->message, format, list);
    va_end(list);
    return false;
}

bool refuse_budget(refusal *r, double left, double cost, int order, const char *format, ...) {
    va_list list;
    *r = (refusal){.http = 403, .type = "privacy_budget_exceeded",
                   .code = "privacy_budget_exceeded", .has_budget = true, .left = left,
                   .cost = cost, .order = order};
    va_start(list, format);
    vsnprintf(r->message, sizeof r->message, format, list);
    va_end(list);
    return false;
}

void refusal_is_final(refusal *r) {
    r->is_final = true;
    r->retry_after = 0;
    if (r->http == 503) {
        r->http = 500;
        r->type = type_of(500);
    }
}

dpi_status fail_with(dpi_error *err, dpi_status code, const char *format, ...) {
    va_list list;
    *err = (dpi_error){.code = (int32_t)code, .offset = UINT64_MAX};
    va_start(list, format);
    vsnprintf(err->message, sizeof err->message, format, list);
    va_end(list);
    return code;
}

/* The library has another name for what a request calls max_tokens. */
static bool refuse_field(refusal *r, const char *message) {
    static const char name[] = "n_tokens: ";
    const size_t n = sizeof name - 1;
    return strncmp(message, name, n) == 0
               ? refuse(r, 400, "max_tokens", "max_tokens: %s", message + n)
               : refuse(r, 400, NULL, "%s", message);
}

bool refuse_error(refusal *r, const dpi_error *err) {
    switch (err->code) {
    case DPI_STATUS_ARG:
    case DPI_STATUS_UNSUPPORTED:
    case DPI_STATUS_LIMIT:  /* of a grammar */
    case DPI_STATUS_BUDGET: /* of one text: no clip bound fits */
        return refuse_field(r, err->message);
    case DPI_STATUS_MEMORY:
        return refuse(r, 503, NULL, "%s", err->message);
    case DPI_STATUS_CANCELLED:
        return refuse(r, 503, NULL, "the server stops");
    case DPI_STATUS_IO: /* its files are no business of the client's */
    case DPI_STATUS_FORMAT:
        return refuse(r, 500, NULL, "a file of the server cannot be read or written");
    default:
        return refuse(r, 500, NULL, "%s", err->message);
    }
}
