/* The graph of every architecture (data/arch/README.md): its logits in double against golden ones,
 * its gradient in every tensor of a layer, and in every adapter, against finite differences, and
 * the graph in float, by the matrices of the open model, against that in double. */
#include "tests/support/golden.h"
#include "tests/train/gradient_support.h"
#include "train/base.h"
#include "train/tensors.h"

static const char *const files[] = {
    "qwen2-A",      "qwen3-A",   "gemma2-A",     "gemma2-27b-A",    "gemma3-A", "gemma3-linear8-A",
    "vaultgemma-A", "phi3-A",    "mistral3-A",   "phi3-longrope-A", "granite-A", "smollm3-A",
    "olmo2-A",      "olmo3-A",   "llama-bias-A", "llama-yarn-A",    "llama-linear-A",
    "llama-attnfactor-A", "gemma4-A", "gemma4-e2b-A",   "qwen35-A",
};

enum { N = 64, N_VOCAB = 512, SHORT = 24, ARCH_RANK = 2 };

/* A shared model as a graph in double. */
typedef struct arch_case {
    dpi_model *model;
    dpi_base_tables tables;
    graph_case *c;
} arch_case;

static void close_arch(arch_case *a) {
    close_graph(a->c);
    dpi_base_tables_free(&a->tables);
    dpi_model_close(a->model);
    free(a);
}

OWNED(arch_case, close_arch)

/* Rows of up to `context` positions; adapters, of random numbers, of `targets`. */
static arch_case *open_arch(const char *file, int32_t context, uint32_t targets) {
    char path[80];
    dpi_graph_shape shape;
    uint64_t seed = 3;
    snprintf(path, sizeof path, "arch/%s.gguf", file);
    require_data(path);
    arch_case *a = dpi_calloc(1, sizeof *a);
    a->model = open_shared(path);
    assert_ok(dpi_base_shape(a->model, context, &a->tables, &shape, ERR));
    shape.blas = &one_thread;
    graph_case *c = a->c = open_graph(&shape, targets, ARCH_RANK, 1);
    OWN_ARRAY(float) params = dpi_calloc((size_t)c->at.n_params, sizeof *params);
    dpi_base_read(a->model, &shape, params);
    for (int64_t i = 0; i < c->at.n_params; i++)
        c->params[i] = (double)params[i];
    for (int64_t i = 0; targets && i < c->n_trained; i++)
        c->trained[i] = (double)(float)(.1 * random_normal(&seed));
    return a;
}

/* The first n tokens of a file as a row of two examples; each token is the target of the one before
 * it. */
static void read_row(graph_case *c, const char *path, int32_t n, const int32_t *ends) {
    char name[96];
    snprintf(name, sizeof name, "arch/%s.tokens", path);
    assert_int_equal(read_tokens(name, c->tokens, n), n);
    for (int32_t t = 0; t < n; t++)
        c->targets[t] = c->tokens[(t + 1) % n], c->weights[t] = 1;
    c->row = (dpi_row){n, ends[1] == n ? 1 : 2, ends, c->tokens, c->targets, c->weights};
}

/* In a row of n positions alone. */
static void check_logits(const char *file, const char *text, int32_t n) {
    char path[80];
    const int32_t whole[] = {0, n};
    const size_t n_logits = (size_t)n * N_VOCAB;
    OWN(arch_case) a = open_arch(file, n, 0);
    OWN_ARRAY(double) found = dpi_calloc(n_logits, sizeof *found);
    double error = 0, power = 0;
    snprintf(path, sizeof path, "%s%s", file, text);
    read_row(a->c, path, n, whole);
    dpi_graph_f64.logits(&a->c->shape, a->c->params, &a->c->row, found, a->c->work);
    snprintf(path, sizeof path, "arch/%s%s", file, text);
    OWN_ARRAY(float) wanted = read_floats(path, "exact", n_logits);
    for (size_t i = 0; i < n_logits; i++) {
        error += pow(found[i] - (double)wanted[i], 2);
        power += pow((double)wanted[i], 2);
    }
    if (!(error <= 1e-13 * power))
        fail_msg("%s: NMSE %g", path, error / power);
}

TEST(test_logits) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        check_logits(files[i], "", N);
    check_logits("phi3-longrope-A", ".short", 40); /* the factors of short contexts */
}

/* The number with the largest gradient of those [begin, begin + n). */
static void check_largest(graph_case *c, int64_t begin, int64_t n, const char *file,
                          const char *what) {
    int64_t most = begin;
    for (int64_t i = begin; i < begin + n; i++)
        most = fabs(c->gradient[i]) > fabs(c->gradient[most]) ? i : most;
    const double found = c->gradient[most], wanted = derivative(c, c->trained + most);
    if (!(fabs(found) > 1e-6 && fabs(found - wanted) <= 1e-6 * fabs(found) + 1e-8))
        fail_msg("%s, %s: gradient %.12g, finite difference %.12g", file, what, found, wanted);
}

/* Two examples, the second longer than a window. */
static const int32_t ends[] = {0, 5, SHORT};

/* Where layers are alike the i-th tensor of one is checked in one of them; where they differ, in
 * each that is the first of its kind, or in all of Gemma's, whose sizes differ. */
static bool is_checked(const dpi_graph_shape *s, int32_t layer, int32_t i) {
    const bool mixes = s->arch->layers[DPI_LAYER_DELTA].n_tensors > 0;
    if (s->arch == &dpi_arch_gemma4)
        return true;
    for (int32_t l = 0; mixes && l < layer; l++)
        if (dpi_graph_kind(s, l) == dpi_graph_kind(s, layer))
            return false;
    return mixes || layer == i % s->n_layer;
}

/* Of each tensor of a layer, and of those of no layer. */
TEST(test_gradient) {
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        OWN(arch_case) a = open_arch(files[f], SHORT, 0);
        const dpi_graph_shape *s = &a->c->shape;
        read_row(a->c, files[f], SHORT, ends);
        differentiate(a->c);
        const int32_t n_first = 2 + !s->tied, n = dpi_train_tensor_count(s);
        for (int32_t i = 0, in_layer = 0, before = 0; i < n; i++) {
            const dpi_train_tensor t = dpi_train_tensor_at(s, i);
            int32_t layer = 0;
            (void)sscanf(t.name, "blk.%6d.", &layer);
            in_layer = layer == before ? in_layer : 0, before = layer;
            if (i < n_first || is_checked(s, layer, in_layer++))
                check_largest(a->c, t.offset, dpi_train_tensor_size(&t), files[f], t.name);
        }
    }
}

/* Of each A and B; and in float, by the matrices of the model. */
TEST(test_adapters) {
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        OWN(arch_case) a = open_arch(files[f], SHORT, DPI_LORA_ALL);
        graph_case *c = a->c;
        read_row(c, files[f], SHORT, ends);
        differentiate(c);
        for (int32_t i = 0; i < DPI_GRAPH_MATRICES * c->shape.n_layer; i++) {
            const int32_t l = i / DPI_GRAPH_MATRICES, matrix = i % DPI_GRAPH_MATRICES;
            const dpi_lora_layer layer = dpi_lora_layer_of(&c->lora, &c->shape, l);
            const dpi_lora_matrix *m = &layer.matrix[matrix];
            if (m->a < 0 || !is_checked(&c->shape, l, matrix))
                continue;
            check_largest(c, m->a, ARCH_RANK * m->n_in, files[f], "lora_a");
            check_largest(c, m->b, ARCH_RANK * m->n_adapted, files[f], "lora_b");
        }
        const dpi_graph_base base = dpi_base_of(a->model);
        dpi_graph_shape shape = c->shape;
        dpi_graph_layout at;
        shape.base = &base;
        dpi_graph_layout_of(&shape, &at);
        const int64_t n = at.n_params + c->n_trained;
        OWN_ARRAY(float) params = dpi_calloc((size_t)n, sizeof *params);
        dpi_base_norms(a->model, &shape, params);
        for (int64_t i = 0; i < c->n_trained; i++)
            params[at.n_params + i] = (float)c->trained[i];
        check_f32(c, dpi_graph_best(), &shape, params, 1e-8);
    }
}

/* Matrices that are one tensor of the file have one adapter: its A is that of all of them. */
TEST(test_fused) {
    OWN(arch_case) a = open_arch("phi3-A", SHORT, DPI_LORA_ALL);
    const dpi_lora_layer layer = dpi_lora_layer_of(&a->c->lora, &a->c->shape, 0);
    const dpi_lora_matrix *m = layer.matrix;
    assert_int_equal(m[DPI_LORA_Q].n_adapted,
                     m[DPI_LORA_Q].n_out + m[DPI_LORA_K].n_out + m[DPI_LORA_V].n_out);
    assert_int_equal(m[DPI_LORA_GATE].n_adapted, m[DPI_LORA_GATE].n_out + m[DPI_LORA_UP].n_out);
    for (int32_t i = 0; i < DPI_LORA_MATRICES; i++)
        assert_int_equal(m[i].a < 0, i == DPI_LORA_K || i == DPI_LORA_V || i == DPI_LORA_UP);
    assert_ok(dpi_lora_check_targets(&dpi_arch_phi3, 7, ERR));
    assert_ok(dpi_lora_check_targets(&dpi_arch_qwen3, 1, ERR));
    assert_error(dpi_lora_check_targets(&dpi_arch_phi3, 1, ERR), ARG,
                 "some of the 3 matrices that are one tensor, attn_qkv");
    assert_error(dpi_lora_check_targets(&dpi_arch_phi3, 7 | 1 << DPI_LORA_UP, ERR), ARG, "ffn_up");
}

/* What makes the inputs of layers is not trained; what layers do with them is. */
TEST(test_inputs) {
    OWN(arch_case) a = open_arch("gemma4-e2b-A", SHORT, 0);
    static const char *const frozen[] = {"per_layer_token_embd.weight", "rope_freqs.weight",
                                         "per_layer_model_proj.weight",
                                         "per_layer_proj_norm.weight"};
    dpi_train_tensor found;
    for (size_t i = 0; i < sizeof frozen / sizeof *frozen; i++) {
        assert_true(dpi_gguf_tensor_find(a->model->gguf, frozen[i]) != NULL);
        assert_false(dpi_train_tensor_find(&a->c->shape, frozen[i], &found));
    }
    assert_true(dpi_train_tensor_find(&a->c->shape, "blk.1.inp_gate.weight", &found));
    assert_true(dpi_train_tensor_find(&a->c->shape, "blk.1.proj.weight", &found));
}
