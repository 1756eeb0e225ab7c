/* Private training computes the graph of its base: gradients of units against a second
 * implementation in double precision, whose gradients are those of finite differences, and logits
 * against the definition of the model; for every weight type and shape. */
#include "kernels/weight_types.h"
#include "tests/train/gradient_support.h"
#include "tests/train/tuner_support.h"

/* ---- The graph of a base --------------------------------------------------------------------- */

/* What a unit adds, before it is rounded, in double. */
static void add_unit(graph_case *c, const world *w, int unit, double clip, double *sum) {
    const int64_t n = c->n_trained;
    double square = 0;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int k = 0; k < n_rows[unit]; k++) {
        c->row = w->rows[unit][k];
        differentiate(c);
        for (int64_t i = 0; i < n; i++)
            sum[i] += c->gradient[i];
    }
    for (int64_t i = 0; i < n; i++)
        square += sum[i] * sum[i];
    const double norm = sqrt(square), scale = norm > clip ? clip / norm : 1;
    for (int64_t i = 0; i < n; i++)
        sum[i] *= scale;
}

static void check_base(const tiny_spec *spec, double clip) {
    OWN(base) b = open_shape(spec, 3);
    dpi_tuner_options options = options_of(b->model);
    options.clip = clip;
    OWN(dpi_tuner) t = open_tuner(&options);
    spread(t);
    /* The oracle: the same weights in one array, and the same adapters. */
    dpi_graph_shape shape;
    dpi_base_tables tables;
    assert_ok(dpi_base_shape(b->model, POSITIONS, &tables, &shape, ERR));
    shape.blas = &one_thread;
    OWN(graph_case) c = open_graph(&shape, full ? 0 : DPI_LORA_ALL, RANK, 3);
    const int64_t n = c->n_trained;
    OWN_ARRAY(float) params = dpi_calloc((size_t)c->at.n_params, sizeof *params);
    OWN_ARRAY(double) wanted = dpi_calloc((size_t)n, sizeof *wanted);
    dpi_base_read(b->model, &shape, params);
    for (int64_t i = 0; i < c->at.n_params; i++)
        c->params[i] = (double)params[i];
    for (int64_t i = 0; i < n; i++)
        c->trained[i] = (double)dpi_tuner_adapters(t)[i];
    c->row = b->w->rows[0][0];
    check_graph(c, 8, 1e-6, "row 0");
    for (int u = 0; u < UNITS; u++) {
        OWN_ARRAY(int64_t) sum = sum_of(t, &b->units, 1u << u);
        double error = 0, square = 0;
        add_unit(c, b->w, u, clip, wanted);
        for (int64_t i = 0; i < n; i++) {
            error += pow((double)sum[i] / (1 << 20) * clip - wanted[i], 2);
            square += pow(wanted[i], 2);
        }
        assert_true(n_rows[u] > 0 ? square > 1e-8 : square == 0);
        const double rounding = (double)n / 12 * pow(clip / (1 << 20), 2);
        if (!(error <= 1e-7 * square + 2 * rounding * (n_rows[u] > 0)))
            fail_msg("unit %d of type %u, clip %g: NMSE %g", u, spec->type, clip, error / square);
    }
    dpi_base_tables_free(&tables);
}

/* Adapters on every weight type that is loaded, all units clipped; and none clipped. */
TEST(test_units) {
    tiny_spec spec = tiny_default();
    check_base(&spec, 1e4);
    for (int32_t i = 0; dpi_type_at(i); i++) {
        const dpi_type *type = dpi_type_at(i);
        spec = tiny_default();
        spec.type = type->id;
        if (spec.n_embd % type->block) /* whole blocks in a row */
            spec.n_embd = spec.n_ff = type->block, spec.n_layer = 1;
        check_base(&spec, .7);
    }
}

/* All weights, of the types that are floats. */
TEST(test_units_full) {
    static const uint32_t types[] = {DPI_TYPE_F32, DPI_TYPE_F16, DPI_TYPE_BF16};
    tiny_spec spec = tiny_default();
    full = 1;
    check_base(&spec, 1e4);
    for (int i = 0; i < 3; i++) {
        spec.type = types[i];
        check_base(&spec, .7);
    }
    full = 0;
}

/* Biases stay as they are, only the first dimensions of a head turn, and heads have any width. */
TEST(test_units_shapes) {
    for (full = 0; full < 2; full++) {
        tiny_spec spec = tiny_default();
        spec.bias = 1;
        check_base(&spec, .7);
        spec.bias = 0, spec.n_rot = 8, spec.attn_factor = .8f;
        check_base(&spec, .7);
        spec.bias = 1, spec.rope_freqs = 1, spec.type = full ? DPI_TYPE_F16 : DPI_TYPE_Q8_0;
        check_base(&spec, .7);
        spec.head_dim = 40, spec.head_dim_v = 24; /* wider than the model, and narrower */
        check_base(&spec, .7);
        spec.head_dim = 8, spec.head_dim_v = 32, spec.bias = 0;
        check_base(&spec, .7);
    }
    full = 0;
}

/* The graph computes the logits that the definition of the model gives. */
static void check_logits(const tiny_spec *spec) {
    OWN(base) b = open_shape(spec, 6);
    dpi_graph_shape shape;
    dpi_graph_layout at;
    dpi_base_tables tables;
    assert_ok(dpi_base_shape(b->model, POSITIONS, &tables, &shape, ERR));
    dpi_graph_layout_of(&shape, &at);
    shape.blas = &one_thread;
    const dpi_graph *graph = dpi_graph_best();
    const size_t n = (size_t)POSITIONS * (size_t)spec->n_vocab;
    OWN_ARRAY(float) params = dpi_calloc((size_t)at.n_params, sizeof *params);
    OWN_ARRAY(float) logits = dpi_calloc(n, sizeof *logits);
    OWN_ARRAY(float) work = dpi_calloc(graph->work_size(&shape), sizeof *work);
    OWN_ARRAY(double) wanted = dpi_calloc(n, sizeof *wanted);
    const int32_t whole[] = {0, POSITIONS};
    dpi_row row = b->w->rows[0][0];
    row.n_segments = 1, row.begins = whole;
    dpi_base_read(b->model, &shape, params);
    graph->work_init(&shape, work);
    graph->logits(&shape, params, &row, logits, work);
    oracle_logits(spec, b->model, row.tokens, POSITIONS, NULL, wanted);
    assert_nmse(logits, wanted, (int64_t)n, 1e-9);
    dpi_base_tables_free(&tables);
}

TEST(test_logits) {
    tiny_spec spec = tiny_default();
    check_logits(&spec);
    spec.tied = !spec.tied, spec.rope_freqs = 1;
    check_logits(&spec);
    spec.rope_freqs = 0, spec.rope_factor = 4, spec.rope_base = 500, spec.type = 8;
    check_logits(&spec);
    spec.rope_factor = 0, spec.llama3_factor = 8, spec.attn_factor = 1.5f;
    check_logits(&spec);
    spec = tiny_default(), spec.bias = 1;
    check_logits(&spec);
    spec.n_rot = 8;
    check_logits(&spec);
    spec.bias = 0;
    check_logits(&spec);
    spec.head_dim = 24, spec.head_dim_v = 40;
    check_logits(&spec);
}

/* Numbers of what is trained: biases are not among them. */
TEST(test_biases_frozen) {
    tiny_spec spec = tiny_default();
    OWN(base) plain = open_shape(&spec, 3);
    spec.bias = 1;
    OWN(base) biased = open_shape(&spec, 3);
    for (full = 0; full < 2; full++) {
        dpi_tuner_options o = options_of(plain->model);
        OWN(dpi_tuner) one = open_tuner(&o);
        o.model = biased->model;
        OWN(dpi_tuner) other = open_tuner(&o);
        assert_int_equal(dpi_tuner_lora(one)->n_params, dpi_tuner_lora(other)->n_params);
        assert_non_null(dpi_tuner_shape(other)->biases);
        assert_null(dpi_tuner_shape(one)->biases);
    }
    full = 0;
}
