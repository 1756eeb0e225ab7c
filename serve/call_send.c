/* call_send.c - replies of a call and the events of a stream: see call.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "serve/call.h"

const char *call_field(const call *c, const char *name) {
    return c->s->http.lookup_connection_value(c->connection, MHD_HEADER_KIND, name);
}

/* ---- Replies --------------------------------------------------------------------------------- */

/* The end of what a client sends may have come with its request, and libmicrohttpd has missed it:
 * it would keep the connection until the client has said nothing for long enough. */
static bool has_closed_its_side(const call *c) {
    const union MHD_ConnectionInfo *info =
        c->s->http.get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char byte;
    return info && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void call_count(call *c) {
    if (c->is_counted)
        return;
    c->is_counted = true;
    pthread_mutex_lock(&c->s->lock);
    c->s->n_calls++;
    pthread_mutex_unlock(&c->s->lock);
}

enum MHD_Result call_send_response(call *c, int code, struct MHD_Response *response) {
    const http *h = &c->s->http;
    call_count(c);
    if (!response)
        return MHD_NO;
    h->add_response_header(response, "Cache-Control", "no-store");
    h->add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (c->s->is_stopping || c->is_ambiguous || has_closed_its_side(c))
        h->add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    atomic_fetch_add(&c->s->n_replies[code], 1);
    const enum MHD_Result result = h->queue_response(c->connection, (unsigned)code, response);
    h->destroy_response(response);
    return result;
}

struct MHD_Response *call_text_response(const call *c, char *text, const char *type) {
    const http *h = &c->s->http;
    if (!text)
        return NULL;
    struct MHD_Response *response = h->create_response_from_buffer_with_free_callback(
        strlen(text), text, dpi_private_free);
    if (!response)
        dpi_private_free(text);
    else
        h->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return response;
}

enum MHD_Result call_send(call *c, int code, char *text, const char *type) {
    return call_send_response(c, code, call_text_response(c, text, type));
}

enum MHD_Result call_send_json(call *c, int code, char *json) {
    return call_send(c, code, json, "application/json");
}

enum MHD_Result call_refuse(call *c, const refusal *why) {
    char seconds[16];
    struct MHD_Response *response = call_text_response(c, reply_error(why), "application/json");
    snprintf(seconds, sizeof seconds, "%d", why->retry_after);
    if (response && why->retry_after > 0)
        c->s->http.add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    if (response && why->is_final)
        c->s->http.add_response_header(response, "X-Should-Retry", "false");
    if (response && why->allow)
        c->s->http.add_response_header(response, MHD_HTTP_HEADER_ALLOW, why->allow);
    if (response && why->http == MHD_HTTP_UNAUTHORIZED)
        c->s->http.add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    return call_send_response(c, why->http, response);
}

/* ---- Waiting for the worker ------------------------------------------------------------------ */

void call_suspend(void *user) {
    call *c = user;
    c->s->http.suspend_connection(c->connection);
}

void call_resume(void *user) {
    call *c = user;
    c->s->http.resume_connection(c->connection);
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* The end of a stream: a private answer is kept before it is whole. False: it is not yet. */
static bool prepare_end(call *c, const answer_view *view, char **part) {
    const refusal *failure = &view->failure;
    if (c->j) {
        if (!job_wait(c->s->books.clerk, c->j, false, call_suspend, call_resume, c))
            return false;
        failure = &c->j->failure;
        c->head.facts = private_head_of(c->j)->facts;
    }
    *part = failure->http ? reply_failed(failure) : reply_last(&c->head, view, c->includes_usage);
    c->is_over = true;
    return true;
}

/* The next events of the answer into c->out; none if there is nothing new, and *waits where the
 * connection is suspended. */
static bool prepare_events(call *c, bool *waits) {
    answer_view view;
    char *part = NULL;
    bool is_new = true;
    answer_look(c->s->worker, c->a, c->n_told, &view);
    if (!c->has_begun) {
        part = reply_first(&c->head);
        c->has_begun = true;
    } else if (view.n_bytes > 0) {
        part = reply_part(&c->head, view.text, view.n_bytes);
        c->n_told += view.n_bytes;
    } else if (view.is_over) {
        *waits = !prepare_end(c, &view, &part);
        is_new = !*waits;
    } else {
        is_new = false;
    }
    dpi_private_free(view.text);
    if (!is_new)
        return true;
    dpi_private_free(c->out);
    c->out = part;
    c->n_out = part ? strlen(part) : 0;
    c->at = 0;
    return part != NULL;
}

static ssize_t read_stream(void *user, uint64_t position, char *buffer, size_t most) {
    call *c = user;
    bool waits = false;
    (void)position;
    while (c->at == c->n_out) {
        if (c->is_over)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (c->has_begun && !answer_wait(c->s->worker, c->a, false, c->n_told, call_suspend,
                                         call_resume, c))
            return 0;
        if (!prepare_events(c, &waits))
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (waits)
            return 0;
    }
    const size_t n = c->n_out - c->at < most ? c->n_out - c->at : most;
    memcpy(buffer, c->out + c->at, n);
    c->at += n;
    return (ssize_t)n;
}

enum MHD_Result call_stream(call *c) {
    struct MHD_Response *response =
        c->s->http.create_response_from_callback(MHD_SIZE_UNKNOWN, 1 << 14, read_stream, c, NULL);
    if (response)
        c->s->http.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    return call_send_response(c, MHD_HTTP_OK, response);
}
