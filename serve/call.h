/* call.h - one request and its reply, as libmicrohttpd moves them. No thread waits for an answer:
 * a connection is suspended until the worker has something for it. */
#ifndef DPI_SERVE_CALL_H
#define DPI_SERVE_CALL_H

#include <stdatomic.h>

#include "serve/http.h"
#include "serve/reply.h"
#include "serve/server.h"

enum {
    BODIES_BYTES_MAX = 64 << 20, /* of all bodies that are being received */
    PASSED_OVER_MAX = 16 << 20,   /* of a body that is too long, before its connection is closed */
    CODES_MAX = 600,
};

struct server {
    server_options options;
    worker *worker;
    http http;
    struct MHD_Daemon *daemon;
    int socket, port;
    dpi_model_info model;
    int32_t n_ctx;
    bool is_loopback;
    int64_t begun; /* seconds since 1970 */
    atomic_bool is_stopping;
    atomic_llong body_bytes; /* of all bodies that are being received */
    atomic_llong n_replies[CODES_MAX]; /* by status code */
    pthread_mutex_t lock;
    pthread_cond_t left; /* n_calls has become 0 */
    int n_calls;         /* requests whose reply is not sent */
};

/* As MHD_AccessHandlerCallback and MHD_RequestCompletedCallback want them; user is the server. */
enum MHD_Result call_handle(void *user, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *data,
                            size_t *n_data, void **state);
void call_completed(void *user, struct MHD_Connection *connection, void **state,
                    enum MHD_RequestTerminationCode code);

#endif
