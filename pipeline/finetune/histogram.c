/* histogram.c - how many units have each label, with noise: a part of what is released. One unit
 * more or less moves one count by 1; the noise is discrete Laplace noise (dp/PRIVACY.md section
 * 17). */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "dp/exact/noise.h"
#include "dpinfer/memory.h"
#include "pipeline/finetune/finetune.h"

int32_t dpi_finetune_histogram_scale(const dpi_claim *c) {
    const dpi_claim_part *p = dpi_claim_find(c, "label_counts");
    return p ? (int32_t)p->values[0] : 0;
}

double dpi_finetune_histogram_epsilon(const dpi_claim *c) {
    const int32_t scale = dpi_finetune_histogram_scale(c);
    return scale > 0 ? nextafter(1.0 / scale, INFINITY) : 0;
}

int32_t dpi_finetune_count_size(const dpi_finetune *f) {
    return dpi_finetune_histogram_scale(&f->claim) > 0 ? 1 + f->instructions.n : 0;
}

/* What is far beyond any number of units is cut. */
static int32_t cut(int64_t count) {
    const int64_t most = 1 << 30;
    return (int32_t)(count < -most ? -most : count > most ? most : count);
}

static dpi_status draw(dpi_finetune *f, int64_t *counts, dpi_error *err) {
    const bool seeded = f->options.seeded != 0;
    const int32_t n = f->instructions.n;
    dpi_examples_count(&f->examples, counts);
    for (int32_t i = 0; i < n; i++) {
        int64_t noise;
        DPI_TRY(dpi_noise_laplace(dpi_finetune_histogram_scale(&f->claim),
                                  seeded ? dpi_random_insecure : NULL,
                                  seeded ? &f->bits : NULL, &noise, err));
        counts[i] += noise;
    }
    for (int32_t i = 0; i < n; i++)
        f->counts[1 + i] = cut(counts[i]);
    f->counts[0] = 1;
    f->bits &= INT64_MAX; /* as the checkpoint keeps it */
    return DPI_STATUS_OK;
}

/* Rank 0 alone. */
dpi_status dpi_finetune_draw_counts(dpi_finetune *f, bool *drawn, dpi_error *err) {
    const dpi_train_ranks *ranks = f->options.ranks;
    const size_t n_bytes = (size_t)f->instructions.n * sizeof(int64_t);
    *drawn = false;
    if (!f->counts || f->counts[0] || (ranks && ranks->index > 0))
        return DPI_STATUS_OK;
    int64_t *counts = dpi_private_malloc(n_bytes);
    if (!counts)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for the numbers of units");
    const dpi_status status = draw(f, counts, err);
    dpi_private_free(counts);
    *drawn = status == DPI_STATUS_OK;
    return status;
}
