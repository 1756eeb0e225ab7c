/* fuzz_http.c - libFuzzer target: any bytes as what a client sends to a server with a dataset, in
 * this process. The client then closes its side; what comes back is nothing, or HTTP. Bytes after
 * one that is 255 are sent apart, as a slow client does. */
#include <arpa/inet.h>
#include <jansson.h>
#include <sys/socket.h>

#include "dpinfer/memory.h"
#include "serve/server.h"
#include "tests/fuzz/fuzz.h"

static server *s;
static dpi_model *model;
static char folder[64], spec[256], ledger[96];

static void write_records(void) {
    char path[96];
    require(mkdtemp(strcpy(folder, "/dev/shm/dpinfer-fuzz-XXXXXX")) != NULL);
    snprintf(path, sizeof path, "%s/r.jsonl", folder);
    snprintf(ledger, sizeof ledger, "%s/ledger", folder);
    snprintf(spec, sizeof spec, "d=%s,label=l,batch=2,epsilon=1e4,delta=1e-3", path);
    FILE *f = fopen(path, "w");
    require(f &&
            fputs("{\"text\": \"a ticket\", \"l\": \"x\"}\n{\"text\": \"\"}\n{\"text\": 5}\n", f) >=
                0 &&
            fclose(f) == 0);
}

static void clean_up(void) {
    static const char *const names[] = {"r.jsonl", "ledger", "ledger.answers",
                                        "ledger.answers.lock"};
    char path[128];
    server_close(s);
    dpi_model_close(model);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static dataset set;
    server_options o = {.host = "127.0.0.1", .chat = DPI_CHAT_AUTO, .n_tokens = 2};
    dpi_error err;
    (void)argc, (void)argv;
    o.datasets = &set, o.n_datasets = 1, o.ledger = ledger, o.model_path = DPI_BUILTIN_MODEL;
    o.allows_stream = true, o.idle_seconds = 1; /* what is never whole ends soon */
    json_set_alloc_funcs(dpi_private_malloc, dpi_private_free);
    write_records();
    require_ok(dataset_parse(spec, &set, &err));
    require_ok(dpi_model_open(DPI_BUILTIN_MODEL, NULL, &model, &err));
    dpi_session_options_init(&o.worker.session);
    o.worker.session.n_ctx = 192, o.worker.session.n_threads = 1;
    o.worker.model = model, o.worker.n_parallel = 2, o.worker.n_waiting = 4;
    if (server_open(&o, &s, &err) != DPI_STATUS_OK) {
        fprintf(stderr, "no server: %s\n", err.message);
        abort();
    }
    atexit(clean_up);
    return 0;
}

/* False: the server has closed the connection. */
static bool send_part(int fd, const uint8_t *data, size_t n_bytes) {
    while (n_bytes > 0) {
        const ssize_t n = send(fd, data, n_bytes, MSG_NOSIGNAL);
        if (n < 0)
            return false;
        data += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

static void send_all(int fd, const uint8_t *data, size_t n_bytes) {
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &yes, sizeof yes);
    while (n_bytes > 0) {
        const uint8_t *end = memchr(data, 255, n_bytes);
        const size_t n = end ? (size_t)(end - data) : n_bytes;
        if (!send_part(fd, data, n))
            return;
        data += n + (end != NULL);
        n_bytes -= n + (end != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server_port(s))};
    char reply[4096];
    size_t n_got = 0;
    ssize_t n;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    require(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
    send_all(fd, data, n_bytes);
    shutdown(fd, SHUT_WR);
    while ((n = recv(fd, reply + (n_got < 16 ? n_got : 16), 1024, 0)) > 0)
        n_got += (size_t)n;
    require(n_got == 0 || (n_got >= 8 && memcmp(reply, "HTTP/1.", 7) == 0));
    close(fd);
    return 0;
}
