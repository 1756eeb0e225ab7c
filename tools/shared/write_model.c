/* write_model.c - see write_model.h. */
#include "tools/shared/write_model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/options/paths.h"
#include "tools/terminal/signals.h"

static void show_progress(void *user, int64_t n_done, int64_t n_weights) {
    (void)user;
    double percent = n_weights > 0 ? 100.0 * (double)n_done / (double)n_weights : 100;
    fprintf(stderr, "\r%3.0f %% of %.2f billion weights", percent, (double)n_weights / 1e9);
}

int write_model_begin(const args *a, const char *path, const char *type, model_output *m) {
    paths p = {0};
    signals_catch();
    paths_options(&p, a);
    if (!a->v[OPT_OUTPUT].given)
        paths_write(&p, "OUT", path);
    if (!output_is_file(path))
        return cli_fail(CLI_USAGE, "a model is written to a file; found '%s'%s", path,
                        strcmp(path, "-") == 0 ? ", standard output" : "");
    int code = paths_check(&p, a->v[OPT_OVERWRITE].i);
    if (code == CLI_OK)
        code = output_open(&m->file, path, a->v[OPT_OVERWRITE].i);
    dpi_write_options_init(&m->options);
    m->options.type = type;
    m->options.fd = m->file.fd;
    m->options.n_threads = (int32_t)a->v[OPT_THREADS].i;
    m->options.cancel = signals_cancel;
    if (!a->v[OPT_QUIET].i && isatty(STDERR_FILENO))
        m->options.on_progress = show_progress;
    return code;
}

static int code_of(dpi_status status, const dpi_error *err) {
    switch (status) {
    case DPI_STATUS_OK: return CLI_OK;
    case DPI_STATUS_ARG: return cli_fail_option(CLI_USAGE, err);
    case DPI_STATUS_IO: /* of the input: the output is written to an open file */
    case DPI_STATUS_FORMAT:
    case DPI_STATUS_UNSUPPORTED:
    case DPI_STATUS_NUMERIC: return cli_fail_library(CLI_MODEL, err);
    case DPI_STATUS_CANCELLED:
        return cli_fail(128 + signals_stop(), "stopped; nothing was written");
    default: return cli_fail_library(CLI_FAILED, err);
    }
}

int write_model_end(model_output *m, dpi_status status, const dpi_error *err) {
    if (m->options.on_progress)
        fputc('\n', stderr);
    const int code = code_of(status, err);
    return output_finish(&m->file, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
}
