/* Low-rank adapters: the logits of a model with one are those of the model whose weights are W +
 * scale B A, merged here in double from the files alone; rows stay pure; what is refused. */
#include <math.h>

#include "engine/model.h"
#include "engine/session.h"
#include "tests/support/support.h"
#include "tests/support/tiny_model.h"

enum { N_TOKENS = 70, RANK = 5, PARTS = 7 };

static char dir[256], path[300];

static const char *const part[PARTS] = {"attn_q",   "attn_k", "attn_v",  "attn_output",
                                        "ffn_gate", "ffn_up", "ffn_down"};

/* The shape of a matrix of tiny_default or what has its dimensions. */
static void shape_of(const tiny_spec *s, int i, int64_t *n_in, int64_t *n_out) {
    const int64_t head = s->n_embd / s->n_head;
    *n_in = i == 6 ? s->n_ff : s->n_embd;
    *n_out = i == 1 || i == 2 ? s->n_kv_head * head : i == 4 || i == 5 ? s->n_ff : s->n_embd;
}

/* Numbers of an adapter, by layer, matrix, A and B. */
typedef struct numbers {
    float *a[2][PARTS], *b[2][PARTS];
    uint32_t parts; /* bit i: part[i] has one */
} numbers;

static float *random_floats(int64_t n, double deviation, uint64_t *seed) {
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(deviation * random_normal(seed));
    return x;
}

static numbers make_numbers(const tiny_spec *s, uint32_t parts) {
    numbers all = {.parts = parts};
    uint64_t seed = 21;
    for (int l = 0; l < s->n_layer; l++)
        for (int i = 0; i < PARTS; i++) {
            int64_t n_in, n_out;
            shape_of(s, i, &n_in, &n_out);
            all.a[l][i] = random_floats(RANK * n_in, .2, &seed);
            all.b[l][i] = random_floats(RANK * n_out, .2, &seed);
        }
    return all;
}

static void free_numbers(numbers *all) {
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < PARTS; i++)
            free(all->a[l][i]), free(all->b[l][i]);
}

static void begin_file(gguf_build *b, const char *type, const char *kind, float alpha) {
    build_begin(b);
    build_string(b, "general.architecture", "llama");
    build_string(b, "general.name", "made up");
    build_string(b, "general.type", type);
    build_string(b, "adapter.type", kind);
    build_f32(b, "adapter.lora.alpha", alpha);
}

static void end_file(gguf_build *b) {
    build_end(b);
    write_file(path, b->data, b->n_bytes);
    build_free(b);
}

static void add(gguf_build *b, const char *name, int64_t columns, int64_t rows, const float *data) {
    build_tensor(b, name, 0, 2, (int64_t[]){columns, rows}, data, (size_t)(4 * columns * rows));
}

static void write_adapter(const tiny_spec *s, const numbers *all, float alpha) {
    gguf_build b;
    char name[64];
    begin_file(&b, "adapter", "lora", alpha);
    for (int l = 0; l < s->n_layer; l++)
        for (int i = 0; i < PARTS; i++) {
            int64_t n_in, n_out;
            if (!(all->parts >> i & 1))
                continue;
            shape_of(s, i, &n_in, &n_out);
            snprintf(name, sizeof name, "blk.%d.%s.weight.lora_a", l, part[i]);
            add(&b, name, n_in, RANK, all->a[l][i]);
            snprintf(name, sizeof name, "blk.%d.%s.weight.lora_b", l, part[i]);
            add(&b, name, RANK, n_out, all->b[l][i]);
        }
    end_file(&b);
}

static dpi_status try_adapter(const void *image, size_t n_bytes, float scale, dpi_model **model,
                              dpi_error *err) {
    dpi_model_options o;
    dpi_model_options_init(&o);
    o.adapter = path;
    o.adapter_scale = scale;
    return dpi_model_open_buffer(image, n_bytes, &o, model, err);
}

/* ---- Logits ---------------------------------------------------------------------------------- */

static float *tensor_of(const dpi_model *model, void *image, const char *name, int64_t *n) {
    for (int64_t i = 0; i < dpi_model_tensor_count(model); i++) {
        const char *found, *type;
        int64_t shape[4];
        uint64_t offset, n_bytes;
        assert_ok(dpi_model_tensor_get(model, i, &found, &type, shape, &offset, &n_bytes, NULL),
                  NULL);
        *n = shape[0] * shape[1];
        if (strcmp(found, name) == 0)
            return (float *)(void *)((char *)image + offset);
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

/* The same model in F32, weight for weight. */
static dpi_model *widen(const tiny_spec *spec, const dpi_model *model, void **image) {
    tiny_spec wide = *spec;
    wide.type = DPI_TYPE_F32;
    size_t n_bytes;
    dpi_model *made;
    tiny_build(&wide, 1, image, &n_bytes);
    assert_ok(dpi_model_open_buffer(*image, n_bytes, NULL, &made, NULL), NULL);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(model->gguf); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(model->gguf, i);
        int64_t n;
        float *to = tensor_of(made, *image, t->name, &n);
        dpi_type_find(t->type)->dequantize(t->data, to, n);
    }
    dpi_model_close(made); /* it has copies of vectors */
    assert_ok(dpi_model_open_buffer(*image, n_bytes, NULL, &made, NULL), NULL);
    return made;
}

static void merge(const tiny_spec *spec, dpi_model *model, void *image, const numbers *all,
                  double scale) {
    char name[64];
    for (int l = 0; l < spec->n_layer; l++)
        for (int i = 0; i < PARTS; i++) {
            int64_t n_in, n_out, n;
            if (!(all->parts >> i & 1))
                continue;
            shape_of(spec, i, &n_in, &n_out);
            snprintf(name, sizeof name, "blk.%d.%s.weight", l, part[i]);
            float *w = tensor_of(model, image, name, &n);
            assert_int_equal(n, n_in * n_out);
            for (int64_t o = 0; o < n_out; o++)
                for (int64_t in = 0; in < n_in; in++) {
                    double sum = (double)w[o * n_in + in];
                    for (int r = 0; r < RANK; r++)
                        sum += scale * (double)all->b[l][i][o * RANK + r] *
                               (double)all->a[l][i][r * n_in + in];
                    w[o * n_in + in] = (float)sum;
                }
        }
}

static double nmse(const float *found, const double *wanted, size_t n) {
    double error = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        error += pow((double)found[i] - wanted[i], 2);
        square += pow(wanted[i], 2);
    }
    return error / square;
}

/* alpha 0: the file's own scale is 1. */
static void check_logits(const tiny_spec *spec, uint32_t parts, float alpha, float scale) {
    const size_t n = (size_t)N_TOKENS * (size_t)spec->n_vocab;
    float *logits = malloc(n * sizeof *logits);
    double *wanted = malloc(n * sizeof *wanted), *plain = malloc(n * sizeof *plain);
    void *image, *wide_image;
    size_t n_bytes;
    int32_t tokens[N_TOKENS];
    uint64_t seed = 5;
    numbers all = make_numbers(spec, parts);
    dpi_model *base, *model, *wide;
    dpi_error err;
    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] = random_below(&seed, spec->n_vocab);
    tiny_build(spec, 9, &image, &n_bytes);
    write_adapter(spec, &all, alpha);
    assert_ok(dpi_model_open_buffer(image, n_bytes, NULL, &base, &err), &err);
    assert_ok(try_adapter(image, n_bytes, scale, &model, &err), &err);
    wide = widen(spec, base, &wide_image);
    tiny_spec wide_spec = *spec;
    wide_spec.type = DPI_TYPE_F32;
    oracle_logits(&wide_spec, wide, tokens, N_TOKENS, plain);
    const double own = alpha > 0 ? (double)alpha / RANK : 1;
    merge(spec, wide, wide_image, &all, own * (double)scale);
    oracle_logits(&wide_spec, wide, tokens, N_TOKENS, wanted);
    dpi_session_options o;
    dpi_session_options_init(&o);
    o.isa = forced_isa();
    o.exact = 1;
    for (o.prefill = DPI_PREFILL_KERNELS; o.prefill <= DPI_PREFILL_BLAS; o.prefill++) {
        dpi_session *s = open_session(model, &o, 1, N_TOKENS);
        assert_ok(dpi_session_prefill(s, 0, tokens, N_TOKENS, logits, &err), &err);
        const double error = nmse(logits, wanted, n);
        if (!(error < 1e-9 && nmse(logits, plain, n) > 1e-3))
            fail_msg("type %u, parts %u: NMSE %g", spec->type, parts, error);
        dpi_session_free(s);
    }
    dpi_model_info info;
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(model, &info, &err), &err);
    assert_int_equal(info.adapter_rank, RANK);
    assert_int_equal(info.n_adapted, spec->n_layer * __builtin_popcount(parts));
    assert_true(fabs((double)info.adapter_scale - own * (double)scale) < 1e-6);
    assert_string_equal(info.adapter_name, "made up");
    dpi_model_close(base), dpi_model_close(model), dpi_model_close(wide);
    free(image), free(wide_image), free(logits), free(wanted), free(plain);
    free_numbers(&all);
}

static void test_logits(void **state) {
    (void)state;
    tiny_spec spec = tiny_default();
    check_logits(&spec, 127, 3, 1);
    check_logits(&spec, 127, 0, .5f);
    spec.tied = 1;
    spec.bias = 1;
    for (int i = 0; i < PARTS; i++)
        check_logits(&spec, 1u << i, 20, -1);
}

static void test_every_type(void **state) {
    (void)state;
    const dpi_type *type;
    for (int32_t i = 0; (type = dpi_type_at(i)) != NULL; i++) {
        tiny_spec spec = tiny_default();
        spec.type = type->id;
        if (type->block > 32)
            spec.n_embd = spec.n_ff = type->block;
        check_logits(&spec, 127, 4, 1);
    }
}

/* ---- Merging --------------------------------------------------------------------------------- */

static dpi_gguf *open_gguf(const char *file) {
    dpi_gguf *gguf;
    assert_ok(dpi_gguf_open(file, true, &gguf, NULL), NULL);
    return gguf;
}

static void assert_same_tensors(const char *one, const char *other) {
    dpi_gguf *a = open_gguf(one), *b = open_gguf(other);
    assert_int_equal(dpi_gguf_tensor_count(a), dpi_gguf_tensor_count(b));
    for (int64_t i = 0; i < dpi_gguf_tensor_count(a); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(a, i);
        const dpi_gguf_tensor *u = dpi_gguf_tensor_find(b, t->name);
        assert_non_null(u);
        if (t->type != u->type || t->n_bytes != u->n_bytes ||
            memcmp(t->data, u->data, t->n_bytes) != 0)
            fail_msg("%s and %s: tensor %s differs", one, other, t->name);
    }
    dpi_gguf_close(a), dpi_gguf_close(b);
}

static void write_merged(const char *base, const char *type, const char *out) {
    dpi_write_options o;
    dpi_error err;
    dpi_write_options_init(&o);
    o.type = type, o.n_threads = 2;
    assert_ok(dpi_model_merge(base, path, .5f, out, &o, &err), &err);
}

static void write_quantised(const char *base, const char *type, const char *out) {
    dpi_write_options o;
    dpi_error err;
    dpi_write_options_init(&o);
    o.type = type;
    assert_ok(dpi_model_quantize(base, out, &o, &err), &err);
}

static double *logits_of(const char *file, const char *adapter, const int32_t *tokens, size_t *n) {
    dpi_model_options m;
    dpi_session_options o;
    dpi_model *model;
    dpi_error err;
    dpi_model_options_init(&m);
    dpi_session_options_init(&o);
    m.adapter = adapter, m.adapter_scale = .5f;
    o.isa = forced_isa(), o.exact = 1;
    assert_ok(dpi_model_open(file, &m, &model, &err), &err);
    *n = (size_t)N_TOKENS * (size_t)model->n_vocab;
    float *logits = malloc(*n * sizeof *logits);
    double *all = malloc(*n * sizeof *all);
    dpi_session *s = open_session(model, &o, 1, N_TOKENS);
    assert_ok(dpi_session_prefill(s, 0, tokens, N_TOKENS, logits, &err), &err);
    for (size_t i = 0; i < *n; i++)
        all[i] = (double)logits[i];
    dpi_session_free(s);
    dpi_model_close(model);
    free(logits);
    return all;
}

/* The merged model of floats has the logits of model and adapter; of any type it is what quantising
 * that model gives, and KEEP is the type that there is. */
static void test_merge(void **state) {
    (void)state;
    static const char *const types[] = {"F32",  "F16",  "BF16", "Q8_0", "Q4_0",
                                        "Q4_1", "Q5_0", "Q5_1", "Q4_K_M", "Q5_K_M"};
    char base[300], whole[300], typed[300], other[300], kept[300];
    tiny_spec spec = tiny_default();
    spec.type = DPI_TYPE_F32, spec.n_embd = spec.n_ff = 256;
    numbers all = make_numbers(&spec, 127 - 8);
    int32_t tokens[N_TOKENS];
    uint64_t seed = 6;
    size_t n, n_bytes;
    void *image;
    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] = random_below(&seed, spec.n_vocab);
    snprintf(base, sizeof base, "%s/base.gguf", dir), snprintf(whole, sizeof whole, "%s/w", dir);
    snprintf(typed, sizeof typed, "%s/t", dir), snprintf(other, sizeof other, "%s/o", dir);
    snprintf(kept, sizeof kept, "%s/k", dir);
    tiny_build(&spec, 9, &image, &n_bytes);
    write_file(base, image, n_bytes);
    write_adapter(&spec, &all, 4);
    write_merged(base, "F32", whole);
    double *with = logits_of(base, path, tokens, &n), *merged = logits_of(whole, NULL, tokens, &n);
    double *plain = logits_of(base, NULL, tokens, &n), error = 0, moved = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        error += pow(merged[i] - with[i], 2), moved += pow(plain[i] - with[i], 2);
        square += pow(with[i], 2);
    }
    if (!(error < 1e-11 * square && moved > 1e-3 * square))
        fail_msg("merged: NMSE %g, the adapter's own %g", error / square, moved / square);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        write_quantised(whole, types[i], typed);
        write_merged(base, types[i], other);
        assert_same_tensors(typed, other);
        write_quantised(base, types[i], typed);
        write_merged(typed, types[i], other);
        write_merged(typed, "KEEP", kept);
        assert_same_tensors(other, kept);
    }
    dpi_gguf *gguf = open_gguf(whole);
    dpi_str name = {"", 0};
    assert_ok(dpi_gguf_get_string(gguf, "general.name", &name, NULL, NULL), NULL);
    assert_non_null(strstr(name.data, " + adapter made up"));
    dpi_gguf_close(gguf);
    free(with), free(merged), free(plain), free(image);
    free_numbers(&all);
}

/* ---- Purity ---------------------------------------------------------------------------------- */

enum { N_SEQ = 7, N_STEPS = 4 };

static int32_t length_of(int seq) { return seq == 0 ? N_TOKENS : 1 + 11 * seq; }

/* Logits of sequence `seq` after its prompt and after each step, computed alone by one thread, or
 * beside all others. */
static void compute(const dpi_model *model, const dpi_session_options *base,
                    int32_t tokens[][N_TOKENS], int alone, int32_t n_threads, float *logits) {
    const size_t n_vocab = (size_t)model->n_vocab;
    dpi_session_options o = *base;
    o.n_threads = n_threads;
    dpi_session *s = open_session(model, &o, N_SEQ, 2 * N_TOKENS);
    s->worth_sharing = 0;
    int32_t seqs[N_SEQ], next[N_SEQ], n = 0;
    for (int i = N_SEQ - 1; i >= 0; i--)
        if (alone < 0 || i == alone)
            seqs[n++] = i;
    for (int32_t i = 0; i < n; i++)
        assert_ok(dpi_session_prefill(s, seqs[i], tokens[seqs[i]], (size_t)length_of(seqs[i]), NULL,
                                      NULL), NULL);
    for (int t = 0;; t++) {
        for (int32_t i = 0; i < n; i++) {
            memcpy(logits + ((size_t)seqs[i] * (N_STEPS + 1) + (size_t)t) * n_vocab,
                   dpi_session_logits(s, seqs[i]), n_vocab * sizeof *logits);
            next[i] = tokens[seqs[i]][t];
        }
        if (t == N_STEPS)
            break;
        assert_ok(dpi_session_step(s, n, seqs, next, NULL), NULL);
    }
    dpi_session_free(s);
}

/* Some types with several numbers of threads, all with three. */
static void check_purity(const dpi_type *type, int32_t exact, int32_t first, int32_t last) {
    tiny_spec spec = tiny_default();
    spec.type = type->id;
    if (type->block > 32)
        spec.n_embd = spec.n_ff = type->block;
    numbers all = make_numbers(&spec, 127);
    static int32_t tokens[N_SEQ][N_TOKENS];
    uint64_t seed = 3;
    void *image;
    size_t n_bytes, n = (size_t)N_SEQ * (N_STEPS + 1) * (size_t)spec.n_vocab;
    dpi_model *model;
    dpi_session_options o;
    float *wanted = malloc(n * sizeof *wanted), *found = malloc(n * sizeof *found);
    for (int i = 0; i < N_SEQ * N_TOKENS; i++)
        tokens[i / N_TOKENS][i % N_TOKENS] = random_below(&seed, spec.n_vocab);
    tiny_build(&spec, 9, &image, &n_bytes);
    write_adapter(&spec, &all, 4);
    assert_ok(try_adapter(image, n_bytes, 1, &model, NULL), NULL);
    dpi_session_options_init(&o);
    o.isa = forced_isa();
    o.exact = exact;
    for (int i = 0; i < N_SEQ; i++)
        compute(model, &o, tokens, i, 1, wanted);
    for (int32_t n_threads = first; n_threads <= last; n_threads += n_threads) {
        compute(model, &o, tokens, -1, n_threads, found);
        assert_memory_equal(found, wanted, n * sizeof *found);
    }
    dpi_model_close(model);
    free(image), free(wanted), free(found);
    free_numbers(&all);
}

static void test_purity(void **state) {
    (void)state;
    const dpi_type *type;
    for (int32_t i = 0; (type = dpi_type_at(i)) != NULL; i++)
        check_purity(type, 0, 3, 3);
    static const uint32_t types[] = {DPI_TYPE_F32, DPI_TYPE_F16, DPI_TYPE_Q8_0, DPI_TYPE_Q4_0};
    for (int i = 0; i < 4; i++)
        for (int32_t exact = 0; exact <= 1; exact++)
            check_purity(dpi_type_find(types[i]), exact, 1, 8);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void assert_refused_file(dpi_status wanted, const char *message) {
    tiny_spec spec = tiny_default();
    void *image;
    size_t n_bytes;
    dpi_model *model = NULL;
    dpi_error err;
    tiny_build(&spec, 9, &image, &n_bytes);
    assert_error(try_adapter(image, n_bytes, 1, &model, &err), wanted, &err, message);
    assert_null(model);
    free(image);
}

static void test_refused(void **state) {
    (void)state;
    static float x[64 * 2000];
    gguf_build b;
    begin_file(&b, "model", "lora", 1);
    end_file(&b);
    assert_refused_file(DPI_STATUS_FORMAT, "general.type is 'model'");
    begin_file(&b, "adapter", "ia3", 1);
    end_file(&b);
    assert_refused_file(DPI_STATUS_FORMAT, "adapter.type is 'ia3'");
    begin_file(&b, "adapter", "lora", 1);
    end_file(&b);
    assert_refused_file(DPI_STATUS_FORMAT, "without tensors");
    begin_file(&b, "adapter", "lora", -1);
    end_file(&b);
    assert_refused_file(DPI_STATUS_FORMAT, "adapter.lora.alpha");
    begin_file(&b, "adapter", "lora", 1);
    build_u32(&b, "adapter.alora.invocation_tokens", 1);
    end_file(&b);
    assert_refused_file(DPI_STATUS_UNSUPPORTED, "alora");
    static const char *const names[] = {
        "output.weight.lora_a",         "blk.2.attn_q.weight.lora_a", "blk.-1.attn_q.weight.lora_a",
        "blk.0.attn_q.weight",          "blk.0.attn_q.weight.lora_c", "blk.00.attn_q.weight.lora_a",
        "blk.0.attn_norm.weight.lora_a"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin_file(&b, "adapter", "lora", 1);
        add(&b, names[i], 64, 4, x);
        end_file(&b);
        assert_refused_file(DPI_STATUS_UNSUPPORTED, names[i]);
    }
    static const int64_t shapes[][4] = {
        {64, 4, 5, 64}, {63, 4, 4, 64}, {64, 4, 4, 63}, {64, 1500, 1500, 64}};
    for (int i = 0; i < 4; i++) {
        begin_file(&b, "adapter", "lora", 1);
        add(&b, "blk.0.attn_q.weight.lora_a", shapes[i][0], shapes[i][1], x);
        add(&b, "blk.0.attn_q.weight.lora_b", shapes[i][2], shapes[i][3], x);
        end_file(&b);
        assert_refused_file(DPI_STATUS_FORMAT, "must be [64, rank] and [rank, 64]");
    }
    begin_file(&b, "adapter", "lora", 1);
    add(&b, "blk.1.ffn_up.weight.lora_b", 4, 96, x);
    end_file(&b);
    assert_refused_file(DPI_STATUS_FORMAT, "has no lora_a beside it");
    x[17] = INFINITY;
    begin_file(&b, "adapter", "lora", 1);
    add(&b, "blk.0.attn_q.weight.lora_a", 64, 4, x);
    add(&b, "blk.0.attn_q.weight.lora_b", 4, 64, x);
    end_file(&b);
    assert_refused_file(DPI_STATUS_NUMERIC, "number 17 is inf");
    write_file(path, "GGUF", 4);
    assert_refused_file(DPI_STATUS_FORMAT, "adapter.gguf");
    remove(path);
    assert_refused_file(DPI_STATUS_IO, "adapter.gguf");
}

int main(void) {
    forced_isa(); /* skips before the first test */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_purity),
        cmocka_unit_test(test_refused),
    };
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/adapter.gguf", dir);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return failed;
}
