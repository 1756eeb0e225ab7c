/* ops.h - the operators of the graph and their gradients, in the type `real`. Internal; a template:
 * included by graph_tmpl.h, in one translation unit for each type and instruction set, and by the
 * test of gradients, which holds each of them to finite differences.
 *
 * Rows are positions. Sums over a row are written as `omp simd` reductions, which lets the compiler
 * reorder these sums and nothing else.
 */
#ifndef DPI_TRAIN_OPS_H
#define DPI_TRAIN_OPS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/gemm.h"

#ifdef DPI_TRAIN_F64
typedef double real;
#define GEMM(blas, ...) (blas)->dgemm(DPI_BLAS_ROW_MAJOR, __VA_ARGS__)
#define SQRT sqrt
#define LOG log
#define TANH tanh
#else
typedef float real;
#define GEMM(blas, ...) (blas)->sgemm(DPI_BLAS_ROW_MAJOR, __VA_ARGS__)
#define SQRT sqrtf
#define LOG logf
#define TANH tanhf
#endif

/* ---- exp ----------------------------------------------------------------------------------- */

#ifdef DPI_TRAIN_F64
static inline real op_exp(real x) { return exp(x); }
#else
/* x = k ln2 + r, |r| <= ln2 / 2, degree-6 Taylor in r: relative error below 4e-7. No branches
 * and no calls, so that loops over it become vector code. Clamped to -87..88. */
static inline real op_exp(real x) {
    const float shifter = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float k = (x * 1.44269504f + shifter) - shifter;
    float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    union {
        int32_t i;
        float f;
    } power = {.i = ((int32_t)k + 127) * (1 << 23)};
    return p * power.f;
}
#endif

/* ---- Linear layers ------------------------------------------------------------------------- */

/* y [rows, n_out] = x [rows, n_in] W^T, plus y if `add`. Rows of y are `stride` apart. */
static inline void op_linear(const dpi_blas *blas, real *y, int32_t stride, const real *x,
                             const real *w, int32_t rows, int32_t n_in, int32_t n_out, int add) {
    GEMM(blas, DPI_BLAS_PLAIN, DPI_BLAS_TRANSPOSED, rows, n_out, n_in, 1, x, n_in, w, n_in, add, y,
         stride);
}

/* dx [rows, n_in] = dy [rows, n_out] W, plus dx if `add`. Rows of dy are `stride` apart. */
static inline void op_linear_dx(const dpi_blas *blas, real *dx, const real *dy, int32_t stride,
                                const real *w, int32_t rows, int32_t n_in, int32_t n_out,
                                int add) {
    GEMM(blas, DPI_BLAS_PLAIN, DPI_BLAS_PLAIN, rows, n_in, n_out, 1, dy, stride, w, n_in, add, dx,
         n_in);
}

/* dW [n_out, n_in] = dy^T x, plus dW if `add`. */
static inline void op_linear_dw(const dpi_blas *blas, real *dw, const real *dy, const real *x,
                                int32_t rows, int32_t n_in, int32_t n_out, int add) {
    GEMM(blas, DPI_BLAS_TRANSPOSED, DPI_BLAS_PLAIN, n_out, n_in, rows, 1, dy, n_out, x, n_in, add,
         dw, n_in);
}

/* y [rows, n] += bias [n]. Its gradient by y is that of y. */
static inline void op_add_bias(real *y, const float *bias, int32_t rows, int32_t n) {
    for (int32_t t = 0; t < rows; t++, y += n)
        for (int32_t i = 0; i < n; i++)
            y[i] += (real)bias[i];
}

/* ---- RMSNorm ------------------------------------------------------------------------------- */

/* y = x w r, r = 1 / sqrt(mean(x^2) + eps); r [rows] is kept for the gradient. */
static inline void op_rmsnorm(real *y, real *r, const real *x, const real *w, int32_t rows,
                              int32_t n, float eps) {
    for (int32_t t = 0; t < rows; t++, x += n, y += n) {
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t i = 0; i < n; i++)
            sum += x[i] * x[i];
        real scale = 1 / SQRT(sum / (real)n + (real)eps);
        r[t] = scale;
        for (int32_t i = 0; i < n; i++)
            y[i] = x[i] * scale * w[i];
    }
}

/* dx += r (w dy) - x r^3 / n sum(w dy x); dw += dy x r */
static inline void op_rmsnorm_grad(real *dx, real *dw, const real *dy, const real *x, const real *w,
                                   const real *r, int32_t rows, int32_t n) {
    for (int32_t t = 0; t < rows; t++, x += n, dy += n, dx += n) {
        real scale = r[t], sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t i = 0; i < n; i++)
            sum += w[i] * dy[i] * x[i];
        real pull = sum * scale * scale * scale / (real)n;
        for (int32_t i = 0; i < n; i++) {
            dx[i] += scale * w[i] * dy[i] - pull * x[i];
            dw[i] += dy[i] * x[i] * scale;
        }
    }
}

/* ---- RoPE ---------------------------------------------------------------------------------- */

/* Which dimensions of a head turn together: n pairs (step i, step i + apart). */
typedef struct op_pairs {
    int32_t n, step, apart;
} op_pairs;

/* Rotates the pairs of n_head heads of each row by the angle of the row's position, in place.
 * Cosines and sines [context, pairs.n, 2]. sign -1 turns back; with cosines and sines that have a
 * magnitude, too, it is the gradient. */
static inline void op_rope(real *x, int32_t stride, const real *cs, const int32_t *begins,
                           int32_t n_segments, int32_t n_head, int32_t head_dim, op_pairs pairs,
                           real sign) {
    for (int32_t s = 0; s < n_segments; s++)
        for (int32_t t = begins[s]; t < begins[s + 1]; t++) {
            const real *c = cs + (int64_t)(t - begins[s]) * 2 * pairs.n;
            for (int32_t h = 0; h < n_head; h++) {
                real *v = x + (int64_t)t * stride + h * head_dim, *w = v + pairs.apart;
                for (int32_t i = 0; i < pairs.n; i++) {
                    real a = v[pairs.step * i], b = w[pairs.step * i];
                    real cosine = c[2 * i], sine = sign * c[2 * i + 1];
                    v[pairs.step * i] = a * cosine - b * sine;
                    w[pairs.step * i] = a * sine + b * cosine;
                }
            }
        }
}

/* ---- The gate of the feed-forward ---------------------------------------------------------- */

/* act(z) = z s(z) with s(z) = 1 / (1 + exp(-u(z))): SiLU where u(z) = z; GELU, in its tanh form,
 * where u(z) = 2 sqrt(2 / pi) (z + .044715 z^3). */
static inline real op_gelu_inner(real z) {
    return (real)1.5957691216057308 * (z + (real)0.044715 * z * z * z);
}
static inline real op_gelu_slope(real z) {
    return (real)1.5957691216057308 * (1 + (real)0.134145 * z * z);
}

/* h [rows, n] = act(gate) up; gate and up are the halves of each row of gu [rows, 2 n]. */
static inline void op_swiglu(real *h, const real *gu, int32_t rows, int32_t n) {
    for (int32_t t = 0; t < rows; t++, gu += 2 * n, h += n)
        for (int32_t i = 0; i < n; i++)
            h[i] = gu[i] / (1 + op_exp(-gu[i])) * gu[n + i];
}
static inline void op_geglu(real *h, const real *gu, int32_t rows, int32_t n) {
    for (int32_t t = 0; t < rows; t++, gu += 2 * n, h += n)
        for (int32_t i = 0; i < n; i++)
            h[i] = gu[i] / (1 + op_exp(-op_gelu_inner(gu[i]))) * gu[n + i];
}

/* gu becomes its own gradient: dgate = dh up s (1 + gate (1 - s) u'(gate)), dup = dh gate s. */
static inline void op_swiglu_grad(real *gu, const real *dh, int32_t rows, int32_t n) {
    for (int32_t t = 0; t < rows; t++, gu += 2 * n, dh += n)
        for (int32_t i = 0; i < n; i++) {
            real gate = gu[i], up = gu[n + i], s = 1 / (1 + op_exp(-gate));
            gu[i] = dh[i] * up * s * (1 + gate * (1 - s));
            gu[n + i] = dh[i] * gate * s;
        }
}
static inline void op_geglu_grad(real *gu, const real *dh, int32_t rows, int32_t n) {
    for (int32_t t = 0; t < rows; t++, gu += 2 * n, dh += n)
        for (int32_t i = 0; i < n; i++) {
            real gate = gu[i], up = gu[n + i], s = 1 / (1 + op_exp(-op_gelu_inner(gate)));
            gu[i] = dh[i] * up * s * (1 + gate * (1 - s) * op_gelu_slope(gate));
            gu[n + i] = dh[i] * gate * s;
        }
}

/* ---- Gates of queries ---------------------------------------------------------------------- */

static inline real op_sigmoid(real x) { return 1 / (1 + op_exp(-x)); }

/* Rows of `mixed` have n numbers of queries, of each head its query, then its gate, and then what
 * else is in a row of qkv, behind its n of queries. */
static inline void op_split_gates(real *qkv, real *gates, const real *mixed, int32_t rows,
                                  int32_t n, int32_t head_dim, int32_t stride) {
    const size_t bytes = (size_t)head_dim * sizeof *qkv;
    for (int32_t t = 0; t < rows; t++, qkv += stride, gates += n, mixed += stride + n) {
        for (int32_t i = 0; i < n; i += head_dim) {
            memcpy(qkv + i, mixed + 2 * i, bytes);
            memcpy(gates + i, mixed + 2 * i + head_dim, bytes);
        }
        memcpy(qkv + n, mixed + 2 * n, (size_t)(stride - n) * sizeof *qkv);
    }
}
static inline void op_join_gates(real *mixed, const real *qkv, const real *gates, int32_t rows,
                                 int32_t n, int32_t head_dim, int32_t stride) {
    const size_t bytes = (size_t)head_dim * sizeof *qkv;
    for (int32_t t = 0; t < rows; t++, qkv += stride, gates += n, mixed += stride + n) {
        for (int32_t i = 0; i < n; i += head_dim) {
            memcpy(mixed + 2 * i, qkv + i, bytes);
            memcpy(mixed + 2 * i + head_dim, gates + i, bytes);
        }
        memcpy(mixed + 2 * n, qkv + n, (size_t)(stride - n) * sizeof *qkv);
    }
}

/* y [n] = x sigmoid(gates); dy becomes the gradient by x, gates theirs. */
static inline void op_gate(real *y, const real *x, const real *gates, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * op_sigmoid(gates[i]);
}
static inline void op_gate_grad(real *dy, real *gates, const real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const real s = op_sigmoid(gates[i]);
        gates[i] = dy[i] * x[i] * s * (1 - s);
        dy[i] *= s;
    }
}

/* ---- Scales and sums ----------------------------------------------------------------------- */

/* y [n] = x + scale z; y = scale x. y may be x or z. */
static inline void op_add_scaled(real *y, const real *x, const real *z, real scale, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] + scale * z[i];
}
static inline void op_scale(real *y, const real *x, real scale, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = scale * x[i];
}

/* ---- Embedding ----------------------------------------------------------------------------- */

static inline void op_embed(real *x, const real *table, const int32_t *tokens, int32_t rows,
                            int32_t n) {
    for (int32_t t = 0; t < rows; t++)
        memcpy(x + (int64_t)t * n, table + (int64_t)tokens[t] * n, (size_t)n * sizeof *x);
}

/* dtable[token] += dx */
static inline void op_embed_grad(real *dtable, const real *dx, const int32_t *tokens, int32_t rows,
                                 int32_t n) {
    for (int32_t t = 0; t < rows; t++) {
        real *d = dtable + (int64_t)tokens[t] * n;
        for (int32_t i = 0; i < n; i++)
            d[i] += dx[(int64_t)t * n + i];
    }
}

/* ---- Softmax and cross-entropy ------------------------------------------------------------- */

/* x[i] = exp(scale x[i] - m) with m = max(scale x); returns the sum, *max = m. */
static inline real op_exp_row(real *x, int32_t n, real scale, real *max) {
    real m = x[0], sum = 0;
#pragma omp simd reduction(max : m)
    for (int32_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    m *= scale;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < n; i++) {
        x[i] = op_exp(scale * x[i] - m);
        sum += x[i];
    }
    *max = m;
    return sum;
}

/* x[i] = cap tanh(scale x[i] / cap); cap 0: scale x[i]. slope[i] is its derivative by x[i]. */
static inline void op_soft_cap(real *x, real *slope, int32_t n, real scale, real cap) {
    for (int32_t i = 0; i < n; i++) {
        const real bent = cap > 0 ? TANH(scale * x[i] / cap) : 0;
        x[i] = cap > 0 ? cap * bent : scale * x[i];
        slope[i] = scale * (1 - bent * bent);
    }
}

/* Returns the sum over rows of weight * (log sum exp(logits) - logits[target]). The logits
 * [rows, n] become scale times its gradient: scale weight (softmax - onehot). */
static inline double op_cross_entropy(real *logits, const int32_t *targets, const real *weights,
                                      int32_t rows, int32_t n, double scale) {
    double loss = 0;
    for (int32_t t = 0; t < rows; t++, logits += n) {
        real max, wanted = logits[targets[t]];
        real sum = op_exp_row(logits, n, 1, &max);
        loss += (double)weights[t] * ((double)LOG(sum) + (double)max - (double)wanted);
        real factor = (real)scale * weights[t], share = factor / sum;
        for (int32_t i = 0; i < n; i++)
            logits[i] *= share;
        logits[targets[t]] -= factor;
    }
    return loss;
}

#endif
