/* tuner_support.h - what the tests of private training share: made-up units, tiny bases, tuners. */
#ifndef DPI_TUNER_SUPPORT_H
#define DPI_TUNER_SUPPORT_H

#include "base/mem.h"
#include "dp/exact/poisson.h"
#include "tests/support/own.h"
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
            int32_t *tokens = w->tokens[u][k], *targets = w->targets[u][k];
            float *weights = w->weights[u][k];
            for (int i = 0; i < POSITIONS; i++) {
                tokens[i] = random_below(&seed, n_vocab);
                targets[i] = random_below(&seed, n_vocab);
                weights[i] = i % 5 == 0 ? 0 : i > begins[1] ? -0.05f : 1;
            }
            w->rows[u][k] = (dpi_row){POSITIONS, 2, begins, tokens, targets, weights};
        }
    return w;
}

/* A base, and units whose tokens it has. */
typedef struct base {
    void *image;
    dpi_model *model;
    world *w;
    dpi_tuner_units units;
} base;

static inline base *open_shape(const tiny_spec *spec, uint64_t seed) {
    base *b = dpi_calloc(1, sizeof *b);
    b->w = make_world(spec->n_vocab);
    b->model = tiny_open(spec, seed, &b->image);
    b->units = (dpi_tuner_units){.n = UNITS, .row = next_row, .user = b->w};
    return b;
}

static inline base *open_base(uint32_t type) {
    tiny_spec spec = tiny_default();
    spec.type = type, spec.n_embd = 32, spec.n_ff = 64;
    return open_shape(&spec, 3);
}

static inline void close_base(base *b) {
    dpi_model_close(b->model);
    free(b->image), free(b->w), free(b);
}

OWNED(base, close_base)
OWNED(dpi_tuner, dpi_tuner_free)

/* 1: the tests are of all weights in place of adapters. */
static int32_t full;

static inline dpi_tuner_options options_of(const dpi_model *model) {
    dpi_tuner_options o = {.model = model, .full = full, .rank = RANK, .alpha = 3};
    o.targets = DPI_LORA_ALL, o.seed = 8, o.n_positions = POSITIONS, o.n_threads = 2;
    o.share = DPI_POISSON_ONE, o.expected = 5, o.clip = .7, o.sigma = 0;
    o.n_steps = 20, o.lr = .01, o.least = .01;
    return o;
}

static inline dpi_tuner *open_tuner(const dpi_tuner_options *o) {
    dpi_tuner *t;
    assert_ok(dpi_tuner_create(o, &t, ERR));
    return t;
}

static inline size_t n_params(const dpi_tuner *t) { return (size_t)dpi_tuner_lora(t)->n_params; }

/* The adapters as they are now; the caller's. */
static inline float *copy_adapters(const dpi_tuner *t) {
    float *x = dpi_calloc(n_params(t), sizeof *x);
    return memcpy(x, dpi_tuner_adapters(t), n_params(t) * sizeof *x);
}

/* Adapters that are not those of the beginning, where half of the gradient is zero. */
static inline void spread(dpi_tuner *t) {
    OWN_ARRAY(float) x = copy_adapters(t);
    OWN_ARRAY(float) zero = dpi_calloc(n_params(t), sizeof *zero);
    uint64_t seed = 17;
    for (size_t i = 0; i < n_params(t); i++)
        x[i] = (float)(.1 * random_normal(&seed));
    assert_ok(dpi_tuner_restore(t, (const float *const[]){x, zero, zero}, 0, ERR));
}

/* The sum of the units whose bits are set; the caller's. */
static inline int64_t *sum_of(dpi_tuner *t, const dpi_tuner_units *units, unsigned set) {
    static const uint64_t bits[UNITS];
    uint8_t joins[UNITS];
    int64_t *sum = dpi_calloc(n_params(t), sizeof *sum);
    for (int u = 0; u < UNITS; u++)
        joins[u] = set >> u & 1;
    assert_ok(dpi_tuner_sum(t, units, joins, bits, sum, ERR));
    return sum;
}

static inline void assert_refused_tuner(const dpi_tuner_options *o, dpi_status status,
                                        const char *part) {
    dpi_tuner *t = NULL;
    assert_status(dpi_tuner_create(o, &t, ERR), status, part);
    assert_null(t);
}

#endif
