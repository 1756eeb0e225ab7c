/* call.h - one request and its reply, as libmicrohttpd moves them. No thread waits for an answer:
 * a connection is suspended until the worker has something for it. */
#ifndef DPI_SERVE_CALL_H
#define DPI_SERVE_CALL_H

#include <stdatomic.h>

#include "serve/books.h"
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
    books books;
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
    int n_calls;         /* requests that are whole and whose reply is not sent */
};

typedef struct call call;

typedef struct route {
    const char *method, *path; /* a path that ends in '/' has a name behind it */
    bool is_open; /* to those without a token, too */
    enum MHD_Result (*reply)(call *c); /* once the body is there */
} route;

struct call {
    server *s;
    struct MHD_Connection *connection;
    const route *route;
    const char *principal; /* "": without tokens */
    char name[80];         /* what follows the route's path */
    char *body; /* [n_body] private memory */
    size_t n_body, capacity;
    size_t n_passed_over; /* bytes of a body that is refused */
    refusal refused;      /* http 0: it is not */
    job *j;               /* what the clerk does for it; NULL: nothing */
    answer *a;            /* that of the job, where there is one */
    reply_head head;
    bool is_streamed, includes_usage;
    bool is_ambiguous; /* it is not known where it ends */
    bool is_whole;     /* libmicrohttpd has read all of it */
    bool is_counted;   /* in n_calls */

    /* Of a stream. */
    bool has_begun, is_over;
    size_t n_told;      /* bytes of the text that are in events */
    char *out;          /* [n_out] events that go out, from `at` on */
    size_t n_out, at;
};

/* As MHD_AccessHandlerCallback and MHD_RequestCompletedCallback want them; user is the server. */
enum MHD_Result call_handle(void *user, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *data,
                            size_t *n_data, void **state);
void call_completed(void *user, struct MHD_Connection *connection, void **state,
                    enum MHD_RequestTerminationCode code);

/* A header field of the request; NULL: there is none. */
const char *call_field(const call *c, const char *name);
/* From here on the server's end waits for its reply. */
void call_count(call *c);
/* A string of dpi_private_malloc, which is released; NULL: no memory. */
enum MHD_Result call_send(call *c, int code, char *text, const char *type);
enum MHD_Result call_send_json(call *c, int code, char *json);
/* The same in two steps, with header fields between. */
struct MHD_Response *call_text_response(const call *c, char *text, const char *type);
enum MHD_Result call_send_response(call *c, int code, struct MHD_Response *response);
enum MHD_Result call_refuse(call *c, const refusal *why);
/* The answer c->a as events. */
enum MHD_Result call_stream(call *c);
/* As worker.h and clerk.h want them: user is the call. */
void call_suspend(void *user);
void call_resume(void *user);

/* calls_private.c: about datasets. The request is checked; *r is empty after it. */
enum MHD_Result call_private(call *c, request *r);
enum MHD_Result call_plan(call *c);
enum MHD_Result call_budget(call *c);
enum MHD_Result call_report(call *c);
/* What has come of the clerk's job. */
enum MHD_Result call_send_job(call *c);

/* metrics.c: in the text form of Prometheus. */
enum MHD_Result call_metrics(call *c);

#endif
