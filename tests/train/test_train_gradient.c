/* The gradient of every operator of the trainer, and of the whole model, against central finite
 * differences of fourth order in double precision. */
#define DPI_TRAIN_F64
#include "tests/train/gradient_support.h"
#include "train/attention.h"
#include "train/graph.h"

static void assert_near(double found, double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("found %.17g, wanted %.17g", found, wanted);
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void check_element(scalar_fn *f, void *context, double *x, double gradient, double scale,
                          const char *what) {
    const double numeric = derivative(f, context, x);
    if (fabs(numeric - gradient) > 1e-7 * scale)
        fail_msg("%s: gradient %.12g, finite difference %.12g", what, gradient, numeric);
}

/* Each of x's n elements; errors are measured against the largest gradient. */
static void check(scalar_fn *f, void *context, double *x, const double *gradient, int64_t n,
                  const char *what) {
    double scale = 0;
    for (int64_t i = 0; i < n; i++)
        scale = fabs(gradient[i]) > scale ? fabs(gradient[i]) : scale;
    assert_true(scale > 1e-3); /* a gradient of zeros would prove nothing */
    for (int64_t i = 0; i < n; i++)
        check_element(f, context, &x[i], gradient[i], scale, what);
}

/* ---- Operators ------------------------------------------------------------------------------- */

enum { ROWS = 5, N_IN = 6, N_OUT = 4 };

/* Inputs, output and the weights of the output in the scalar. */
typedef struct operands {
    double *x, *w, *y, *r, *c;
    const int32_t *index;
} operands;

static operands make_operands(int64_t n_x, int64_t n_w, int64_t n_y) {
    uint64_t state = 7;
    return (operands){random_array(n_x, &state), random_array(n_w, &state),
                      random_array(n_y, &state), random_array(ROWS, &state),
                      random_array(n_y, &state), NULL};
}

static void free_operands(operands *o) {
    free(o->x), free(o->w), free(o->y), free(o->r), free(o->c);
}

static double linear_scalar(void *context) {
    operands *o = context;
    op_linear(&one_thread, o->y, N_OUT, o->x, o->w, ROWS, N_IN, N_OUT, 0);
    return dot(o->y, o->c, ROWS * N_OUT);
}

static void test_linear(void **state) {
    (void)state;
    operands o = make_operands(ROWS * N_IN, N_OUT * N_IN, ROWS * N_OUT);
    double dx[ROWS * N_IN], dw[N_OUT * N_IN];
    op_linear_dx(&one_thread, dx, o.c, N_OUT, o.w, ROWS, N_IN, N_OUT, 0);
    op_linear_dw(&one_thread, dw, o.c, o.x, ROWS, N_IN, N_OUT, 0);
    check(linear_scalar, &o, o.x, dx, ROWS * N_IN, "linear dx");
    check(linear_scalar, &o, o.w, dw, N_OUT * N_IN, "linear dw");
    double twice[N_OUT * N_IN];
    memcpy(twice, dw, sizeof dw);
    op_linear_dw(&one_thread, twice, o.c, o.x, ROWS, N_IN, N_OUT, 1);
    for (int i = 0; i < N_OUT * N_IN; i++)
        assert_near(twice[i], 2 * dw[i], 1e-12);
    free_operands(&o);
}

static double rmsnorm_scalar(void *context) {
    operands *o = context;
    op_rmsnorm(o->y, o->r, o->x, o->w, ROWS, N_IN, 1e-2f);
    return dot(o->y, o->c, ROWS * N_IN);
}

static void test_rmsnorm(void **state) {
    (void)state;
    operands o = make_operands(ROWS * N_IN, N_IN, ROWS * N_IN);
    double dx[ROWS * N_IN] = {0}, dw[N_IN] = {0};
    rmsnorm_scalar(&o);
    op_rmsnorm_grad(dx, dw, o.c, o.x, o.w, o.r, ROWS, N_IN);
    check(rmsnorm_scalar, &o, o.x, dx, ROWS * N_IN, "rmsnorm dx");
    check(rmsnorm_scalar, &o, o.w, dw, N_IN, "rmsnorm dw");
    free_operands(&o);
}

static const int32_t two_segments[] = {0, 2, ROWS};
enum { N_ROT = 2 }; /* of 4 */

static double rope_scalar(void *context) {
    operands *o = context;
    memcpy(o->y, o->x, ROWS * 8 * sizeof *o->y);
    op_rope(o->y, 8, o->w, two_segments, 2, 2, 4, N_ROT, 1);
    return dot(o->y, o->c, ROWS * 8);
}

static void test_rope(void **state) {
    (void)state;
    operands o = make_operands(ROWS * 8, ROWS * N_ROT, ROWS * 8);
    for (int t = 0; t < ROWS; t++) {
        o.w[t * N_ROT] = cos(t * 0.3);
        o.w[t * N_ROT + 1] = sin(t * 0.3);
    }
    double dx[ROWS * 8];
    memcpy(dx, o.c, sizeof dx);
    op_rope(dx, 8, o.w, two_segments, 2, 2, 4, N_ROT, -1);
    check(rope_scalar, &o, o.x, dx, ROWS * 8, "rope dx");
    free_operands(&o);
}

static double swiglu_scalar(void *context) {
    operands *o = context;
    op_swiglu(o->y, o->x, ROWS, N_IN);
    return dot(o->y, o->c, ROWS * N_IN);
}

static void test_swiglu(void **state) {
    (void)state;
    operands o = make_operands(ROWS * 2 * N_IN, 1, ROWS * N_IN);
    double dx[ROWS * 2 * N_IN];
    memcpy(dx, o.x, sizeof dx);
    op_swiglu_grad(dx, o.c, ROWS, N_IN);
    check(swiglu_scalar, &o, o.x, dx, ROWS * 2 * N_IN, "swiglu");
    free_operands(&o);
}

static double embed_scalar(void *context) {
    operands *o = context;
    op_embed(o->y, o->w, o->index, ROWS, N_IN);
    return dot(o->y, o->c, ROWS * N_IN);
}

static void test_embed(void **state) {
    (void)state;
    static const int32_t tokens[ROWS] = {2, 0, 2, 1, 2};
    operands o = make_operands(1, 4 * N_IN, ROWS * N_IN);
    o.index = tokens;
    double dw[4 * N_IN] = {0};
    op_embed_grad(dw, o.c, tokens, ROWS, N_IN);
    check(embed_scalar, &o, o.w, dw, 4 * N_IN, "embedding");
    free_operands(&o);
}

static const int32_t entropy_targets[ROWS] = {3, 0, 1, 1, 2};
static const double entropy_weights[ROWS] = {1, 0.2, 0, 1, 0.5};

static double entropy_scalar(void *context) {
    operands *o = context;
    memcpy(o->y, o->x, ROWS * N_OUT * sizeof *o->y);
    return op_cross_entropy(o->y, entropy_targets, entropy_weights, ROWS, N_OUT, 1);
}

static void test_cross_entropy(void **state) {
    (void)state;
    operands o = make_operands(ROWS * N_OUT, 1, ROWS * N_OUT);
    double dx[ROWS * N_OUT];
    entropy_scalar(&o);
    memcpy(dx, o.y, sizeof dx);
    check(entropy_scalar, &o, o.x, dx, ROWS * N_OUT, "cross-entropy");
    /* Against the definition: row 0 alone. */
    double sum = 0;
    for (int i = 0; i < N_OUT; i++)
        sum += exp(o.x[i]);
    memcpy(o.y, o.x, ROWS * N_OUT * sizeof *o.y);
    double loss = op_cross_entropy(o.y, entropy_targets, entropy_weights, 1, N_OUT, 1);
    assert_near(loss, log(sum) - o.x[3], 1e-12);
    free_operands(&o);
}

/* ---- Attention ------------------------------------------------------------------------------- */

enum { HEAD = 4, HEAD_V = 3, POSITIONS = ATTN_BLOCK + 9 };
enum { WIDTH = 3 * HEAD + HEAD_V }; /* q of two heads, k, v */

typedef struct attention_case {
    double *qkv, *out, *lse, *blocks, *c;
} attention_case;

static attn_head attention_head(const attention_case *a, int head) {
    return (attn_head){&one_thread,
                       a->qkv + head * HEAD,
                       a->qkv + 2 * HEAD,
                       a->qkv + 3 * HEAD,
                       WIDTH,
                       POSITIONS,
                       HEAD,
                       HEAD_V,
                       2 * HEAD_V,
                       1 / sqrt((double)HEAD)};
}

static double attention_scalar(void *context) {
    attention_case *a = context;
    for (int head = 0; head < 2; head++) {
        attn_head h = attention_head(a, head);
        attn_forward(&h, a->out + head * HEAD_V, a->lse + head, 2, a->blocks);
    }
    return dot(a->out, a->c, POSITIONS * 2 * HEAD_V);
}

static void test_attention(void **unused) {
    (void)unused;
    uint64_t state = 3;
    attention_case a = {random_array(POSITIONS * WIDTH, &state),
                        random_array(POSITIONS * WIDTH, &state),
                        random_array(POSITIONS * 2, &state),
                        random_array(2 * ATTN_BLOCK * POSITIONS, &state),
                        random_array(POSITIONS * 2 * HEAD_V, &state)};
    double *d = dpi_calloc(POSITIONS * WIDTH, sizeof *d);
    attention_scalar(&a);
    for (int head = 0; head < 2; head++) {
        attn_head h = attention_head(&a, head);
        attn_backward(&h, a.out + head * HEAD_V, a.c + head * HEAD_V, a.lse + head, 2,
                      d + head * HEAD, d + 2 * HEAD, d + 3 * HEAD, a.blocks);
    }
    check(attention_scalar, &a, a.qkv, d, POSITIONS * WIDTH, "attention");
    free(a.qkv), free(a.out), free(a.lse), free(a.blocks), free(a.c), free(d);
}

/* ---- The whole model ------------------------------------------------------------------------- */

enum { MAX_POSITIONS = 140, VOCAB = 11 };

typedef struct model_case {
    dpi_graph_shape shape;
    dpi_graph_layout layout;
    dpi_row row;
    int32_t tokens[MAX_POSITIONS], targets[MAX_POSITIONS];
    float weights[MAX_POSITIONS];
    double *params, *gradient, *work;
} model_case;

static void make_model(model_case *m, int32_t tied, const int32_t *begins, int32_t n_segments) {
    uint64_t state = 11;
    m->shape = (dpi_graph_shape){.n_layer = 2,
                                 .dim = 8,
                                 .n_head = 4,
                                 .n_kv_head = 2,
                                 .ffn = 10,
                                 .n_vocab = VOCAB,
                                 .context = MAX_POSITIONS,
                                 .tied = tied,
                                 .rms_eps = 1e-5f,
                                 .rope_base = 100,
                                 .blas = &one_thread};
    dpi_graph_layout_of(&m->shape, &m->layout);
    m->params = random_array(m->layout.n_params, &state);
    m->gradient = random_array(m->layout.n_params, &state); /* what is there must not matter */
    m->work = dpi_calloc(dpi_graph_f64.work_size(&m->shape), sizeof *m->work);
    dpi_graph_f64.work_init(&m->shape, m->work);
    for (int i = 0; i < MAX_POSITIONS; i++) {
        m->tokens[i] = random_below(&state, VOCAB);
        m->targets[i] = random_below(&state, VOCAB);
        m->weights[i] = i % 4 == 0 ? 0 : i % 4 == 1 ? 0.25f : 1;
    }
    m->row = (dpi_row){begins[n_segments], n_segments, begins, m->tokens, m->targets, m->weights};
}

static void free_model(model_case *m) { free(m->params), free(m->gradient), free(m->work); }

static double model_scalar(void *context) {
    model_case *m = context;
    return dpi_graph_f64.loss(&m->shape, m->params, &m->row, 0.5, NULL, m->work) * 0.5;
}

static void check_model(int32_t tied) {
    static const int32_t begins[] = {0, 1, 8, 17};
    model_case m;
    make_model(&m, tied, begins, 3);
    double loss = dpi_graph_f64.loss(&m.shape, m.params, &m.row, 0.5, m.gradient, m.work);
    assert_near(loss * 0.5, model_scalar(&m), 0);
    check(model_scalar, &m, m.params, m.gradient, m.layout.n_params, tied ? "tied" : "untied");
    free_model(&m);
}

static void test_model_tied(void **state) {
    (void)state;
    check_model(1);
}

static void test_model_untied(void **state) {
    (void)state;
    check_model(0);
}

/* A row that is longer than a block of attention and of the head. */
static void test_model_blocks(void **unused) {
    (void)unused;
    static const int32_t begins[] = {0, 5, MAX_POSITIONS};
    model_case m;
    make_model(&m, 1, begins, 2);
    dpi_graph_f64.loss(&m.shape, m.params, &m.row, 0.5, m.gradient, m.work);
    double scale = 0;
    for (int64_t i = 0; i < m.layout.n_params; i++)
        scale = fabs(m.gradient[i]) > scale ? fabs(m.gradient[i]) : scale;
    uint64_t state = 5;
    for (int i = 0; i < 60; i++) {
        int32_t at = random_below(&state, (int32_t)m.layout.n_params);
        check_element(model_scalar, &m, &m.params[at], m.gradient[at], scale, "long row");
    }
    free_model(&m);
}

/* Packed examples do not see each other: the logits of each are those that it has alone. */
static void test_packed_alone(void **state) {
    (void)state;
    static const int32_t begins[] = {0, 1, 8, MAX_POSITIONS};
    model_case m;
    make_model(&m, 1, begins, 3);
    double *packed = dpi_calloc(MAX_POSITIONS * VOCAB, sizeof *packed);
    double *alone = dpi_calloc(MAX_POSITIONS * VOCAB, sizeof *alone);
    dpi_graph_f64.logits(&m.shape, m.params, &m.row, packed, m.work);
    for (int s = 0; s < 3; s++) {
        int32_t n = begins[s + 1] - begins[s], own[] = {0, n};
        dpi_row row = {n, 1, own, m.tokens + begins[s], m.targets, m.weights};
        dpi_graph_f64.logits(&m.shape, m.params, &row, alone, m.work);
        for (int i = 0; i < n * VOCAB; i++)
            assert_near(alone[i], packed[begins[s] * VOCAB + i], 1e-11);
    }
    free(packed), free(alone);
    free_model(&m);
}

/* A masked target can be anything, and it is the logits that the loss is made of. */
static void test_masked(void **state) {
    (void)state;
    static const int32_t begins[] = {0, 9, 40};
    model_case m;
    make_model(&m, 0, begins, 2);
    double *logits = dpi_calloc(MAX_POSITIONS * VOCAB, sizeof *logits), wanted = 0;
    dpi_graph_f64.logits(&m.shape, m.params, &m.row, logits, m.work);
    for (int t = 0; t < 40; t++) {
        double sum = 0;
        for (int i = 0; i < VOCAB; i++)
            sum += exp(logits[t * VOCAB + i]);
        wanted += (double)m.weights[t] * (log(sum) - logits[t * VOCAB + m.targets[t]]);
        if (m.weights[t] == 0)
            m.targets[t] = -1;
    }
    double loss = dpi_graph_f64.loss(&m.shape, m.params, &m.row, 1, NULL, m.work);
    assert_near(loss, wanted, 1e-9);
    free(logits);
    free_model(&m);
}

/* ---- f32 -------------------------------------------------------------------------------- */

static void compare_f32(const dpi_graph *graph) {
    static const int32_t begins[] = {0, 5, MAX_POSITIONS};
    model_case m;
    make_model(&m, 1, begins, 2);
    size_t n = (size_t)m.layout.n_params;
    float *params = dpi_calloc(n, sizeof *params), *gradient = dpi_calloc(n, sizeof *gradient);
    float *work = dpi_calloc(graph->work_size(&m.shape), sizeof *work);
    for (size_t i = 0; i < n; i++)
        m.params[i] = params[i] = (float)m.params[i];
    graph->work_init(&m.shape, work);
    double exact = dpi_graph_f64.loss(&m.shape, m.params, &m.row, 1, m.gradient, m.work);
    double loss = graph->loss(&m.shape, params, &m.row, 1, gradient, work);
    assert_near(loss, exact, 1e-5 * exact);
    double error = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)gradient[i] - m.gradient[i]) * ((double)gradient[i] - m.gradient[i]);
        square += m.gradient[i] * m.gradient[i];
    }
    if (!(error < 1e-10 * square))
        fail_msg("f32 gradient: NMSE %g", error / square);
    free(params), free(gradient), free(work);
    free_model(&m);
}

static void test_f32(void **state) {
    (void)state;
    compare_f32(&dpi_graph_f32);
#if defined(__x86_64__)
    if (dpi_isa_best() >= DPI_ISA_AVX2)
        compare_f32(&dpi_graph_f32_avx2);
    if (dpi_isa_best() >= DPI_ISA_AVX512)
        compare_f32(&dpi_graph_f32_avx512);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),       cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_rope),         cmocka_unit_test(test_swiglu),
        cmocka_unit_test(test_embed),        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_attention),    cmocka_unit_test(test_model_tied),
        cmocka_unit_test(test_model_untied), cmocka_unit_test(test_model_blocks),
        cmocka_unit_test(test_packed_alone), cmocka_unit_test(test_masked),
        cmocka_unit_test(test_f32),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
