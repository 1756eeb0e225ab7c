/* serve.c - see cmd_serve.h. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "serve/server.h"
#include "tools/cmd_serve.h"
#include "tools/release_options.h"
#include "tools/signals.h"

static int read_server_options(const args *a, server_options *o) {
    dpi_error err;
    *o = (server_options){.host = a->v[OPT_HOST].s, .port = (int)a->v[OPT_PORT].i,
                          .n_tokens = (int32_t)a->v[OPT_MAX_TOKENS].i};
    o->worker.n_parallel = (int32_t)a->v[OPT_AT_A_TIME].i;
    o->worker.n_waiting = (int32_t)a->v[OPT_WAITING].i;
    const int code = read_session_options(a, &o->worker.session);
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

/* The address, for a script that reads it. */
static int print_address(const server *s, const char *host) {
    const bool is_v6 = strchr(host, ':') != NULL;
    const int n = printf("http://%s%s%s:%d\n", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                         server_port(s));
    if (n < 0 || fflush(stdout) != 0)
        return cli_fail(CLI_FAILED, "cannot write the address to standard output");
    return CLI_OK;
}

int serve_main(const args *a) {
    server_options o;
    server *s = NULL;
    dpi_model *model = NULL;
    dpi_model_info info;
    dpi_error err;
    sigset_t before;
    int code = read_server_options(a, &o);
    if (code != CLI_OK)
        return code;
    const dpi_model_options options = options_model(a);
    code = cli_open_model(a->model, &options, &model, &info);
    if (code != CLI_OK)
        return code;
    settle_context(a, &info, &o);
    o.worker.model = model;
    signals_catch();
    hold_signals(&before);
    const dpi_status status = server_open(&o, &s, &err);
    if (status != DPI_STATUS_OK)
        code = cli_fail_library(status == DPI_STATUS_ARG ? CLI_USAGE : CLI_FAILED, &err);
    else
        code = print_address(s, o.host);
    while (code == CLI_OK && !signals_stop())
        sigsuspend(&before);
    /* A second signal ends the program at once. */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    server_close(s);
    dpi_model_close(model);
    return code;
}
