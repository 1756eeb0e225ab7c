/* serve.c - see serve_main.h. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "serve/server.h"
#include "tools/options/release_options.h"
#include "tools/serve/serve_config.h"
#include "tools/serve/serve_main.h"
#include "tools/terminal/signals.h"

enum { TOKENS_BYTES_MAX = 1 << 20 };

static void end_at_once(const char *reason) {
    cli_fail(CLI_FAILED, "libmicrohttpd cannot go on: %s", reason);
    _exit(CLI_FAILED);
}

#ifdef __GLIBC__
/* Large blocks, as caches of tokens are, go back to the system when an answer is over: the C
 * library would learn from the first ones that are freed to keep them, in a heap of each thread. */
static void settle_heaps(void) { mallopt(M_MMAP_THRESHOLD, 128 << 10); }
/* And the small ones when there is nothing to do. */
static void trim_heaps(void) { malloc_trim(0); }
#else
static void settle_heaps(void) {}
static void trim_heaps(void) {}
#endif

static int read_server_options(const args *a, serve_config *c, server_options *o) {
    dpi_error err;
    *o = (server_options){.host = a->v[OPT_HOST].s, .port = (int)a->v[OPT_PORT].i,
                          .n_tokens = (int32_t)a->v[OPT_MAX_TOKENS].i, .on_panic = end_at_once};
    int code = serve_config_read(a, c);
    if (code != CLI_OK)
        return code;
    o->datasets = c->sets;
    o->n_datasets = c->n;
    o->ledger = c->ledger ? c->ledger : a->v[OPT_SERVED_LEDGER].s;
    o->model_path = a->model;
    o->allows_stream = a->v[OPT_ALLOW_STREAM].i;
    o->worker.n_parallel = (int32_t)a->v[OPT_AT_A_TIME].i;
    o->worker.n_waiting = (int32_t)a->v[OPT_WAITING].i;
    o->worker.at_rest = trim_heaps;
    o->worker.kept_bytes = a->v[OPT_RECORD_CACHE].i << 20;
    code = read_session_options(a, &o->worker.session);
    if (code != CLI_OK)
        return code;
    o->worker.session.n_ctx = (int32_t)a->v[OPT_CTX_SIZE].i;
    if (dpi_chat_parse(a->v[OPT_TEMPLATE].s, &o->chat, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    return CLI_OK;
}

/* Like the context of a run: the model's, 4096 at most. */
static void settle_context(const args *a, const dpi_model_info *info, server_options *o) {
    enum { CONTEXT_MOST = 4096 };
    int32_t *n_ctx = &o->worker.session.n_ctx;
    if (*n_ctx == 0)
        *n_ctx = info->n_ctx_train < CONTEXT_MOST ? info->n_ctx_train : CONTEXT_MOST;
    if (a->v[OPT_CTX_SIZE].given)
        note_context(*n_ctx, info);
}

/* The signals that stop the server reach the thread that waits for them, and no other. */
static void hold_signals(sigset_t *before) {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigaddset(&held, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

/* The address, for a script that reads it; before it, for people, what memory there must be. */
static int print_address(const server *s, const char *host) {
    const bool is_v6 = strchr(host, ':') != NULL;
    const worker_memory memory = server_memory(s);
    cli_note("memory: %.1f MiB once it has answered and %.1f MiB for caches of records, at most "
             "%.1f MiB while it draws", (double)memory.idle / 0x1p20,
             (double)memory.kept / 0x1p20, (double)memory.most / 0x1p20);
    const int n = printf("http://%s%s%s:%d\n", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                         server_port(s));
    if (n < 0 || fflush(stdout) != 0)
        return cli_fail(CLI_FAILED, "cannot write the address to standard output");
    return CLI_OK;
}

/* The file of --tokens; NULL without it. */
static int read_principals(const args *a, principals **p) {
    char *text;
    size_t n_bytes;
    dpi_error err;
    *p = NULL;
    if (!a->v[OPT_PRINCIPALS].given)
        return CLI_OK;
    const char *path = a->v[OPT_PRINCIPALS].s;
    const int code = cli_read_text("tokens", path, TOKENS_BYTES_MAX, &text, &n_bytes);
    if (code != CLI_OK)
        return code;
    const dpi_status status = principals_parse(path, text, n_bytes, p, &err);
    dpi_private_free(text);
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_USAGE, &err);
}

/* Until a signal. */
static int serve(server_options *o, const sigset_t *before) {
    server *s = NULL;
    dpi_error err;
    const dpi_status status = server_open(o, &s, &err);
    int code = status == DPI_STATUS_OK ? print_address(s, o->host)
               : cli_fail_option(server_refused_records(s)   ? CLI_RECORDS
                                 : status == DPI_STATUS_ARG ? CLI_USAGE
                                                            : CLI_FAILED, &err);
    while (code == CLI_OK && !signals_stop())
        sigsuspend(before);
    pthread_sigmask(SIG_SETMASK, before, NULL); /* a second one ends the program at once */
    server_close(s);
    return code;
}

int serve_main(const args *a) {
    server_options o;
    serve_config config = {0};
    principals *p = NULL;
    dpi_model *model = NULL;
    dpi_model_info info;
    sigset_t before;
    settle_heaps();
    int code = read_server_options(a, &config, &o);
    if (code == CLI_OK)
        code = read_principals(a, &p);
    const dpi_model_options options = options_model(a);
    if (code == CLI_OK)
        code = cli_open_model(a->model, &options, &model, &info);
    if (code == CLI_OK) {
        settle_context(a, &info, &o);
        o.worker.model = model;
        o.principals = p;
        signals_catch();
        hold_signals(&before);
        code = serve(&o, &before);
    }
    dpi_model_close(model);
    principals_free(p);
    serve_config_free(&config);
    return code;
}
