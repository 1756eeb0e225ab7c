/* server.c - see server.h. */
#include "serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/call.h"

enum {
    CONNECTIONS_MAX = 4000,
    IDLE_SECONDS = 60,
    FAREWELL_SECONDS = 10, /* what clients have to read their replies when the server stops */
    BACKLOG = 1024,
};

/* ---- Listening ------------------------------------------------------------------------------- */

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

/* A numeric address. */
static bool read_address(const char *host, int port, address *a, socklen_t *n) {
    memset(a, 0, sizeof *a);
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)port);
        *n = sizeof a->v4;
        return true;
    }
    if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons((uint16_t)port);
        *n = sizeof a->v6;
        return true;
    }
    return false;
}

static bool is_loopback(const address *a) {
    return a->any.sa_family == AF_INET ? (ntohl(a->v4.sin_addr.s_addr) >> 24) == 127
                                       : IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

static dpi_status listen_on(server *s, dpi_error *err) {
    const int yes = 1;
    address a;
    socklen_t n;
    char what[96];
    snprintf(what, sizeof what, "cannot listen on %.40s port %d", s->options.host,
             s->options.port);
    if (!read_address(s->options.host, s->options.port, &a, &n))
        return fail_with(err, DPI_STATUS_ARG, "%s: allowed is a numeric address", what);
    s->is_loopback = is_loopback(&a);
    if (!s->is_loopback && !s->options.principals)
        return fail_with(err, DPI_STATUS_ARG, "%s: other machines reach it, and there are no "
                                              "tokens", what);
    s->socket = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->socket < 0 ||
        setsockopt(s->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(s->socket, &a.any, n) != 0 || listen(s->socket, BACKLOG) != 0 ||
        getsockname(s->socket, &a.any, &n) != 0)
        return fail_with(err, DPI_STATUS_IO, "%s: %s", what, strerror(errno));
    s->port = ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
    return DPI_STATUS_OK;
}

/* As many connections as the system lets this process have. */
static unsigned connections_most(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return 256;
    if (files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    const rlim_t most = files.rlim_cur > 64 ? files.rlim_cur - 48 : 16;
    return most < CONNECTIONS_MAX ? (unsigned)most : CONNECTIONS_MAX;
}

static void panic(void *user, const char *file, unsigned line, const char *reason) {
    void (*const *on_panic)(const char *) = user;
    (void)file, (void)line;
    (*on_panic)(reason);
}

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* %41 becomes A, in place. %00 stays: the text would end there, and be another path. */
static size_t unescape(void *user, struct MHD_Connection *connection, char *text) {
    char *to = text;
    (void)user, (void)connection;
    for (const char *from = text; *from; to++) {
        const int high = *from == '%' ? hex_digit(from[1]) : -1;
        const int low = high >= 0 ? hex_digit(from[2]) : -1;
        const bool is_escaped = low >= 0 && high + low > 0;
        *to = is_escaped ? (char)(16 * high + low) : *from;
        from += is_escaped ? 3 : 1;
    }
    *to = '\0';
    return (size_t)(to - text);
}

static dpi_status start_daemon(server *s, dpi_error *err) {
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_INTERNAL_POLLING_THREAD |
                           MHD_ALLOW_SUSPEND_RESUME;
    const unsigned idle = s->options.idle_seconds > 0 ? (unsigned)s->options.idle_seconds
                                                       : IDLE_SECONDS;
    if (s->options.on_panic)
        s->http.set_panic_func(panic, &s->options.on_panic);
    s->daemon = s->http.start_daemon(
        flags, 0, NULL, NULL, call_handle, s, MHD_OPTION_LISTEN_SOCKET, s->socket,
        MHD_OPTION_NOTIFY_COMPLETED, call_completed, s, MHD_OPTION_CONNECTION_LIMIT,
        connections_most(), MHD_OPTION_CONNECTION_TIMEOUT, idle,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10), MHD_OPTION_SIGPIPE_HANDLED_BY_APP,
        1, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
    return s->daemon ? DPI_STATUS_OK
                     : fail_with(err, DPI_STATUS_SYSTEM, "cannot serve: %s", strerror(errno));
}

/* ---- All ------------------------------------------------------------------------------------- */

static int32_t is_stopping(void *user) { return atomic_load(&((server *)user)->is_stopping); }

static dpi_status open_books(server *s, dpi_error *err) {
    const server_options *o = &s->options;
    books *b = &s->books;
    b->principals = o->principals;
    b->model = o->worker.model;
    b->model_name = s->model.name;
    b->session = o->worker.session;
    b->session.cancel = is_stopping, b->session.cancel_user = s;
    b->chat = o->chat;
    b->n_tokens = o->n_tokens;
    b->allows_stream = o->allows_stream;
    b->random = o->random;
    b->random_user = o->random_user;
    return books_begin(b, o->model_path, err);
}

/* What there is in memory, with the weights that are still to come. Taken after the libraries and
 * the books, which it counts, and before a record is read: clients see it. */
static uint64_t memory_now(const server *s) {
    enum { MANY_TOKENS = 1 << 20 };
    uint64_t now;
    dpi_process_memory(&now, NULL);
    return now > 0 ? now + dpi_model_unread_bytes(s->options.worker.model, MANY_TOKENS)
                   : (uint64_t)s->model.weight_bytes;
}

static dpi_status open_worker(server *s, dpi_error *err) {
    worker_options *o = &s->options.worker;
    if (o->n_bytes == 0)
        o->n_bytes = memory_now(s);
    dpi_status status = datasets_read(&s->books.datasets, err);
    if (status != DPI_STATUS_OK)
        return status;
    o->n_seq_most = datasets_rows(&s->books.datasets);
    o->n_records = datasets_records(&s->books.datasets);
    o->n_searching = datasets_searching(&s->books.datasets);
    status = worker_create(o, &s->worker, err);
    if (status != DPI_STATUS_OK)
        return status;
    s->n_ctx = s->books.session.n_ctx = worker_n_ctx(s->worker);
    s->books.worker = s->worker;
    return DPI_STATUS_OK;
}

static dpi_status open_all(server *s, dpi_error *err) {
    server_options *o = &s->options;
    dpi_model_info_init(&s->model);
    dpi_status status = dpi_model_info_get(o->worker.model, &s->model, err);
    if (status == DPI_STATUS_OK)
        status = http_load(&s->http, err);
    if (status == DPI_STATUS_OK)
        status = listen_on(s, err);
    if (status == DPI_STATUS_OK)
        status = datasets_open(o->datasets, o->n_datasets, o->ledger, &s->books.datasets, err);
    if (status == DPI_STATUS_OK)
        status = open_books(s, err);
    if (status == DPI_STATUS_OK)
        status = open_worker(s, err);
    return status == DPI_STATUS_OK ? start_daemon(s, err) : status;
}

dpi_status server_open(const server_options *options, server **made, dpi_error *err) {
    server *s = calloc(1, sizeof *s);
    *made = s;
    if (!s)
        return fail_with(err, DPI_STATUS_MEMORY, "no memory for a server");
    s->options = *options;
    s->socket = -1;
    s->begun = (int64_t)time(NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->left, NULL);
    return open_all(s, err);
}

bool server_refused_records(const server *s) { return s && s->books.datasets.refused; }
int server_port(const server *s) { return s->port; }
worker_memory server_memory(const server *s) { return worker_memory_get(s->worker); }

/* Replies are sent, or their clients have had the time for it. */
static void wait_for_calls(server *s) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += FAREWELL_SECONDS;
    pthread_mutex_lock(&s->lock);
    while (s->n_calls > 0 && pthread_cond_timedwait(&s->left, &s->lock, &end) == 0) {
    }
    pthread_mutex_unlock(&s->lock);
}

void server_close(server *s) {
    if (!s)
        return;
    s->is_stopping = true;
    if (s->daemon)
        s->http.quiesce_daemon(s->daemon);
    if (s->socket >= 0)
        close(s->socket);
    if (s->worker) {
        worker_stop(s->worker);
        worker_join(s->worker);
    }
    clerk_stop(s->books.finder);
    clerk_stop(s->books.clerk); /* what was drawn is kept */
    if (s->daemon) {
        wait_for_calls(s);
        s->http.stop_daemon(s->daemon);
    }
    clerk_free(s->books.finder);
    clerk_free(s->books.clerk);
    worker_free(s->worker);
    datasets_close(&s->books.datasets);
    books_free(&s->books);
    http_unload(&s->http);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->left);
    free(s);
}
