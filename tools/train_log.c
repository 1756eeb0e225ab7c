/* train_log.c - see train_log.h. */
#include "tools/train_log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char header[] = "step,tokens,loss,heldout_loss,lr,grad_norm,tokens_per_second\n";

/* Copies the lines up to `step`; the tokens of the last one are where the count goes on. */
static bool copy_lines(FILE *from, FILE *to, int64_t step, int64_t *total_tokens) {
    char line[256];
    while (fgets(line, sizeof line, from)) {
        char *end;
        long long at = strtoll(line, &end, 10);
        if (end == line || *end != ',' || at > step)
            continue;
        *total_tokens = strtoll(end + 1, NULL, 10);
        if (fputs(line, to) < 0)
            return false;
    }
    return !ferror(from);
}

bool train_log_open(train_log *log, const char *checkpoint, int64_t step) {
    char path[DPI_TRAIN_PATH + 8], fresh[DPI_TRAIN_PATH + 16];
    snprintf(path, sizeof path, "%s.csv", checkpoint);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    *log = (train_log){.file = fopen(fresh, "we")};
    if (!log->file)
        return false;
    FILE *old = step > 0 ? fopen(path, "re") : NULL;
    bool ok = fputs(header, log->file) >= 0;
    ok = ok && (!old || copy_lines(old, log->file, step, &log->total_tokens));
    if (old)
        fclose(old);
    ok = ok && fflush(log->file) == 0 && rename(fresh, path) == 0;
    int reason = errno;
    if (!ok)
        fclose(log->file);
    errno = reason;
    return ok;
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
