/* Private training of adapters, against a second implementation in double precision: the graph of
 * any base, sums that are those of the units alone, steps, noise without units, threads. */
#include "train/tuner.h"

#include <math.h>

#include "base/mem.h"
#include "dp/exact/gradient.h"
#include "dp/exact/poisson.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"
#include "train/base.h"

enum { UNITS = 7, ROWS = 3, POSITIONS = 24, RANK = 2 };

/* Rows of made-up units: unit 2 has none, unit 3 two, unit 5 three, the others one. */
typedef struct world {
    dpi_row rows[UNITS][ROWS];
    int32_t tokens[UNITS][ROWS][POSITIONS], targets[UNITS][ROWS][POSITIONS];
    float weights[UNITS][ROWS][POSITIONS];
} world;

static const int32_t n_rows[UNITS] = {1, 1, 0, 2, 1, 3, 1};
static const int32_t begins[] = {0, 9, POSITIONS};

static bool next_row(void *user, int64_t unit, int32_t k, uint64_t bits,
                     const dpi_row_buffer *buffer, dpi_row *row) {
    const world *w = user;
    (void)bits, (void)buffer;
    if (k >= n_rows[unit])
        return false;
    *row = w->rows[unit][k];
    return true;
}

static world *make_world(int32_t n_vocab) {
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

static base open_base(uint32_t type) {
    base b = {.spec = tiny_default()};
    b.spec.type = type;
    b.model = tiny_open(&b.spec, 3, &b.image);
    return b;
}

static void close_base(base *b) {
    dpi_model_close(b->model);
    free(b->image);
}

/* 1: the tests are of all weights in place of adapters. */
static int32_t full;

static dpi_tuner_options options_of(const dpi_model *model) {
    return (dpi_tuner_options){.model = model, .full = full, .rank = RANK, .alpha = 3,
                               .targets = DPI_LORA_ALL, .seed = 8, .n_positions = POSITIONS,
                               .n_threads = 2,
                               .share = DPI_POISSON_ONE, .expected = 5, .clip = .7, .sigma = 0,
                               .n_steps = 20, .lr = .01, .least = .01};
}

static dpi_tuner *open_tuner(const dpi_tuner_options *o) {
    dpi_tuner *t;
    dpi_error err;
    assert_ok(dpi_tuner_create(o, &t, &err), &err);
    return t;
}

/* Adapters that are not those of the beginning, where half of the gradient is zero. */
static void spread(dpi_tuner *t) {
    const int64_t n = dpi_tuner_lora(t)->n_params;
    float *x = dpi_calloc((size_t)n, sizeof *x), *zero = dpi_calloc((size_t)n, sizeof *zero);
    uint64_t seed = 17;
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(.1 * random_normal(&seed));
    assert_ok(dpi_tuner_restore(t, (const float *const[]){x, zero, zero}, 0, NULL), NULL);
    free(x), free(zero);
}

static int64_t *sum_of(dpi_tuner *t, const dpi_tuner_units *units, const uint8_t *joins) {
    int64_t *sum = dpi_calloc((size_t)dpi_tuner_lora(t)->n_params, sizeof *sum);
    static const uint64_t bits[UNITS];
    assert_ok(dpi_tuner_sum(t, units, joins, bits, sum, NULL), NULL);
    return sum;
}

/* ---- The graph of a base --------------------------------------------------------------------- */

/* In double, from the same weights, all of them in one array. */
typedef struct oracle {
    dpi_graph_shape shape;
    dpi_graph_layout at;
    dpi_lora lora;
    dpi_blas blas;
    double *frequencies, *params, *gradient, *sum, *work;
} oracle;

/* *o points into itself: it must stay where it is. */
static void open_oracle(const dpi_model *model, const float *adapters, oracle *o) {
    *o = (oracle){0};
    assert_ok(dpi_blas_open(&o->blas, 1, NULL), NULL);
    o->frequencies = dpi_calloc((size_t)dpi_base_frequencies(model), sizeof *o->frequencies);
    assert_ok(dpi_base_shape(model, POSITIONS, o->frequencies, &o->shape, NULL), NULL);
    dpi_graph_layout_of(&o->shape, &o->at);
    const int64_t n = o->at.n_params;
    dpi_lora_of(&o->shape, RANK, 3, DPI_LORA_ALL, &o->lora);
    if (full)
        o->lora.n_params = n;
    else
        o->shape.lora = &o->lora;
    o->shape.blas = &o->blas;
    float *params = dpi_calloc((size_t)n, sizeof *params);
    o->params = dpi_calloc((size_t)(n + o->lora.n_params), sizeof *o->params);
    o->gradient = dpi_calloc((size_t)o->lora.n_params, sizeof *o->gradient);
    o->sum = dpi_calloc((size_t)o->lora.n_params, sizeof *o->sum);
    o->work = dpi_calloc(dpi_graph_f64.work_size(&o->shape), sizeof *o->work);
    dpi_graph_f64.work_init(&o->shape, o->work);
    dpi_base_read(model, &o->shape, params);
    for (int64_t i = 0; i < n; i++)
        o->params[i] = (double)params[i];
    for (int64_t i = 0; i < o->lora.n_params; i++)
        o->params[full ? i : n + i] = (double)adapters[i];
    free(params);
}

static void close_oracle(oracle *o) {
    free(o->frequencies), free(o->params), free(o->gradient), free(o->sum), free(o->work);
    dpi_blas_close(&o->blas);
}

/* What a unit adds, before it is rounded. */
static void clipped_unit(oracle *o, const world *w, int unit, double clip) {
    const int64_t n = o->lora.n_params;
    double square = 0;
    memset(o->sum, 0, (size_t)n * sizeof *o->sum);
    for (int k = 0; k < n_rows[unit]; k++) {
        dpi_graph_f64.loss(&o->shape, o->params, &w->rows[unit][k], 1, o->gradient, o->work);
        for (int64_t i = 0; i < n; i++)
            o->sum[i] += o->gradient[i];
    }
    for (int64_t i = 0; i < n; i++)
        square += o->sum[i] * o->sum[i];
    const double norm = sqrt(square), scale = norm > clip ? clip / norm : 1;
    for (int64_t i = 0; i < n; i++)
        o->sum[i] *= scale;
}

static void check_units(uint32_t type, double clip) {
    base b = open_base(type);
    world *w = make_world(b.spec.n_vocab);
    dpi_tuner_options options = options_of(b.model);
    options.clip = clip;
    dpi_tuner *t = open_tuner(&options);
    spread(t);
    oracle o;
    open_oracle(b.model, dpi_tuner_adapters(t), &o);
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    for (int u = 0; u < UNITS; u++) {
        uint8_t joins[UNITS] = {0};
        joins[u] = 1;
        int64_t *sum = sum_of(t, &units, joins);
        clipped_unit(&o, w, u, clip);
        double error = 0, square = 0;
        for (int64_t i = 0; i < o.lora.n_params; i++) {
            error += pow((double)sum[i] / (1 << 20) * clip - o.sum[i], 2);
            square += pow(o.sum[i], 2);
        }
        assert_true(n_rows[u] > 0 ? square > 1e-8 : square == 0);
        const double rounding = (double)o.lora.n_params / 12 * pow(clip / (1 << 20), 2);
        if (!(error <= 1e-7 * square + 2 * rounding * (n_rows[u] > 0)))
            fail_msg("unit %d of type %u, clip %g: NMSE %g", u, type, clip, error / square);
        free(sum);
    }
    close_oracle(&o);
    dpi_tuner_free(t);
    free(w);
    close_base(&b);
}

/* F32, Q4_0, Q8_0, F16; all clipped, and none. */
static void test_units(void **state) {
    (void)state;
    static const uint32_t types[] = {0, 2, 8, 1};
    for (int i = 0; i < 4; i++)
        check_units(types[i], .7);
    check_units(0, 1e4);
}

/* The graph computes the logits that the definition of the model gives. */
static void check_logits(const tiny_spec *spec) {
    void *image;
    dpi_model *model = tiny_open(spec, 6, &image);
    dpi_graph_shape shape;
    dpi_graph_layout at;
    dpi_blas blas;
    double *frequencies = dpi_calloc((size_t)dpi_base_frequencies(model), sizeof *frequencies);
    assert_ok(dpi_blas_open(&blas, 1, NULL), NULL);
    assert_ok(dpi_base_shape(model, POSITIONS, frequencies, &shape, NULL), NULL);
    dpi_graph_layout_of(&shape, &at);
    shape.blas = &blas;
    const dpi_graph *graph = dpi_graph_best();
    const size_t n = (size_t)POSITIONS * (size_t)spec->n_vocab;
    float *params = dpi_calloc((size_t)at.n_params, sizeof *params);
    float *logits = dpi_calloc(n, sizeof *logits);
    float *work = dpi_calloc(graph->work_size(&shape), sizeof *work);
    double *wanted = dpi_calloc(n, sizeof *wanted), error = 0, square = 0;
    world *w = make_world(spec->n_vocab);
    const int32_t whole[] = {0, POSITIONS};
    const dpi_row row = {POSITIONS, 1, whole, w->tokens[0][0], w->targets[0][0], w->weights[0][0]};
    dpi_base_read(model, &shape, params);
    graph->work_init(&shape, work);
    graph->logits(&shape, params, &row, logits, work);
    oracle_logits(spec, model, row.tokens, POSITIONS, wanted);
    for (size_t i = 0; i < n; i++) {
        error += pow((double)logits[i] - wanted[i], 2);
        square += pow(wanted[i], 2);
    }
    if (!(error < 1e-9 * square))
        fail_msg("logits: NMSE %g", error / square);
    free(params), free(logits), free(work), free(wanted), free(frequencies), free(w);
    dpi_blas_close(&blas);
    dpi_model_close(model);
    free(image);
}

static void test_logits(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    check_logits(&spec);
    spec.tied = !spec.tied;
    spec.rope_freqs = 1;
    check_logits(&spec);
    spec.rope_freqs = 0;
    spec.rope_factor = 4;
    spec.rope_base = 500;
    spec.type = 8;
    check_logits(&spec);
    spec.rope_factor = 0;
    spec.llama3_factor = 8;
    check_logits(&spec);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static void check_sums(int32_t n_threads, bool hostile) {
    base b = open_base(0);
    world *w = make_world(b.spec.n_vocab);
    for (int i = 0; i < POSITIONS && hostile; i++) { /* NaN, infinite and huge gradients */
        w->weights[0][0][i] = NAN;
        w->weights[1][0][i] = i % 2 ? INFINITY : -INFINITY;
        w->weights[3][1][i] = 1e30f;
        w->weights[4][0][i] = 1e-40f;
    }
    dpi_tuner_options options = options_of(b.model);
    options.n_threads = n_threads;
    dpi_tuner *t = open_tuner(&options);
    spread(t);
    const int64_t n = dpi_tuner_lora(t)->n_params;
    const double most = (double)dpi_gradient_bound(n);
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    int64_t *alone[UNITS];
    for (int u = 0; u < UNITS; u++) {
        uint8_t joins[UNITS] = {0};
        double square = 0;
        joins[u] = 1;
        alone[u] = sum_of(t, &units, joins);
        for (int64_t i = 0; i < n; i++)
            square += (double)alone[u][i] * (double)alone[u][i];
        assert_true(square <= most * most);
    }
    uint64_t seed = 2;
    for (int k = 0; k < 6; k++) {
        uint8_t joins[UNITS];
        for (int u = 0; u < UNITS; u++)
            joins[u] = k == 0 || random_below(&seed, 2);
        int64_t *sum = sum_of(t, &units, joins);
        for (int64_t i = 0; i < n; i++) {
            int64_t wanted = 0;
            for (int u = 0; u < UNITS; u++)
                wanted += joins[u] ? alone[u][i] : 0;
            assert_int_equal(sum[i], wanted);
        }
        free(sum);
    }
    for (int u = 0; u < UNITS; u++)
        free(alone[u]);
    dpi_tuner_free(t);
    free(w);
    close_base(&b);
}

/* A unit more moves the sum by what it adds alone, at most D long, whatever its gradient is. */
static void test_sums(void **state) {
    (void)state;
    for (int32_t n_threads = 1; n_threads <= 4; n_threads++)
        check_sums(n_threads, n_threads % 2 == 0);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Adam in double on what each step releases. */
static void check_steps(int32_t unbiased, double sigma) {
    base b = open_base(0);
    world *w = make_world(b.spec.n_vocab);
    dpi_tuner_options options = options_of(b.model);
    uint64_t bits = 12;
    options.unbiased = unbiased, options.sigma = sigma;
    options.n_warmup = 2, options.lr_floor = .001;
    options.random = dpi_random_insecure, options.random_user = &bits;
    dpi_tuner *t = open_tuner(&options);
    spread(t);
    const int64_t n = dpi_tuner_lora(t)->n_params;
    double *x = dpi_calloc(3 * (size_t)n, sizeof *x), *m = x + n, *v = m + n;
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)dpi_tuner_adapters(t)[i];
    for (int step = 1; step <= 5; step++) {
        uint8_t all[UNITS];
        memset(all, 1, sizeof all);
        int64_t *sum = sum_of(t, &units, all);
        assert_ok(dpi_tuner_step(t, &units, NULL), NULL);
        assert_int_equal(dpi_tuner_steps_done(t), step);
        const double phase = 3.141592653589793 * (step - 2) / (20 - 2);
        const double rate = step <= 2 ? .01 * step / 2 : .001 + .009 * .5 * (1 + cos(phase));
        const double noise = pow(sigma * .7 / 5, 2);
        for (int64_t i = 0; i < n; i++) {
            const double g = (double)dpi_tuner_released(t)[i];
            if (sigma == 0) /* everyone joins: the sum over 5, a public number */
                assert_true(fabs(g - (double)sum[i] / (1 << 20) * .7 / 5) <= 1e-6 * fabs(g));
            m[i] = .9 * m[i] + .1 * g;
            v[i] = .999 * v[i] + .001 * g * g;
            const double mean = m[i] / (1 - pow(.9, step)), square = v[i] / (1 - pow(.999, step));
            x[i] -= rate * mean /
                    (unbiased ? sqrt(fmax(square - noise, .01 * noise)) : sqrt(square) + 1e-8);
            const double found = (double)dpi_tuner_adapters(t)[i];
            if (fabs(found - x[i]) > 1e-3 * rate + (unbiased ? .02 * fabs(x[i]) : 0))
                fail_msg("step %d, adapter %d: %.9g, wanted %.9g", step, (int)i, found, x[i]);
            x[i] = found; /* float and double part at most one step */
        }
        free(sum);
    }
    free(x);
    dpi_tuner_free(t);
    free(w);
    close_base(&b);
}

static void test_steps(void **state) {
    (void)state;
    check_steps(0, 0);
    check_steps(0, .5);
    check_steps(1, .5);
}

/* A step without units has its noise, of the deviation sigma D. */
static void test_empty_step(void **state) {
    (void)state;
    base b = open_base(0);
    dpi_tuner_options options = options_of(b.model);
    options.sigma = 2;
    dpi_tuner *t = open_tuner(&options);
    const int64_t n = dpi_tuner_lora(t)->n_params;
    const dpi_tuner_units none = {.n = 0, .row = next_row, .user = NULL};
    for (int step = 0; step < 3; step++) {
        double square = 0;
        assert_ok(dpi_tuner_step(t, &none, NULL), NULL);
        for (int64_t i = 0; i < n; i++)
            square += pow((double)dpi_tuner_released(t)[i], 2);
        const double wanted = 2 * .7 / 5 * (double)dpi_gradient_bound(n) / (1 << 20);
        assert_true(fabs(square / (double)n / wanted / wanted - 1) < 5 * sqrt(2 / (double)n));
    }
    dpi_tuner_free(t);
    close_base(&b);
}

/* n_first steps, the state put into a second tuner, the rest: the adapters, the caller's. */
static float *train(const base *b, world *w, int32_t n_threads, int n_first, int n_steps) {
    dpi_tuner_options options = options_of(b->model);
    uint64_t bits = 77;
    options.n_threads = n_threads;
    options.sigma = .8, options.share = DPI_POISSON_ONE / 2;
    options.random = dpi_random_insecure, options.random_user = &bits;
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    dpi_tuner *t = open_tuner(&options);
    for (int i = 0; i < n_steps; i++) {
        if (i == n_first) {
            const float *arrays[3];
            int64_t done;
            options.seed++; /* must not matter any more */
            dpi_tuner *next = open_tuner(&options);
            dpi_tuner_state(t, arrays, &done);
            assert_ok(dpi_tuner_restore(next, arrays, done, NULL), NULL);
            dpi_tuner_free(t);
            t = next;
        }
        assert_ok(dpi_tuner_step(t, &units, NULL), NULL);
    }
    const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
    float *adapters = dpi_calloc(n, sizeof *adapters);
    memcpy(adapters, dpi_tuner_adapters(t), n * sizeof *adapters);
    dpi_tuner_free(t);
    return adapters;
}

/* Of an adapter on Q8_0, or of the weights. */
static void test_resume(void **state) {
    (void)state;
    base b = open_base(full ? 0 : 8);
    world *w = make_world(b.spec.n_vocab);
    dpi_tuner_options options = options_of(b.model);
    dpi_tuner *t = open_tuner(&options);
    const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
    float *wanted = train(&b, w, 1, -1, 5);
    assert_true(memcmp(wanted, dpi_tuner_adapters(t), n * sizeof *wanted) != 0);
    dpi_tuner_free(t);
    for (int32_t n_threads = 1; n_threads <= 8; n_threads += n_threads)
        for (int n_first = -1; n_first <= 3; n_first += 2) {
            float *found = train(&b, w, n_threads, n_first, 5);
            assert_memory_equal(found, wanted, n * sizeof *found);
            free(found);
        }
    free(wanted);
    free(w);
    close_base(&b);
}

/* Without noise, what is trained becomes likelier and what is to become less likely does. */
static void test_learns(void **state) {
    (void)state;
    base b = open_base(0);
    world *w = make_world(b.spec.n_vocab);
    dpi_tuner_options options = options_of(b.model);
    dpi_tuner *t = open_tuner(&options);
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    const int32_t first[] = {0, 9}, second[] = {0, POSITIONS - 9};
    float ones[POSITIONS];
    for (int i = 0; i < POSITIONS; i++)
        ones[i] = 1;
    const dpi_row good = {9, 1, first, w->tokens[0][0], w->targets[0][0], ones};
    const dpi_row bad = {POSITIONS - 9, 1, second, w->tokens[0][0] + 9, w->targets[0][0] + 9, ones};
    const double good_before = dpi_tuner_loss(t, &good), bad_before = dpi_tuner_loss(t, &bad);
    for (int i = 0; i < 20; i++)
        assert_ok(dpi_tuner_step(t, &units, NULL), NULL);
    assert_true(dpi_tuner_loss(t, &good) < good_before - 1);
    assert_true(dpi_tuner_loss(t, &bad) > bad_before);
    dpi_error err;
    assert_error(dpi_tuner_step(t, &units, &err), DPI_STATUS_STATE, &err, "all 20 steps");
    dpi_tuner_free(t);
    free(w);
    close_base(&b);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static int32_t cancel_at(void *user) { return --*(int *)user < 0; }

/* A step that fails leaves nothing behind. */
static void test_undone(void **state) {
    (void)state;
    base b = open_base(0);
    world *w = make_world(b.spec.n_vocab);
    const dpi_tuner_units units = {.n = UNITS, .row = next_row, .user = w};
    for (int kind = 0; kind < 5; kind++) {
        dpi_tuner_options options = options_of(b.model);
        limited_source source = {5, kind - 2}; /* of the draw, of the bits, of the noise */
        int n_calls = 3;
        if (kind == 0)
            options.cancel = cancel_at, options.cancel_user = &n_calls, options.n_threads = 1;
        else if (kind > 1)
            options.random = limited_bits, options.random_user = &source, options.sigma = 1;
        else
            options.clip = 1e6, options.expected = 1e-30;
        dpi_tuner *t = open_tuner(&options);
        const float *arrays[3];
        int64_t done;
        dpi_tuner_state(t, arrays, &done);
        const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
        float *kept = dpi_calloc(n, sizeof *kept);
        memcpy(kept, arrays[0], n * sizeof *kept);
        const dpi_status wanted = kind == 0   ? DPI_STATUS_CANCELLED
                                  : kind == 1 ? DPI_STATUS_NUMERIC
                                              : DPI_STATUS_ENTROPY;
        assert_int_equal(dpi_tuner_step(t, &units, NULL), wanted);
        dpi_tuner_state(t, arrays, &done);
        assert_int_equal(done, 0);
        assert_memory_equal(arrays[0], kept, n * sizeof *kept);
        for (size_t i = 0; i < n; i++)
            assert_true(arrays[1][i] == 0 && arrays[2][i] == 0);
        free(kept);
        dpi_tuner_free(t);
    }
    free(w);
    close_base(&b);
}

static void assert_refused_tuner(const dpi_tuner_options *o, dpi_status status, const char *part) {
    dpi_tuner *t = NULL;
    dpi_error err;
    assert_error(dpi_tuner_create(o, &t, &err), status, &err, part);
    assert_null(t);
}

static void test_refused(void **state) {
    (void)state;
    base b = open_base(0);
    dpi_tuner_options good = options_of(b.model), o = good;
    o.rank = 0;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "rank");
    o = good, o.targets = 128;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "targets");
    o = good, o.share = 0;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "share");
    o = good, o.expected = 0;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "expected");
    o = good, o.clip = NAN;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "clip is nan");
    o = good, o.sigma = -1;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "sigma is -1");
    o = good, o.lr_floor = .5;
    assert_refused_tuner(&o, DPI_STATUS_ARG, "learning rates");
    close_base(&b);
    tiny_spec spec = tiny_default();
    spec.bias = 1;
    dpi_model *model = tiny_open(&spec, 3, &b.image);
    o = good, o.model = model;
    assert_refused_tuner(&o, DPI_STATUS_UNSUPPORTED, "biases");
    dpi_model_close(model), free(b.image);
    spec.bias = 0, spec.n_rot = 8;
    model = tiny_open(&spec, 3, &b.image);
    o.model = model;
    assert_refused_tuner(&o, DPI_STATUS_UNSUPPORTED, "rotated");
    dpi_model_close(model), free(b.image);
    spec.n_rot = 0, spec.head_dim = 24, spec.head_dim_v = 24;
    model = tiny_open(&spec, 3, &b.image);
    o.model = model;
    assert_refused_tuner(&o, DPI_STATUS_UNSUPPORTED, "24");
    dpi_model_close(model), free(b.image);
}

/* All weights, of the types that are floats, F32, F16 and BF16: the same steps and sums. */
static void test_full(void **state) {
    static const uint32_t types[] = {0, 1, 30};
    full = 1;
    for (int i = 0; i < 3; i++)
        check_units(types[i], .7);
    check_units(0, 1e4);
    test_sums(state), test_steps(state), test_empty_step(state);
    test_resume(state), test_learns(state), test_undone(state);
    full = 0;
}

/* It begins with the weights of the base, and refuses what is quantised. */
static void test_full_base(void **state) {
    (void)state;
    base b = open_base(1), coarse = open_base(8);
    dpi_tuner_options o = options_of(b.model);
    o.full = 1, o.rank = 0, o.targets = 0, o.alpha = 0;
    dpi_tuner *t = open_tuner(&o);
    const size_t n = (size_t)dpi_tuner_lora(t)->n_params;
    float *wanted = dpi_calloc(n, sizeof *wanted);
    dpi_base_read(b.model, dpi_tuner_shape(t), wanted);
    assert_memory_equal(dpi_tuner_adapters(t), wanted, n * sizeof *wanted);
    free(wanted);
    dpi_tuner_free(t);
    o.model = coarse.model;
    assert_refused_tuner(&o, DPI_STATUS_UNSUPPORTED, "full: found weights of type Q8_0");
    close_base(&b), close_base(&coarse);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),    cmocka_unit_test(test_units),
        cmocka_unit_test(test_sums),      cmocka_unit_test(test_steps),
        cmocka_unit_test(test_empty_step), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_learns),    cmocka_unit_test(test_undone),
        cmocka_unit_test(test_full),      cmocka_unit_test(test_full_base),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
