#include "tests/support/tiny_model.h"

#include <math.h>

#include "base/mem.h"
#include "engine/model.h"
#include "gguf/gguf.h"
#include "kernels/weight_types.h"
#include "tests/support/support.h"

tiny_spec tiny_default(void) {
    return (tiny_spec){.n_layer = 2,
                       .n_embd = 64,
                       .n_ff = 96,
                       .n_head = 4,
                       .n_kv_head = 2,
                       .n_vocab = 320,
                       .type = DPI_TYPE_F32};
}

static int32_t or_default(int32_t value, int32_t otherwise) { return value ? value : otherwise; }

/* ---- Building -------------------------------------------------------------------------------- */

void tiny_vocab(gguf_build *b, int32_t n_vocab) {
    char(*text)[16] = calloc((size_t)n_vocab, sizeof *text);
    const char **tokens = calloc((size_t)n_vocab, sizeof *tokens);
    float *scores = calloc((size_t)n_vocab, sizeof *scores);
    int32_t *types = calloc((size_t)n_vocab, sizeof *types);
    assert_true(text && tokens && scores && types && n_vocab >= 300);
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    for (int32_t i = 0; i < n_vocab; i++) {
        tokens[i] = text[i];
        if (i < 3)
            snprintf(text[i], sizeof *text, "%s", special[i]);
        else if (i < 259)
            snprintf(text[i], sizeof *text, "<0x%02X>", (unsigned)(i - 3));
        else if (i == 259)
            snprintf(text[i], sizeof *text, "\xe2\x96\x81");
        else if (i < 286)
            snprintf(text[i], sizeof *text, "%c", 'a' + i - 260);
        else
            snprintf(text[i], sizeof *text, "w%d", (int)i);
        scores[i] = i < 259 ? 0.0f : (float)-i;
        types[i] = i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1;
    }
    build_string(b, "tokenizer.ggml.model", "llama");
    build_strings(b, "tokenizer.ggml.tokens", tokens, (size_t)n_vocab);
    build_array(b, "tokenizer.ggml.scores", DPI_GGUF_F32, scores, (size_t)n_vocab, 4);
    build_array(b, "tokenizer.ggml.token_type", DPI_GGUF_I32, types, (size_t)n_vocab, 4);
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
    {DPI_TYPE_Q8_0, 0, -1, 74, 0},      {DPI_TYPE_Q4_0, 0, -1, 4.6, 0},
    {DPI_TYPE_Q4_1, 0, 2, 4.6, -7.5},   {DPI_TYPE_Q5_0, 0, -1, 9.2, 0},
    {DPI_TYPE_Q5_1, 0, 2, 9.2, -15.5},  {DPI_TYPE_IQ4_NL, 0, -1, 71, 0},
    {DPI_TYPE_Q2_K, 80, 82, 14, 1.5},   {DPI_TYPE_Q3_K, 108, -1, 43, 0},
    {DPI_TYPE_Q4_K, 0, 2, 257, 7.5},    {DPI_TYPE_Q5_K, 0, 2, 530, 15.5},
    {DPI_TYPE_Q6_K, 208, -1, 1365, 0},  {DPI_TYPE_IQ4_XS, 0, -1, 1310, 0},
};

static void put_half(unsigned char *p, double value) {
    uint16_t half = dpi_f32_to_f16((float)value);
    memcpy(p, &half, 2);
}

/* n weights of a type with blocks: random bytes and finite scales, without any quantiser. */
static void fill_blocks(unsigned char *data, uint32_t type, int64_t n, double deviation,
                        uint64_t *seed) {
    const dpi_type *t = dpi_type_find(type);
    const struct block_form *form = forms;
    while (form->type != type)
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
    int64_t n = n_out * n_in, shape[2] = {n_in, n_out};
    uint64_t n_bytes = dpi_type_row_bytes(dpi_type_find(type), n);
    unsigned char *data = malloc(n_bytes);
    assert_non_null(data);
    double deviation = 1.0 / sqrt((double)n_in);
    if (dpi_type_find(type)->block > 1)
        fill_blocks(data, type, n, deviation, seed);
    else
        for (int64_t i = 0; i < n; i++) {
            float v = (float)(deviation * random_normal(seed));
            unsigned char *p = data + i * dpi_type_find(type)->block_bytes;
            if (type == DPI_TYPE_F32)
                memcpy(p, &v, 4);
            else if (type == DPI_TYPE_F16)
                put_half(p, (double)v);
            else /* BF16: the upper half, cut off */
                memcpy(p, (unsigned char *)&v + 2, 2);
        }
    build_tensor(b, name, type, 2, shape, data, n_bytes);
    free(data);
}

static void add_layer(gguf_build *b, const tiny_spec *s, int32_t layer, uint64_t *seed) {
    int32_t dk = or_default(s->head_dim, s->n_embd / s->n_head);
    int32_t dv = or_default(s->head_dim_v, s->n_embd / s->n_head);
    const struct {
        const char *name;
        int64_t n_out, n_in;
    } mats[] = {
        {"attn_q", (int64_t)s->n_head * dk, s->n_embd},
        {"attn_k", (int64_t)s->n_kv_head * dk, s->n_embd},
        {"attn_v", (int64_t)s->n_kv_head * dv, s->n_embd},
        {"attn_output", s->n_embd, (int64_t)s->n_head * dv},
        {"ffn_gate", s->n_ff, s->n_embd},
        {"ffn_up", s->n_ff, s->n_embd},
        {"ffn_down", s->n_embd, s->n_ff},
    };
    char name[64];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "blk.%d.%s.weight", (int)layer, mats[i].name);
        add_matrix(b, name, s->type, mats[i].n_out, mats[i].n_in, seed);
        snprintf(name, sizeof name, "blk.%d.%s.bias", (int)layer, mats[i].name);
        if (s->bias && i < 4)
            add_vector(b, name, mats[i].n_out, 0, 0.3, seed);
    }
    snprintf(name, sizeof name, "blk.%d.attn_norm.weight", (int)layer);
    add_vector(b, name, s->n_embd, 1, 0.2, seed);
    snprintf(name, sizeof name, "blk.%d.ffn_norm.weight", (int)layer);
    add_vector(b, name, s->n_embd, 1, 0.2, seed);
}

void tiny_build(const tiny_spec *s, uint64_t seed, void **image, size_t *n_bytes) {
    gguf_build b;
    build_begin(&b);
    build_string(&b, "general.architecture", "llama");
    build_u32(&b, "llama.block_count", (uint32_t)s->n_layer);
    build_u32(&b, "llama.context_length", 512);
    build_u32(&b, "llama.embedding_length", (uint32_t)s->n_embd);
    build_u32(&b, "llama.feed_forward_length", (uint32_t)s->n_ff);
    build_u32(&b, "llama.attention.head_count", (uint32_t)s->n_head);
    build_u32(&b, "llama.attention.head_count_kv", (uint32_t)s->n_kv_head);
    build_f32(&b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (s->head_dim)
        build_u32(&b, "llama.attention.key_length", (uint32_t)s->head_dim);
    if (s->head_dim_v)
        build_u32(&b, "llama.attention.value_length", (uint32_t)s->head_dim_v);
    if (s->n_rot)
        build_u32(&b, "llama.rope.dimension_count", (uint32_t)s->n_rot);
    if (s->rope_base > 0)
        build_f32(&b, "llama.rope.freq_base", s->rope_base);
    if (s->rope_factor > 0) {
        build_string(&b, "llama.rope.scaling.type", "linear");
        build_f32(&b, "llama.rope.scaling.factor", s->rope_factor);
    }
    if (s->llama3_factor > 0) {
        build_string(&b, "llama.rope.scaling.type", "llama3");
        build_f32(&b, "llama.rope.scaling.factor", s->llama3_factor);
        build_u32(&b, "llama.rope.scaling.original_context_length", 64);
    }
    tiny_vocab(&b, s->n_vocab);
    add_matrix(&b, "token_embd.weight", s->type, s->n_vocab, s->n_embd, &seed);
    add_vector(&b, "output_norm.weight", s->n_embd, 3, 0.5, &seed);
    if (!s->tied)
        add_matrix(&b, "output.weight", s->type, s->n_vocab, s->n_embd, &seed);
    int32_t dk = or_default(s->head_dim, s->n_embd / s->n_head);
    if (s->rope_freqs)
        add_vector(&b, "rope_freqs.weight", or_default(s->n_rot, dk) / 2, 4, 0.5, &seed);
    for (int32_t i = 0; i < s->n_layer; i++)
        add_layer(&b, s, i, &seed);
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
    dpi_error err;
    tiny_build(spec, seed, image, &n_bytes);
    assert_ok(dpi_model_open_buffer(*image, n_bytes, NULL, &model, &err), &err);
    return model;
}

/* ---- The oracle ------------------------------------------------------------------------------ */

/* y = W x + bias, in double. */
static void apply(const dpi_matrix *w, const float *bias, const double *x, double *y) {
    float *row = malloc((size_t)w->n_in * sizeof *row);
    assert_non_null(row);
    for (int64_t o = 0; o < w->n_out; o++) {
        dpi_matrix_row(w, o, row);
        double sum = bias ? (double)bias[o] : 0;
        for (int64_t k = 0; k < w->n_in; k++)
            sum += (double)row[k] * x[k];
        y[o] = sum;
    }
    free(row);
}

static void normalize(const float *w, const double *x, double *y, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int32_t i = 0; i < n; i++)
        y[i] = x[i] / sqrt(sum / n + 1e-5) * (double)w[i];
}

static double llama3(double frequency, double factor) {
    const double low = 1, high = 4, original = 64;
    double wavelength = 2 * acos(-1.0) / frequency;
    if (wavelength < original / high)
        return frequency;
    if (wavelength > original / low)
        return frequency / factor;
    double smooth = (original / wavelength - low) / (high - low);
    return (1 - smooth) * frequency / factor + smooth * frequency;
}

static void rotate(const tiny_spec *s, const dpi_model *m, double *x, int32_t n_head, int32_t dim,
                   int32_t pos) {
    int32_t n_rot = or_default(s->n_rot, dim);
    for (int32_t h = 0; h < n_head; h++)
        for (int32_t i = 0; i < n_rot / 2; i++) {
            double base = s->rope_base > 0 ? (double)s->rope_base : 10000;
            double frequency = pow(base, -2.0 * i / n_rot);
            frequency /= s->rope_factor > 0 ? (double)s->rope_factor : 1;
            frequency /= s->rope_freqs ? (double)m->rope_freqs[i] : 1;
            if (s->llama3_factor > 0) /* by wavelength, as Llama 3.1's configuration is written */
                frequency = llama3(frequency, (double)s->llama3_factor);
            double angle = pos * frequency;
            double *p = x + h * dim + 2 * i, a = p[0], b = p[1];
            p[0] = a * cos(angle) - b * sin(angle);
            p[1] = a * sin(angle) + b * cos(angle);
        }
}

static double *doubles(int64_t n) {
    double *p = calloc((size_t)n, sizeof *p);
    assert_non_null(p);
    return p;
}

/* att [n_head * dv] of position `pos`, from q and the keys and values of positions 0..pos. */
static void attend(const tiny_spec *s, const double *q, const double *k, const double *v,
                   int32_t pos, int32_t dk, int32_t dv, double *att) {
    double *p = doubles(pos + 1);
    for (int32_t h = 0; h < s->n_head; h++) {
        int32_t g = h / (s->n_head / s->n_kv_head);
        double sum = 0;
        for (int32_t j = 0; j <= pos; j++) {
            double dot = 0;
            for (int32_t i = 0; i < dk; i++)
                dot += q[h * dk + i] * k[((int64_t)j * s->n_kv_head + g) * dk + i];
            sum += p[j] = exp(dot / sqrt(dk));
        }
        for (int32_t i = 0; i < dv; i++) {
            att[h * dv + i] = 0;
            for (int32_t j = 0; j <= pos; j++)
                att[h * dv + i] += p[j] / sum * v[((int64_t)j * s->n_kv_head + g) * dv + i];
        }
    }
    free(p);
}

void oracle_logits(const tiny_spec *s, const dpi_model *m, const int32_t *tokens, int32_t n,
                   double *logits) {
    int32_t dk = or_default(s->head_dim, s->n_embd / s->n_head);
    int32_t dv = or_default(s->head_dim_v, s->n_embd / s->n_head), e = s->n_embd;
    int64_t nk = (int64_t)s->n_kv_head * dk, nv = (int64_t)s->n_kv_head * dv;
    double *x = doubles((int64_t)n * e), *k = doubles(n * nk), *v = doubles(n * nv);
    double *norm = doubles(e), *q = doubles((int64_t)s->n_head * dk), *add = doubles(e);
    double *att = doubles((int64_t)s->n_head * dv);
    double *gate = doubles(s->n_ff), *up = doubles(s->n_ff);
    float *row = malloc((size_t)e * sizeof *row);
    assert_non_null(row);
    for (int32_t t = 0; t < n; t++) {
        dpi_matrix_row(&m->embedding, tokens[t], row);
        for (int32_t i = 0; i < e; i++)
            x[t * e + i] = (double)row[i];
    }
    for (int32_t layer = 0; layer < s->n_layer; layer++) {
        const dpi_layer *w = &m->layers[layer];
        for (int32_t t = 0; t < n; t++) {
            normalize(w->attn_norm, x + t * e, norm, e);
            apply(&w->wq, w->bq, norm, q);
            apply(&w->wk, w->bk, norm, k + t * nk);
            apply(&w->wv, w->bv, norm, v + t * nv);
            rotate(s, m, q, s->n_head, dk, t);
            rotate(s, m, k + t * nk, s->n_kv_head, dk, t);
            attend(s, q, k, v, t, dk, dv, att);
            apply(&w->wo, w->bo, att, add);
            for (int32_t i = 0; i < e; i++)
                x[t * e + i] += add[i];
            normalize(w->ffn_norm, x + t * e, norm, e);
            apply(&w->w_gate, NULL, norm, gate);
            apply(&w->w_up, NULL, norm, up);
            for (int32_t i = 0; i < s->n_ff; i++)
                gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
            apply(&w->w_down, NULL, gate, add);
            for (int32_t i = 0; i < e; i++)
                x[t * e + i] += add[i];
        }
    }
    for (int32_t t = 0; t < n; t++) {
        normalize(m->output_norm, x + t * e, norm, e);
        apply(s->tied ? &m->embedding : &m->output, NULL, norm, logits + (int64_t)t * s->n_vocab);
    }
    free(x), free(k), free(v), free(norm), free(q), free(add), free(att), free(gate), free(up);
    free(row);
}
