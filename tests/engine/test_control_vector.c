/* Control vectors: the logits are those of the oracle that adds them; that they are added to every
 * row alike, whatever is beside it; what is refused. */
#include <math.h>

#include "tests/engine/engine_support.h"
#include "tests/support/tiny_model.h"

enum { N_TOKENS = 70, N_LAYER = 4, N_EMBD = 64 };

static char dir[256], path[300];
static float added[N_LAYER * N_EMBD];
static tiny_spec spec;

SETUP {
    uint64_t seed = 3;
    make_dir(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/vector.gguf", dir);
    spec = tiny_default();
    spec.n_layer = N_LAYER;
    assert_int_equal(spec.n_embd, N_EMBD);
    for (int i = 0; i < N_LAYER * N_EMBD; i++)
        added[i] = (float)random_normal(&seed);
}

TEARDOWN { remove_dir(dir); }

static void begin_vector(gguf_build *b, const char *arch, uint32_t layer_count) {
    build_begin(b);
    build_string(b, "general.architecture", arch);
    build_string(b, "controlvector.model_hint", "llama");
    build_u32(b, "controlvector.layer_count", layer_count);
}

static void add_direction(gguf_build *b, const char *name, int32_t layer, int64_t n) {
    build_tensor(b, name, DPI_TYPE_F32, 1, (int64_t[]){n}, added + layer * N_EMBD,
                 (size_t)n * sizeof(float));
}

static void end_vector(gguf_build *b) {
    build_end(b);
    write_file(path, b->data, b->n_bytes);
    build_free(b);
}

/* Directions of layers 1 and 3; layer 2 has none. */
static void write_vector(void) {
    gguf_build b;
    begin_vector(&b, "controlvector", 2);
    add_direction(&b, "direction.1", 1, N_EMBD);
    add_direction(&b, "direction.3", 3, N_EMBD);
    end_vector(&b);
}

static dpi_status try_vector(const void *image, size_t n_bytes, float scale, dpi_model **model,
                             dpi_error *err) {
    dpi_model_options o;
    dpi_model_options_init(&o);
    o.control_vector = path, o.control_vector_scale = scale;
    return dpi_model_open_buffer(image, n_bytes, &o, model, err);
}

/* What the oracle adds, for that scale. */
static void scaled(float *to, float scale) {
    for (int i = 0; i < N_LAYER * N_EMBD; i++)
        to[i] = i / N_EMBD == 1 || i / N_EMBD == 3 ? scale * added[i] : 0;
}

static void check_logits(float scale, const dpi_session_options *o) {
    const size_t n = (size_t)N_TOKENS * (size_t)spec.n_vocab;
    float *sum = floats(N_LAYER * N_EMBD);
    int32_t tokens[N_TOKENS];
    uint64_t seed = 5;
    size_t n_bytes;
    void *image;
    dpi_model *model;
    dpi_model_info info;
    random_tokens(tokens, N_TOKENS, spec.n_vocab, &seed);
    tiny_build(&spec, 9, &image, &n_bytes);
    assert_ok(try_vector(image, n_bytes, scale, &model, ERR));
    scaled(sum, scale);
    float *logits = floats(n), *wanted = exact_logits(&spec, model, tokens, N_TOKENS, sum);
    float *plain = exact_logits(&spec, model, tokens, N_TOKENS, NULL);
    dpi_session *s = open_session(model, o, 1, N_TOKENS);
    assert_ok(dpi_session_prefill(s, 0, tokens, N_TOKENS, logits, ERR));
    const double error = nmse(logits, wanted, n), changed = nmse(plain, wanted, n);
    if (!(error < 1e-9 && (scale == 0 ? changed < 1e-12 : changed > 1e-3)))
        fail_msg("scale %g: NMSE %g, without it %g", (double)scale, error, changed);
    /* As a step alone, the same bits. */
    dpi_session_reset(s, 0);
    assert_ok(dpi_session_prefill(s, 0, tokens, N_TOKENS - 1, NULL, ERR));
    assert_ok(dpi_session_step(s, 1, &(int32_t){0}, &tokens[N_TOKENS - 1], ERR));
    assert_memory_equal(dpi_session_logits(s, 0), logits + n - (size_t)spec.n_vocab,
                        (size_t)spec.n_vocab * sizeof(float));
    dpi_model_info_init(&info);
    assert_ok(dpi_model_info_get(model, &info, ERR));
    assert_int_equal(info.n_controlled, 2);
    assert_true(info.control_vector_scale == scale);
    assert_string_equal(dpi_model_control_vector(model), path);
    dpi_session_free(s);
    dpi_model_close(model);
    free(image), free(sum), free(logits), free(wanted), free(plain);
}

TEST(test_logits) {
    dpi_session_options o = isa_options(1);
    write_vector();
    o.prefill = DPI_PREFILL_KERNELS;
    check_logits(1, &o);
    check_logits(-.5f, &o);
    check_logits(0, &o);
    o.n_threads = 2;
    check_logits(2, &o);
}

/* ---- Sets ------------------------------------------------------------------------------------ */

enum { N_SETS = 3 };

/* Of layers 1 and 3 these sets [n]: set k has what direction (layer + k) mod 4 would be. */
static void write_sets(const int *sets, int n) {
    float rows[N_SETS * N_EMBD];
    gguf_build b;
    begin_vector(&b, "controlvector", 2);
    for (int layer = 1; layer <= 3; layer += 2) {
        char name[32];
        for (int k = 0; k < n; k++)
            memcpy(rows + k * N_EMBD, added + (layer + sets[k]) % N_LAYER * N_EMBD,
                   N_EMBD * sizeof *rows);
        snprintf(name, sizeof name, "direction.%d", layer);
        build_tensor(&b, name, DPI_TYPE_F32, n > 1 ? 2 : 1, (int64_t[]){N_EMBD, n}, rows,
                     (size_t)(n * N_EMBD) * sizeof *rows);
    }
    end_vector(&b);
}

static dpi_model *model_of_sets(const void *image, size_t n_bytes, const int *sets, int n) {
    dpi_model *model;
    write_sets(sets, n);
    assert_ok(try_vector(image, n_bytes, 1, &model, ERR));
    return model;
}

/* Logits [n_vocab] after the tokens, the last of them by a step, of a model with this set alone. */
static void of_one_set(const void *image, size_t n_bytes, int set, const int32_t *tokens,
                       const dpi_session_options *o, float *logits) {
    dpi_model *model = model_of_sets(image, n_bytes, &set, 1);
    dpi_session *s = open_session(model, o, 1, N_TOKENS);
    assert_ok(dpi_session_prefill(s, 0, tokens, N_TOKENS - 1, NULL, ERR));
    assert_ok(dpi_session_step(s, 1, &(int32_t){0}, &tokens[N_TOKENS - 1], ERR));
    memcpy(logits, dpi_session_logits(s, 0), (size_t)spec.n_vocab * sizeof *logits);
    dpi_session_free(s);
    dpi_model_close(model);
}

/* Rows of one step have their own sets, with the bits of a model that has no other one; a fork has
 * that of its origin, also by way of a sequence that only holds tokens. */
static void check_sets(dpi_session_options o) {
    static const int all[N_SETS] = {0, 1, 2};
    static const int32_t seqs[] = {4, 3, 2, 1, 0}, set_of[] = {2, 0, 1, 2, 2};
    enum { HELD = 5 };
    const size_t n_logits = (size_t)spec.n_vocab * sizeof(float);
    float *wanted = floats((size_t)spec.n_vocab);
    int32_t tokens[N_TOKENS], last[5];
    uint64_t seed = 6;
    size_t n_bytes;
    void *image;
    tiny_build(&spec, 9, &image, &n_bytes);
    random_tokens(tokens, N_TOKENS, spec.n_vocab, &seed);
    dpi_model *model = model_of_sets(image, n_bytes, all, N_SETS);
    o.steers = 1, o.n_kept = 1;
    dpi_session *s = open_session(model, &o, 5, N_TOKENS);
    for (int32_t i = 0; i < 3; i++) {
        assert_ok(dpi_session_steer(s, i, set_of[i], ERR));
        assert_ok(dpi_session_prefill(s, i, tokens, N_TOKENS - 1, NULL, ERR));
    }
    assert_ok(dpi_session_fork(s, 0, 3, N_TOKENS - 1, ERR));
    assert_ok(dpi_session_fork(s, 0, HELD, N_TOKENS - 1, ERR));
    assert_ok(dpi_session_fork(s, HELD, 4, N_TOKENS - 1, ERR));
    for (int i = 0; i < 5; i++)
        last[i] = tokens[N_TOKENS - 1];
    assert_ok(dpi_session_step(s, 5, seqs, last, ERR));
    for (int32_t i = 0; i < 5; i++) {
        of_one_set(image, n_bytes, set_of[i], tokens, &o, wanted);
        assert_memory_equal(dpi_session_logits(s, i), wanted, n_logits);
    }
    dpi_session_free(s);
    dpi_model_close(model);
    free(image), free(wanted);
}

TEST(test_sets) {
    dpi_session_options o = isa_options(1);
    o.prefill = DPI_PREFILL_KERNELS;
    check_sets(o);
    o.n_threads = 2;
    check_sets(o);
}

TEST(test_refused_sets) {
    static const int two[] = {1, 0};
    dpi_session_options o = isa_options(1);
    dpi_session *s;
    size_t n_bytes;
    void *image;
    tiny_build(&spec, 9, &image, &n_bytes);
    dpi_model *model = model_of_sets(image, n_bytes, two, 2);
    assert_error(dpi_session_create(model, &o, &s, ERR), UNSUPPORTED, "has 2 sets, of labels");
    o.steers = 1;
    s = open_session(model, &o, 2, 8);
    assert_error(dpi_session_prefill(s, 0, &(int32_t){1}, 1, NULL, ERR), STATE,
                 "none of the 2 sets");
    assert_error(dpi_session_steer(s, 0, 2, ERR), ARG, "set is 2, must be 0..1");
    assert_error(dpi_session_steer(s, 2, 0, ERR), ARG, "must be one of the session's");
    assert_ok(dpi_session_steer(s, 0, 1, ERR));
    assert_ok(dpi_session_prefill(s, 0, &(int32_t){1}, 1, NULL, ERR));
    assert_error(dpi_session_steer(s, 0, 0, ERR), STATE, "has tokens");
    dpi_session_reset(s, 0); /* keeps it */
    assert_ok(dpi_session_prefill(s, 0, &(int32_t){1}, 1, NULL, ERR));
    dpi_session_free(s);
    dpi_model_close(model);
    free(image);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void assert_refused_vector(float scale, dpi_status wanted, const char *message) {
    void *image;
    size_t n_bytes;
    dpi_model *model = NULL;
    tiny_build(&spec, 9, &image, &n_bytes);
    assert_status(try_vector(image, n_bytes, scale, &model, ERR), wanted, message);
    assert_null(model);
    free(image);
}

#define REFUSED(arch, layer_count, scale, status, message, ...)                                    \
    do {                                                                                           \
        gguf_build b;                                                                              \
        begin_vector(&b, arch, layer_count);                                                       \
        __VA_ARGS__;                                                                               \
        end_vector(&b);                                                                            \
        assert_refused_vector(scale, DPI_STATUS_##status, message);                                \
    } while (0)

TEST(test_refused) {
    REFUSED("llama", 1, 1, FORMAT, "must be 'controlvector'",
            add_direction(&b, "direction.1", 1, N_EMBD));
    REFUSED("controlvector", 2, 1, FORMAT, "layer_count is 2, and there are 1 tensors",
            add_direction(&b, "direction.1", 1, N_EMBD));
    REFUSED("controlvector", 0, 1, FORMAT, "at least 1", (void)0);
    REFUSED("controlvector", 1, 1, FORMAT, "direction.0: must be direction.N, with N 1..3",
            add_direction(&b, "direction.0", 1, N_EMBD));
    REFUSED("controlvector", 1, 1, FORMAT, "direction.4: must be",
            add_direction(&b, "direction.4", 1, N_EMBD));
    REFUSED("controlvector", 1, 1, FORMAT, "direction.01: must be",
            add_direction(&b, "direction.01", 1, N_EMBD));
    REFUSED("controlvector", 1, 1, FORMAT, "extra: must be",
            add_direction(&b, "extra", 1, N_EMBD));
    REFUSED("controlvector", 1, 1, FORMAT, "must be F32 [64]",
            add_direction(&b, "direction.1", 1, N_EMBD - 32));
    REFUSED("controlvector", 2, 1, FORMAT, "with the same N for all",
            build_tensor(&b, "direction.1", DPI_TYPE_F32, 2, (int64_t[]){N_EMBD, 2}, added,
                         2 * N_EMBD * sizeof *added),
            add_direction(&b, "direction.2", 2, N_EMBD));
    REFUSED("controlvector", 1, 1, UNSUPPORTED, "controlvector.rank",
            build_u32(&b, "controlvector.rank", 1), add_direction(&b, "direction.1", 1, N_EMBD));
    REFUSED("controlvector", 1, 2000, ARG, "must be -1000..1000",
            add_direction(&b, "direction.1", 1, N_EMBD));
    added[N_EMBD + 7] = NAN;
    REFUSED("controlvector", 1, 1, NUMERIC, "direction.1, number 7 is",
            add_direction(&b, "direction.1", 1, N_EMBD));
}
