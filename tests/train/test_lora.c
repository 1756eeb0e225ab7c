/* Gradients of low-rank adapters against central finite differences of fourth order in double
 * precision, and their loss against that of weights to which they are added. */
#include <math.h>

#include "tests/train/gradient_support.h"
#include "train/graph.h"
#include "train/lora.h"

enum { POSITIONS = 90, VOCAB = 11, RANK = 3 };

typedef struct lora_case {
    dpi_graph_shape shape;
    dpi_graph_layout layout;
    dpi_lora lora;
    dpi_row row;
    int32_t tokens[POSITIONS], targets[POSITIONS];
    float weights[POSITIONS];
    double *params, *gradient, *work;
} lora_case;

static const int32_t begins[] = {0, 1, 20, POSITIONS};

static void make_case_of(lora_case *c, uint32_t targets, const dpi_graph_shape *shape) {
    uint64_t state = 11;
    *c = (lora_case){.shape = *shape};
    dpi_graph_layout_of(&c->shape, &c->layout);
    dpi_lora_of(&c->shape, RANK, 1.5f, targets, &c->lora);
    c->shape.lora = &c->lora;
    c->params = random_array(c->layout.n_params + c->lora.n_params, &state);
    c->gradient = random_array(c->lora.n_params, &state); /* what is there must not matter */
    c->work = dpi_calloc(dpi_graph_f64.work_size(&c->shape), sizeof *c->work);
    dpi_graph_f64.work_init(&c->shape, c->work);
    for (int i = 0; i < POSITIONS; i++) {
        c->tokens[i] = random_below(&state, VOCAB);
        c->targets[i] = random_below(&state, VOCAB);
        /* The last example is one that is to become less likely. */
        c->weights[i] = i % 4 == 0 ? 0 : i >= begins[2] ? -0.05f : 1;
    }
    c->row = (dpi_row){POSITIONS, 3, begins, c->tokens, c->targets, c->weights};
}

static void make_case(lora_case *c, uint32_t targets, int32_t tied) {
    const dpi_graph_shape shape = {.n_layer = 2, .dim = 8, .n_head = 4, .n_kv_head = 2, .ffn = 10,
                                   .n_vocab = VOCAB, .context = POSITIONS, .tied = tied,
                                   .rms_eps = 1e-5f, .rope_base = 100, .blas = &one_thread};
    make_case_of(c, targets, &shape);
}

static void free_case(lora_case *c) {
    free(c->params), free(c->gradient), free(c->work);
}

static double loss(void *context) {
    lora_case *c = context;
    return 0.5 * dpi_graph_f64.loss(&c->shape, c->params, &c->row, 0.5, NULL, c->work);
}

static void check_gradient(uint32_t targets, int32_t tied) {
    lora_case c;
    make_case(&c, targets, tied);
    dpi_graph_f64.loss(&c.shape, c.params, &c.row, 0.5, c.gradient, c.work);
    double largest = 0;
    for (int64_t i = 0; i < c.lora.n_params; i++)
        largest = fmax(largest, fabs(c.gradient[i]));
    assert_true(largest > 1e-3); /* a gradient of zeros would prove nothing */
    for (int64_t i = 0; i < c.lora.n_params; i++) {
        const double numeric = derivative(loss, &c, c.params + c.layout.n_params + i);
        if (fabs(numeric - c.gradient[i]) > 2e-7 * largest)
            fail_msg("adapter %lld of %lld: gradient %.12g, finite difference %.12g", (long long)i,
                     (long long)c.lora.n_params, c.gradient[i], numeric);
    }
    free_case(&c);
}

static void test_gradient_all(void **state) {
    (void)state;
    check_gradient(DPI_LORA_ALL, 1);
}

/* Each matrix alone, so that none has another's gradient. */
static void test_gradient_each(void **state) {
    (void)state;
    for (uint32_t i = 0; i < DPI_LORA_MATRICES; i++)
        check_gradient(1u << i, 0);
}

static void test_gradient_some(void **state) {
    (void)state;
    check_gradient(1 << DPI_LORA_K | 1 << DPI_LORA_V | 1 << DPI_LORA_UP, 1);
}

/* The loss with adapters is that of the weights W + alpha / rank B A, without any. */
static void check_merged(uint32_t targets) {
    lora_case c;
    make_case(&c, targets, 0);
    const double adapted = loss(&c);
    for (int32_t l = 0; l < c.shape.n_layer; l++)
        for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
            const dpi_lora_matrix *m = &c.lora.matrix[i];
            const double *a = c.params + c.layout.n_params + l * c.lora.layer_size + m->a;
            const double *b = c.params + c.layout.n_params + l * c.lora.layer_size + m->b;
            double *w = c.params + c.layout.layers + l * c.layout.layer_size + m->weights;
            for (int64_t o = 0; m->a >= 0 && o < m->n_out; o++)
                for (int64_t in = 0; in < m->n_in; in++)
                    for (int32_t r = 0; r < RANK; r++)
                        w[o * m->n_in + in] += 0.5 * b[o * RANK + r] * a[r * m->n_in + in];
        }
    const double without = loss(&c);
    c.shape.lora = NULL;
    const double merged = loss(&c);
    assert_true(fabs(without - adapted) > 1e-3 * fabs(adapted)); /* adapters count */
    if (!(fabs(merged - adapted) < 1e-10 * fabs(adapted)))
        fail_msg("loss with adapters %.17g, of merged weights %.17g", adapted, merged);
    free_case(&c);
}

static void test_merged(void **state) {
    (void)state;
    check_merged(DPI_LORA_ALL);
    for (uint32_t i = 0; i < DPI_LORA_MATRICES; i++)
        check_merged(1u << i);
}

/* The adapters tile the array: none shares a number with another, none is left out. */
static void test_layout(void **state) {
    (void)state;
    lora_case c;
    make_case(&c, 1 << DPI_LORA_Q | 1 << DPI_LORA_DOWN, 1);
    unsigned char *seen = dpi_calloc((size_t)c.lora.n_params, 1);
    for (int32_t l = 0; l < c.shape.n_layer; l++)
        for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
            const dpi_lora_matrix *m = &c.lora.matrix[i];
            assert_int_equal(m->a >= 0, i == DPI_LORA_Q || i == DPI_LORA_DOWN);
            for (int64_t j = 0; m->a >= 0 && j < RANK * m->n_in; j++)
                seen[l * c.lora.layer_size + m->a + j]++;
            for (int64_t j = 0; m->a >= 0 && j < RANK * m->n_out; j++)
                seen[l * c.lora.layer_size + m->b + j]++;
        }
    for (int64_t i = 0; i < c.lora.n_params; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
    free_case(&c);
}

/* A new adapter changes nothing, and can be learned: its B has a gradient. */
static void test_init(void **state) {
    (void)state;
    lora_case c;
    make_case(&c, DPI_LORA_ALL, 1);
    float *adapters = dpi_calloc((size_t)c.lora.n_params, sizeof *adapters);
    dpi_lora_init(&c.lora, c.shape.n_layer, 5, adapters);
    for (int64_t i = 0; i < c.lora.n_params; i++)
        c.params[c.layout.n_params + i] = adapters[i];
    const double begun = loss(&c);
    c.shape.lora = NULL;
    assert_true(begun >= loss(&c) && begun <= loss(&c));
    c.shape.lora = &c.lora;
    dpi_graph_f64.loss(&c.shape, c.params, &c.row, 1, c.gradient, c.work);
    double of_a = 0, of_b = 0;
    for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
        const dpi_lora_matrix *m = &c.lora.matrix[i];
        for (int64_t j = 0; j < RANK * m->n_in; j++)
            of_a = fmax(of_a, fabs(c.gradient[m->a + j]));
        for (int64_t j = 0; j < RANK * m->n_out; j++)
            of_b = fmax(of_b, fabs(c.gradient[m->b + j]));
    }
    assert_true(of_a == 0 && of_b > 1e-3);
    free(adapters);
    free_case(&c);
}

/* The matrices of a case as the base of another shape. */
static void read_rows(const void *user, int32_t layer, int32_t matrix, int64_t first, int64_t n,
                      float *to) {
    const lora_case *c = user;
    const bool in_layer = matrix < DPI_LORA_MATRICES;
    const dpi_lora_matrix *m = in_layer ? &c->lora.matrix[matrix] : NULL;
    const int64_t n_in = in_layer ? m->n_in : c->shape.dim;
    const int64_t begin = in_layer ? c->layout.layers + layer * c->layout.layer_size + m->weights
                          : matrix == DPI_GRAPH_OUTPUT ? c->layout.output
                                                       : c->layout.embedding;
    assert_in_range(first + n, 1, in_layer ? m->n_out : c->shape.n_vocab);
    for (int64_t i = 0; i < n * n_in; i++)
        to[i] = (float)c->params[begin + first * n_in + i];
}

/* The norms, and the adapters behind them. */
static float *base_params(const lora_case *c, const dpi_graph_shape *shape) {
    const size_t dim = (size_t)c->shape.dim;
    dpi_graph_layout at;
    dpi_graph_layout_of(shape, &at);
    assert_int_equal(at.n_params, c->shape.dim * (2 * c->shape.n_layer + 1));
    float *params = dpi_calloc((size_t)(at.n_params + c->lora.n_params), sizeof *params);
    for (size_t i = 0; i < dim; i++)
        params[at.output_norm + (int64_t)i] = (float)c->params[c->layout.output_norm + (int64_t)i];
    for (int32_t l = 0; l < c->shape.n_layer; l++)
        for (size_t i = 0; i < dim; i++) {
            float *to = params + at.layers + l * at.layer_size + i;
            const double *from = c->params + c->layout.layers + l * c->layout.layer_size + i;
            to[at.attn_norm] = (float)from[c->layout.attn_norm];
            to[at.ffn_norm] = (float)from[c->layout.ffn_norm];
        }
    for (int64_t i = 0; i < c->lora.n_params; i++)
        params[at.n_params + i] = (float)c->params[c->layout.n_params + i];
    return params;
}

static void check_f32(const lora_case *c, double wanted, const dpi_graph_shape *shape,
                      const dpi_graph *graph, const float *params) {
    float *gradient = dpi_calloc((size_t)c->lora.n_params, sizeof *gradient);
    float *work = dpi_calloc(graph->work_size(shape), sizeof *work);
    graph->work_init(shape, work);
    const double found = graph->loss(shape, params, &c->row, 1, gradient, work);
    double error = 0, square = 0;
    for (int64_t i = 0; i < c->lora.n_params; i++) {
        error += pow((double)gradient[i] - c->gradient[i], 2);
        square += pow(c->gradient[i], 2);
    }
    if (!(error < 1e-9 * square))
        fail_msg("f32 gradient of adapters: NMSE %g", error / square);
    if (!(fabs(found - wanted) < 1e-5 * fabs(wanted)))
        fail_msg("f32 loss %.9g, in double %.9g", found, wanted);
    free(gradient), free(work);
}

/* Weights in one array, and those of a base. */
static void compare_f32(const dpi_graph *graph, const dpi_graph_shape *of, double scale) {
    lora_case c;
    make_case_of(&c, DPI_LORA_ALL, of);
    const size_t n = (size_t)(c.layout.n_params + c.lora.n_params);
    float *params = dpi_calloc(n, sizeof *params);
    for (size_t i = 0; i < n; i++)
        c.params[i] = params[i] = (float)(scale * c.params[i]);
    const double wanted =
        dpi_graph_f64.loss(&c.shape, c.params, &c.row, 1, c.gradient, c.work);
    check_f32(&c, wanted, &c.shape, graph, params);
    free(params);
    const dpi_graph_base base = {read_rows, &c};
    dpi_graph_shape shape = c.shape;
    shape.base = &base;
    params = base_params(&c, &shape);
    check_f32(&c, wanted, &shape, graph, params);
    free(params);
    free_case(&c);
}

/* The second shape has matrices of more than one tile. */
static void test_f32(void **state) {
    (void)state;
    const dpi_graph_shape shapes[] = {
        {.n_layer = 2, .dim = 8, .n_head = 4, .n_kv_head = 2, .ffn = 10, .n_vocab = VOCAB,
         .context = POSITIONS, .rms_eps = 1e-5f, .rope_base = 100, .blas = &one_thread},
        {.n_layer = 1, .dim = 1088, .n_head = 8, .n_kv_head = 2, .ffn = 1100, .n_vocab = 1200,
         .context = POSITIONS, .tied = 1, .rms_eps = 1e-5f, .rope_base = 100,
         .blas = &one_thread}};
    compare_f32(&dpi_graph_f32, &shapes[0], 1);
    compare_f32(dpi_graph_best(), &shapes[0], 1);
    compare_f32(dpi_graph_best(), &shapes[1], .03);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_all),  cmocka_unit_test(test_gradient_each),
        cmocka_unit_test(test_gradient_some), cmocka_unit_test(test_merged),
        cmocka_unit_test(test_layout),        cmocka_unit_test(test_init),
        cmocka_unit_test(test_f32),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
