/* gradient_support.h - what the tests of gradients share: OpenBLAS with one thread, derivatives by
 * finite differences, and graphs in double with weights and examples that are made up. */
#ifndef DPI_GRADIENT_SUPPORT_H
#define DPI_GRADIENT_SUPPORT_H

#include <math.h>

#include "base/mem.h"
#include "kernels/gemm.h"
#include "tests/support/own.h"
#include "tests/support/support.h"
#include "train/graph.h"
#include "train/lora.h"

static dpi_blas one_thread; /* open in all tests */

SETUP {
    assert_ok(dpi_blas_open(&one_thread, 1, ERR));
    one_thread.set_n_threads(1);
}

TEARDOWN { dpi_blas_close(&one_thread); }

static inline void fill_random(double *x, int64_t n, uint64_t *state) {
    for (int64_t i = 0; i < n; i++)
        x[i] = random_normal(state);
}

static inline void assert_near(double found, double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("found %.17g, wanted %.17g", found, wanted);
}

/* Fails unless the squares of the errors are less than `most` times those of what is wanted. */
static inline void assert_nmse(const float *found, const double *wanted, int64_t n, double most) {
    double error = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        error += pow((double)found[i] - wanted[i], 2);
        square += pow(wanted[i], 2);
    }
    if (!(error < most * square))
        fail_msg("NMSE %g, allowed below %g", error / square, most);
}

enum { MAX_POSITIONS = 140, VOCAB = 11 };

typedef struct graph_case {
    dpi_graph_shape shape;
    dpi_graph_layout at;
    dpi_lora lora;
    dpi_row row;
    double scale; /* of the loss */
    double *params, *gradient, *work;
    double *trained; /* [n_trained] in params: the adapters, or all weights */
    int64_t n_trained;
    int32_t tokens[MAX_POSITIONS], targets[MAX_POSITIONS];
    float weights[MAX_POSITIONS];
} graph_case;

/* Of zeros and without a row. `targets` (lora.h): which matrices have adapters; 0: all weights are
 * trained. */
static inline graph_case *open_graph(const dpi_graph_shape *shape, uint32_t targets, int32_t rank,
                                     float alpha) {
    graph_case *c = dpi_calloc(1, sizeof *c);
    c->shape = *shape;
    c->scale = 1;
    dpi_graph_layout_of(shape, &c->at);
    dpi_lora_of(shape, rank, alpha, targets, &c->lora);
    if (targets)
        c->shape.lora = &c->lora;
    const int64_t n = c->at.n_params, n_adapters = targets ? c->lora.n_params : 0;
    c->n_trained = targets ? n_adapters : n;
    c->params = dpi_calloc((size_t)(n + n_adapters), sizeof *c->params);
    c->trained = c->params + (targets ? n : 0);
    c->gradient = dpi_calloc((size_t)c->n_trained, sizeof *c->gradient);
    c->work = dpi_calloc(dpi_graph_f64.work_size(&c->shape), sizeof *c->work);
    dpi_graph_f64.work_init(&c->shape, c->work);
    return c;
}

static inline void close_graph(graph_case *c) {
    free(c->params), free(c->gradient), free(c->work), free(c);
}

OWNED(graph_case, close_graph)

/* Two layers, for rows of up to n positions. */
static inline dpi_graph_shape small_shape(int32_t n, int32_t tied) {
    dpi_graph_shape s = {.arch = &dpi_arch_llama, .n_layer = 2, .dim = 8, .n_head = 4};
    s.n_kv_head = 2;
    s.ffn = 10, s.n_vocab = VOCAB, s.context = n, s.tied = tied;
    s.rms_eps = 1e-2f, s.rope_base = 100, s.blas = &one_thread;
    return s;
}

/* Random weights, and examples that end at begins[1], ..., begins[n_segments]. */
static inline graph_case *random_graph(const dpi_graph_shape *shape, uint32_t targets, int32_t rank,
                                       const int32_t *begins, int32_t n_segments) {
    uint64_t state = 11;
    graph_case *c = open_graph(shape, targets, rank, .5f * (float)rank);
    fill_random(c->params, c->trained - c->params + c->n_trained, &state);
    fill_random(c->gradient, c->n_trained, &state); /* what is there must not matter */
    for (int i = 0; i < MAX_POSITIONS; i++) {
        c->tokens[i] = random_below(&state, VOCAB);
        c->targets[i] = random_below(&state, VOCAB);
        c->weights[i] = i % 4 == 0 ? 0 : i % 4 == 1 ? .25f : 1;
    }
    c->row = (dpi_row){begins[n_segments], n_segments, begins, c->tokens, c->targets, c->weights};
    return c;
}

static inline double loss_of(graph_case *c) {
    return c->scale * dpi_graph_f64.loss(&c->shape, c->params, &c->row, c->scale, NULL, c->work);
}

/* The same, with its gradient. */
static inline double differentiate(graph_case *c) {
    return c->scale *
           dpi_graph_f64.loss(&c->shape, c->params, &c->row, c->scale, c->gradient, c->work);
}

/* The derivative of the loss by *x: a central difference of fourth order. */
static inline double derivative(graph_case *c, double *x) {
    const double step = 2e-5, kept = *x;
    double at[5];
    for (int i = -2; i <= 2; i++) {
        *x = kept + i * step;
        at[i + 2] = loss_of(c);
    }
    *x = kept;
    return (at[0] - 8 * at[1] + 8 * at[3] - at[4]) / (12 * step);
}

/* The gradient of all that is trained, or that at n_places, of which one is the largest. Errors are
 * measured against that. */
static inline void check_graph(graph_case *c, int64_t n_places, double tolerance,
                               const char *what) {
    const int64_t n = c->n_trained;
    uint64_t state = 5;
    int64_t most = 0;
    assert_near(differentiate(c), loss_of(c), 0);
    for (int64_t i = 0; i < n; i++)
        most = fabs(c->gradient[i]) > fabs(c->gradient[most]) ? i : most;
    const double largest = fabs(c->gradient[most]);
    assert_true(largest > 1e-3); /* a gradient of zeros would prove nothing */
    for (int64_t k = 0; k < (n_places ? n_places : n); k++) {
        const int64_t at = !n_places ? k : k == 0 ? most : random_below(&state, (int32_t)n);
        const double numeric = derivative(c, c->trained + at);
        if (!(fabs(numeric - c->gradient[at]) <= tolerance * largest))
            fail_msg("%s, number %lld of %lld: gradient %.12g, finite difference %.12g", what,
                     (long long)at, (long long)n, c->gradient[at], numeric);
    }
}

/* The parameters times a factor, rounded to float; the caller's. */
static inline float *round_params(graph_case *c, double factor) {
    const int64_t n = c->trained - c->params + c->n_trained;
    float *params = dpi_calloc((size_t)n, sizeof *params);
    for (int64_t i = 0; i < n; i++)
        c->params[i] = params[i] = (float)(factor * c->params[i]);
    return params;
}

/* A graph in float, with such parameters, has the loss and the gradient of that in double. */
static inline void check_f32(graph_case *c, const dpi_graph *graph, const dpi_graph_shape *shape,
                             const float *params, double nmse) {
    OWN_ARRAY(float) gradient = dpi_calloc((size_t)c->n_trained, sizeof *gradient);
    OWN_ARRAY(float) work = dpi_calloc(graph->work_size(shape), sizeof *work);
    graph->work_init(shape, work);
    const double wanted = differentiate(c);
    const double found = graph->loss(shape, params, &c->row, c->scale, gradient, work);
    assert_near(found, wanted, 1e-5 * fabs(wanted));
    assert_nmse(gradient, c->gradient, c->n_trained, nmse);
}

#endif
