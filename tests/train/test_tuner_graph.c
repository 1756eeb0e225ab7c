/* Private training computes the graph of its base: gradients of units against a second
 * implementation in double precision, whose gradients are those of finite differences, and logits
 * against the definition of the model; for every weight type and shape. */
#include <math.h>

#include "kernels/weight_types.h"
#include "tests/train/gradient_support.h"
#include "tests/train/tuner_support.h"

/* ---- The graph of a base --------------------------------------------------------------------- */

/* In double, from the same weights, all of them in one array. */
typedef struct oracle {
    dpi_graph_shape shape;
    dpi_graph_layout at;
    dpi_lora lora;
    dpi_blas blas;
    dpi_base_tables tables;
    double *params, *gradient, *sum, *work;
} oracle;

/* *o points into itself: it must stay where it is. */
static void open_oracle(const dpi_model *model, const float *adapters, oracle *o) {
    *o = (oracle){0};
    assert_ok(dpi_blas_open(&o->blas, 1, NULL), NULL);
    assert_ok(dpi_base_shape(model, POSITIONS, &o->tables, &o->shape, NULL), NULL);
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
    dpi_base_tables_free(&o->tables);
    free(o->params), free(o->gradient), free(o->sum), free(o->work);
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

/* The oracle's gradient of row 0 by what is trained, against finite differences: where it is
 * largest, and at places in between. */
typedef struct row_loss {
    oracle *o;
    const dpi_row *row;
} row_loss;

static double loss_of(void *context) {
    const row_loss *r = context;
    return dpi_graph_f64.loss(&r->o->shape, r->o->params, r->row, 1, NULL, r->o->work);
}

static void check_differences(oracle *o, const world *w) {
    row_loss r = {o, &w->rows[0][0]};
    const int64_t n = o->lora.n_params;
    int64_t most = 0;
    dpi_graph_f64.loss(&o->shape, o->params, r.row, 1, o->gradient, o->work);
    for (int64_t i = 0; i < n; i++)
        most = fabs(o->gradient[i]) > fabs(o->gradient[most]) ? i : most;
    const double largest = fabs(o->gradient[most]);
    assert_true(largest > 1e-3);
    for (int64_t k = 0; k < 8; k++) {
        const int64_t at = k == 0 ? most : n * k / 8 + 1;
        const double found = derivative(loss_of, &r, o->params + (full ? 0 : o->at.n_params) + at);
        if (fabs(found - o->gradient[at]) > 1e-6 * largest)
            fail_msg("number %lld: gradient %.12g, finite difference %.12g", (long long)at,
                     o->gradient[at], found);
    }
}

static void check_base(base b, double clip) {
    world *w = make_world(b.spec.n_vocab);
    dpi_tuner_options options = options_of(b.model);
    options.clip = clip;
    dpi_tuner *t = open_tuner(&options);
    spread(t);
    oracle o;
    open_oracle(b.model, dpi_tuner_adapters(t), &o);
    check_differences(&o, w);
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
            fail_msg("unit %d of type %u, clip %g: NMSE %g", u, b.spec.type, clip, error / square);
        free(sum);
    }
    close_oracle(&o);
    dpi_tuner_free(t);
    free(w);
    close_base(&b);
}

static base open_shape(const tiny_spec *spec) {
    base b = {.spec = *spec};
    b.model = tiny_open(&b.spec, 3, &b.image);
    return b;
}

/* Adapters on every weight type that is loaded, all units clipped; and none clipped. */
static void test_units(void **state) {
    (void)state;
    for (int32_t i = 0; dpi_type_at(i); i++) {
        const dpi_type *type = dpi_type_at(i);
        tiny_spec spec = tiny_default();
        spec.type = type->id;
        if (spec.n_embd % type->block) /* whole blocks in a row */
            spec.n_embd = spec.n_ff = type->block, spec.n_layer = 1;
        check_base(open_shape(&spec), .7);
    }
    check_base(open_base(0), 1e4);
}

/* All weights, of the types that are floats. */
static void test_units_full(void **state) {
    (void)state;
    static const uint32_t types[] = {DPI_TYPE_F32, DPI_TYPE_F16, DPI_TYPE_BF16};
    full = 1;
    for (int i = 0; i < 3; i++)
        check_base(open_base(types[i]), .7);
    check_base(open_base(0), 1e4);
    full = 0;
}

/* Biases stay as they are, only the first dimensions of a head turn, and heads have any width. */
static void test_units_shapes(void **state) {
    (void)state;
    for (full = 0; full < 2; full++) {
        tiny_spec spec = tiny_default();
        spec.bias = 1;
        check_base(open_shape(&spec), .7);
        spec.bias = 0, spec.n_rot = 8;
        check_base(open_shape(&spec), .7);
        spec.bias = 1, spec.rope_freqs = 1, spec.type = full ? DPI_TYPE_F16 : DPI_TYPE_Q8_0;
        check_base(open_shape(&spec), .7);
        spec.head_dim = 40, spec.head_dim_v = 24; /* wider than the model, and narrower */
        check_base(open_shape(&spec), .7);
        spec.head_dim = 8, spec.head_dim_v = 32, spec.bias = 0;
        check_base(open_shape(&spec), .7);
    }
    full = 0;
}

/* The graph computes the logits that the definition of the model gives. */
static void check_logits(const tiny_spec *spec) {
    void *image;
    dpi_model *model = tiny_open(spec, 6, &image);
    dpi_graph_shape shape;
    dpi_graph_layout at;
    dpi_blas blas;
    dpi_base_tables tables;
    assert_ok(dpi_blas_open(&blas, 1, NULL), NULL);
    assert_ok(dpi_base_shape(model, POSITIONS, &tables, &shape, NULL), NULL);
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
    free(params), free(logits), free(work), free(wanted), free(w);
    dpi_base_tables_free(&tables);
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
    spec = tiny_default();
    spec.bias = 1;
    check_logits(&spec);
    spec.n_rot = 8;
    check_logits(&spec);
    spec.bias = 0;
    check_logits(&spec);
    spec.head_dim = 24, spec.head_dim_v = 40;
    check_logits(&spec);
}

/* Numbers of what is trained: biases are not among them. */
static void test_biases_frozen(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    base plain = open_shape(&spec);
    spec.bias = 1;
    base biased = open_shape(&spec);
    for (full = 0; full < 2; full++) {
        dpi_tuner_options o = options_of(plain.model);
        dpi_tuner *one = open_tuner(&o);
        o.model = biased.model;
        dpi_tuner *other = open_tuner(&o);
        assert_int_equal(dpi_tuner_lora(one)->n_params, dpi_tuner_lora(other)->n_params);
        assert_non_null(dpi_tuner_shape(other)->biases);
        assert_null(dpi_tuner_shape(one)->biases);
        dpi_tuner_free(one), dpi_tuner_free(other);
    }
    full = 0;
    close_base(&plain), close_base(&biased);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits), cmocka_unit_test(test_units),
        cmocka_unit_test(test_units_full), cmocka_unit_test(test_units_shapes),
        cmocka_unit_test(test_biases_frozen)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
