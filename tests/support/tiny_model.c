#include "tests/support/tiny_model.h"

#include <math.h>

#include "base/mem.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"
#include "tests/support/support.h"

tiny_spec tiny_default(void) { return tiny_of(DPI_TYPE_F32); }

tiny_spec tiny_of(uint32_t type) {
    tiny_spec s = {2, 64, 96, 4, 2, 0, 0, 0, .n_vocab = 320, .type = type};
    if (dpi_type_find(type)->block > 32)
        s.n_layer = 1, s.n_embd = s.n_ff = dpi_type_find(type)->block;
    return s;
}

void tiny_vocab(gguf_build *b, int32_t n_vocab) {
    static const char *const first[] = {"<unk>", "<s>", "</s>"};
    const size_t n = (size_t)n_vocab;
    char(*text)[16] = calloc(n, sizeof *text);
    const char **tokens = calloc(n, sizeof *tokens);
    float *scores = calloc(n, sizeof *scores);
    int32_t *types = calloc(n, sizeof *types);
    assert_true(text && tokens && scores && types && n_vocab >= 300);
    for (int32_t i = 0; i < n_vocab; i++) {
        const char *form = i < 3      ? first[i]
                           : i < 259  ? "<0x%02X>"
                           : i == 259 ? "\xe2\x96\x81"
                           : i < 286  ? "%c"
                                      : "w%d";
        snprintf(text[i], sizeof *text, form, i < 259 ? i - 3 : i < 286 ? 'a' + i - 260 : i);
        tokens[i] = text[i];
        scores[i] = i < 259 ? 0.0f : (float)-i;
        types[i] = i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1;
    }
    build_string(b, "tokenizer.ggml.model", "llama");
    build_strings(b, "tokenizer.ggml.tokens", tokens, n);
    build_array(b, "tokenizer.ggml.scores", DPI_GGUF_F32, scores, n, 4);
    build_array(b, "tokenizer.ggml.token_type", DPI_GGUF_I32, types, n, 4);
    build_u32(b, "tokenizer.ggml.bos_token_id", 1);
    build_u32(b, "tokenizer.ggml.eos_token_id", 2);
    free(text), free(tokens), free(scores), free(types);
}

static void add_vector(gguf_build *b, const char *name, int64_t n, double mean, double deviation,
                       uint64_t *seed) {
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(mean + deviation * random_normal(seed));
    build_tensor(b, name, DPI_TYPE_F32, 1, &n, x, (size_t)n * sizeof *x);
    free(x);
}

/* Where a block has its scale (and minimum), and the standard deviation of weights whose scale is
 * 1, whose minimum is `min` and whose other bytes are random. */
static const struct block_form {
    uint32_t type;
    int scale_at, min_at; /* byte offsets of halves; min_at -1: none */
    double deviation, min;
} forms[] = {
    {DPI_TYPE_Q8_0, 0, -1, 74, 0},     {DPI_TYPE_Q4_0, 0, -1, 4.6, 0},
    {DPI_TYPE_Q4_1, 0, 2, 4.6, -7.5},  {DPI_TYPE_Q5_0, 0, -1, 9.2, 0},
    {DPI_TYPE_Q5_1, 0, 2, 9.2, -15.5}, {DPI_TYPE_IQ4_NL, 0, -1, 71, 0},
    {DPI_TYPE_Q2_K, 80, 82, 14, 1.5},  {DPI_TYPE_Q3_K, 108, -1, 43, 0},
    {DPI_TYPE_Q4_K, 0, 2, 257, 7.5},   {DPI_TYPE_Q5_K, 0, 2, 530, 15.5},
    {DPI_TYPE_Q6_K, 208, -1, 1365, 0}, {DPI_TYPE_IQ4_XS, 0, -1, 1310, 0},
};

static void put_half(unsigned char *p, double value) {
    uint16_t half = dpi_f32_to_f16((float)value);
    memcpy(p, &half, 2);
}

/* n weights of a type with blocks: random bytes and finite scales, without any quantiser. */
static void fill_blocks(unsigned char *data, const dpi_type *t, int64_t n, double deviation,
                        uint64_t *seed) {
    const struct block_form *form = forms;
    while (form->type != t->id)
        assert_true(++form < forms + sizeof forms / sizeof forms[0]);
    for (int64_t i = 0; i < n / t->block; i++, data += t->block_bytes) {
        double scale = deviation / form->deviation * (0.5 + random_uniform(seed));
        for (int j = 0; j < t->block_bytes; j++)
            data[j] = (unsigned char)random_u64(seed);
        put_half(data + form->scale_at, scale);
        if (form->min_at >= 0)
            put_half(data + form->min_at, scale * form->min);
    }
}

/* Weights of variance about 1 / n_in. */
static void add_matrix(gguf_build *b, const char *name, uint32_t type, int64_t n_out, int64_t n_in,
                       uint64_t *seed) {
    const dpi_type *t = dpi_type_find(type);
    const double deviation = 1.0 / sqrt((double)n_in);
    int64_t n = n_out * n_in, shape[2] = {n_in, n_out};
    uint64_t n_bytes = dpi_type_row_bytes(t, n);
    unsigned char *data = malloc(n_bytes);
    assert_non_null(data);
    if (t->block > 1)
        fill_blocks(data, t, n, deviation, seed);
    for (int64_t i = 0; t->block == 1 && i < n; i++) {
        float v = (float)(deviation * random_normal(seed));
        if (type == DPI_TYPE_F16)
            put_half(data + 2 * i, (double)v);
        else /* BF16: the upper half, cut off */
            memcpy(data + t->block_bytes * i, (char *)&v + 4 - t->block_bytes,
                   (size_t)t->block_bytes);
    }
    build_tensor(b, name, type, 2, shape, data, n_bytes);
    free(data);
}

static void add_layer(gguf_build *b, const tiny_spec *s, int32_t layer, int32_t dk, int32_t dv,
                      uint64_t *seed) {
    const struct {
        const char *name;
        int32_t n_out, n_in;
    } mats[] = {
        {"attn_q", s->n_head * dk, s->n_embd},    {"attn_k", s->n_kv_head * dk, s->n_embd},
        {"attn_v", s->n_kv_head * dv, s->n_embd}, {"attn_output", s->n_embd, s->n_head * dv},
        {"ffn_gate", s->n_ff, s->n_embd},         {"ffn_up", s->n_ff, s->n_embd},
        {"ffn_down", s->n_embd, s->n_ff},
    };
    char name[64];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "blk.%d.%s.weight", layer, mats[i].name);
        add_matrix(b, name, s->type, mats[i].n_out, mats[i].n_in, seed);
        snprintf(name, sizeof name, "blk.%d.%s.bias", layer, mats[i].name);
        if (s->bias)
            add_vector(b, name, mats[i].n_out, 0, 0.3, seed);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "blk.%d.%s_norm.weight", layer, i ? "ffn" : "attn");
        add_vector(b, name, s->n_embd, 1, 0.2, seed);
    }
}

void tiny_build(const tiny_spec *s, uint64_t seed, void **image, size_t *n_bytes) {
    const bool is_llama3 = s->llama3_factor > 0, is_linear = s->rope_factor > 0;
    const struct {
        const char *key;
        int32_t value; /* 0: the key is absent */
    } ints[] = {
        {"llama.block_count", s->n_layer},
        {"llama.context_length", 512},
        {"llama.embedding_length", s->n_embd},
        {"llama.feed_forward_length", s->n_ff},
        {"llama.attention.head_count", s->n_head},
        {"llama.attention.head_count_kv", s->n_kv_head},
        {"llama.attention.key_length", s->head_dim},
        {"llama.attention.value_length", s->head_dim_v},
        {"llama.rope.dimension_count", s->n_rot},
        {"llama.rope.scaling.original_context_length", is_llama3 ? 64 : 0},
    };
    gguf_build b;
    build_begin(&b);
    build_string(&b, "general.architecture", "llama");
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        if (ints[i].value)
            build_u32(&b, ints[i].key, (uint32_t)ints[i].value);
    build_f32(&b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (s->rope_base > 0)
        build_f32(&b, "llama.rope.freq_base", s->rope_base);
    if (s->attn_factor > 0)
        build_f32(&b, "llama.rope.scaling.attn_factor", s->attn_factor);
    if (is_linear || is_llama3) {
        build_string(&b, "llama.rope.scaling.type", is_llama3 ? "llama3" : "linear");
        build_f32(&b, "llama.rope.scaling.factor", is_llama3 ? s->llama3_factor : s->rope_factor);
    }
    tiny_vocab(&b, s->n_vocab);
    add_matrix(&b, "token_embd.weight", s->type, s->n_vocab, s->n_embd, &seed);
    add_vector(&b, "output_norm.weight", s->n_embd, 3, 0.5, &seed);
    if (!s->tied)
        add_matrix(&b, "output.weight", s->type, s->n_vocab, s->n_embd, &seed);
    const int32_t dk = s->head_dim ? s->head_dim : s->n_embd / s->n_head;
    const int32_t dv = s->head_dim_v ? s->head_dim_v : s->n_embd / s->n_head;
    if (s->rope_freqs)
        add_vector(&b, "rope_freqs.weight", (s->n_rot ? s->n_rot : dk) / 2, 4, 0.5, &seed);
    for (int32_t i = 0; i < s->n_layer; i++)
        add_layer(&b, s, i, dk, dv, &seed);
    build_end(&b);
    *image = dpi_calloc(1, b.n_bytes);
    assert_non_null(*image);
    memcpy(*image, b.data, b.n_bytes);
    *n_bytes = b.n_bytes;
    build_free(&b);
}

dpi_model *tiny_open(const tiny_spec *spec, uint64_t seed, void **image) {
    size_t n_bytes;
    dpi_model *model = NULL;
    tiny_build(spec, seed, image, &n_bytes);
    assert_ok(dpi_model_open_buffer(*image, n_bytes, NULL, &model, ERR));
    return model;
}

void tiny_write(const tiny_spec *spec, uint64_t seed, const char *path) {
    void *image;
    size_t n_bytes;
    tiny_build(spec, seed, &image, &n_bytes);
    write_file(path, image, n_bytes);
    free(image);
}

dpi_model *tiny_open_windowed(int32_t n_vocab, int32_t window) {
    char dir[256];
    dpi_model *made = NULL;
    dpi_model_shape shape;
    dpi_write_options o;
    make_dir(dir, sizeof dir);
    dpi_write_options_init(&o);
    o.type = "F32";
    dpi_model_shape_init(&shape);
    shape.architecture = "gemma3", shape.window = window;
    shape.n_layer = 7, shape.n_embd = 64, shape.n_ff = 32, shape.n_head = 2, shape.n_kv_head = 1;
    shape.n_vocab = n_vocab, shape.n_ctx_train = 512, shape.rope_freq_base = 10000;
    assert_ok(dpi_model_make(&shape, NULL, 5, path_in(dir, "m.gguf"), &o, ERR));
    assert_ok(dpi_model_open(path_in(dir, "m.gguf"), NULL, &made, ERR));
    remove_dir(dir);
    return made;
}
