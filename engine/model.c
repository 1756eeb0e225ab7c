#include "engine/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "engine/outside.h"

void dpi_model_options_init_size(dpi_model_options *options, size_t size) {
    dpi_model_options made = {0};
    made.use_mmap = 1;
    made.repack = DPI_REPACK_SOON;
    made.adapter_scale = made.control_vector_scale = 1;
    dpi_struct_init(options, size, &made, sizeof made);
}

/* ---- Binding tensors ------------------------------------------------------------------------- */

/* A model whose tensors are being found, and which tensors of the file have been. */
typedef struct binding {
    dpi_model *m;
    bool *is_bound; /* [tensors of the file] */
} binding;

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

static dpi_status find_tensor(const binding *b, const char *name, bool required,
                              const dpi_gguf_tensor **tensor, dpi_error *err) {
    const dpi_gguf *gguf = b->m->gguf;
    *tensor = dpi_gguf_tensor_find(gguf, name);
    if (!*tensor && required)
        return dpi_fail(err, DPI_STATUS_FORMAT, "%s: tensor %s is missing", dpi_gguf_name(gguf),
                        name);
    if (*tensor)
        b->is_bound[*tensor - dpi_gguf_tensor_at(gguf, 0)] = true;
    return DPI_STATUS_OK;
}

static dpi_status bind_matrix(const binding *b, const char *name, int64_t n_out, int64_t n_in,
                              bool required, dpi_matrix *matrix, dpi_error *err) {
    const dpi_gguf_tensor *t;
    DPI_TRY(find_tensor(b, name, required, &t, err));
    if (!t)
        return DPI_STATUS_OK;
    DPI_TRY(check_shape(t, n_in, n_out, err));
    const dpi_type *type = dpi_type_find(t->type);
    *matrix = (dpi_matrix){.type = type, .rows = t->data, .n_out = n_out, .n_in = n_in};
    return DPI_STATUS_OK;
}

/* An f32 copy of an array [n_out, n_in]; *out = NULL if it is optional and absent. */
static dpi_status bind_array(const binding *b, const char *name, int64_t n_in, int64_t n_out,
                             bool required, const float **out, dpi_error *err) {
    const dpi_gguf_tensor *t;
    *out = NULL;
    DPI_TRY(find_tensor(b, name, required, &t, err));
    if (!t)
        return DPI_STATUS_OK;
    DPI_TRY(check_shape(t, n_in, n_out, err));
    float *copy = dpi_calloc((size_t)(n_in * n_out), sizeof *copy);
    if (!copy)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for tensor %s", name);
    dpi_type_find(t->type)->dequantize(t->data, copy, n_in * n_out);
    b->m->vectors[b->m->n_vectors++] = copy; /* room was made in bind_weights */
    *out = copy;
    return DPI_STATUS_OK;
}

static dpi_status bind_vector(const binding *b, const char *name, int64_t n, bool required,
                              const float **out, dpi_error *err) {
    return bind_array(b, name, n, 1, required, out, err);
}

/* Rows of a matrix of a layer; 0: the layer has none. */
static int64_t rows_of(const dpi_arch_tensor *t, const dpi_shape *shape) {
    return dpi_arch_has(t, shape) ? dpi_extent_of(shape, t->n_out) : 0;
}

/* The matrices of one tensor of the file: its rows, and those of its bias, are theirs one after
 * the other. Those that the layer lacks stay without a type. */
static dpi_status bind_parts(const binding *b, int32_t layer, const dpi_arch_tensor *t,
                             int32_t n_parts, dpi_tensor_name weight, dpi_tensor_name bias,
                             dpi_error *err) {
    const dpi_shape *shape = &b->m->config.shapes[layer];
    const int64_t n_in = dpi_extent_of(shape, t->n_in);
    dpi_matrix whole = {0};
    int64_t n_out = 0, row = 0;
    for (int32_t i = 0; i < n_parts; i++)
        n_out += rows_of(&t[i], shape);
    DPI_TRY(bind_matrix(b, weight.text, n_out, n_in, true, &whole, err));
    DPI_TRY(bind_vector(b, bias.text, n_out, false, &whole.bias, err));
    for (int32_t i = 0; i < n_parts; i++) {
        dpi_matrix *w = dpi_model_tensor(b->m, layer, &t[i]);
        const int64_t n = rows_of(&t[i], shape);
        if (n == 0)
            continue;
        *w = whole;
        w->n_out = n;
        w->rows += (uint64_t)row * dpi_type_row_bytes(w->type, n_in);
        w->bias = whole.bias ? whole.bias + row : NULL;
        row += n;
    }
    return DPI_STATUS_OK;
}

/* Those from t on that may be one tensor. */
static dpi_status bind_matrices(const binding *b, int32_t layer, const dpi_arch_tensor *t,
                                dpi_error *err) {
    const dpi_arch_table *table = dpi_config_table(&b->m->config, layer);
    const dpi_arch_tensor *end = t + dpi_arch_joined(table, t);
    const dpi_tensor_name joined = dpi_arch_joined_name(t, layer, "weight");
    if (dpi_gguf_tensor_find(b->m->gguf, joined.text))
        return bind_parts(b, layer, t, (int32_t)(end - t), joined,
                          dpi_arch_joined_name(t, layer, "bias"), err);
    for (int32_t n; t < end; t += n) {
        n = dpi_arch_parts(table, t);
        if (dpi_arch_has(t, &b->m->config.shapes[layer]))
            DPI_TRY(bind_parts(b, layer, t, n, dpi_arch_tensor_name(t, layer, "weight"),
                               dpi_arch_tensor_name(t, layer, "bias"), err));
    }
    return DPI_STATUS_OK;
}

static dpi_rotation rotation_of(const dpi_config *c, int32_t layer) {
    if (c->still_period > 0 && (layer + 1) % c->still_period == 0)
        return DPI_ROTATION_NONE;
    return c->has_window[layer] && c->window_rope_base > 0 ? DPI_ROTATION_WINDOW
                                                           : DPI_ROTATION_ALL;
}

static dpi_status bind_layer(const binding *b, int32_t layer, dpi_error *err) {
    const dpi_config *c = &b->m->config;
    const dpi_arch_table *table = dpi_config_table(c, layer);
    const dpi_shape *shape = &c->shapes[layer];
    b->m->layers[layer].window = c->has_window[layer] ? c->window : 0;
    b->m->layers[layer].rotation = rotation_of(c, layer);
    b->m->layers[layer].kv_layer = layer - c->shapes[layer].kv_back;
    int32_t n = 1;
    for (const dpi_arch_tensor *t = table->tensors; t < table->tensors + table->n_tensors; t += n) {
        n = dpi_arch_joined(table, t);
        if (!dpi_arch_has(t, shape)) /* of those that may be one: none of them */
            continue;
        if (t->is_array)
            DPI_TRY(bind_array(b, dpi_arch_tensor_name(t, layer, "weight").text,
                               dpi_extent_of(shape, t->n_in), dpi_extent_of(shape, t->n_out), true,
                               dpi_model_tensor(b->m, layer, t), err));
        else
            DPI_TRY(bind_matrices(b, layer, t, err));
    }
    return DPI_STATUS_OK;
}

/* Divisors of the frequencies. */
static dpi_status bind_divisors(const binding *b, const char *name, bool required,
                                const float **out, dpi_error *err) {
    const int32_t n = b->m->n_rot[DPI_ROTATION_ALL] / 2;
    DPI_TRY(bind_vector(b, name, n, required, out, err));
    for (int32_t i = 0; *out && i < n; i++)
        if (!((*out)[i] > 0) || isinf((*out)[i]))
            return dpi_fail(err, DPI_STATUS_FORMAT,
                            "%s: %s[%d] is %g, must be positive and finite",
                            dpi_gguf_name(b->m->gguf), name, (int)i, (double)(*out)[i]);
    return DPI_STATUS_OK;
}

static dpi_status bind_rotation(const binding *b, dpi_error *err) {
    dpi_model *m = b->m;
    for (int32_t l = 0; l < m->config.n_layer; l++)
        if (rotation_of(&m->config, l) != DPI_ROTATION_NONE)
            m->n_rot[rotation_of(&m->config, l)] = m->config.shapes[l].n_rot;
    DPI_TRY(bind_divisors(b, "rope_freqs.weight", m->config.arch->needs_rope_freqs, &m->rope_freqs,
                          err));
    if (!m->config.has_rope_factors)
        return DPI_STATUS_OK;
    DPI_TRY(bind_divisors(b, "rope_factors_long.weight", m->config.needs_rope_factors,
                          &m->rope_long, err));
    return bind_divisors(b, "rope_factors_short.weight", m->rope_long != NULL, &m->rope_short, err);
}

/* The next matrix of a pass, if there is one. */
static void list(dpi_model *m, dpi_matrix *w, const dpi_arch_tensor *tensor, int32_t layer) {
    if (!w->type)
        return;
    m->products[m->n_products++] = (dpi_product){w, tensor, layer};
    m->n_weights += w->n_out * w->n_in;
}

/* The products, and which matrix comes after which. */
static dpi_status link_matrices(dpi_model *m, dpi_error *err) {
    const dpi_config *c = &m->config;
    size_t n = 2;
    for (int32_t l = 0; l < c->n_layer; l++)
        n += (size_t)dpi_config_table(c, l)->n_matrices;
    m->products = dpi_calloc(n, sizeof *m->products);
    if (!m->products)
        return dpi_fail(err, DPI_STATUS_MEMORY, "no memory for a list of matrices");
    list(m, &m->w_inputs, NULL, -1);
    for (int32_t l = 0; l < c->n_layer; l++)
        for (int32_t i = 0; i < dpi_config_table(c, l)->n_matrices; i++)
            list(m, dpi_layer_matrix(m, l, i), dpi_arch_matrix(dpi_config_table(c, l), i), l);
    list(m, m->tied_output ? &m->embedding : &m->output, NULL, -1);
    for (int32_t i = 0; i < m->n_products; i++)
        m->products[i].w->next = dpi_model_matrix(m, i + 1);
    m->embedding.next = dpi_model_matrix(m, 0);
    return DPI_STATUS_OK;
}

/* Of a block that mean nothing for text: those of multi-token prediction, behind the layers. */
static bool is_left_out(const dpi_model *m, const char *name) {
    int block = -1;
    return sscanf(name, "blk.%6d.", &block) == 1 && block >= m->config.n_layer &&
           block < m->config.n_layer + m->config.n_left_out;
}

static dpi_status refuse_unbound(const binding *b, dpi_error *err) {
    const dpi_gguf *gguf = b->m->gguf;
    for (int64_t i = 0; i < dpi_gguf_tensor_count(gguf); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(gguf, i);
        if (!b->is_bound[i] && !is_left_out(b->m, t->name))
            return dpi_fail_at(err, DPI_STATUS_UNSUPPORTED, t->offset,
                               "%s: tensor %s is unknown: a %s of %d layers has none of this name",
                               t->file, t->name, b->m->config.arch->name,
                               (int)b->m->config.n_layer);
    }
    return DPI_STATUS_OK;
}

/* What the inputs of layers are made of. */
static dpi_status bind_inputs(const binding *b, dpi_error *err) {
    dpi_model *m = b->m;
    const dpi_config *c = &m->config;
    const int64_t n = (int64_t)c->n_layer * c->n_input;
    if (n == 0)
        return DPI_STATUS_OK;
    DPI_TRY(bind_matrix(b, "per_layer_token_embd.weight", m->n_vocab, n, true, &m->input_embedding,
                        err));
    DPI_TRY(bind_matrix(b, "per_layer_model_proj.weight", n, c->n_embd, true, &m->w_inputs, err));
    return bind_vector(b, "per_layer_proj_norm.weight", c->n_input, true, &m->inputs_norm, err);
}

static dpi_status bind_all(const binding *b, dpi_error *err) {
    dpi_model *m = b->m;
    const int32_t n_embd = m->config.n_embd;
    DPI_TRY(bind_matrix(b, "token_embd.weight", m->n_vocab, n_embd, true, &m->embedding, err));
    DPI_TRY(bind_vector(b, "output_norm.weight", n_embd, true, &m->output_norm, err));
    DPI_TRY(bind_matrix(b, "output.weight", m->n_vocab, n_embd, m->config.arch->needs_output,
                        &m->output, err));
    if (!m->output.type) {
        m->output = m->embedding;
        m->tied_output = 1;
    }
    if (m->config.arch->has_output_bias)
        DPI_TRY(bind_vector(b, "output.bias", m->n_vocab, false, &m->output.bias, err));
    DPI_TRY(bind_inputs(b, err));
    DPI_TRY(bind_rotation(b, err));
    for (int32_t i = 0; i < m->config.n_layer; i++)
        DPI_TRY(bind_layer(b, i, err));
    return refuse_unbound(b, err);
}

static dpi_status bind_weights(dpi_model *m, dpi_error *err) {
    const dpi_config *c = &m->config;
    const int64_t n_tensors = dpi_gguf_tensor_count(m->gguf);
    /* Each layer has tensors of its own: a count that the file cannot hold ends here, before it
     * is used to allocate. */
    if (c->n_layer > n_tensors)
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s: %s.block_count is %d, but the file has only %lld tensors",
                        dpi_gguf_name(m->gguf), c->arch->name, (int)c->n_layer,
                        (long long)n_tensors);
    const binding b = {m, dpi_calloc((size_t)n_tensors, sizeof *b.is_bound)};
    m->layers = dpi_calloc((size_t)c->n_layer, sizeof *m->layers);
    m->vectors = dpi_calloc((size_t)n_tensors, sizeof *m->vectors); /* each is one of the file */
    const dpi_status status =
        b.is_bound && m->layers && m->vectors
            ? bind_all(&b, err)
            : dpi_fail(err, DPI_STATUS_MEMORY, "no memory for %d layers", (int)c->n_layer);
    free(b.is_bound);
    return status == DPI_STATUS_OK ? link_matrices(m, err) : status;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Seconds of packing while a model opens: a part of the second after which the first token is due.
 * It is enough for a gigabyte, or for a third of one where the host of a virtual machine has to
 * find the memory page by page. */
static const double PACK_SECONDS = 0.4;

/* The file of an adapter says so, and has the architecture of its model; that of vectors has one of
 * its own. */
static dpi_status refuse_others(const dpi_gguf *gguf, dpi_error *err) {
    dpi_str type = {"", 0}, arch = {"", 0};
    DPI_TRY(dpi_gguf_get_string(gguf, "general.type", &type, NULL, err));
    DPI_TRY(dpi_gguf_get_string(gguf, "general.architecture", &arch, NULL, err));
    if (dpi_str_is(arch, "controlvector"))
        return dpi_fail(err, DPI_STATUS_FORMAT,
                        "%s is a control vector (general.architecture), and no model: it goes with "
                        "--steer or --control-vector", dpi_gguf_name(gguf));
    if (dpi_str_is(type, "adapter"))
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
    m->vocab_only = options->vocab_only || options->logits;
    m->logits = options->logits, m->logits_user = options->logits_user;
    dpi_status status = refuse_others(gguf, err);
    if (status == DPI_STATUS_OK)
        status = m->vocab_only ? dpi_arch_of(gguf, &m->config.arch, err)
                               : dpi_config_read(gguf, &m->config, err);
    if (m->logits)
        dpi_outside_config(&m->config, options->n_ctx);
    if (status == DPI_STATUS_OK)
        status = dpi_vocab_create(gguf, &m->vocab, err);
    if (status == DPI_STATUS_OK) {
        m->n_vocab = dpi_vocab_size(m->vocab);
        if (!m->vocab_only)
            status = bind_weights(m, err);
        if (status == DPI_STATUS_OK && options->adapter)
            status = dpi_adapters_open(m, options->adapter, options->adapter_scale, err);
        if (status == DPI_STATUS_OK && options->control_vector)
            status = dpi_control_vector_open(m, options->control_vector,
                                             options->control_vector_scale, dpi_model_mark(m), err);
        if (status == DPI_STATUS_OK && (!m->vocab_only || m->logits))
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

static dpi_status check_options(const dpi_model_options *o, dpi_error *err) {
    if (o->logits)
        DPI_TRY(dpi_check_range("n_ctx", o->n_ctx, 2, 1 << 20, err));
    return dpi_check_range("repack", o->repack, DPI_REPACK_NONE, DPI_REPACK_LATER, err);
}

dpi_status dpi_model_open(const char *path, const dpi_model_options *options, dpi_model **model,
                          dpi_error *err) {
    DPI_COPY_STRUCT_IF(dpi_model_options, o, options, err);
    DPI_TRY(check_options(&o, err));
    if (!path || !model)
        return dpi_fail(err, DPI_STATUS_ARG, "path and model must not be NULL");
    dpi_gguf *gguf;
    DPI_TRY(dpi_gguf_open(path, o.use_mmap != 0, &gguf, err));
    return create(gguf, &o, model, err);
}

dpi_status dpi_model_open_buffer(const void *data, size_t n_bytes, const dpi_model_options *options,
                                 dpi_model **model, dpi_error *err) {
    DPI_COPY_STRUCT_IF(dpi_model_options, o, options, err);
    DPI_TRY(check_options(&o, err));
    if (!data || !model)
        return dpi_fail(err, DPI_STATUS_ARG, "data and model must not be NULL");
    dpi_gguf *gguf;
    DPI_TRY(dpi_gguf_open_buffer(data, n_bytes, &gguf, err));
    return create(gguf, &o, model, err);
}

void dpi_model_close(dpi_model *m) {
    if (!m)
        return;
    for (int32_t i = 0; i < m->n_vectors; i++)
        free(m->vectors[i]);
    free(m->vectors);
    dpi_packed_free(m->packed);
    dpi_adapters_free(m->adapters);
    dpi_control_vector_free(m->control);
    free(m->products);
    free(m->layers);
    dpi_vocab_free(m->vocab);
    dpi_gguf_close(m->gguf);
    free(m);
}
