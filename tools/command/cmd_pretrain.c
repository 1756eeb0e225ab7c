/* cmd_pretrain.c - `dpinfer pretrain`: a small model from scratch. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dpinfer/bench.h"
#include "tools/command/commands.h"
#include "tools/command/train_log.h"
#include "tools/options/paths.h"
#include "tools/terminal/output.h"
#include "tools/terminal/signals.h"

enum { LOG_STEPS = 10 }; /* to a line of the loss curve, and of progress that is not a screen */

typedef struct monitor {
    train_log log;
    bool quiet, screen;
    double peak;         /* f32 operations per second of the machine */
    double speed, share; /* steps per second and share of peak, smoothed */
} monitor;

/* ---- Progress -------------------------------------------------------------------------------- */

static void smooth(double *mean, double value) {
    *mean = *mean > 0 ? 0.95 * *mean + 0.05 * value : value;
}

static void show_step(monitor *m, const dpi_train_progress *p) {
    bool evaluated = !isnan(p->heldout_loss);
    smooth(&m->speed, 1 / p->seconds);
    smooth(&m->share, p->operations / p->seconds / m->peak);
    if (!m->screen && !evaluated && !p->saved && p->step % LOG_STEPS != 0)
        return;
    int left = (int)((double)(p->steps - p->step) / m->speed);
    fprintf(stderr, "%sstep %lld/%lld  loss %.4f  lr %.2e  norm %.2f  %.0f tokens/s  "
                    "%.0f %% of peak  %d:%02d:%02d left  ",
            m->screen ? "\r" : "", (long long)p->step, (long long)p->steps, p->loss, p->lr,
            p->grad_norm, (double)p->n_tokens * m->speed, 100 * m->share, left / 3600,
            left / 60 % 60, left % 60);
    if (evaluated)
        fprintf(stderr, "held-out %.4f  ", p->heldout_loss);
    if (p->saved)
        fputs("saved", stderr);
    if (!m->screen || evaluated)
        fputc('\n', stderr);
}

static void on_step(void *user, const dpi_train_progress *p) {
    monitor *m = user;
    train_log_step(&m->log, p, LOG_STEPS);
    if (!m->quiet)
        show_step(m, p);
}

static void show_info(const dpi_train_info *i) {
    cli_note("%lld examples (%lld longer than the context left out), %lld positions in %lld rows",
             (long long)i->n_examples, (long long)i->n_too_long, (long long)i->n_tokens,
             (long long)i->n_rows);
    cli_note("%.2f million parameters, vocabulary %d, %d threads, steps %lld to %lld",
             (double)i->n_params / 1e6, (int)i->n_vocab, (int)i->threads, (long long)i->step + 1,
             (long long)i->steps);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int fail(const dpi_error *err) {
    switch (err->code) {
    case DPI_STATUS_ARG: return cli_fail_library(CLI_USAGE, err);
    case DPI_STATUS_CANCELLED: cli_fail_library(CLI_FAILED, err); return signals_code();
    default: return cli_fail_library(CLI_FAILED, err);
    }
}

static int finish(dpi_train *train, const dpi_train_config *config, const dpi_train_info *info) {
    dpi_error err;
    if (info->n_heldout > 0) {
        double loss;
        int64_t n_tokens;
        if (dpi_train_evaluate(train, 0, &loss, &n_tokens, &err) != DPI_STATUS_OK)
            return fail(&err);
        cli_note("held-out loss %.4f, perplexity %.3f, on %lld tokens of %lld answers", loss,
                 exp(loss), (long long)n_tokens, (long long)info->n_heldout);
    }
    if (!config->output[0])
        return CLI_OK;
    if (dpi_train_export(train, config->output, config->output_type, &err) != DPI_STATUS_OK)
        return fail(&err);
    cli_note("wrote %s (%s)", config->output, config->output_type);
    return CLI_OK;
}

static int measure(monitor *m, const dpi_train_info *info) {
    dpi_machine machine;
    dpi_machine_init(&machine);
    dpi_error err;
    if (dpi_machine_measure(info->threads, DPI_ISA_AUTO, &machine, &err) != DPI_STATUS_OK)
        return fail(&err);
    m->peak = machine.f32_ops_per_second;
    cli_note("the machine does %.0f billion f32 operations a second at best", m->peak / 1e9);
    return CLI_OK;
}

static int train_model(dpi_train *train, const dpi_train_config *config, const args *a) {
    dpi_train_info info;
    dpi_train_info_init(&info);
    dpi_error err;
    monitor m = {.quiet = a->v[OPT_QUIET].i != 0, .screen = isatty(STDERR_FILENO) != 0};
    if (dpi_train_info_get(train, &info, &err) != DPI_STATUS_OK)
        return fail(&err);
    if (!m.quiet) {
        show_info(&info);
        int code = measure(&m, &info);
        if (code != CLI_OK)
            return code;
    }
    const int code = train_log_open(&m.log, config->checkpoint, info.step);
    if (code != CLI_OK)
        return code;
    dpi_train_hooks hooks = {sizeof hooks, on_step, signals_cancel, &m};
    dpi_status status = dpi_train_run(train, &hooks, &err);
    bool logged = train_log_close(&m.log);
    if (status != DPI_STATUS_OK)
        return fail(&err);
    if (!logged)
        return cli_fail(CLI_FAILED, "cannot write %s.csv: %s", config->checkpoint, strerror(errno));
    return finish(train, config, &info);
}

/* A checkpoint, and with it its curve, is there to be replaced; other files are as with any
 * command. */
static int check_files(const args *a, const dpi_train_config *config) {
    char curve[DPI_TRAIN_PATH + 8];
    paths p = {0};
    paths_options(&p, a);
    paths_read(&p, a->positional[0]);
    for (int i = 0; i < DPI_TRAIN_FILES; i++)
        paths_read(&p, config->data[i][0] ? config->data[i] : NULL);
    paths_read(&p, config->heldout[0] ? config->heldout : NULL);
    paths_read(&p, config->vocab);
    paths_write(&p, "output", config->output[0] ? config->output : NULL);
    snprintf(curve, sizeof curve, "%s.csv", config->checkpoint);
    const bool goes_on = access(config->checkpoint, F_OK) == 0;
    if (!goes_on)
        paths_write(&p, "the loss curve", curve);
    const int code = paths_check(&p, a->v[OPT_OVERWRITE].i);
    paths_write(&p, "checkpoint", config->checkpoint);
    if (goes_on)
        paths_write(&p, "the loss curve", curve);
    return code == CLI_OK ? paths_check(&p, true) : code;
}

static int pretrain_main(const args *a) {
    if (a->n_positional < 1)
        return cli_fail(CLI_USAGE, "no CONFIG given; see 'dpinfer pretrain -h'");
    signals_catch();
    dpi_train_config config;
    dpi_train *train;
    dpi_error err;
    dpi_train_config_init(&config);
    if (dpi_train_config_read(a->positional[0], &config, &err) != DPI_STATUS_OK)
        return cli_fail_library(CLI_USAGE, &err);
    int code = check_files(a, &config);
    if (code != CLI_OK)
        return code;
    output_tell_leftovers(config.checkpoint);
    if (config.output[0])
        output_tell_leftovers(config.output);
    if (dpi_train_create(&config, &train, &err) != DPI_STATUS_OK)
        return fail(&err);
    code = train_model(train, &config, a);
    dpi_train_free(train);
    return code;
}

const command command_pretrain = {
    .name = "pretrain", .bit = CMD_PRETRAIN, .arguments = "CONFIG", .max_positional = 1,
    .run = pretrain_main,
    .summary = "train a small model from scratch",
    .details =
        "CONFIG holds key = value lines; models/dpinfer-4m.conf explains them. The run is resumed\n"
        "from its checkpoint if there is one, and stopped with a checkpoint by SIGINT, SIGTERM,\n"
        "SIGHUP or SIGUSR1.\n"
        "The loss curve goes to CHECKPOINT.csv. At the end the model is written to `output`. The\n"
        "text is assumed to be public: training gives NO PRIVACY.\n",
};
