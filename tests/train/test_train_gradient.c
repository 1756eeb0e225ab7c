/* The gradient of the trainer's graph, and so of each of its operators, against central finite
 * differences of fourth order in double precision; its loss and logits against their definition. */
#include "tests/train/gradient_support.h"

static graph_case *open_model(int32_t tied, const int32_t *begins, int32_t n_segments) {
    const dpi_graph_shape shape = small_shape(MAX_POSITIONS, tied);
    return random_graph(&shape, 0, 1, begins, n_segments);
}

static void check_gradient(const dpi_graph_shape *shape, const int32_t *begins, int32_t n_segments,
                           int64_t n_places) {
    OWN(graph_case) c = random_graph(shape, 0, 1, begins, n_segments);
    c->scale = .5;
    check_graph(c, n_places, 1e-7, shape->tied ? "tied" : "untied");
}

/* All numbers of rows with a few positions; heads that are as wide as the model, wider for keys and
 * narrower for values, turned in part; and some of a row that is longer than a block of attention
 * and of the head. */
TEST(test_gradient) {
    static const int32_t begins[] = {0, 1, 8, 17}, blocks[] = {0, 5, MAX_POSITIONS};
    dpi_graph_shape shape = small_shape(MAX_POSITIONS, 1);
    check_gradient(&shape, begins, 3, 0);
    shape.tied = 0;
    check_gradient(&shape, begins, 3, 0);
    check_gradient(&shape, blocks, 2, 150);
    shape.head_dim = 6, shape.head_dim_v = 3, shape.n_rot = 4, shape.tied = 1;
    check_gradient(&shape, begins, 3, 0);
    check_gradient(&shape, blocks, 2, 150);
}

/* What LLaMA does not have, by the architecture, and all the rest at once: scales, caps, windows,
 * rotations of windows, none, a bias of logits. */
static dpi_graph_shape rich_shape(const dpi_arch *arch) {
    static const dpi_graph_layer layers[] = {
        {9, DPI_ROTATION_WINDOW, DPI_LAYER_ATTENTION},
        {0, DPI_ROTATION_ALL, DPI_LAYER_ATTENTION},
        {130, DPI_ROTATION_NONE, DPI_LAYER_ATTENTION},
    };
    static const double frequencies[] = {.5, .1, .7, .2};
    static const float bias[VOCAB] = {1, -1, .5f};
    dpi_graph_shape s = small_shape(MAX_POSITIONS, 1);
    s.arch = arch, s.layers = layers, s.n_layer = 3, s.head_dim = 6, s.head_dim_v = 4, s.n_rot = 4;
    s.n_rotations = 2, s.frequencies = frequencies, s.magnitudes[0] = 1.2;
    s.embedding_scale = 3, s.residual_scale = .4f, s.logit_scale = .5f, s.attention_scale = .3f;
    s.attention_cap = 2, s.final_cap = 4, s.temperature_scale = .5f, s.n_ctx_original = 16;
    s.output_bias = bias;
    return s;
}

/* Of those that have norms before blocks, after them, or both: rows with a few positions, and one
 * that is longer than a block of attention, whose window begins in the block before. */
TEST(test_gradient_rich) {
    static const dpi_arch *const archs[] = {&dpi_arch_gemma3, &dpi_arch_olmo2, &dpi_arch_granite};
    static const int32_t begins[] = {0, 1, 17}, blocks[] = {0, 5, MAX_POSITIONS};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        const dpi_graph_shape shape = rich_shape(archs[i]);
        check_gradient(&shape, begins, 2, 300);
        check_gradient(&shape, blocks, 2, 60);
    }
}

/* What a window does not see costs nothing: per pair of positions two products, three times. */
TEST(test_flops) {
    static const int32_t begins[] = {0, 5, 17};
    dpi_graph_shape shape = rich_shape(&dpi_arch_gemma3);
    OWN(graph_case) c = random_graph(&shape, 0, 1, begins, 2);
    const double windowed = dpi_graph_flops(&shape, &c->row);
    shape.layers = NULL;
    int n_hidden = 0; /* of the first layer, whose window is 9 */
    for (int t = 9; t < 12; t++)
        n_hidden += t + 1 - 9;
    assert_near(dpi_graph_flops(&shape, &c->row) - windowed, 6. * n_hidden * 4 * (6 + 4), 0);
}

/* Packed examples do not see each other: the logits of each are those that it has alone. */
TEST(test_packed_alone) {
    static const int32_t begins[] = {0, 1, 8, MAX_POSITIONS};
    static double packed[MAX_POSITIONS * VOCAB], alone[MAX_POSITIONS * VOCAB];
    const dpi_graph_shape shape = rich_shape(&dpi_arch_gemma3);
    OWN(graph_case) c = random_graph(&shape, 0, 1, begins, 3);
    dpi_graph_f64.logits(&c->shape, c->params, &c->row, packed, c->work);
    for (int s = 0; s < 3; s++) {
        const int32_t n = begins[s + 1] - begins[s], own[] = {0, n};
        const dpi_row row = {n, 1, own, c->tokens + begins[s], c->targets, c->weights};
        dpi_graph_f64.logits(&c->shape, c->params, &row, alone, c->work);
        for (int i = 0; i < n * VOCAB; i++)
            assert_near(alone[i], packed[begins[s] * VOCAB + i], 1e-11);
    }
}

/* A masked target can be anything, and it is the logits that the loss is made of. */
TEST(test_masked) {
    static const int32_t begins[] = {0, 9, 40};
    static double logits[MAX_POSITIONS * VOCAB];
    OWN(graph_case) c = open_model(0, begins, 2);
    double wanted = 0;
    dpi_graph_f64.logits(&c->shape, c->params, &c->row, logits, c->work);
    for (int t = 0; t < 40; t++) {
        double sum = 0;
        for (int i = 0; i < VOCAB; i++)
            sum += exp(logits[t * VOCAB + i]);
        wanted += (double)c->weights[t] * (log(sum) - logits[t * VOCAB + c->targets[t]]);
        if (c->weights[t] == 0)
            c->targets[t] = -1;
    }
    assert_near(loss_of(c), wanted, 1e-9);
}

/* Each version in float has the loss and the gradient of that in double. The order of sums is that
 * of the BLAS: an NMSE of 3e-11 to 1.2e-10 with OpenBLAS's four kinds of kernels for x86-64. */
static void compare_f32(const dpi_graph *graph) {
    static const int32_t begins[] = {0, 5, MAX_POSITIONS};
    const dpi_graph_shape shapes[] = {small_shape(MAX_POSITIONS, 1), rich_shape(&dpi_arch_gemma3)};
    for (int i = 0; i < 2; i++) {
        OWN(graph_case) c = random_graph(&shapes[i], 0, 1, begins, 2);
        OWN_ARRAY(float) params = round_params(c, 1);
        check_f32(c, graph, &c->shape, params, 5e-10);
    }
}

TEST(test_f32) {
    compare_f32(&dpi_graph_f32);
#if defined(__x86_64__)
    if (dpi_isa_runs(DPI_ISA_AVX2))
        compare_f32(&dpi_graph_f32_avx2);
    if (dpi_isa_runs(DPI_ISA_AVX512))
        compare_f32(&dpi_graph_f32_avx512);
#endif
}
