/* http.h - the functions of libmicrohttpd, loaded when a server begins: other commands start
 * without it, and without the TLS library that it brings. */
#ifndef DPI_SERVE_HTTP_H
#define DPI_SERVE_HTTP_H

#include <microhttpd.h>

#include "dpinfer/status.h"

/* Each call of the server: X(name), of MHD_name. */
#define HTTP_CALLS(X)                                                                              \
    X(set_panic_func)                                                                              \
    X(start_daemon)                                                                                \
    X(quiesce_daemon)                                                                              \
    X(stop_daemon)                                                                                 \
    X(suspend_connection)                                                                          \
    X(resume_connection)                                                                           \
    X(lookup_connection_value)                                                                     \
    X(get_connection_values)                                                                       \
    X(get_connection_info)                                                                         \
    X(create_response_from_buffer_with_free_callback)                                              \
    X(create_response_from_callback)                                                               \
    X(add_response_header)                                                                         \
    X(queue_response)                                                                              \
    X(destroy_response)

typedef struct http {
    void *library;
#define HTTP_MEMBER(name) __typeof__(MHD_##name) *name;
    HTTP_CALLS(HTTP_MEMBER)
#undef HTTP_MEMBER
} http;

/* Errors: UNSUPPORTED (there is no libmicrohttpd here, or one without these calls). */
dpi_status http_load(http *h, dpi_error *err);
/* After http_load, also where it has failed. */
void http_unload(http *h);

#endif
