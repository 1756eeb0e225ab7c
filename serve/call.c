/* call.c - see call.h. */
#include "serve/call.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "serve/page.h"

static enum MHD_Result send_refusal_of(call *c, int code, const char *message) {
    refusal why;
    refuse(&why, code, NULL, "%s", message);
    return call_refuse(c, &why);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Once it is over. */
static enum MHD_Result send_answer(call *c) {
    answer_view view;
    if (!answer_wait(c->s->worker, c->a, true, 0, call_suspend, call_resume, c))
        return MHD_YES;
    answer_look(c->s->worker, c->a, 0, &view);
    const enum MHD_Result result =
        view.failure.http ? call_refuse(c, &view.failure)
                          : call_send_json(c, MHD_HTTP_OK, reply_answer(&c->head, &view));
    dpi_private_free(view.text);
    return result;
}

/* The tokens of the prompt, and T. */
static bool encode_prompt(const server *s, const request *r, answer *a, refusal *why) {
    size_t n_bytes = r->n_system + r->n_user;
    for (size_t i = 0; i < r->n_turns; i++)
        n_bytes += r->turns[i].n_user + r->turns[i].n_answer;
    const size_t capacity = 4 * n_bytes + DPI_PROMPT_FRAME + r->n_turns * DPI_EARLIER_FRAME;
    dpi_error err;
    a->tokens = dpi_private_malloc(capacity * sizeof *a->tokens);
    if (!a->tokens)
        return refuse(why, 503, NULL, "no memory for a prompt");
    if (dpi_turns_encode(s->options.worker.model, r->is_chat ? s->options.chat : DPI_CHAT_NONE,
                         r->system, r->n_system, r->turns, r->n_turns, r->user, r->n_user,
                         a->tokens, capacity, &a->n_tokens, &err) != DPI_STATUS_OK)
        return refuse_error(why, &err);
    const int64_t room = s->n_ctx - (int64_t)a->n_tokens;
    const int64_t most = s->options.n_tokens > 0 && s->options.n_tokens < room
                             ? s->options.n_tokens
                             : room;
    if (room < 1) {
        refuse(why, 400, r->is_chat ? "messages" : "prompt",
               "the prompt: found %zu tokens, allowed 1..%d", a->n_tokens, (int)s->n_ctx - 1);
        why->code = "context_length_exceeded";
        return false;
    }
    if (r->n_tokens > most)
        return refuse(why, 400, "max_tokens",
                      "max_tokens: found %d, allowed 1..%lld: the prompt has %zu tokens and the "
                      "context %d", (int)r->n_tokens, (long long)most, a->n_tokens,
                      (int)s->n_ctx);
    a->method.n_tokens = r->n_tokens > 0 ? r->n_tokens : (int32_t)most;
    return true;
}

static void settle_method(const server *s, const request *r, answer *a) {
    dpi_sampler_options_init(&a->method);
    a->method.method = DPI_METHOD_PLAIN;
    a->method.n_vocab = s->model.n_vocab;
    a->method.n_ref = 0;
    a->method.top_k = r->top_k < s->model.n_vocab ? r->top_k : 0;
    a->method.tau = r->tau;
    a->method.top_p = r->top_p < 1 ? r->top_p : 0;
    a->method.isa = s->options.worker.session.isa;
    a->is_seeded = r->is_seeded;
    a->bits = r->seed;
}

static bool make_head(const server *s, const request *r, answer *a, reply_head *head,
                      refusal *why) {
    *head = (reply_head){.created = (int64_t)time(NULL), .model = s->model.name,
                         .is_chat = r->is_chat, .n_prompt = (int64_t)a->n_tokens};
    return reply_new_id(head->id, sizeof head->id, r->is_chat) ||
           refuse(why, 500, NULL, "the system gives no random bits");
}

static enum MHD_Result reply_text(call *c, int form) {
    server *s = c->s;
    const request_defaults defaults = {.tau = s->model.sampling_temp > 0 ? s->model.sampling_temp
                                                                         : 1,
                                       .top_k = s->model.sampling_top_k,
                                       .n_vocab = s->model.n_vocab};
    refusal why;
    request r;
    bool ok = request_parse(c->body, c->n_body, form, &defaults, &r, &why);
    c->is_streamed = r.is_streamed;
    c->includes_usage = r.includes_usage;
    if (ok && r.dataset[0])
        return call_private(c, &r);
    answer *a = c->a = ok ? answer_create() : NULL; /* left when the call is over */
    if (ok && !a)
        ok = refuse(&why, 503, NULL, "no memory for an answer");
    if (ok) {
        const dpi_wording wording = request_wording(&r);
        settle_method(s, &r, a);
        ok = encode_prompt(s, &r, a, &why) &&
             answer_shape(a, s->options.worker.model, &wording, &r.grammar, &why) &&
             make_head(s, &r, a, &c->head, &why) && worker_submit(s->worker, a, &why);
    }
    request_free(&r);
    if (!ok)
        return call_refuse(c, &why);
    return c->is_streamed ? call_stream(c) : send_answer(c);
}

static enum MHD_Result reply_chat(call *c) { return reply_text(c, REQUEST_CHAT); }
static enum MHD_Result reply_completion(call *c) { return reply_text(c, REQUEST_TEXT); }

static enum MHD_Result reply_health(call *c) {
    return call_send_json(c, MHD_HTTP_OK, reply_dump(json_pack("{s: s}", "status", "ok")));
}

static enum MHD_Result reply_model_list(call *c) {
    return call_send_json(c, MHD_HTTP_OK, reply_models(c->s->model.name, c->s->begun));
}

static enum MHD_Result reply_page(call *c) {
    char policy[PAGE_POLICY_MAX];
    const size_t n = strlen(page_text()) + 1;
    char *text = page_policy(policy) ? dpi_private_malloc(n) : NULL;
    if (text)
        memcpy(text, page_text(), n);
    struct MHD_Response *response = call_text_response(c, text, "text/html; charset=utf-8");
    if (response) {
        c->s->http.add_response_header(response, "Content-Security-Policy", policy);
        c->s->http.add_response_header(response, "Referrer-Policy", "no-referrer");
    }
    return call_send_response(c, MHD_HTTP_OK, response);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static const route routes[] = {
    {"GET", "/", true, reply_page},
    {"GET", "/health", true, reply_health},
    {"GET", "/v1/models", false, reply_model_list},
    {"GET", "/metrics", false, call_metrics},
    {"POST", "/v1/chat/completions", false, reply_chat},
    {"POST", "/v1/completions", false, reply_completion},
    {"POST", "/v1/privacy/plan", false, call_plan},
    {"GET", "/v1/privacy/budget", false, call_budget},
    {"GET", "/v1/privacy/budget/", false, call_budget},
    {"GET", "/v1/privacy/reports/", false, call_report},
};
enum { N_ROUTES = sizeof routes / sizeof *routes };

/* Whether it is the route's; the name behind it into name [80]. */
static bool is_path_of(const route *r, const char *path, char *name) {
    const size_t n = strlen(r->path);
    if (n < 2 || r->path[n - 1] != '/') {
        name[0] = '\0';
        return strcmp(r->path, path) == 0;
    }
    if (strncmp(r->path, path, n) != 0 || path[n] == '\0' || strlen(path + n) >= 80)
        return false;
    memcpy(name, path + n, strlen(path + n) + 1);
    return true;
}

/* NULL: *why says it. */
static const route *find_route(const char *method, const char *path, char *name, refusal *why) {
    const char *allowed = NULL;
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (int i = 0; i < N_ROUTES; i++) {
        if (!is_path_of(&routes[i], path, name))
            continue;
        if (strcmp(routes[i].method, method) == 0)
            return &routes[i];
        allowed = strcmp(routes[i].method, "GET") == 0 ? "GET, HEAD" : routes[i].method;
    }
    if (allowed)
        refuse(why, 405, NULL, "method: found %.20s, allowed %s", method, allowed);
    else
        refuse(why, 404, NULL, "there is no %.100s here", path);
    why->allow = allowed;
    return NULL;
}

/* Whether a Host field names this machine's own loopback address. Another one reaches a server that
 * listens there alone only through a web page whose name was bound to that address. */
static bool is_own_name(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        if (strncasecmp(host, names[i], n) == 0 && (host[n] == '\0' || host[n] == ':'))
            return true;
    }
    return false;
}

/* What a request has of one header field. */
typedef struct fields {
    const char *name;
    int n;
} fields;

static enum MHD_Result count_field(void *user, enum MHD_ValueKind kind, const char *name,
                                   const char *value) {
    fields *f = user;
    (void)kind, (void)value;
    f->n += strcasecmp(name, f->name) == 0;
    return MHD_YES;
}

static int count_fields(const call *c, const char *name) {
    fields f = {name, 0};
    c->s->http.get_connection_values(c->connection, MHD_HEADER_KIND, count_field, &f);
    return f.n;
}

/* Where a request ends and whom it is for must be one thing to this server and to a proxy before
 * it. What follows such a request on its connection is not read. */
static bool check_framing(call *c, const char *version, refusal *why) {
    const int n_hosts = count_fields(c, MHD_HTTP_HEADER_HOST);
    const int n_lengths = count_fields(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const bool is_chunked = call_field(c, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
    const bool wants_host = strcmp(version, MHD_HTTP_VERSION_1_0) != 0;
    c->is_ambiguous = true;
    if (n_hosts > 1 || (n_hosts == 0 && wants_host))
        return refuse(why, 400, NULL, "Host: found %d of these fields, allowed 1", n_hosts);
    if (n_lengths > 1)
        return refuse(why, 400, NULL, "Content-Length: found %d of these fields, allowed 1",
                      n_lengths);
    if (n_lengths > 0 && is_chunked)
        return refuse(why, 400, NULL, "Content-Length: not allowed beside Transfer-Encoding");
    c->is_ambiguous = false;
    return true;
}

/* A web page elsewhere may send what a form sends, and no JSON: browsers ask the server first
 * whether they may, and this one never says so. */
static bool check_headers(call *c, refusal *why) {
    const char *host = call_field(c, MHD_HTTP_HEADER_HOST);
    const char *type = call_field(c, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *length = call_field(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *authorization = call_field(c, MHD_HTTP_HEADER_AUTHORIZATION);
    const principals *p = c->s->options.principals;
    const char *principal = p ? principals_find(p, authorization) : "";
    c->principal = principal ? principal : "";
    if (!principal && !c->route->is_open)
        return refuse(why, 401, NULL, "Authorization: allowed is 'Bearer' and a token that the "
                                      "server knows");
    if (!p && host && !is_own_name(host))
        return refuse(why, 403, NULL, "Host: found '%.80s', allowed localhost, 127.0.0.1, [::1]",
                      host);
    if (strcmp(c->route->method, "POST") != 0)
        return true;
    if (!type || strncasecmp(type, "application/json", 16) != 0 ||
        (type[16] != '\0' && type[16] != ';' && type[16] != ' '))
        return refuse(why, 415, NULL, "Content-Type: found '%.80s', allowed application/json",
                      type ? type : "");
    if (length && strtoull(length, NULL, 10) > REQUEST_BYTES_MAX)
        return refuse(why, 413, NULL, "the body: found %.20s bytes, allowed %d", length,
                      (int)REQUEST_BYTES_MAX);
    return true;
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* A body that is passed over before its refusal is sent: clients that send before they read would
 * see a broken connection, and not the reason. One that asks first (Expect) has it at once. */
static bool has_short_body(const call *c) {
    const char *length = call_field(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return !length || strtoull(length, NULL, 10) <= PASSED_OVER_MAX;
}

static enum MHD_Result begin_call(server *s, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, void **state) {
    refusal why;
    call *c = calloc(1, sizeof *c);
    if (!c)
        return MHD_NO;
    *c = (call){.s = s, .connection = connection};
    *state = c;
    c->route = find_route(method, path, c->name, &why);
    if (check_framing(c, version, &why) && c->route && check_headers(c, &why))
        return MHD_YES;
    if (c->is_ambiguous || call_field(c, MHD_HTTP_HEADER_EXPECT) || !has_short_body(c))
        return call_refuse(c, &why);
    c->refused = why;
    return MHD_YES;
}

static void forget_body(call *c) {
    atomic_fetch_sub(&c->s->body_bytes, (long long)c->capacity);
    dpi_private_free(c->body);
    c->body = NULL;
    c->n_body = c->capacity = 0;
}

/* Room for n more bytes. */
static bool grow_body(call *c, size_t n, refusal *why) {
    if (c->refused.http)
        return false;
    if (n > REQUEST_BYTES_MAX - c->n_body)
        return refuse(why, 413, NULL, "the body: found more bytes than the allowed %d",
                      (int)REQUEST_BYTES_MAX);
    if (n <= c->capacity - c->n_body)
        return true;
    size_t capacity = 2 * (c->n_body + n) + 1024;
    capacity = capacity < REQUEST_BYTES_MAX ? capacity : REQUEST_BYTES_MAX;
    const long long more = (long long)(capacity - c->capacity);
    if (atomic_fetch_add(&c->s->body_bytes, more) + more > BODIES_BYTES_MAX) {
        atomic_fetch_sub(&c->s->body_bytes, more);
        return refuse(why, 503, NULL, "too many long requests at once");
    }
    char *grown = dpi_private_realloc(c->body, capacity);
    if (!grown) {
        atomic_fetch_sub(&c->s->body_bytes, more);
        return refuse(why, 503, NULL, "no memory for a request");
    }
    c->body = grown;
    c->capacity = capacity;
    return true;
}

/* A reply can be sent only when the body is there: what is too much of it is passed over. */
static enum MHD_Result receive(call *c, const char *data, size_t *n_data) {
    const size_t n = *n_data;
    *n_data = 0;
    if (grow_body(c, n, &c->refused)) {
        memcpy(c->body + c->n_body, data, n);
        c->n_body += n;
        return MHD_YES;
    }
    forget_body(c);
    c->n_passed_over += n;
    return c->n_passed_over <= PASSED_OVER_MAX ? MHD_YES : MHD_NO;
}

enum MHD_Result call_handle(void *user, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *data,
                            size_t *n_data, void **state) {
    server *s = user;
    call *c = *state;
    if (!c)
        return begin_call(s, connection, url, method, version, state);
    if (*n_data > 0)
        return receive(c, data, n_data);
    if (c->refused.http)
        return call_refuse(c, &c->refused);
    if (c->j) /* resumed */
        return call_send_job(c);
    if (c->a)
        return send_answer(c);
    if (!c->is_whole) { /* called again at once, and then nothing more is read from the socket: a
                           client that has closed its side gets its reply after a wait, too */
        c->is_whole = true;
        call_count(c);
        return MHD_YES;
    }
    if (s->is_stopping && strcmp(c->route->method, "POST") == 0)
        return send_refusal_of(c, 503, "the server stops");
    const enum MHD_Result result = c->route->reply(c);
    forget_body(c);
    return result;
}

void call_completed(void *user, struct MHD_Connection *connection, void **state,
                    enum MHD_RequestTerminationCode code) {
    server *s = user;
    call *c = *state;
    (void)connection, (void)code;
    if (!c)
        return;
    if (c->j) {
        if (c->a)
            answer_forget(s->worker, c->a);
        job_forget(s->books.clerk, c->j);
        job_leave(s->books.clerk, c->j);
    } else {
        answer_leave(s->worker, c->a);
    }
    forget_body(c);
    dpi_private_free(c->out);
    pthread_mutex_lock(&s->lock);
    if (c->is_counted && --s->n_calls == 0)
        pthread_cond_signal(&s->left);
    pthread_mutex_unlock(&s->lock);
    free(c);
    *state = NULL;
}
