/* attention.h - causal attention over packed examples, and its gradient, in the type `real`.
 * Internal; a template like ops.h.
 *
 * Query rows go in blocks of ATTN_BLOCK; a block meets the keys up to its own end, so half of
 * the square above the diagonal is never computed. Probabilities are not kept: the gradient
 * computes them again from the log-sum-exp of each row (Dao et al. 2022, algorithm 4).
 */
#ifndef DPI_TRAIN_ATTENTION_H
#define DPI_TRAIN_ATTENTION_H

#include "train/ops.h"

enum { ATTN_BLOCK = 128 };

/* One head of one example of n positions. Rows of q and of its gradient are `stride` apart, those
 * of k and v `kv_stride`, those of the output `out_stride`. */
typedef struct attn_head {
    const dpi_blas *blas;
    const real *q, *k, *v;
    int32_t stride, kv_stride;
    int32_t n, head_dim, head_dim_v; /* of q and k, and of v and the output */
    int32_t out_stride;
    real scale;     /* of scores */
    real cap;       /* scores are cap tanh(scale q k / cap); 0: scale q k */
    int32_t window; /* keys that a row sees, its own included; 0: all before it */
    real temperature; /* the scores of row t are multiplied by 1 + temperature
                         ln(1 + floor(t / n_original)); 0: not */
    int32_t n_original;
} attn_head;

/* What the scores of row t are multiplied by. */
static inline real attn_scale(const attn_head *a, int32_t t) {
    if (!(a->temperature > 0))
        return a->scale;
    return a->scale * (1 + a->temperature * LOG((real)(1 + t / a->n_original)));
}

/* The first key that row t sees. */
static inline int32_t attn_first(const attn_head *a, int32_t t) {
    return a->window > 0 && t >= a->window ? t - a->window + 1 : 0;
}

/* Rows from..from + rows - 1, and the n_keys keys from `first` on that one of them sees. */
typedef struct attn_block {
    int32_t from, rows, first, n_keys;
} attn_block;

static inline attn_block attn_block_at(const attn_head *a, int32_t from) {
    const int32_t end = from + ATTN_BLOCK < a->n ? from + ATTN_BLOCK : a->n;
    const int32_t first = attn_first(a, from);
    return (attn_block){from, end - from, first, end - first};
}

/* scores [rows, n_keys] = q k^T */
static inline void attn_scores(const attn_head *a, attn_block b, real *scores) {
    GEMM(a->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, b.rows, b.n_keys, a->head_dim, 1,
         a->q + (int64_t)b.from * a->stride, a->stride, a->k + (int64_t)b.first * a->kv_stride,
         a->kv_stride, 0, scores, b.n_keys);
}

/* In row t of a block: the keys [*begin, *end) that it sees. x is zero elsewhere. */
static inline void attn_mask(const attn_head *a, attn_block b, int32_t t, real *x, int32_t *begin,
                             int32_t *end) {
    *begin = attn_first(a, b.from + t) - b.first;
    *end = b.from + t + 1 - b.first;
    memset(x, 0, (size_t)*begin * sizeof *x);
    memset(x + *end, 0, (size_t)(b.n_keys - *end) * sizeof *x);
}

/* out = softmax(scores) v; lse[t * lse_stride] = log of the sum of row t. `block`:
 * [ATTN_BLOCK, n]. */
static inline void attn_forward(const attn_head *a, real *out, real *lse, int32_t lse_stride,
                                real *block) {
    for (int32_t from = 0; from < a->n; from += ATTN_BLOCK) {
        const attn_block b = attn_block_at(a, from);
        attn_scores(a, b, block);
        for (int32_t t = 0; t < b.rows; t++) {
            real *p = block + (int64_t)t * b.n_keys, scale = attn_scale(a, from + t), max;
            int32_t begin, end;
            attn_mask(a, b, t, p, &begin, &end);
            for (int32_t j = begin; a->cap > 0 && j < end; j++)
                p[j] = a->cap * TANH(scale * p[j] / a->cap);
            real sum = op_exp_row(p + begin, end - begin, a->cap > 0 ? 1 : scale, &max);
            real inverse = 1 / sum;
            for (int32_t j = begin; j < end; j++)
                p[j] *= inverse;
            lse[(int64_t)(from + t) * lse_stride] = max + LOG(sum);
        }
        GEMM(a->blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, b.rows, a->head_dim_v, b.n_keys, 1, block,
             b.n_keys, a->v + (int64_t)b.first * a->kv_stride, a->kv_stride, 0,
             out + (int64_t)from * a->out_stride, a->out_stride);
    }
}

/* Of n keys: p = exp(score - lse), ds = slope p (dp - dout.out), where p holds q k and ds dp, and
 * slope is the derivative of the score by q k. */
static inline void attn_softmax_grad(const attn_head *a, real *p, real *ds, int32_t n, real scale,
                                     real lse, const real *out, const real *dout) {
    real dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int32_t i = 0; i < a->head_dim_v; i++)
        dot += out[i] * dout[i];
    for (int32_t j = 0; !(a->cap > 0) && j < n; j++) {
        p[j] = op_exp(scale * p[j] - lse);
        ds[j] = scale * p[j] * (ds[j] - dot);
    }
    for (int32_t j = 0; a->cap > 0 && j < n; j++) {
        const real bent = TANH(scale * p[j] / a->cap);
        p[j] = op_exp(a->cap * bent - lse);
        ds[j] = scale * (1 - bent * bent) * p[j] * (ds[j] - dot);
    }
}

/* dq = , dk +=, dv +=: several query heads share keys and values. `out` and `lse` as
 * attn_forward left them; `blocks`: [2, ATTN_BLOCK, n]. */
static inline void attn_backward(const attn_head *a, const real *out, const real *dout,
                                 const real *lse, int32_t lse_stride, real *dq, real *dk, real *dv,
                                 real *blocks) {
    real *p = blocks, *ds = blocks + (int64_t)ATTN_BLOCK * a->n;
    for (int32_t from = 0; from < a->n; from += ATTN_BLOCK) {
        const attn_block b = attn_block_at(a, from);
        const int64_t row = (int64_t)from * a->stride, key = (int64_t)b.first * a->kv_stride;
        const real *o = out + (int64_t)from * a->out_stride;
        const real *d = dout + (int64_t)from * a->out_stride;
        attn_scores(a, b, p);
        GEMM(a->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, b.rows, b.n_keys, a->head_dim_v, 1, d,
             a->out_stride, a->v + key, a->kv_stride, 0, ds, b.n_keys);
        for (int32_t t = 0; t < b.rows; t++) {
            real *of_p = p + (int64_t)t * b.n_keys, *of_ds = ds + (int64_t)t * b.n_keys;
            int32_t begin, end;
            attn_mask(a, b, t, of_p, &begin, &end);
            attn_mask(a, b, t, of_ds, &begin, &end);
            attn_softmax_grad(a, of_p + begin, of_ds + begin, end - begin, attn_scale(a, from + t),
                              lse[(int64_t)(from + t) * lse_stride], o + (int64_t)t * a->out_stride,
                              d + (int64_t)t * a->out_stride);
        }
        GEMM(a->blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, b.n_keys, a->head_dim_v, b.rows, 1, p,
             b.n_keys, d, a->out_stride, 1, dv + key, a->kv_stride);
        GEMM(a->blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, b.n_keys, a->head_dim, b.rows, 1, ds,
             b.n_keys, a->q + row, a->stride, 1, dk + key, a->kv_stride);
        GEMM(a->blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, b.rows, a->head_dim, b.n_keys, 1, ds,
             b.n_keys, a->k + key, a->kv_stride, 0, dq + row, a->stride);
    }
}

#endif
