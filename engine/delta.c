/* delta.c - the operations of a pass by delta nets, and the gates of the attention beside them
 * (pass.h).
 *
 * A row changes the state of its sequence. So a thread computes columns of its own for all rows,
 * one after the other: what a row finds is what the rows before it left, whether they came in the
 * same pass or in another one, and no column of the state depends on another one's.
 *
 * Source: Yang, Kautz and Hatamizadeh, "Gated Delta Networks", 2024. */
#include <math.h>
#include <string.h>

#include "engine/pass.h"

/* ---- Gates of attention ---------------------------------------------------------------------- */

void dpi_pass_copy_queries(dpi_pass *p, dpi_rows q, dpi_rows qg) {
    const int64_t dim = p->shape->head_dim;
    int64_t begin, end;
    dpi_pass_meet(p);
    dpi_pass_share(p, p->n_rows * (q.n / dim), &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / p->n_rows, r = i % p->n_rows;
        memcpy(dpi_pass_row(p, q, r) + head * dim, dpi_pass_row(p, qg, r) + 2 * head * dim,
               (size_t)dim * sizeof *q.at);
    }
    p->has_written = true;
}

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

void dpi_pass_gate_heads(dpi_pass *p, dpi_rows y, dpi_rows qg) {
    const int64_t dim = p->shape->head_dim;
    int64_t begin, end;
    dpi_pass_columns(p, y.n, &begin, &end);
    for (int64_t r = 0; r < p->n_rows; r++)
        for (int64_t i = begin; i < end; i++)
            dpi_pass_row(p, y, r)[i] *= sigmoid(dpi_pass_row(p, qg, r)[i / dim * dim + dim + i]);
    p->has_written = true;
}

/* ---- What goes into the state ---------------------------------------------------------------- */

enum { BLOCK = DPI_Q8_BLOCK }; /* columns that are computed at a time */

/* The end of the block from `at` on: up to `end`, the next multiple of BLOCK, and the end of a head
 * of n. A thread's share begins at such a multiple: no other one's blocks depend on it. */
static int64_t block_end(int64_t at, int64_t end, int64_t n) {
    const int64_t head_end = (at / n + 1) * n, next = (at / BLOCK + 1) * BLOCK;
    const int64_t stop = next < head_end ? next : head_end;
    return stop < end ? stop : end;
}

/* What the layer keeps of row r's sequence. */
static dpi_state state_of(const dpi_pass *p, int32_t layer, int64_t r) {
    return dpi_kv_state(&p->s->kv, p->s->row_seq[r], layer);
}

/* The inputs before that of position t are in the state, that of position i at i % (n_tap - 1). */
static void filter(const dpi_pass *p, const dpi_layer *l, float *past, int32_t t, float *x,
                   int64_t begin, int64_t end, int64_t n) {
    static const float ones[BLOCK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int32_t n_tap = p->shape->delta.n_tap, n_past = n_tap - 1;
    for (int64_t at = begin, stop; at < end; at = stop) {
        float y[BLOCK];
        stop = block_end(at, end, n);
        for (int64_t i = at; i < stop; i++) {
            const float *w = l->filter + i * n_tap;
            y[i - at] = w[n_past] * x[i];
            for (int32_t k = 0; k < n_past; k++)
                y[i - at] += w[k] * past[(t + k) % n_past * n + i];
        }
        memcpy(past + t % n_past * n + at, x + at, (size_t)(stop - at) * sizeof *x);
        p->s->kernels.swiglu(y, ones, stop - at);
        memcpy(x + at, y, (size_t)(stop - at) * sizeof *x);
    }
}

void dpi_pass_filter(dpi_pass *p, dpi_rows u, int32_t layer) {
    int64_t begin, end;
    dpi_pass_meet(p);
    dpi_pass_columns(p, u.n, &begin, &end);
    for (int64_t r = 0; r < p->n_rows; r++)
        filter(p, &p->s->model->layers[layer], state_of(p, layer, r).past, p->s->row_pos[r],
               dpi_pass_row(p, u, r), begin, end, u.n);
    p->has_written = true;
}

static double softplus(double x) { return x > 30 ? x : log1p(exp(x)); }

void dpi_pass_gates(dpi_pass *p, dpi_rows beta, dpi_rows decay, int32_t layer) {
    const dpi_layer *l = &p->s->model->layers[layer];
    int64_t begin, end;
    dpi_pass_meet(p);
    dpi_pass_share(p, p->n_rows * beta.n, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t r = i / beta.n, head = i % beta.n;
        float *b = dpi_pass_row(p, beta, r) + head, *g = dpi_pass_row(p, decay, r) + head;
        *b = sigmoid(*b);
        *g = (float)exp((double)l->rate[head] *
                        softplus((double)*g + (double)l->decay_bias[head]));
    }
    p->has_written = true;
}

void dpi_pass_norm_keys(dpi_pass *p, dpi_rows u) {
    const dpi_shape *c = p->shape;
    const double eps = (double)p->s->model->config.rms_eps;
    const int64_t n_head = c->delta.n_k_head, dim = c->delta.dim;
    int64_t begin, end;
    dpi_pass_meet(p);
    dpi_pass_share(p, p->n_rows * 2 * n_head, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        float *x = dpi_pass_row(p, u, i / (2 * n_head)) + i % (2 * n_head) * dim, sum = 0;
        const bool is_query = i % (2 * n_head) < n_head;
        p->s->kernels.sum_squares(&sum, x, dim);
        const double by = 1 / sqrt((double)sum + eps);
        for (int64_t k = 0; k < dim; k++)
            x[k] *= (float)(is_query ? by / sqrt((double)dim) : by);
    }
    p->has_written = true;
}

/* ---- The state ------------------------------------------------------------------------------- */

/* What a row does to a block of columns. */
typedef struct row {
    const float *q, *k; /* [dim] */
    const float *v;     /* [n] */
    float beta, decay;
} row;

/* S = g S + k (b (v - (g S)^T k))^T and o = S^T q for columns S [dim, n]. */
static inline void update(float *restrict s, float *restrict o, const row *x, int64_t dim,
                          int64_t n) {
    float found[BLOCK] = {0}, sum[BLOCK] = {0};
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j < n; j++) {
            s[i * n + j] *= x->decay;
            found[j] += x->k[i] * s[i * n + j];
        }
    for (int64_t j = 0; j < n; j++)
        found[j] = x->beta * (x->v[j] - found[j]);
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j < n; j++) {
            s[i * n + j] += x->k[i] * found[j];
            sum[j] += x->q[i] * s[i * n + j];
        }
    memcpy(o, sum, (size_t)n * sizeof *o);
}

void dpi_pass_delta(dpi_pass *p, dpi_rows o, dpi_rows u, dpi_rows beta, dpi_rows decay,
                    int32_t layer) {
    const dpi_shape *c = p->shape;
    const int64_t n_k_head = c->delta.n_k_head, dim = c->delta.dim, dim_v = c->delta.dim_v;
    int64_t begin, end;
    dpi_pass_meet(p);
    dpi_pass_columns(p, o.n, &begin, &end);
    for (int64_t at = begin, stop; at < end; at = stop) {
        const int64_t head = at / dim_v, k_head = head % n_k_head;
        stop = block_end(at, end, dim_v);
        for (int64_t r = 0; r < p->n_rows; r++) {
            float *s = state_of(p, layer, r).s + at * dim, *y = dpi_pass_row(p, o, r) + at;
            const float *q = dpi_pass_row(p, u, r), *k = q + n_k_head * dim;
            const row x = {q + k_head * dim, k + k_head * dim, k + n_k_head * dim + at,
                           dpi_pass_row(p, beta, r)[head], dpi_pass_row(p, decay, r)[head]};
            if (stop - at == BLOCK)
                update(s, y, &x, dim, BLOCK); /* the usual case, in registers */
            else
                update(s, y, &x, dim, stop - at);
        }
    }
    p->has_written = true;
}

void dpi_pass_gate_normed(dpi_pass *p, dpi_rows z, dpi_rows o, const float *weight) {
    const double eps = (double)p->s->model->config.rms_eps;
    const dpi_kernels *kernels = &p->s->kernels;
    const int64_t dim = p->shape->delta.dim_v;
    int64_t begin, end;
    dpi_pass_meet(p);
    dpi_pass_columns(p, z.n, &begin, &end);
    for (int64_t r = 0; r < p->n_rows; r++)
        for (int64_t at = begin, stop; at < end; at = stop) {
            const float *x = dpi_pass_row(p, o, r), *head = x + at / dim * dim;
            float normed[BLOCK], sum = 0;
            stop = block_end(at, end, dim);
            kernels->sum_squares(&sum, head, dim);
            kernels->scale(normed, x + at, weight + at % dim,
                           (float)(1 / sqrt((double)sum / (double)dim + eps)),
                           stop - at);
            kernels->swiglu(dpi_pass_row(p, z, r) + at, normed, stop - at);
        }
    p->has_written = true;
}
