/* write_model.c - see write_model.h. */
#include "tools/write_model.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) { stop_signal = number; }

static int32_t is_cancelled(void *user) {
    (void)user;
    return stop_signal != 0;
}

static void show_progress(void *user, int64_t n_done, int64_t n_weights) {
    (void)user;
    double percent = n_weights > 0 ? 100.0 * (double)n_done / (double)n_weights : 100;
    fprintf(stderr, "\r%3.0f %% of %.2f billion weights", percent, (double)n_weights / 1e9);
}

void write_model_options(const args *a, const char *type, dpi_write_options *options) {
    /* A second signal kills. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    dpi_write_options_init(options);
    options->type = type;
    options->n_threads = (int32_t)a->v[OPT_THREADS].i;
    options->cancel = is_cancelled;
    if (!a->v[OPT_QUIET].i && isatty(STDERR_FILENO))
        options->on_progress = show_progress;
}

int write_model_finish(const dpi_write_options *options, dpi_status status, const dpi_error *err) {
    if (options->on_progress)
        fputc('\n', stderr);
    switch (status) {
    case DPI_STATUS_OK: return CLI_OK;
    case DPI_STATUS_ARG: return cli_fail_library(CLI_USAGE, err);
    case DPI_STATUS_FORMAT:
    case DPI_STATUS_UNSUPPORTED:
    case DPI_STATUS_NUMERIC: return cli_fail_library(CLI_MODEL, err);
    case DPI_STATUS_CANCELLED:
        return cli_fail(128 + (int)stop_signal, "stopped; nothing was written");
    default: return cli_fail_library(CLI_FAILED, err);
    }
}
