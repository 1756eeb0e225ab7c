/* delta.h - delta nets over packed examples, and their gradient, in the type `real`. Internal; a
 * template like ops.h.
 *
 * Of n_v_head heads each has a state S [dim, dim_v], which is zero before an example:
 *
 *     S = g S;   e = b (v - S^T k);   S = S + k e^T;   o = S^T q / sqrt(dim)
 *
 * q, k and v are a causal filter of what the products gave, and SiLU of it; q and k have length 1.
 * Value head j has key head j mod n_k_head. The result is norm(o) silu(z). Source: Yang, Kautz and
 * Hatamizadeh, "Gated Delta Networks", 2024; engine/delta.c computes the same. */
#ifndef DPI_TRAIN_DELTA_H
#define DPI_TRAIN_DELTA_H

#include "engine/arch.h"
#include "train/ops.h"

/* The backward pass needs the state of every position. The forward pass is computed again: first
 * for the states before every DELTA_CHUNK-th position, then from each of them on. */
enum { DELTA_CHUNK = 16 };

typedef struct delta_net {
    dpi_delta_shape shape;
    float eps;
    const real *filter;     /* [keys, n_tap], the present position last */
    const real *rate;       /* [n_v_head] */
    const real *decay_bias; /* [n_v_head] */
    const real *value_norm; /* [dim_v] */
    const int32_t *begins;  /* as in a dpi_row */
    int32_t n_segments;
    const real *in; /* [n, n_in] what the products gave: keys (of q, k and v), z, beta, decay */
    int32_t n_in;
    real *u;        /* [n, keys] q and k of length 1, v */
    real *r_keys;   /* [n, 2 n_k_head] 1 / their lengths before */
    real *gates;    /* [n, 2 n_v_head] b, then g */
    real *read;     /* [n, values] o */
    real *r_read;   /* [n, n_v_head] of its norm */
    real *out;      /* [n, values] */
    real *states;   /* [delta_states] */
} delta_net;

typedef struct delta_gradient {
    real *filter, *rate, *decay_bias, *value_norm; /* added to */
    real *out;   /* [n, values] that by `out` */
    real *in;    /* [n, n_in] becomes that by `in` */
    real *u;     /* [n, keys] room for that by u */
    real *gates; /* [n, 2 n_v_head] the same */
    real *row;   /* [dim_v] room */
} delta_gradient;

/* Numbers of q, k and v of a position. */
static inline int32_t delta_keys(const dpi_delta_shape *s) {
    return 2 * s->n_k_head * s->dim + s->n_v_head * s->dim_v;
}
static inline int32_t delta_values(const dpi_delta_shape *s) { return s->n_v_head * s->dim_v; }

/* Room for states: before each chunk, before and behind each position of one, and a gradient. */
static inline int64_t delta_states(const dpi_delta_shape *s, int32_t context) {
    const int64_t n = (context + DELTA_CHUNK - 1) / DELTA_CHUNK + DELTA_CHUNK + 2;
    return n * s->dim * s->dim_v;
}

/* ---- A head ---------------------------------------------------------------------------------- */

/* One head of one example of n positions. Rows of q, k, v are `stride` apart, those of b and g
 * `gate_stride`, those of the result `out_stride`. */
typedef struct delta_head {
    const real *q, *k, *v, *b, *g;
    int32_t stride, gate_stride, out_stride;
    int32_t n, dim, dim_v;
} delta_head;

/* f [dim_v] = S^T x */
static inline void delta_read(real *f, const real *s, const real *x, int32_t dim, int32_t dim_v) {
    memset(f, 0, (size_t)dim_v * sizeof *f);
    for (int32_t i = 0; i < dim; i++, s += dim_v)
        for (int32_t j = 0; j < dim_v; j++)
            f[j] += x[i] * s[j];
}

/* y [dim] += scale S e */
static inline void delta_project(real *y, const real *s, const real *e, real scale, int32_t dim,
                                 int32_t dim_v) {
    for (int32_t i = 0; i < dim; i++, s += dim_v) {
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t j = 0; j < dim_v; j++)
            sum += s[j] * e[j];
        y[i] += scale * sum;
    }
}

/* S += scale x e^T */
static inline void delta_write(real *s, const real *x, const real *e, real scale, int32_t dim,
                               int32_t dim_v) {
    for (int32_t i = 0; i < dim; i++, s += dim_v)
        for (int32_t j = 0; j < dim_v; j++)
            s[j] += scale * x[i] * e[j];
}

/* The state behind position t, from that before it; e [dim_v] is what is written. They may be the
 * same. */
static inline void delta_step(const delta_head *a, int32_t t, real *after, const real *before,
                              real *e) {
    const real *k = a->k + (int64_t)t * a->stride, *v = a->v + (int64_t)t * a->stride;
    const real b = a->b[(int64_t)t * a->gate_stride], g = a->g[(int64_t)t * a->gate_stride];
    op_scale(after, before, g, (int64_t)a->dim * a->dim_v);
    delta_read(e, after, k, a->dim, a->dim_v);
    for (int32_t j = 0; j < a->dim_v; j++)
        e[j] = b * (v[j] - e[j]);
    delta_write(after, k, e, 1, a->dim, a->dim_v);
}

static inline real delta_scale(const delta_head *a) { return 1 / SQRT((real)a->dim); }

/* out: o. states: room for one. */
static inline void delta_forward(const delta_head *a, real *out, real *states) {
    memset(states, 0, (size_t)a->dim * (size_t)a->dim_v * sizeof *states);
    for (int32_t t = 0; t < a->n; t++) {
        real *o = out + (int64_t)t * a->out_stride;
        delta_step(a, t, states, states, o);
        delta_read(o, states, a->q + (int64_t)t * a->stride, a->dim, a->dim_v);
        op_scale(o, o, delta_scale(a), a->dim_v);
    }
}

/* Of position t: `before` and `after` are its states; ds from the gradient by `after` through later
 * positions to that by `before`; dq += , dk +=, dv =, db =, dg =. e: [dim_v] room. */
static inline void delta_step_backward(const delta_head *a, int32_t t, const real *before,
                                       const real *after, const real *dout, real *ds, real *dq,
                                       real *dk, real *dv, real *db, real *dg, real *e) {
    const int64_t row = (int64_t)t * a->stride, gate = (int64_t)t * a->gate_stride;
    const real *k = a->k + row, *v = a->v + row, b = a->b[gate], g = a->g[gate];
    const int32_t dim = a->dim, dim_v = a->dim_v;
    real sum = 0;
    delta_project(dq, after, dout, delta_scale(a), dim, dim_v);
    delta_write(ds, a->q + row, dout, delta_scale(a), dim, dim_v);
    delta_read(e, before, k, dim, dim_v); /* v - g S^T k, of which b is written */
    for (int32_t j = 0; j < dim_v; j++)
        e[j] = v[j] - g * e[j];
    delta_project(dk, ds, e, b, dim, dim_v);
    delta_read(dv, ds, k, dim, dim_v);
    *db = 0;
    for (int32_t j = 0; j < dim_v; j++) {
        *db += dv[j] * e[j];
        dv[j] *= b;
    }
    delta_project(dk, before, dv, -g, dim, dim_v); /* S^T k has the gradient -dv */
    delta_write(ds, k, dv, -1, dim, dim_v);
    for (int64_t i = 0; i < (int64_t)dim * dim_v; i++)
        sum += ds[i] * before[i];
    *dg = sum;
    op_scale(ds, ds, g, (int64_t)dim * dim_v);
}

/* dq +=, dk += (value heads share them), dv =, db =, dg =, all with the strides of their values;
 * dout as out. states: [delta_states]; row: [dim_v]. */
static inline void delta_backward(const delta_head *a, const real *dout, real *dq, real *dk,
                                  real *dv, real *db, real *dg, real *states, real *row) {
    const int64_t size = (int64_t)a->dim * a->dim_v;
    const int32_t n_chunks = (a->n + DELTA_CHUNK - 1) / DELTA_CHUNK;
    real *ds = states + n_chunks * size, *chunk = ds + size; /* chunk: [DELTA_CHUNK + 1] */
    memset(chunk, 0, (size_t)size * sizeof *chunk);
    for (int32_t t = 0; t < a->n; t++) {
        if (t % DELTA_CHUNK == 0)
            memcpy(states + t / DELTA_CHUNK * size, chunk, (size_t)size * sizeof *chunk);
        delta_step(a, t, chunk, chunk, row);
    }
    memset(ds, 0, (size_t)size * sizeof *ds);
    for (int32_t c = n_chunks - 1; c >= 0; c--) {
        const int32_t from = c * DELTA_CHUNK;
        const int32_t rows = a->n - from < DELTA_CHUNK ? a->n - from : DELTA_CHUNK;
        memcpy(chunk, states + c * size, (size_t)size * sizeof *chunk);
        for (int32_t i = 0; i < rows; i++)
            delta_step(a, from + i, chunk + (i + 1) * size, chunk + i * size, row);
        for (int32_t i = rows - 1; i >= 0; i--) {
            const int64_t at = (int64_t)(from + i) * a->stride;
            const int64_t gate = (int64_t)(from + i) * a->gate_stride;
            delta_step_backward(a, from + i, chunk + i * size, chunk + (i + 1) * size,
                                dout + (int64_t)(from + i) * a->out_stride, ds, dq + at, dk + at,
                                dv + at, db + gate, dg + gate, row);
        }
    }
}

/* ---- What goes into the state ---------------------------------------------------------------- */

/* The filter at position t of an example that begins at `begin`, of channel i. */
static inline real delta_filtered(const delta_net *d, int32_t begin, int32_t t, int32_t i) {
    const int32_t n_tap = d->shape.n_tap;
    const real *w = d->filter + (int64_t)i * n_tap;
    real sum = 0;
    for (int32_t k = 0; k < n_tap && t - k >= begin; k++)
        sum += w[n_tap - 1 - k] * d->in[(int64_t)(t - k) * d->n_in + i];
    return sum;
}

static inline real delta_softplus(real x) { return x > 30 ? x : LOG(1 + op_exp(x)); }

/* u and gates of position t. */
static inline void delta_prepare(const delta_net *d, int32_t begin, int32_t t) {
    const dpi_delta_shape *s = &d->shape;
    const int32_t keys = delta_keys(s), n_v = s->n_v_head;
    const real *in = d->in + (int64_t)t * d->n_in + keys + delta_values(s);
    real *u = d->u + (int64_t)t * keys, *gates = d->gates + (int64_t)t * 2 * n_v;
    for (int32_t i = 0; i < keys; i++) {
        const real c = delta_filtered(d, begin, t, i);
        u[i] = c * op_sigmoid(c);
    }
    for (int32_t h = 0; h < 2 * s->n_k_head; h++) {
        real sum = 0, *x = u + h * s->dim;
        for (int32_t i = 0; i < s->dim; i++)
            sum += x[i] * x[i];
        const real r = 1 / SQRT(sum + (real)d->eps);
        d->r_keys[(int64_t)t * 2 * s->n_k_head + h] = r;
        op_scale(x, x, r, s->dim);
    }
    for (int32_t h = 0; h < n_v; h++) {
        gates[h] = op_sigmoid(in[h]);
        gates[n_v + h] = op_exp(d->rate[h] * delta_softplus(in[n_v + h] + d->decay_bias[h]));
    }
}

/* From the gradient by u and gates of position t to that by `in`, but for z. That of earlier
 * positions gets what the filter saw of them, and so is written before. */
static inline void delta_prepare_backward(const delta_net *d, const delta_gradient *by,
                                          int32_t begin, int32_t t) {
    const dpi_delta_shape *s = &d->shape;
    const int32_t keys = delta_keys(s), n_v = s->n_v_head, n_tap = s->n_tap;
    const int64_t behind = (int64_t)t * d->n_in + keys + delta_values(s);
    const real *u = d->u + (int64_t)t * keys, *gates = d->gates + (int64_t)t * 2 * n_v;
    const real *dgates = by->gates + (int64_t)t * 2 * n_v;
    real *du = by->u + (int64_t)t * keys;
    for (int32_t h = 0; h < 2 * s->n_k_head; h++) {
        const real *x = u + h * s->dim, r = d->r_keys[(int64_t)t * 2 * s->n_k_head + h];
        real *dx = du + h * s->dim, dot = 0;
        for (int32_t i = 0; i < s->dim; i++)
            dot += x[i] * dx[i];
        for (int32_t i = 0; i < s->dim; i++)
            dx[i] = r * (dx[i] - dot * x[i]);
    }
    for (int32_t i = 0; i < keys; i++) {
        const real c = delta_filtered(d, begin, t, i), sigmoid = op_sigmoid(c);
        const real dc = du[i] * sigmoid * (1 + c * (1 - sigmoid));
        for (int32_t k = 0; k < n_tap && t - k >= begin; k++) {
            const int64_t at = (int64_t)(t - k) * d->n_in + i;
            by->in[at] += d->filter[(int64_t)i * n_tap + n_tap - 1 - k] * dc;
            by->filter[(int64_t)i * n_tap + n_tap - 1 - k] += dc * d->in[at];
        }
    }
    for (int32_t h = 0; h < n_v; h++) {
        const real x = d->in[behind + n_v + h] + d->decay_bias[h];
        const real dlog = dgates[n_v + h] * gates[n_v + h]; /* by log g */
        const real dx = dlog * d->rate[h] * op_sigmoid(x);
        by->in[behind + h] = dgates[h] * gates[h] * (1 - gates[h]);
        by->in[behind + n_v + h] = dx;
        by->decay_bias[h] += dx;
        by->rate[h] += dlog * delta_softplus(x);
    }
}

/* ---- What comes out of it -------------------------------------------------------------------- */

/* out = norm(o) silu(z) of position t. */
static inline void delta_finish(const delta_net *d, int32_t t) {
    const dpi_delta_shape *s = &d->shape;
    const real *z = d->in + (int64_t)t * d->n_in + delta_keys(s);
    const int64_t at = (int64_t)t * delta_values(s);
    op_rmsnorm(d->out + at, d->r_read + (int64_t)t * s->n_v_head, d->read + at, d->value_norm,
               s->n_v_head, s->dim_v, d->eps);
    for (int32_t i = 0; i < delta_values(s); i++)
        d->out[at + i] *= z[i] * op_sigmoid(z[i]);
}

/* by.in of z; d.out, whose value is not needed any more, becomes the gradient by o. */
static inline void delta_finish_backward(const delta_net *d, const delta_gradient *by, int32_t t) {
    const dpi_delta_shape *s = &d->shape;
    const int64_t z_at = (int64_t)t * d->n_in + delta_keys(s);
    for (int32_t h = 0; h < s->n_v_head; h++) {
        const int64_t at = (int64_t)t * delta_values(s) + h * s->dim_v;
        const real *z = d->in + z_at + h * s->dim_v, *dout = by->out + at, *o = d->read + at;
        const real r = d->r_read[(int64_t)t * s->n_v_head + h];
        real *dz = by->in + z_at + h * s->dim_v;
        for (int32_t i = 0; i < s->dim_v; i++) {
            const real sigmoid = op_sigmoid(z[i]), normed = o[i] * r * d->value_norm[i];
            by->row[i] = dout[i] * z[i] * sigmoid;
            dz[i] = dout[i] * normed * sigmoid * (1 + z[i] * (1 - sigmoid));
        }
        memset(d->out + at, 0, (size_t)s->dim_v * sizeof *d->out);
        op_rmsnorm_grad(d->out + at, by->value_norm, by->row, o, d->value_norm, &r, 1, s->dim_v);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static inline delta_head delta_head_of(const delta_net *d, int32_t segment, int32_t head) {
    const dpi_delta_shape *s = &d->shape;
    const int32_t begin = d->begins[segment];
    const real *u = d->u + (int64_t)begin * delta_keys(s);
    const real *gates = d->gates + (int64_t)begin * 2 * s->n_v_head;
    const int32_t key = head % s->n_k_head * s->dim, n_keys = s->n_k_head * s->dim;
    return (delta_head){.q = u + key,
                        .k = u + n_keys + key,
                        .v = u + 2 * n_keys + head * s->dim_v,
                        .b = gates + head,
                        .g = gates + s->n_v_head + head,
                        .stride = delta_keys(s),
                        .gate_stride = 2 * s->n_v_head,
                        .out_stride = delta_values(s),
                        .n = d->begins[segment + 1] - begin,
                        .dim = s->dim,
                        .dim_v = s->dim_v};
}

static inline void delta_net_forward(const delta_net *d) {
    const dpi_delta_shape *s = &d->shape;
    for (int32_t segment = 0; segment < d->n_segments; segment++) {
        const int32_t begin = d->begins[segment], end = d->begins[segment + 1];
        for (int32_t t = begin; t < end; t++)
            delta_prepare(d, begin, t);
        for (int32_t h = 0; h < s->n_v_head; h++) {
            const delta_head head = delta_head_of(d, segment, h);
            delta_forward(&head, d->read + (int64_t)begin * delta_values(s) + h * s->dim_v,
                          d->states);
        }
        for (int32_t t = begin; t < end; t++)
            delta_finish(d, t);
    }
}

/* What the forward pass left in `out` is gone after it. */
static inline void delta_net_backward(const delta_net *d, const delta_gradient *by) {
    const dpi_delta_shape *s = &d->shape;
    const int64_t n = d->begins[d->n_segments];
    memset(by->u, 0, (size_t)(n * delta_keys(s)) * sizeof *by->u);
    memset(by->in, 0, (size_t)(n * d->n_in) * sizeof *by->in);
    for (int32_t segment = 0; segment < d->n_segments; segment++) {
        const int32_t begin = d->begins[segment], end = d->begins[segment + 1];
        for (int32_t t = begin; t < end; t++)
            delta_finish_backward(d, by, t);
        for (int32_t h = 0; h < s->n_v_head; h++) {
            const delta_head head = delta_head_of(d, segment, h);
            delta_backward(&head, d->out + (int64_t)begin * delta_values(s) + h * s->dim_v,
                           by->u + (head.q - d->u), by->u + (head.k - d->u),
                           by->u + (head.v - d->u), by->gates + (head.b - d->gates),
                           by->gates + (head.g - d->gates), d->states, by->row);
        }
        for (int32_t t = begin; t < end; t++)
            delta_prepare_backward(d, by, begin, t);
    }
}

#endif
