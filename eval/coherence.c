/* coherence.c - see coherence.h. */
#include "eval/coherence.h"

#include <math.h>
#include <string.h>

#include "dpinfer/memory.h"
#include "eval/fail.h"
#include "eval/intervals.h"

static const float *vector_at(const eval_vectors *v, int32_t i) {
    return v->at + (size_t)(v->n == 1 ? 0 : i) * (size_t)v->dim;
}

static double cosine(const float *x, const float *y, int32_t dim) {
    double xy = 0, xx = 0, yy = 0;
    for (int32_t d = 0; d < dim; d++) {
        xy += (double)x[d] * (double)y[d];
        xx += (double)x[d] * (double)x[d];
        yy += (double)y[d] * (double)y[d];
    }
    return xx > 0 && yy > 0 ? fmin(fmax(xy / sqrt(xx * yy), -1), 1) : 0;
}

dpi_status eval_measure_coherence(evaluation *e, const eval_vectors *texts,
                                  const eval_vectors *prompts, dpi_error *err) {
    const int32_t n = texts->n, dim = texts->dim;
    if ((prompts->n != 1 && prompts->n != n) || prompts->dim != dim)
        return eval_fail(err, DPI_STATUS_ARG,
                         "vectors of prompts: found %d of %d numbers, allowed "
                         "1 or %d of %d, as of the texts",
                         (int)prompts->n, (int)prompts->dim, (int)n, (int)dim);
    double *own = dpi_private_malloc(((size_t)n + 1) * sizeof *own);
    double *other = dpi_private_malloc(((size_t)n + 1) * sizeof *other);
    dpi_status status = own && other ? DPI_STATUS_OK : eval_no_memory(err, "coherence");
    for (int32_t i = 0; i < n && status == DPI_STATUS_OK; i++) {
        own[i] = cosine(vector_at(texts, i), vector_at(prompts, i), dim);
        other[i] = cosine(vector_at(texts, i), vector_at(prompts, (i + 1) % n), dim);
    }
    if (status == DPI_STATUS_OK)
        status = eval_add_mean(e, "coherence", "coherence", "cosine of a text and its prompt, mean",
                               own, n, err);
    if (status == DPI_STATUS_OK && prompts->n > 1)
        status = eval_add_mean(e, "coherence", "coherence_other",
                               "the same of a text and the prompt of another one", other, n, err);
    dpi_private_free(own);
    dpi_private_free(other);
    return status;
}

/* The vectors of pairs in the order of the texts, into a and b [n]; how many. */
static int32_t pair_up(const eval_texts *texts, const eval_vectors *of_texts,
                       const eval_texts *prompts, const eval_vectors *of_prompts, float *a,
                       float *b) {
    const size_t dim = (size_t)of_texts->dim;
    int32_t n = 0;
    for (int32_t i = 0, k = 0; i < texts->n; i++) {
        while (k < prompts->n && prompts->at[k].record < texts->at[i].record)
            k++;
        if (k == prompts->n || prompts->at[k].record != texts->at[i].record)
            continue;
        memcpy(a + (size_t)n * dim, of_texts->at + (size_t)i * dim, dim * sizeof *a);
        memcpy(b + (size_t)n * dim, of_prompts->at + (size_t)k * dim, dim * sizeof *b);
        n++;
    }
    return n;
}

dpi_status eval_measure_prompts(evaluation *e, const eval_texts *texts,
                                const eval_vectors *of_texts, const eval_texts *prompts,
                                const eval_vectors *of_prompts, dpi_error *err) {
    const int32_t n_texts = texts->n + texts->n_null, n_prompts = prompts->n + prompts->n_null;
    if (n_prompts == 1 && prompts->n == 1)
        return eval_measure_coherence(e, of_texts, of_prompts, err);
    if (n_prompts != n_texts)
        return eval_fail(err, DPI_STATUS_ARG,
                         "prompts: found %d, allowed 1 or %d, as many as "
                         "synthetic texts",
                         (int)n_prompts, (int)n_texts);
    const size_t n_bytes = ((size_t)texts->n * (size_t)of_texts->dim + 1) * sizeof(float);
    eval_vectors a = {dpi_private_malloc(n_bytes), 0, of_texts->dim};
    eval_vectors b = {dpi_private_malloc(n_bytes), 0, of_prompts->dim};
    dpi_status status = a.at && b.at ? DPI_STATUS_OK : eval_no_memory(err, "coherence");
    if (status == DPI_STATUS_OK)
        a.n = b.n = pair_up(texts, of_texts, prompts, of_prompts, a.at, b.at);
    if (status == DPI_STATUS_OK && a.n > 0)
        status = eval_measure_coherence(e, &a, &b, err);
    dpi_private_free(a.at);
    dpi_private_free(b.at);
    return status;
}
