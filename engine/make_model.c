/* make_model.c - writes a model of a given shape with random weights.
 *
 * A pool of random pieces is quantised once. Each place of a matrix gets a piece drawn from it:
 * that is as fast as the disk, for every type. Weights are about normal with deviation
 * 1 / sqrt(n_in), so that a product keeps the size of its input. The output head has three times
 * that deviation, which makes logits of deviation 3. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "engine/make_vocab.h"
#include "engine/model.h"
#include "gguf/convert.h"

DPI_STRUCT_DEFAULTS(dpi_model_shape, 0)

#define DENSE(...) {0, __VA_ARGS__, 0, 0, 0} /* without delta nets */

static const struct {
    const char *name;
    dpi_model_shape shape;
} shapes[] = {
    /* n_layer, n_embd, n_ff, n_head, n_kv_head, n_vocab, n_ctx_train, tied, rope base,
     * architecture, head_dim, n_rot, window, heads and dimension of delta nets */
    {"tinyllama-1.1b", DENSE(22, 2048, 5632, 32, 4, 32000, 2048, 0, 10000, "llama", 0, 0, 0)},
    {"llama-3.2-1b", DENSE(16, 2048, 8192, 32, 8, 128256, 131072, 1, 500000, "llama", 0, 0, 0)},
    {"llama-3.2-3b", DENSE(28, 3072, 8192, 24, 8, 128256, 131072, 1, 500000, "llama", 0, 0, 0)},
    {"llama-3-8b", DENSE(32, 4096, 14336, 32, 8, 128256, 8192, 0, 500000, "llama", 0, 0, 0)},
    {"smollm2-135m", DENSE(30, 576, 1536, 9, 3, 49152, 8192, 1, 100000, "llama", 0, 0, 0)},
    {"qwen3-0.6b", DENSE(28, 1024, 3072, 16, 8, 151936, 40960, 1, 1e6f, "qwen3", 128, 0, 0)},
    {"qwen3-1.7b", DENSE(28, 2048, 6144, 16, 8, 151936, 40960, 1, 1e6f, "qwen3", 128, 0, 0)},
    {"qwen3-4b", DENSE(36, 2560, 9728, 32, 8, 151936, 40960, 1, 1e6f, "qwen3", 128, 0, 0)},
    {"qwen3.5-0.8b",
     {0, 24, 1024, 3584, 8, 2, 248320, 262144, 1, 1e7f, "qwen35", 256, 64, 0, 16, 16, 128}},
    {"gemma-3-270m", DENSE(18, 640, 2048, 4, 1, 262144, 32768, 1, 1e6f, "gemma3", 256, 0, 512)},
    {"gemma-3-1b", DENSE(26, 1152, 6912, 4, 1, 262144, 32768, 1, 1e6f, "gemma3", 256, 0, 512)},
    {"gemma-3-4b", DENSE(34, 2560, 10240, 8, 4, 262144, 131072, 1, 1e6f, "gemma3", 256, 0, 1024)},
    {"phi-4-mini", DENSE(32, 3072, 8192, 24, 8, 200064, 131072, 1, 10000, "phi3", 0, 96, 0)},
};

enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

dpi_status dpi_model_shape_find(const char *name, dpi_model_shape *shape, dpi_error *err) {
    char names[256] = "";
    DPI_CHECK_STRUCT(dpi_model_shape, shape, err);
    for (int i = 0; i < N_SHAPES; i++) {
        if (name && strcmp(shapes[i].name, name) == 0) {
            dpi_struct_give(shape, &shapes[i].shape, sizeof *shape);
            return DPI_STATUS_OK;
        }
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", shapes[i].name);
    }
    return dpi_fail(err, DPI_STATUS_ARG, "shape '%.32s' is unknown, must be one of %s",
                    name ? name : "", names);
}

static const char *name_of(const dpi_model_shape *s) {
    return s->architecture ? s->architecture : dpi_arch_llama.name;
}

static int32_t head_dim_of(const dpi_model_shape *s) {
    return s->head_dim ? s->head_dim : s->n_embd / s->n_head;
}

/* Of the others a shape does not say enough. */
static dpi_status check_architecture(const dpi_model_shape *s, dpi_error *err) {
    static const dpi_arch *const made[] = {&dpi_arch_llama, &dpi_arch_qwen2, &dpi_arch_qwen3,
                                           &dpi_arch_qwen35, &dpi_arch_gemma3, &dpi_arch_phi3};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (strcmp(name_of(s), made[i]->name) == 0)
            return DPI_STATUS_OK;
    return dpi_fail(err, DPI_STATUS_ARG,
                    "architecture is '%.32s', must be llama, qwen2, qwen3, qwen35, gemma3 or phi3",
                    name_of(s));
}

static bool has_delta_nets(const dpi_model_shape *s) {
    return strcmp(name_of(s), dpi_arch_qwen35.name) == 0;
}

static dpi_status check_delta_nets(const dpi_model_shape *s, dpi_error *err) {
    const int32_t least = has_delta_nets(s), most = has_delta_nets(s) ? 1 << 10 : 0;
    DPI_TRY(dpi_check_range("n_delta_k_head", s->n_delta_k_head, least, most, err));
    DPI_TRY(dpi_check_range("n_delta_v_head", s->n_delta_v_head, least, most, err));
    DPI_TRY(dpi_check_range("delta_dim", s->delta_dim, least, most, err));
    if (has_delta_nets(s) && s->n_delta_v_head % s->n_delta_k_head)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_delta_v_head is %d, not a multiple of n_delta_k_head, which is %d",
                        (int)s->n_delta_v_head, (int)s->n_delta_k_head);
    return DPI_STATUS_OK;
}

static dpi_status check_shape(const dpi_model_shape *s, dpi_error *err) {
    DPI_TRY(dpi_check_range("n_layer", s->n_layer, 1, 4096, err));
    DPI_TRY(dpi_check_range("n_embd", s->n_embd, 2, 1 << 16, err));
    DPI_TRY(dpi_check_range("n_ff", s->n_ff, 1, 1 << 18, err));
    DPI_TRY(dpi_check_range("n_head", s->n_head, 1, 4096, err));
    DPI_TRY(dpi_check_range("n_kv_head", s->n_kv_head, 1, s->n_head, err));
    DPI_TRY(dpi_check_range("n_vocab", s->n_vocab, DPI_SYNTHETIC_MIN, DPI_SYNTHETIC_MAX, err));
    DPI_TRY(dpi_check_range("n_ctx_train", s->n_ctx_train, 1, 1 << 24, err));
    DPI_TRY(dpi_check_range("tied_output", s->tied_output, 0, 1, err));
    if (!(s->rope_freq_base >= 1 && s->rope_freq_base <= 1e12f))
        return dpi_fail(err, DPI_STATUS_ARG, "rope_freq_base is %g, must be 1..1e12",
                        (double)s->rope_freq_base);
    DPI_TRY(check_architecture(s, err));
    DPI_TRY(check_delta_nets(s, err));
    DPI_TRY(dpi_check_range("head_dim", s->head_dim, 0, 4096, err));
    DPI_TRY(dpi_check_range("n_rot", s->n_rot, 0, head_dim_of(s), err));
    DPI_TRY(dpi_check_range("window", s->window, 0, 1 << 24, err));
    if (s->head_dim % 2 || s->n_rot % 2)
        return dpi_fail(err, DPI_STATUS_ARG, "head_dim is %d, n_rot %d, must be even",
                        (int)s->head_dim, (int)s->n_rot);
    if (!s->head_dim && (s->n_embd % s->n_head || s->n_embd / s->n_head % 2))
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_embd is %d, must be an even multiple of n_head, which is %d",
                        (int)s->n_embd, (int)s->n_head);
    if (s->n_head % s->n_kv_head)
        return dpi_fail(err, DPI_STATUS_ARG,
                        "n_head is %d, not a multiple of n_kv_head, which is %d", (int)s->n_head,
                        (int)s->n_kv_head);
    return DPI_STATUS_OK;
}

/* ---- Randomness: the same on every machine --------------------------------------------------- */

/* splitmix64 */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* About normal, deviation 1: the sum of four uniform integers, so exact arithmetic. */
static float random_weight(uint64_t *state) {
    uint64_t bits = next_random(state);
    int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) +
                            (bits >> 48)) - 2 * 0xffff;
    return (float)sum * (1.7320508f / 65536);
}

/* ---- Tensors --------------------------------------------------------------------------------- */

typedef struct plan {
    char name[64];
    const dpi_type *type;
    int32_t n_dims;
    int64_t n_in, n_rows;
    float deviation, mean;
} plan;

/* Pieces of `weights` weights each, one after the other. */
typedef struct pool {
    int64_t weights;
    uint64_t piece_bytes;
    unsigned char *data;
} pool;

enum { N_PIECES = 256 };

static dpi_status fill_pool(pool *p, const plan *t, uint64_t state, dpi_error *err) {
    p->weights = DPI_MAX_BLOCK;
    while (t->n_in % p->weights != 0)
        p->weights /= 2; /* still a multiple of the type's block */
    p->piece_bytes = dpi_type_row_bytes(t->type, p->weights);
    p->data = dpi_calloc(N_PIECES, p->piece_bytes);
    if (!p->data)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for random weights");
    for (int64_t i = 0; i < N_PIECES; i++) {
        float x[DPI_MAX_BLOCK];
        for (int64_t j = 0; j < p->weights; j++)
            x[j] = t->mean + t->deviation * random_weight(&state);
        t->type->quantize(x, p->data + (uint64_t)i * p->piece_bytes, p->weights);
    }
    return DPI_STATUS_OK;
}

/* n_bytes, a multiple of a piece: the whole rows that are written next. */
static void fill_rows(const pool *p, uint64_t *state, unsigned char *out, uint64_t n_bytes) {
    for (const unsigned char *end = out + n_bytes; out < end; out += p->piece_bytes)
        memcpy(out, p->data + next_random(state) % N_PIECES * p->piece_bytes, p->piece_bytes);
}

static dpi_status write_tensor(dpi_conversion *c, const plan *t, uint64_t state, dpi_error *err) {
    pool p = {0};
    uint64_t row_bytes = dpi_type_row_bytes(t->type, t->n_in);
    int64_t piece = dpi_piece_rows(t->n_in, t->n_rows);
    unsigned char *out = dpi_calloc((size_t)piece, row_bytes);
    dpi_status status = out ? fill_pool(&p, t, next_random(&state), err)
                            : dpi_fail(err, DPI_STATUS_MEMORY, "no memory for rows of %s", t->name);
    for (int64_t r = 0; r < t->n_rows && status == DPI_STATUS_OK; r += piece) {
        int64_t n = t->n_rows - r < piece ? t->n_rows - r : piece;
        fill_rows(&p, &state, out, (uint64_t)n * row_bytes);
        status = dpi_conversion_put(c, out, (uint64_t)n * row_bytes, n * t->n_in, err);
    }
    free(p.data);
    free(out);
    return status;
}

/* ---- The model ------------------------------------------------------------------------------- */

static void put_metadata(dpi_gguf_builder *w, const dpi_model_shape *s) {
    char name[64];
    snprintf(name, sizeof name, "random weights, %d layers of %d", (int)s->n_layer, (int)s->n_embd);
    dpi_gguf_put_string(w, "general.architecture", name_of(s));
    dpi_gguf_put_string(w, "general.name", name);
    dpi_gguf_put_bool(w, "dpinfer.random_weights", true);
    dpi_gguf_put_shape(w, s, 1e-5f);
}

/* The list of tensors being made. */
typedef struct planner {
    plan *plans;
    int64_t n;
    const dpi_recipe *recipe;
    const dpi_model_shape *shape;
    const dpi_arch *arch;
} planner;

/* n_rows = 0: a vector of norm weights. */
static plan *add(planner *p, const char *name, int64_t n_in, int64_t n_rows) {
    plan *t = &p->plans[p->n++];
    snprintf(t->name, sizeof t->name, "%s", name);
    const dpi_type *type = dpi_recipe_type(p->recipe, name, n_rows ? 2 : 1, n_in,
                                           p->shape->n_layer, p->shape->tied_output);
    t->n_dims = n_rows ? 2 : 1;
    t->type = type ? type : dpi_type_find(DPI_TYPE_F32);
    t->n_in = n_in;
    t->n_rows = n_rows ? n_rows : 1;
    t->mean = n_rows ? 0 : 1;
    t->deviation = n_rows ? 1 / sqrtf((float)n_in) : 0.1f;
    return t;
}

/* Of four layers the first three are delta nets, where the architecture has any. */
static const dpi_arch_table *table_of(const dpi_arch *arch, int32_t layer) {
    const dpi_arch_table *delta = &arch->layers[DPI_LAYER_DELTA];
    return delta->n_tensors > 0 && layer % 4 < 3 ? delta : &arch->layers[DPI_LAYER_ATTENTION];
}

static void add_layer(planner *p, int32_t index) {
    const dpi_model_shape *s = p->shape;
    const dpi_shape c = {.n_embd = s->n_embd, .n_ff = s->n_ff, .n_head = s->n_head,
                          .n_kv_head = s->n_kv_head, .head_dim = head_dim_of(s),
                          .head_dim_v = head_dim_of(s),
                          .delta = {4, s->n_delta_k_head, s->n_delta_v_head, s->delta_dim,
                                    s->delta_dim}};
    const dpi_arch_table *table = table_of(p->arch, index);
    const dpi_arch_tensor *t = table->tensors, *end = t + table->n_tensors;
    for (int32_t n = 1; t < end; t += n) {
        int64_t n_rows = 0;
        n = dpi_arch_parts(table, t);
        for (int32_t i = 0; t->n_out && i < n; i++)
            n_rows += dpi_extent_of(&c, t[i].n_out);
        plan *made = add(p, dpi_arch_tensor_name(t, index, "weight").text,
                         dpi_extent_of(&c, t->n_in), n_rows);
        if (t->at == offsetof(dpi_layer, rate)) /* a state decays */
            made->mean = -made->mean;
    }
}

static void add_tensors(planner *p) {
    const dpi_model_shape *s = p->shape;
    plan *head = add(p, "token_embd.weight", s->n_embd, s->n_vocab);
    add(p, "output_norm.weight", s->n_embd, 0);
    if (!s->tied_output)
        head = add(p, "output.weight", s->n_embd, s->n_vocab);
    head->deviation *= 3;
    for (int32_t i = 0; i < s->n_layer; i++)
        add_layer(p, i);
}

static dpi_status write_model(dpi_conversion *c, const planner *p, uint64_t seed, dpi_error *err) {
    for (int64_t i = 0; i < p->n; i++) {
        const plan *t = &p->plans[i];
        int64_t shape[2] = {t->n_in, t->n_rows};
        dpi_gguf_put_tensor(c->builder, t->name, t->type->id, t->n_dims, shape);
        c->n_weights += t->n_in * t->n_rows;
    }
    for (int64_t i = 0; i < p->n; i++)
        DPI_TRY(write_tensor(c, &p->plans[i], next_random(&seed), err));
    return DPI_STATUS_OK;
}

static dpi_status make(dpi_conversion *c, const dpi_model_shape *wanted, const char *vocab_path,
                       uint64_t seed, dpi_error *err) {
    enum { OTHERS = 3 };
    dpi_gguf *vocab = NULL;
    dpi_model_shape shape = *wanted;
    if (vocab_path)
        DPI_TRY(dpi_vocab_source_open(vocab_path, &vocab, &shape.n_vocab, err));
    put_metadata(c->builder, &shape);
    dpi_conversion_put_kind(c);
    dpi_status status = DPI_STATUS_OK;
    if (vocab)
        dpi_vocab_source_put(c->builder, vocab);
    else
        status = dpi_synthetic_vocab_put(c->builder, shape.n_vocab, err);
    dpi_gguf_close(vocab);
    planner p = {.recipe = c->recipe, .shape = &shape, .arch = dpi_arch_find(name_of(&shape))};
    size_t n = OTHERS;
    for (int32_t i = 0; i < shape.n_layer; i++)
        n += (size_t)table_of(p.arch, i)->n_tensors;
    p.plans = dpi_calloc(n, sizeof *p.plans);
    if (status == DPI_STATUS_OK && !p.plans)
        status = dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a list of tensors");
    if (status == DPI_STATUS_OK) {
        add_tensors(&p);
        status = write_model(c, &p, seed, err);
    }
    free(p.plans);
    return status;
}

dpi_status dpi_model_make(const dpi_model_shape *shape, const char *vocab_path, uint64_t seed,
                          const char *out_path, const dpi_write_options *options, dpi_error *err) {
    dpi_conversion c;
    DPI_COPY_STRUCT(dpi_model_shape, s, shape, err);
    DPI_TRY(check_shape(&s, err));
    DPI_TRY(dpi_conversion_begin(&c, options, false, out_path, err));
    return dpi_conversion_end(&c, make(&c, &s, vocab_path, seed, err), err);
}
