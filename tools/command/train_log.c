/* train_log.c - see train_log.h. */
#include "tools/command/train_log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/terminal/output.h"

static const char header[] = "step,tokens,loss,heldout_loss,lr,grad_norm,tokens_per_second\n";

/* Copies the lines up to `step`; the tokens of the last one are where the count goes on. */
static int copy_lines(FILE *from, output *to, int64_t step, int64_t *total_tokens) {
    char line[256];
    int code = CLI_OK;
    while (code == CLI_OK && fgets(line, sizeof line, from)) {
        char *end;
        long long at = strtoll(line, &end, 10);
        if (end == line || *end != ',' || at > step)
            continue;
        *total_tokens = strtoll(end + 1, NULL, 10);
        code = output_write(to, line, strlen(line));
    }
    return ferror(from) ? cli_fail(CLI_FAILED, "cannot read %s: %s", to->name, strerror(errno))
                        : code;
}

/* The lines that stay, in a new file. */
static int begin_file(train_log *log, const char *path, int64_t step) {
    output o;
    int code = output_open(&o, path, true);
    if (code != CLI_OK)
        return code;
    FILE *old = step > 0 ? fopen(path, "re") : NULL;
    code = output_write(&o, header, sizeof header - 1);
    if (code == CLI_OK && old)
        code = copy_lines(old, &o, step, &log->total_tokens);
    if (old)
        fclose(old);
    return output_finish(&o, code == CLI_OK ? OUTPUT_APPEARS : OUTPUT_DROPPED, code);
}

int train_log_open(train_log *log, const char *checkpoint, int64_t step) {
    char path[DPI_TRAIN_PATH + 8];
    struct stat st;
    *log = (train_log){0};
    snprintf(path, sizeof path, "%s.csv", checkpoint);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return cli_fail(CLI_FAILED, "cannot write %s: it is not a regular file", path);
    const int code = begin_file(log, path, step);
    if (code == CLI_OK && !(log->file = fopen(path, "ae")))
        return cli_fail(CLI_FAILED, "cannot write %s: %s", path, strerror(errno));
    return code;
}

void train_log_step(train_log *log, const dpi_train_progress *p, int64_t every) {
    log->n_steps++;
    log->n_tokens += p->n_tokens;
    log->total_tokens += p->n_tokens;
    log->loss += p->loss;
    log->seconds += p->seconds;
    bool evaluated = !isnan(p->heldout_loss);
    if (p->step % every != 0 && p->step != p->steps && !evaluated)
        return;
    fprintf(log->file, "%lld,%lld,%.5f,", (long long)p->step, (long long)log->total_tokens,
            log->loss / (double)log->n_steps);
    if (evaluated)
        fprintf(log->file, "%.5f", p->heldout_loss);
    fprintf(log->file, ",%.4e,%.4f,%.0f\n", p->lr, p->grad_norm,
            (double)log->n_tokens / log->seconds);
    fflush(log->file);
    log->n_steps = log->n_tokens = 0;
    log->loss = log->seconds = 0;
}

bool train_log_close(train_log *log) {
    bool failed = ferror(log->file);
    return fclose(log->file) == 0 && !failed;
}
