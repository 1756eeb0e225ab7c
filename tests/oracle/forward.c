#include "tests/oracle/forward.h"

#include <math.h>

#include "engine/model.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

/* Activations are [n, ...], a row for each of n positions. */

static double *doubles(int64_t n) {
    double *p = calloc((size_t)n, sizeof *p);
    assert_non_null(p);
    return p;
}

/* Adds W x + bias to y; without y, to zeros. */
static double *product(const dpi_matrix *w, const double *x, int32_t n, double *y) {
    float *row = malloc((size_t)w->n_in * sizeof *row);
    assert_non_null(row);
    y = y ? y : doubles(n * w->n_out);
    for (int64_t o = 0; o < w->n_out; o++) {
        dpi_matrix_row(w, o, row);
        for (int32_t t = 0; t < n; t++) {
            double sum = w->bias ? (double)w->bias[o] : 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t k = 0; k < w->n_in; k++)
                sum += (double)row[k] * x[t * w->n_in + k];
            y[t * w->n_out + o] += sum;
        }
    }
    free(row);
    return y;
}

static double *normalized(const float *w, const double *x, int32_t n, int32_t n_embd) {
    double *y = doubles((int64_t)n * n_embd);
    for (int32_t t = 0; t < n; t++) {
        const double *from = x + (int64_t)t * n_embd;
        double sum = 0;
        for (int32_t i = 0; i < n_embd; i++)
            sum += from[i] * from[i];
        for (int32_t i = 0; i < n_embd; i++)
            y[(int64_t)t * n_embd + i] = from[i] / sqrt(sum / n_embd + 1e-5) * (double)w[i];
    }
    return y;
}

/* By wavelength, as Llama 3.1's configuration is written. */
static double llama3(double frequency, double factor) {
    const double low = 1, high = 4, original = 64;
    double wavelength = 2 * acos(-1.0) / frequency;
    if (wavelength < original / high)
        return frequency;
    if (wavelength > original / low)
        return frequency / factor;
    double smooth = (original / wavelength - low) / (high - low);
    return (1 - smooth) * frequency / factor + smooth * frequency;
}

static void rotate(const tiny_spec *s, const dpi_model *m, double *x, int32_t n, int32_t n_head,
                   int32_t dim) {
    const int32_t n_rot = s->n_rot ? s->n_rot : dim;
    const double base = s->rope_base > 0 ? (double)s->rope_base : 10000;
    const double magnitude = s->attn_factor > 0 ? (double)s->attn_factor : 1;
    for (int32_t i = 0; i < n_rot / 2; i++) {
        double frequency = pow(base, -2.0 * i / n_rot);
        frequency /= s->rope_factor > 0 ? (double)s->rope_factor : 1;
        frequency /= s->rope_freqs ? (double)m->rope_freqs[i] : 1;
        if (s->llama3_factor > 0)
            frequency = llama3(frequency, (double)s->llama3_factor);
        for (int32_t at = 0; at < n * n_head; at++) {
            double angle = at / n_head * frequency;
            double *p = x + at * dim + 2 * i, a = p[0], b = p[1];
            p[0] = magnitude * (a * cos(angle) - b * sin(angle));
            p[1] = magnitude * (a * sin(angle) + b * cos(angle));
        }
    }
}

/* Causal attention by its definition: [n, n_head * dv]. */
static double *attended(const tiny_spec *s, const double *q, const double *k, const double *v,
                        int32_t n, int32_t dk, int32_t dv) {
    double *out = doubles((int64_t)n * s->n_head * dv);
    for (int32_t at = 0; at < n * s->n_head; at++) {
        const int32_t pos = at / s->n_head, g = at % s->n_head / (s->n_head / s->n_kv_head);
        double sum = 0, *to = out + (int64_t)at * dv;
        for (int32_t j = 0; j <= pos; j++) {
            const int64_t from = (int64_t)j * s->n_kv_head + g;
            double dot = 0;
            for (int32_t i = 0; i < dk; i++)
                dot += q[at * dk + i] * k[from * dk + i];
            double p = exp(dot / sqrt(dk));
            sum += p;
            for (int32_t i = 0; i < dv; i++)
                to[i] += p * v[from * dv + i];
        }
        for (int32_t i = 0; i < dv; i++)
            to[i] /= sum;
    }
    return out;
}

double *oracle_states(const tiny_spec *s, const dpi_model *m, const int32_t *tokens, int32_t n,
                      const float *added, int32_t n_layer) {
    const int32_t e = s->n_embd, dk = s->head_dim ? s->head_dim : e / s->n_head;
    const int32_t dv = s->head_dim_v ? s->head_dim_v : e / s->n_head;
    double *x = doubles((int64_t)n * e);
    float *row = malloc((size_t)e * sizeof *row);
    assert_non_null(row);
    for (int32_t i = 0; i < n * e; i++) {
        if (i % e == 0)
            dpi_matrix_row(&m->embedding, tokens[i / e], row);
        x[i] = (double)row[i % e];
    }
    for (int32_t layer = 0; layer < n_layer; layer++) {
        const dpi_layer *w = &m->layers[layer];
        double *norm = normalized(w->attn_norm, x, n, e);
        double *q = product(&w->wq, norm, n, NULL);
        double *k = product(&w->wk, norm, n, NULL);
        double *v = product(&w->wv, norm, n, NULL);
        rotate(s, m, q, n, s->n_head, dk);
        rotate(s, m, k, n, s->n_kv_head, dk);
        double *att = attended(s, q, k, v, n, dk, dv);
        product(&w->wo, att, n, x);
        free(norm), free(q), free(k), free(v), free(att);
        norm = normalized(w->ffn_norm, x, n, e);
        double *gate = product(&w->w_gate, norm, n, NULL);
        double *up = product(&w->w_up, norm, n, NULL);
        for (int64_t i = 0; i < (int64_t)n * s->n_ff; i++)
            gate[i] *= up[i] / (1 + exp(-gate[i]));
        product(&w->w_down, gate, n, x);
        for (int32_t i = 0; added && i < n * e; i++)
            x[i] += (double)added[layer * e + i % e];
        free(norm), free(gate), free(up);
    }
    free(row);
    return x;
}

void oracle_logits(const tiny_spec *s, const dpi_model *m, const int32_t *tokens, int32_t n,
                   const float *added, double *logits) {
    double *x = oracle_states(s, m, tokens, n, added, s->n_layer);
    double *norm = normalized(m->output_norm, x, n, s->n_embd);
    memset(logits, 0, (size_t)n * (size_t)s->n_vocab * sizeof *logits);
    product(s->tied ? &m->embedding : &m->output, norm, n, logits);
    free(x), free(norm);
}
