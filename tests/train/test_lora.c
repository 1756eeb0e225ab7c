/* Gradients of low-rank adapters against central finite differences of fourth order in double
 * precision, and their loss against that of weights to which they are added. */
#include "tests/train/gradient_support.h"

enum { POSITIONS = 90, RANK = 3 };

/* A row that is longer than a block of attention and of the head, and a short one. */
static const int32_t long_row[] = {0, 1, 20, POSITIONS}, short_row[] = {0, 1, 7, 24};

static graph_case *open_case(uint32_t targets, const dpi_graph_shape *shape,
                             const int32_t *begins) {
    graph_case *c = random_graph(shape, targets, RANK, begins, 3);
    for (int i = begins[2]; i < begins[3]; i++)
        c->weights[i] *= -.05f; /* the last example is to become less likely */
    return c;
}

static graph_case *open_small(uint32_t targets, int32_t tied, const int32_t *begins) {
    const dpi_graph_shape shape = small_shape(POSITIONS, tied);
    return open_case(targets, &shape, begins);
}

static void check_gradient(uint32_t targets, int32_t tied, const int32_t *begins) {
    OWN(graph_case) c = open_small(targets, tied, begins);
    c->scale = .5;
    check_graph(c, 0, 2e-7, "adapters");
}

/* All matrices; some; each alone, so that none has another's gradient. */
TEST(test_gradient) {
    check_gradient(DPI_LORA_ALL, 1, long_row);
    check_gradient(1 << DPI_LORA_K | 1 << DPI_LORA_V | 1 << DPI_LORA_UP, 1, short_row);
    for (uint32_t i = 0; i < DPI_LORA_MATRICES; i++)
        check_gradient(1u << i, 0, short_row);
}

/* The loss with adapters is that of the weights W + alpha / rank B A, without any. */
static void check_merged(uint32_t targets) {
    OWN(graph_case) c = open_small(targets, 0, long_row);
    const double adapted = loss_of(c);
    for (int32_t l = 0; l < c->shape.n_layer; l++)
        for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
            const dpi_lora_matrix *m = &c->lora.matrix[DPI_LAYER_ATTENTION][i];
            const double *a = c->trained + l * c->lora.sizes[DPI_LAYER_ATTENTION] + m->a;
            const double *b = c->trained + l * c->lora.sizes[DPI_LAYER_ATTENTION] + m->b;
            double *w = c->params + dpi_graph_layer_at(&c->shape, &c->at, l) + m->weights;
            for (int64_t o = 0; m->a >= 0 && o < m->n_out; o++)
                for (int64_t in = 0; in < m->n_in; in++)
                    for (int32_t r = 0; r < RANK; r++)
                        w[o * m->n_in + in] += 0.5 * b[o * RANK + r] * a[r * m->n_in + in];
        }
    const double both = loss_of(c);
    c->shape.lora = NULL;
    assert_true(fabs(both - adapted) > 1e-3 * fabs(adapted)); /* adapters count */
    assert_near(loss_of(c), adapted, 1e-10 * fabs(adapted));
}

TEST(test_merged) {
    check_merged(DPI_LORA_ALL);
    for (uint32_t i = 0; i < DPI_LORA_MATRICES; i++)
        check_merged(1u << i);
}

/* The adapters tile the array: none shares a number with another, none is left out. */
TEST(test_layout) {
    OWN(graph_case) c = open_small(1 << DPI_LORA_Q | 1 << DPI_LORA_DOWN, 1, long_row);
    OWN_ARRAY(unsigned char) seen = dpi_calloc((size_t)c->n_trained, 1);
    for (int32_t l = 0; l < c->shape.n_layer; l++)
        for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
            const dpi_lora_matrix *m = &c->lora.matrix[DPI_LAYER_ATTENTION][i];
            assert_int_equal(m->a >= 0, i == DPI_LORA_Q || i == DPI_LORA_DOWN);
            for (int64_t j = 0; m->a >= 0 && j < RANK * m->n_in; j++)
                seen[l * c->lora.sizes[DPI_LAYER_ATTENTION] + m->a + j]++;
            for (int64_t j = 0; m->a >= 0 && j < RANK * m->n_out; j++)
                seen[l * c->lora.sizes[DPI_LAYER_ATTENTION] + m->b + j]++;
        }
    for (int64_t i = 0; i < c->n_trained; i++)
        assert_int_equal(seen[i], 1);
}

/* A new adapter changes nothing, and can be learned: its B has a gradient. */
TEST(test_init) {
    OWN(graph_case) c = open_small(DPI_LORA_ALL, 1, long_row);
    OWN_ARRAY(float) adapters = dpi_calloc((size_t)c->n_trained, sizeof *adapters);
    dpi_lora_init(&c->lora, c->shape.n_layer, 5, adapters);
    for (int64_t i = 0; i < c->n_trained; i++)
        c->trained[i] = (double)adapters[i];
    const double begun = differentiate(c);
    double of_a = 0, of_b = 0;
    for (int32_t i = 0; i < DPI_LORA_MATRICES; i++) {
        const dpi_lora_matrix *m = &c->lora.matrix[DPI_LAYER_ATTENTION][i];
        for (int64_t j = 0; j < RANK * m->n_in; j++)
            of_a = fmax(of_a, fabs(c->gradient[m->a + j]));
        for (int64_t j = 0; j < RANK * m->n_out; j++)
            of_b = fmax(of_b, fabs(c->gradient[m->b + j]));
    }
    assert_true(of_a == 0 && of_b > 1e-3);
    c->shape.lora = NULL;
    assert_near(loss_of(c), begun, 0);
}

/* The matrices of a case as the base of another shape. */
static void read_rows(const void *user, int32_t layer, int32_t matrix, int64_t first, int64_t n,
                      float *to) {
    const graph_case *c = user;
    const bool in_layer = matrix < DPI_LORA_MATRICES;
    const dpi_lora_matrix *m = in_layer ? &c->lora.matrix[DPI_LAYER_ATTENTION][matrix] : NULL;
    const int64_t n_in = in_layer ? m->n_in : c->shape.dim;
    const int64_t begin = in_layer ? dpi_graph_layer_at(&c->shape, &c->at, layer) + m->weights
                          : matrix == DPI_GRAPH_OUTPUT ? c->at.output
                                                       : c->at.embedding;
    assert_in_range(first + n, 1, in_layer ? m->n_out : c->shape.n_vocab);
    for (int64_t i = 0; i < n * n_in; i++)
        to[i] = (float)c->params[begin + first * n_in + i];
}

/* Of the parameters in float those that a shape with a base has: the norms, and the adapters behind
 * them. */
static float *base_params(const graph_case *c, const dpi_graph_shape *shape, const float *params) {
    const size_t dim = (size_t)shape->dim * sizeof(float);
    dpi_graph_layout at;
    dpi_graph_layout_of(shape, &at);
    assert_int_equal(at.n_params, shape->dim * (2 * shape->n_layer + 1));
    float *of_base = dpi_calloc((size_t)(at.n_params + c->n_trained), sizeof *of_base);
    memcpy(of_base + at.output_norm, params + c->at.output_norm, dim);
    for (int32_t l = 0; l < shape->n_layer; l++) {
        float *to = of_base + at.layers + l * at.sizes[DPI_LAYER_ATTENTION];
        const float *from = params + c->at.layers + l * c->at.sizes[DPI_LAYER_ATTENTION];
        memcpy(to + at.attn_norm.at, from + c->at.attn_norm.at, dim);
        memcpy(to + at.ffn_norm.at, from + c->at.ffn_norm.at, dim);
    }
    memcpy(of_base + at.n_params, params + c->at.n_params, (size_t)c->n_trained * sizeof(float));
    return of_base;
}

/* Weights in one array, and those of a base. */
static void compare_f32(const dpi_graph *graph, const dpi_graph_shape *of, double factor) {
    OWN(graph_case) c = open_case(DPI_LORA_ALL, of, long_row);
    const dpi_graph_base base = {read_rows, c};
    dpi_graph_shape shape = c->shape;
    OWN_ARRAY(float) params = round_params(c, factor);
    check_f32(c, graph, &shape, params, 1e-9);
    shape.base = &base;
    OWN_ARRAY(float) of_base = base_params(c, &shape, params);
    check_f32(c, graph, &shape, of_base, 1e-9);
}

/* The second shape has matrices of more than one tile. */
TEST(test_f32) {
    dpi_graph_shape shape = small_shape(POSITIONS, 0);
    compare_f32(&dpi_graph_f32, &shape, 1);
    compare_f32(dpi_graph_best(), &shape, 1);
    shape.n_layer = 1, shape.dim = 1088, shape.n_head = 8, shape.ffn = 1100;
    shape.n_vocab = 1200, shape.tied = 1;
    compare_f32(dpi_graph_best(), &shape, .03);
}
