/* tuner_support.h - what the tests of private training share: made-up units, tiny bases, tuners. */
#ifndef DPI_TUNER_SUPPORT_H
#define DPI_TUNER_SUPPORT_H

#include "base/mem.h"
#include "dp/exact/poisson.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"
#include "train/base.h"
#include "train/tuner.h"

enum { UNITS = 7, ROWS = 3, POSITIONS = 24, RANK = 2 };

/* Rows of made-up units: unit 2 has none, unit 3 two, unit 5 three, the others one. */
typedef struct world {
    dpi_row rows[UNITS][ROWS];
    int32_t tokens[UNITS][ROWS][POSITIONS], targets[UNITS][ROWS][POSITIONS];
    float weights[UNITS][ROWS][POSITIONS];
} world;

static const int32_t n_rows[UNITS] = {1, 1, 0, 2, 1, 3, 1};
static const int32_t begins[] = {0, 9, POSITIONS};

static inline bool next_row(void *user, int64_t unit, int32_t k, uint64_t bits,
                     const dpi_row_buffer *buffer, dpi_row *row) {
    const world *w = user;
    (void)bits, (void)buffer;
    if (k >= n_rows[unit])
        return false;
    *row = w->rows[unit][k];
    return true;
}

static inline world *make_world(int32_t n_vocab) {
    world *w = dpi_calloc(1, sizeof *w);
    uint64_t seed = 4;
    for (int u = 0; u < UNITS; u++)
        for (int k = 0; k < ROWS; k++) {
            for (int i = 0; i < POSITIONS; i++) {
                w->tokens[u][k][i] = random_below(&seed, n_vocab);
                w->targets[u][k][i] = random_below(&seed, n_vocab);
                w->weights[u][k][i] = i % 5 == 0 ? 0 : i > begins[1] ? -0.05f : 1;
            }
            w->rows[u][k] = (dpi_row){POSITIONS, 2, begins, w->tokens[u][k], w->targets[u][k],
                                      w->weights[u][k]};
        }
    return w;
}

typedef struct base {
    tiny_spec spec;
    void *image;
    dpi_model *model;
} base;

static inline base open_base(uint32_t type) {
    base b = {.spec = tiny_default()};
    b.spec.type = type;
    b.model = tiny_open(&b.spec, 3, &b.image);
    return b;
}

static inline void close_base(base *b) {
    dpi_model_close(b->model);
    free(b->image);
}

/* 1: the tests are of all weights in place of adapters. */
static int32_t full;

static inline dpi_tuner_options options_of(const dpi_model *model) {
    return (dpi_tuner_options){.model = model, .full = full, .rank = RANK, .alpha = 3,
                               .targets = DPI_LORA_ALL, .seed = 8, .n_positions = POSITIONS,
                               .n_threads = 2,
                               .share = DPI_POISSON_ONE, .expected = 5, .clip = .7, .sigma = 0,
                               .n_steps = 20, .lr = .01, .least = .01};
}

static inline dpi_tuner *open_tuner(const dpi_tuner_options *o) {
    dpi_tuner *t;
    dpi_error err;
    assert_ok(dpi_tuner_create(o, &t, &err), &err);
    return t;
}

/* Adapters that are not those of the beginning, where half of the gradient is zero. */
static inline void spread(dpi_tuner *t) {
    const int64_t n = dpi_tuner_lora(t)->n_params;
    float *x = dpi_calloc((size_t)n, sizeof *x), *zero = dpi_calloc((size_t)n, sizeof *zero);
    uint64_t seed = 17;
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(.1 * random_normal(&seed));
    assert_ok(dpi_tuner_restore(t, (const float *const[]){x, zero, zero}, 0, NULL), NULL);
    free(x), free(zero);
}

static inline int64_t *sum_of(dpi_tuner *t, const dpi_tuner_units *units, const uint8_t *joins) {
    int64_t *sum = dpi_calloc((size_t)dpi_tuner_lora(t)->n_params, sizeof *sum);
    static const uint64_t bits[UNITS];
    assert_ok(dpi_tuner_sum(t, units, joins, bits, sum, NULL), NULL);
    return sum;
}

static inline void assert_refused_tuner(const dpi_tuner_options *o, dpi_status status,
                                        const char *part) {
    dpi_tuner *t = NULL;
    dpi_error err;
    assert_error(dpi_tuner_create(o, &t, &err), status, &err, part);
    assert_null(t);
}

#endif
