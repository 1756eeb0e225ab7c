/* service.c - see service.h. */
#include "tests/serve/service.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpinfer/ledger.h"

static dpi_model *model;
static const char model_path[] = DPI_BUILTIN_MODEL;

void open_service_model(void) {
    json_set_alloc_funcs(dpi_private_malloc, dpi_private_free);
    assert_ok(dpi_model_open(model_path, NULL, &model, ERR));
}

void close_service_model(void) { dpi_model_close(model); }

enum { OWNED_MAX = 4096 };
static void *all_owned[OWNED_MAX];
static _Atomic int n_owned; /* clients have threads */

void *owned(void *p) {
    const int at = atomic_fetch_add(&n_owned, 1);
    assert_true(p && at < OWNED_MAX);
    return all_owned[at] = p;
}

void free_owned(void) {
    while (n_owned > 0)
        free(all_owned[--n_owned]);
}

/* ---- Server ---------------------------------------------------------------------------------- */

int64_t count_charges(const service *v) {
    dpi_dataset_info info;
    dpi_ledger *ledger;
    dpi_dataset_info_init(&info);
    assert_ok(dpi_ledger_open(v->ledger, NULL, &ledger, ERR));
    assert_ok(dpi_ledger_info(ledger, "letters", &info, ERR));
    dpi_ledger_close(ledger);
    return info.n_charges;
}

/* The same bits for each token, whatever else is drawn. */
static int32_t same_bits(void *user, void *bytes, size_t n_bytes) {
    service *v = user;
    if (v->n_charges > 0) {
        v->n_draws++;
        v->n_early += count_charges(v) < v->n_charges;
        v->n_told += count_tokens(v) != v->n_tokens;
    }
    memset(bytes, v->byte, n_bytes);
    return 0;
}

void start(service *v, const char *lines, const char *more, bool allows_stream) {
    server_options o = {.host = "127.0.0.1", .chat = DPI_CHAT_AUTO, .model_path = model_path};
    const char *path = path_in(make_dir(v->dir, sizeof v->dir), "refs.jsonl");
    write_file(path, lines, strlen(lines));
    snprintf(v->ledger, sizeof v->ledger, "%s/ledger", v->dir);
    snprintf(v->spec, sizeof v->spec, "letters=%s,%sdelta=1e-4%s", path,
             strstr(more, "epsilon=") ? "" : "epsilon=8,", more);
    assert_ok(dataset_parse(v->spec, &v->set, ERR));
    v->byte = 0x37;
    o.datasets = &v->set, o.n_datasets = 1;
    o.ledger = v->ledger, o.principals = v->p, o.allows_stream = allows_stream;
    o.random = same_bits, o.random_user = v;
    dpi_session_options_init(&o.worker.session);
    o.worker.session.n_ctx = 512, o.worker.session.n_threads = 1;
    o.worker.model = model;
    o.worker.n_parallel = 3, o.worker.n_waiting = 64;
    o.worker.n_bytes = 1 << 24; /* what is measured is not the same twice */
    o.worker.kept_bytes = v->keeps_nothing ? 0 : 1 << 26;
    assert_ok(server_open(&o, &v->s, ERR));
}

void stop(service *v) {
    server_close(v->s);
    v->s = NULL;
}

void forget(service *v) {
    stop(v);
    remove_dir(v->dir);
}

/* ---- Client ---------------------------------------------------------------------------------- */

static int connect_to(const service *v) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server_port(v->s))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

char *send_request(const service *v, const char *method, const char *path, const char *head,
                   const char *body) {
    char *text = owned(malloc(REPLY_MAX));
    const int n = snprintf(text, REPLY_MAX,
                           "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           "Content-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n%s",
                           method, path, strlen(body), head, body);
    const int fd = connect_to(v);
    assert_int_equal(write(fd, text, (size_t)n), n);
    size_t n_got = 0;
    ssize_t got;
    while ((got = read(fd, text + n_got, REPLY_MAX - 1 - n_got)) > 0)
        n_got += (size_t)got;
    assert_true(got == 0 && n_got < REPLY_MAX - 1);
    text[n_got] = '\0';
    close(fd);
    return text;
}

char *expect_reply(const service *v, int code, const char *method, const char *path,
                   const char *head, const char *body) {
    char *reply = send_request(v, method, path, head, body);
    int found = 0;
    if (sscanf(reply, "HTTP/1.1 %d", &found) != 1 || found != code)
        fail_msg("%s %s, %s: not %d, but %s", method, path, body, code, reply);
    return reply;
}

int64_t count_tokens(const service *v) {
    const char *line =
        strstr(send_request(v, "GET", "/metrics", "", ""), "\ndpinfer_tokens_total ");
    double n = -1;
    assert_true(line && sscanf(line, "\ndpinfer_tokens_total %lf", &n) == 1);
    return (int64_t)n;
}

const char *body_of(const char *reply) {
    const char *body = strstr(reply, "\r\n\r\n");
    assert_non_null(body);
    return body + 4;
}

char *member(const char *reply, const char *first, const char *name) {
    json_t *object = json_loads(body_of(reply), 0, NULL);
    const json_t *at = object;
    if (strcmp(first, "choices") == 0)
        at = json_array_get(json_object_get(object, "choices"), 0);
    else if (first[0])
        at = json_object_get(object, first);
    char *text = json_dumps(json_object_get(at, name), JSON_ENCODE_ANY);
    if (!text)
        fail_msg("no %s.%s in %s", first, name, reply);
    json_decref(object);
    char *copy = owned(strdup(text));
    dpi_private_free(text);
    return copy;
}
