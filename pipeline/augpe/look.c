/* look.c - features: where a text stands among others. */
#include <math.h>

#include "base/status.h"
#include "dpinfer/memory.h"
#include "pipeline/augpe/augpe.h"

static void set_none(float *features, int32_t n) {
    for (int32_t k = 0; k < n; k++)
        features[k] = NAN;
}

dpi_status dpi_augpe_look(dpi_augpe *f, const char *text, size_t n_bytes, float *features,
                          dpi_error *err) {
    int32_t *tokens = NULL;
    size_t n_tokens = 0;
    set_none(features, f->n_embd);
    DPI_TRY(dpi_prompts_encode(f->prompts, text, n_bytes, &tokens, &n_tokens, err));
    if (!tokens)
        return DPI_STATUS_OK;
    dpi_session_reset(f->look, 0);
    dpi_status status = dpi_session_prefill(f->look, 0, tokens, n_tokens, NULL, err);
    if (status == DPI_STATUS_OK)
        status = dpi_session_features(f->look, 0, features, err);
    dpi_session_reset(f->look, 0);
    dpi_private_free(tokens);
    return status;
}

static bool is_finite(const float *features, int32_t n) {
    bool finite = true;
    for (int32_t k = 0; k < n; k++)
        finite &= isfinite(features[k]) != 0;
    return finite;
}

/* The mean of those of its variations that have features. */
static dpi_status look_ahead(dpi_augpe *f, int32_t i, float *features, dpi_error *err) {
    const int32_t K = f->options.n_lookahead, n = f->n_embd;
    const dpi_text *ahead = &f->ahead[(size_t)(i - dpi_augpe_first_new(f)) * (size_t)K];
    double *sum = dpi_private_malloc((size_t)n * sizeof *sum);
    int32_t n_seen = 0;
    dpi_status status = sum ? DPI_STATUS_OK : dpi_no_memory(err, "features");
    for (int32_t k = 0; k < n && sum; k++)
        sum[k] = 0;
    for (int32_t j = 0; j < K && status == DPI_STATUS_OK; j++) {
        status = dpi_augpe_look(f, ahead[j].data ? ahead[j].data : "", ahead[j].n_bytes, features,
                                err);
        if (status != DPI_STATUS_OK || !is_finite(features, n))
            continue;
        for (int32_t k = 0; k < n; k++)
            sum[k] += (double)features[k];
        n_seen++;
    }
    for (int32_t k = 0; k < n && status == DPI_STATUS_OK; k++)
        features[k] = n_seen > 0 ? (float)(sum[k] / n_seen) : NAN;
    dpi_private_free(sum);
    return status;
}

dpi_status dpi_augpe_look_at(dpi_augpe *f, int32_t i, dpi_error *err) {
    float *features = f->features + (size_t)i * (size_t)f->n_embd;
    const dpi_text *text = &f->candidates[i];
    DPI_TRY(f->options.n_lookahead > 0
                ? look_ahead(f, i, features, err)
                : dpi_augpe_look(f, text->data ? text->data : "", text->n_bytes, features, err));
    f->usable[i] = is_finite(features, f->n_embd);
    return DPI_STATUS_OK;
}

/* ---- Records --------------------------------------------------------------------------------- */

static dpi_status read_one(dpi_augpe *f, size_t i, dpi_error *err) {
    char *text = NULL;
    size_t n_bytes = 0;
    DPI_TRY(dpi_records_read(f->options.records, i, &text, &n_bytes, err));
    const dpi_status status =
        text ? dpi_augpe_look(f, text, n_bytes, f->records + i * (size_t)f->n_embd, err)
             : DPI_STATUS_OK;
    dpi_private_free(text);
    return status;
}

/* The first records of each unit that pays: all others stay null. */
dpi_status dpi_augpe_read_records(dpi_augpe *f, dpi_error *err) {
    const dpi_records *records = f->options.records;
    const size_t n_units = dpi_records_unit_count(records), dim = (size_t)f->n_embd;
    const size_t M = f->claim.max_per_unit > 0 ? (size_t)f->claim.max_per_unit : 1;
    f->n_records = dpi_records_count(records);
    f->records = dpi_private_malloc((f->n_records * dim + 1) * sizeof *f->records);
    if (!f->records)
        return dpi_no_memory(err, "the features of records");
    for (size_t i = 0; i < f->n_records; i++)
        set_none(f->records + i * dim, f->n_embd);
    for (size_t unit = 0; unit < n_units; unit++)
        for (size_t k = 0; k < M && (!f->pays || f->pays[unit]); k++) {
            const size_t i = dpi_records_of_unit(records, unit, k);
            if (dpi_augpe_is_cancelled(f))
                return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while records are read");
            if (i == SIZE_MAX)
                break;
            DPI_TRY(read_one(f, i, err));
        }
    return DPI_STATUS_OK;
}
