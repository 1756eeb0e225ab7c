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

/* One head of one example of n positions. Rows of q, k, v and of the gradients are `stride` apart,
 * those of the output `out_stride`. */
typedef struct attn_head {
    const dpi_blas *blas;
    const real *q, *k, *v;
    int32_t stride;
    int32_t n, head_dim, head_dim_v; /* of q and k, and of v and the output */
    int32_t out_stride;
    real scale; /* 1 / sqrt(head_dim) */
} attn_head;

/* scores [rows, n_keys] = q[from ..] k^T */
static inline void attn_scores(const attn_head *a, int32_t from, int32_t rows, int32_t n_keys,
                               real *scores) {
    GEMM(a->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, rows, n_keys, a->head_dim, 1,
         a->q + (int64_t)from * a->stride, a->stride, a->k, a->stride, 0, scores, n_keys);
}

/* out = softmax(scale q k^T) v; lse[t * lse_stride] = log of the sum of row t. `block`:
 * [ATTN_BLOCK, n]. */
static inline void attn_forward(const attn_head *a, real *out, real *lse, int32_t lse_stride,
                                real *block) {
    for (int32_t from = 0; from < a->n; from += ATTN_BLOCK) {
        int32_t end = from + ATTN_BLOCK < a->n ? from + ATTN_BLOCK : a->n, rows = end - from;
        attn_scores(a, from, rows, end, block);
        for (int32_t t = 0; t < rows; t++) {
            real *p = block + (int64_t)t * end, max;
            int32_t n = from + t + 1;
            real sum = op_exp_row(p, n, a->scale, &max), inverse = 1 / sum;
            for (int32_t j = 0; j < n; j++)
                p[j] *= inverse;
            memset(p + n, 0, (size_t)(end - n) * sizeof *p);
            lse[(int64_t)(from + t) * lse_stride] = max + LOG(sum);
        }
        GEMM(a->blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, rows, a->head_dim_v, end, 1, block, end, a->v,
             a->stride, 0, out + (int64_t)from * a->out_stride, a->out_stride);
    }
}

/* p = exp(scale s - lse), ds = scale p (dp - dout.out), where dp is what ds holds. Row t of a block
 * that begins at `from`. */
static inline void attn_softmax_grad(const attn_head *a, real *p, real *ds, int32_t n, int32_t end,
                                     real lse, const real *out, const real *dout) {
    real dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int32_t i = 0; i < a->head_dim_v; i++)
        dot += out[i] * dout[i];
    for (int32_t j = 0; j < n; j++) {
        p[j] = op_exp(a->scale * p[j] - lse);
        ds[j] = a->scale * p[j] * (ds[j] - dot);
    }
    memset(p + n, 0, (size_t)(end - n) * sizeof *p);
    memset(ds + n, 0, (size_t)(end - n) * sizeof *ds);
}

/* dq = , dk +=, dv +=: several query heads share keys and values. `out` and `lse` as
 * attn_forward left them; `blocks`: [2, ATTN_BLOCK, n]. */
static inline void attn_backward(const attn_head *a, const real *out, const real *dout,
                                 const real *lse, int32_t lse_stride, real *dq, real *dk, real *dv,
                                 real *blocks) {
    real *p = blocks, *ds = blocks + (int64_t)ATTN_BLOCK * a->n;
    for (int32_t from = 0; from < a->n; from += ATTN_BLOCK) {
        int32_t end = from + ATTN_BLOCK < a->n ? from + ATTN_BLOCK : a->n, rows = end - from;
        const real *o = out + (int64_t)from * a->out_stride;
        const real *d = dout + (int64_t)from * a->out_stride;
        attn_scores(a, from, rows, end, p);
        GEMM(a->blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, rows, end, a->head_dim_v, 1, d,
             a->out_stride, a->v, a->stride, 0, ds, end);
        for (int32_t t = 0; t < rows; t++)
            attn_softmax_grad(a, p + (int64_t)t * end, ds + (int64_t)t * end, from + t + 1, end,
                              lse[(int64_t)(from + t) * lse_stride], o + (int64_t)t * a->out_stride,
                              d + (int64_t)t * a->out_stride);
        GEMM(a->blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, end, a->head_dim_v, rows, 1, p, end, d,
             a->out_stride, 1, dv, a->stride);
        GEMM(a->blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, end, a->head_dim, rows, 1, ds, end,
             a->q + (int64_t)from * a->stride, a->stride, 1, dk, a->stride);
        GEMM(a->blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, rows, a->head_dim, end, 1, ds, end, a->k,
             a->stride, 0, dq + (int64_t)from * a->stride, a->stride);
    }
}

#endif
