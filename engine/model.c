#include "engine/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"

void dpi_model_options_init(dpi_model_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->use_mmap = 1;
    options->repack = DPI_REPACK_SOON;
    options->adapter_scale = 1;
}

/* ---- Binding tensors ------------------------------------------------------------------------- */

static dpi_status check_shape(const dpi_gguf_tensor *t, int64_t n_in,
                              int64_t n_out, dpi_error *err) {
    if (t->shape[0] == n_in && t->shape[1] == n_out && t->shape[2] == 1 && t->shape[3] == 1)
        return DPI_STATUS_OK;
    return dpi_fail_at(err, DPI_STATUS_FORMAT, t->offset,
                       "%s: tensor %s has shape [%lld, %lld, %lld, %lld], the hyperparameters "
                       "require [%lld, %lld]",
                       t->file, t->name, (long long)t->shape[0],
                       (long long)t->shape[1], (long long)t->shape[2], (long long)t->shape[3],
                       (long long)n_in, (long long)n_out);
}

static dpi_status find_tensor(const dpi_model *m, const char *name, bool required,
                              const dpi_gguf_tensor **tensor, dpi_error *err) {
    *tensor = dpi_gguf_tensor_find(m->gguf, name);
    if (!*tensor && required)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: tensor %s is missing", dpi_gguf_name(m->gguf),
                        name);
    return DPI_STATUS_OK;
}

static dpi_status bind_matrix(dpi_model *m, const char *name, int64_t n_out, int64_t n_in,
                           bool required, dpi_matrix *matrix, dpi_error *err) {
    const dpi_gguf_tensor *t;
    DPI_TRY(find_tensor(m, name, required, &t, err));
    if (!t)
        return DPI_STATUS_OK;
    DPI_TRY(check_shape(t, n_in, n_out, err));
    const dpi_type *type = dpi_type_find(t->type);
    *matrix = (dpi_matrix){.type = type, .rows = t->data, .n_out = n_out, .n_in = n_in};
    return DPI_STATUS_OK;
}

/* An f32 copy of a vector of n elements; *out = NULL if it is optional and absent. */
static dpi_status bind_vector(dpi_model *m, const char *name, int64_t n, bool required,
                              const float **out, dpi_error *err) {
    const dpi_gguf_tensor *t;
    *out = NULL;
    DPI_TRY(find_tensor(m, name, required, &t, err));
    if (!t)
        return DPI_STATUS_OK;
    DPI_TRY(check_shape(t, n, 1, err));
    float *copy = dpi_calloc((size_t)n, sizeof *copy);
    if (!copy)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for tensor %s", name);
    dpi_type_find(t->type)->dequantize(t->data, copy, n);
    m->vectors[m->n_vectors++] = copy; /* room was made in bind_layers */
    *out = copy;
    return DPI_STATUS_OK;
}

static dpi_status bind_layer(dpi_model *m, int32_t index, dpi_error *err) {
    const dpi_config *c = &m->config;
    dpi_layer *l = &m->layers[index];
    int64_t n_q = (int64_t)c->n_head * c->head_dim, n_k = (int64_t)c->n_kv_head * c->head_dim;
    int64_t n_v = (int64_t)c->n_kv_head * c->head_dim_v;
    int64_t n_o = (int64_t)c->n_head * c->head_dim_v;
    char name[64];
#define NAME(suffix) (snprintf(name, sizeof name, "blk.%d." suffix, (int)index), name)
    DPI_TRY(bind_vector(m, NAME("attn_norm.weight"), c->n_embd, true, &l->attn_norm, err));
    DPI_TRY(bind_matrix(m, NAME("attn_q.weight"), n_q, c->n_embd, true, &l->wq, err));
    DPI_TRY(bind_matrix(m, NAME("attn_k.weight"), n_k, c->n_embd, true, &l->wk, err));
    DPI_TRY(bind_matrix(m, NAME("attn_v.weight"), n_v, c->n_embd, true, &l->wv, err));
    DPI_TRY(bind_matrix(m, NAME("attn_output.weight"), c->n_embd, n_o, true, &l->wo, err));
    DPI_TRY(bind_vector(m, NAME("attn_q.bias"), n_q, false, &l->bq, err));
    DPI_TRY(bind_vector(m, NAME("attn_k.bias"), n_k, false, &l->bk, err));
    DPI_TRY(bind_vector(m, NAME("attn_v.bias"), n_v, false, &l->bv, err));
    DPI_TRY(bind_vector(m, NAME("attn_output.bias"), c->n_embd, false, &l->bo, err));
    DPI_TRY(bind_vector(m, NAME("ffn_norm.weight"), c->n_embd, true, &l->ffn_norm, err));
    DPI_TRY(bind_matrix(m, NAME("ffn_gate.weight"), c->n_ff, c->n_embd, true, &l->w_gate, err));
    DPI_TRY(bind_matrix(m, NAME("ffn_up.weight"), c->n_ff, c->n_embd, true, &l->w_up, err));
    DPI_TRY(bind_matrix(m, NAME("ffn_down.weight"), c->n_embd, c->n_ff, true, &l->w_down, err));
#undef NAME
    return DPI_STATUS_OK;
}

static dpi_status bind_rope_freqs(dpi_model *m, dpi_error *err) {
    DPI_TRY(bind_vector(m, "rope_freqs.weight", m->config.n_rot / 2, false, &m->rope_freqs, err));
    for (int32_t i = 0; m->rope_freqs && i < m->config.n_rot / 2; i++)
        if (!(m->rope_freqs[i] > 0) || isinf(m->rope_freqs[i]))
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s: rope_freqs.weight[%d] is %g, must be positive and finite",
                            dpi_gguf_name(m->gguf), (int)i, (double)m->rope_freqs[i]);
    return DPI_STATUS_OK;
}

void dpi_model_frequencies(const dpi_model *m, double *freqs) {
    const dpi_config *c = &m->config;
    for (int32_t i = 0; i < c->n_rot / 2; i++) {
        double f = pow((double)c->rope_freq_base, -2.0 * i / c->n_rot) * (double)c->rope_freq_scale;
        if (m->rope_freqs)
            f /= (double)m->rope_freqs[i];
        else if (c->llama3.factor > 0)
            f /= dpi_config_llama3_divisor(c, f);
        freqs[i] = f;
    }
}

uint64_t dpi_model_mark(const dpi_model *m) {
    const size_t n_bytes = (size_t)m->config.n_embd * sizeof(float);
    uint64_t hash = dpi_hash(DPI_HASH_INIT, m->output_norm, n_bytes);
    for (int32_t i = 0; i < m->config.n_layer; i++) {
        hash = dpi_hash(hash, m->layers[i].attn_norm, n_bytes);
        hash = dpi_hash(hash, m->layers[i].ffn_norm, n_bytes);
    }
    return hash;
}

dpi_matrix *dpi_model_matrix(dpi_model *m, int32_t i) {
    enum { PER_LAYER = DPI_LAYER_MATRICES };
    int32_t n = m->config.n_layer * PER_LAYER;
    if (i >= n)
        return i > n ? NULL : m->tied_output ? &m->embedding : &m->output;
    dpi_layer *l = &m->layers[i / PER_LAYER];
    dpi_matrix *const all[PER_LAYER] = {&l->wq,     &l->wk,   &l->wv,    &l->wo,
                                        &l->w_gate, &l->w_up, &l->w_down};
    return all[i % PER_LAYER];
}

/* Which matrix comes after which, and how many weights they have. */
static void link_matrices(dpi_model *m) {
    m->n_weights = 0;
    for (int32_t i = 0; dpi_model_matrix(m, i); i++) {
        dpi_matrix *w = dpi_model_matrix(m, i);
        w->next = dpi_model_matrix(m, i + 1);
        m->n_weights += w->n_out * w->n_in;
    }
    m->embedding.next = dpi_model_matrix(m, 0);
}

static dpi_status bind_weights(dpi_model *m, dpi_error *err) {
    const dpi_config *c = &m->config;
    /* Each layer has tensors of its own: a count that the file cannot hold ends here, before it
     * is used to allocate. */
    if (c->n_layer > dpi_gguf_tensor_count(m->gguf))
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: llama.block_count is %d, but the file has only %lld tensors",
                        dpi_gguf_name(m->gguf), (int)c->n_layer,
                        (long long)dpi_gguf_tensor_count(m->gguf));
    m->layers = dpi_calloc((size_t)c->n_layer, sizeof *m->layers);
    m->max_vectors = c->n_layer * 6 + 2;
    m->vectors = dpi_calloc((size_t)m->max_vectors, sizeof *m->vectors);
    if (!m->layers || !m->vectors)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for %d layers", (int)c->n_layer);
    DPI_TRY(bind_matrix(m, "token_embd.weight", m->n_vocab, c->n_embd, true, &m->embedding, err));
    DPI_TRY(bind_vector(m, "output_norm.weight", c->n_embd, true, &m->output_norm, err));
    DPI_TRY(bind_matrix(m, "output.weight", m->n_vocab, c->n_embd, false, &m->output, err));
    if (!m->output.type) {
        m->output = m->embedding;
        m->tied_output = 1;
    }
    DPI_TRY(bind_rope_freqs(m, err));
    for (int32_t i = 0; i < c->n_layer; i++)
        DPI_TRY(bind_layer(m, i, err));
    link_matrices(m);
    return DPI_STATUS_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Seconds of packing while a model opens: a part of the second after which the first token is due.
 * It is enough for a gigabyte, or for a third of one where the host of a virtual machine has to
 * find the memory page by page. */
static const double PACK_SECONDS = 0.4;

/* The file of an adapter says so, and has the architecture of its model. */
static dpi_status refuse_adapter(const dpi_gguf *gguf, dpi_error *err) {
    dpi_str type = {"", 0};
    bool found;
    DPI_TRY(dpi_gguf_get_string(gguf, "general.type", &type, &found, err));
    if (type.n_bytes == 7 && memcmp(type.data, "adapter", 7) == 0)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s is an adapter (general.type), and no model: it "
                                                "goes with --lora", dpi_gguf_name(gguf));
    return DPI_STATUS_OK;
}

/* `gguf` becomes the model's, also on failure. */
static dpi_status create(dpi_gguf *gguf, const dpi_model_options *options, dpi_model **model,
                         dpi_error *err) {
    dpi_model *m = dpi_calloc(1, sizeof *m);
    if (!m) {
        dpi_gguf_close(gguf);
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a model");
    }
    m->gguf = gguf;
    m->vocab_only = options->vocab_only;
    dpi_status status = refuse_adapter(gguf, err);
    if (status == DPI_STATUS_OK)
        status = m->vocab_only ? dpi_gguf_check_architecture(gguf, err)
                               : dpi_config_read(gguf, &m->config, err);
    if (status == DPI_STATUS_OK)
        status = dpi_vocab_create(gguf, &m->vocab, err);
    if (status == DPI_STATUS_OK) {
        m->n_vocab = dpi_vocab_size(m->vocab);
        if (!m->vocab_only)
            status = bind_weights(m, err);
        if (status == DPI_STATUS_OK && options->adapter)
            status = dpi_adapters_open(m, options->adapter, options->adapter_scale, err);
        if (status == DPI_STATUS_OK && !m->vocab_only)
            status = dpi_cpu_measure(&m->cpu, err);
        if (status == DPI_STATUS_OK && options->check_weights)
            status = dpi_model_check(m, err);
        if (status == DPI_STATUS_OK && !m->vocab_only && options->repack != DPI_REPACK_NONE)
            status = dpi_model_pack(m, options->repack == DPI_REPACK_LATER ? 0 : PACK_SECONDS, err);
    }
    if (status != DPI_STATUS_OK) {
        dpi_model_close(m);
        return status;
    }
    *model = m;
    return DPI_STATUS_OK;
}

static dpi_status check_options(const dpi_model_options *options, dpi_error *err) {
    if (options->struct_size != sizeof *options)
        return dpi_fail(err, DPI_STATUS_ARG, "dpi_model_options.struct_size is %zu, must be %zu",
                        options->struct_size, sizeof *options);
    return dpi_check_range("repack", options->repack, DPI_REPACK_NONE, DPI_REPACK_LATER, err);
}

dpi_status dpi_model_open(const char *path, const dpi_model_options *options, dpi_model **model,
                          dpi_error *err) {
    dpi_model_options defaults;
    dpi_model_options_init(&defaults);
    if (!options)
        options = &defaults;
    DPI_TRY(check_options(options, err));
    if (!path || !model)
        return dpi_fail(err, DPI_STATUS_ARG, "path and model must not be NULL");
    dpi_gguf *gguf;
    DPI_TRY(dpi_gguf_open(path, options->use_mmap != 0, &gguf, err));
    return create(gguf, options, model, err);
}

dpi_status dpi_model_open_buffer(const void *data, size_t n_bytes, const dpi_model_options *options,
                                 dpi_model **model, dpi_error *err) {
    dpi_model_options defaults;
    dpi_model_options_init(&defaults);
    if (!options)
        options = &defaults;
    DPI_TRY(check_options(options, err));
    if (!data || !model)
        return dpi_fail(err, DPI_STATUS_ARG, "data and model must not be NULL");
    dpi_gguf *gguf;
    DPI_TRY(dpi_gguf_open_buffer(data, n_bytes, &gguf, err));
    return create(gguf, options, model, err);
}

void dpi_model_close(dpi_model *m) {
    if (!m)
        return;
    for (int32_t i = 0; i < m->n_vectors; i++)
        free(m->vectors[i]);
    free(m->vectors);
    dpi_packed_free(m->packed);
    dpi_adapters_free(m->adapters);
    free(m->layers);
    dpi_vocab_free(m->vocab);
    dpi_gguf_close(m->gguf);
    free(m);
}
