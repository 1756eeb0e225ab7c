/* convert.c - writes a model with its weights in another type. */
#define _DEFAULT_SOURCE
#include "gguf/convert.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dpinfer/process.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"

void dpi_write_options_init_size(dpi_write_options *options, size_t size) {
    dpi_write_options made = {0};
    made.fd = -1;
    dpi_struct_init(options, size, &made, sizeof made);
}

/* ---- The file that is written ---------------------------------------------------------------- */

static dpi_status set_up(dpi_conversion *c, const dpi_write_options *options, bool may_keep,
                         dpi_error *err) {
    enum { MAX_THREADS = 1024 };
    memset(c, 0, sizeof *c);
    DPI_COPY_STRUCT(dpi_write_options, o, options, err);
    if (!o.type)
        return dpi_fail(err, DPI_STATUS_ARG, "the type is NULL");
    DPI_TRY(dpi_check_range("n_threads", o.n_threads, 0, MAX_THREADS, err));
    c->options = o;
    c->n_threads = dpi_process_threads(o.n_threads ? o.n_threads : dpi_processors());
    if (!may_keep || strcmp(o.type, "KEEP") != 0)
        return dpi_recipe_find(o.type, &c->recipe, err);
    return DPI_STATUS_OK;
}

dpi_status dpi_conversion_begin(dpi_conversion *c, const dpi_write_options *options, bool may_keep,
                                const char *out_path, dpi_error *err) {
    if (!out_path)
        return dpi_fail(err, DPI_STATUS_ARG, "the path is NULL");
    DPI_TRY(set_up(c, options, may_keep, err));
    return dpi_gguf_builder_create(out_path, c->options.fd, &c->builder, err);
}

dpi_status dpi_conversion_put(dpi_conversion *c, const void *data, uint64_t n_bytes,
                              int64_t n_weights, dpi_error *err) {
    const dpi_write_options *o = &c->options;
    if (o->cancel && o->cancel(o->user))
        return dpi_fail(err, DPI_STATUS_CANCELLED, "cancelled while writing a model");
    if (c->sink) {
        c->sink->data(c->sink->user, data, n_bytes);
        return DPI_STATUS_OK;
    }
    dpi_gguf_put_data(c->builder, data, n_bytes);
    if (dpi_gguf_builder_failed(c->builder)) {
        dpi_status status = dpi_gguf_builder_finish(c->builder, err);
        c->builder = NULL;
        return status;
    }
    c->n_done += n_weights;
    if (o->on_progress)
        o->on_progress(o->user, c->n_done, c->n_weights);
    return DPI_STATUS_OK;
}

dpi_status dpi_conversion_end(dpi_conversion *c, dpi_status status, dpi_error *err) {
    if (status == DPI_STATUS_OK)
        return dpi_gguf_builder_finish(c->builder, err);
    dpi_gguf_builder_discard(c->builder);
    return status;
}

void dpi_conversion_put_kind(dpi_conversion *c) {
    dpi_gguf_put_u32(c->builder, "general.file_type", c->recipe->file_type);
    dpi_gguf_put_u32(c->builder, "general.quantization_version", 2); /* of the K-quant layouts */
}

int64_t dpi_piece_rows(int64_t n_in, int64_t n_rows) {
    int64_t n = DPI_PIECE_WEIGHTS / n_in;
    return n < 1 ? 1 : n < n_rows ? n : n_rows;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static int64_t count_weights(const dpi_gguf_tensor *t) {
    return t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
}

/* The type a tensor gets: its own where the recipe leaves it alone. */
static const dpi_type *target_type(const dpi_conversion *c, const dpi_gguf_tensor *t,
                                   int32_t n_layer, bool tied) {
    const dpi_type *type =
        c->recipe ? dpi_recipe_type(c->recipe, t->name, t->n_dims, t->shape[0], n_layer, tied)
                  : NULL;
    return type ? type : dpi_type_find(t->type);
}

/* Whether a type can hold every value of a row: f16 scales end at 65504. */
static bool is_writable(const float *row, int64_t n, const dpi_type *to) {
    bool wide = to->id == DPI_TYPE_F32 || to->id == DPI_TYPE_BF16;
    float limit = wide ? 3.402823466e38f : 65504.0f;
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(row[i]) <= limit))
            return false;
    return true;
}

/* Whether rows go through f32 though their type stays. */
static bool is_changed(const dpi_conversion *c, const dpi_gguf_tensor *t) {
    return c->change && c->change->is_changed(c->change->user, t->name);
}

/* Rows [first, first + n_rows) to `out`. The first row that cannot be written, or -1. */
static int64_t convert_rows(const dpi_conversion *c, const dpi_gguf_tensor *t, const dpi_type *to,
                            int64_t first, int64_t n_rows, int32_t n_threads, float *rows,
                            unsigned char *out) {
    const bool changed = is_changed(c, t);
    const dpi_type *from = dpi_type_find(t->type);
    uint64_t from_bytes = dpi_type_row_bytes(from, t->shape[0]);
    uint64_t to_bytes = dpi_type_row_bytes(to, t->shape[0]);
    int64_t bad = INT64_MAX;
#pragma omp parallel for num_threads(n_threads) reduction(min : bad)
    for (int64_t r = 0; r < n_rows; r++) {
        float *row = rows + omp_get_thread_num() * t->shape[0];
        from->dequantize((const unsigned char *)t->data + (uint64_t)(first + r) * from_bytes, row,
                         t->shape[0]);
        if (changed)
            c->change->row(c->change->user, t->name, first + r, row, t->shape[0]);
        if (is_writable(row, t->shape[0], to))
            to->quantize(row, out + (uint64_t)r * to_bytes, t->shape[0]);
        else
            bad = r < bad ? r : bad;
    }
    return bad == INT64_MAX ? -1 : first + bad;
}

static dpi_status fail_value(const dpi_gguf_tensor *t, const dpi_type *to, int64_t row,
                             dpi_error *err) {
    uint64_t row_bytes = dpi_type_row_bytes(dpi_type_find(t->type), t->shape[0]);
    return dpi_fail_at(err, DPI_STATUS_NUMERIC, t->offset + (uint64_t)row * row_bytes,
                       "%s: tensor %s, row %lld has a weight that %s cannot hold: it must be "
                       "finite%s",
                       t->file, t->name, (long long)row, to->name,
                       to->id == DPI_TYPE_F32 || to->id == DPI_TYPE_BF16
                           ? "" : " and at most 65504 in magnitude");
}

static dpi_status convert_tensor(dpi_conversion *c, const dpi_gguf_tensor *t, const dpi_type *to,
                                 dpi_error *err) {
    if (to->id == t->type && !is_changed(c, t))
        return dpi_conversion_put(c, t->data, t->n_bytes, count_weights(t), err);
    if (!to->quantize)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "%s: tensor %s is %s, which can only be read: choose another type than "
                        "KEEP", t->file, t->name, to->name);
    int64_t n_in = t->shape[0], n_rows = count_weights(t) / n_in;
    int64_t piece = dpi_piece_rows(n_in, n_rows);
    uint64_t to_bytes = dpi_type_row_bytes(to, n_in);
    int32_t n_threads = c->n_threads < piece ? c->n_threads : (int32_t)piece;
    float *rows = dpi_calloc((size_t)n_threads, (size_t)n_in * sizeof *rows);
    unsigned char *out = dpi_calloc((size_t)piece, to_bytes);
    dpi_status status = DPI_STATUS_OK;
    if (!rows || !out)
        status = dpi_no_memory(err, "rows of tensor %s", t->name);
    for (int64_t r = 0; r < n_rows && status == DPI_STATUS_OK; r += piece) {
        int64_t n = n_rows - r < piece ? n_rows - r : piece;
        int64_t bad = convert_rows(c, t, to, r, n, n_threads, rows, out);
        status = bad >= 0 ? fail_value(t, to, bad, err)
                          : dpi_conversion_put(c, out, (uint64_t)n * to_bytes, n * n_in, err);
    }
    free(rows);
    free(out);
    return status;
}

/* ---- The model ------------------------------------------------------------------------------- */

/* Keys that describe the file rather than the model, and those that are written anew. */
static bool is_left_out(const dpi_conversion *c, const char *key) {
    const bool of_types = strcmp(key, "general.file_type") == 0 ||
                          strcmp(key, "general.quantization_version") == 0;
    const bool of_change =
        strcmp(key, "general.name") == 0 || dpi_gguf_is_task(key) ||
        strcmp(key, DPI_CLAIM_KEY) == 0 || strcmp(key, DPI_FOLLOWS_KEY) == 0;
    return (of_types && c->recipe) || (of_change && c->change) ||
           strcmp(key, "general.alignment") == 0 || strncmp(key, "split.", 6) == 0;
}

/* Keys, and what tensors there will be. */
static void convert_head(dpi_conversion *c, const dpi_gguf *g, int32_t n_layer, bool tied) {
    for (int64_t i = 0; i < dpi_gguf_kv_count(g); i++)
        if (!is_left_out(c, dpi_gguf_kv_at(g, i)->key))
            dpi_gguf_put_kv(c->builder, dpi_gguf_kv_at(g, i));
    if (c->recipe)
        dpi_conversion_put_kind(c);
    if (c->change)
        c->change->keys(c->change->user, c->builder);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(g); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(g, i);
        dpi_gguf_put_tensor(c->builder, t->name, target_type(c, t, n_layer, tied)->id, t->n_dims,
                            t->shape);
        c->n_weights += count_weights(t);
    }
}

/* ARCH.block_count */
static dpi_status count_layers(const dpi_gguf *g, int64_t *n_layer, dpi_error *err) {
    dpi_str arch = {"", 0};
    char key[80];
    DPI_TRY(dpi_gguf_get_string(g, "general.architecture", &arch, NULL, err));
    snprintf(key, sizeof key, "%.*s.block_count", (int)(arch.n_bytes < 64 ? arch.n_bytes : 64),
             arch.data);
    return dpi_gguf_get_int(g, key, 1, 4096, n_layer, NULL, err);
}

static dpi_status convert(dpi_conversion *c, const dpi_gguf *g, dpi_error *err) {
    int64_t n_layer = 0;
    DPI_TRY(count_layers(g, &n_layer, err));
    bool tied = dpi_gguf_tensor_find(g, "output.weight") == NULL;
    if (!c->sink)
        convert_head(c, g, (int32_t)n_layer, tied);
    for (int64_t i = 0; i < dpi_gguf_tensor_count(g); i++) {
        const dpi_gguf_tensor *t = dpi_gguf_tensor_at(g, i);
        const dpi_type *to = target_type(c, t, (int32_t)n_layer, tied);
        if (c->sink)
            c->sink->begin(c->sink->user, t, to->id);
        DPI_TRY(convert_tensor(c, t, to, err));
        dpi_gguf_release(g, t->data, t->n_bytes); /* read once, so memory stays small */
    }
    return DPI_STATUS_OK;
}

static dpi_status check_paths(const char *in_path, const char *out_path, dpi_error *err) {
    struct stat in, out;
    if (!in_path || !out_path)
        return dpi_fail(err, DPI_STATUS_ARG, "a path is NULL");
    if (stat(in_path, &in) == 0 && stat(out_path, &out) == 0 && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino)
        return dpi_fail(err, DPI_STATUS_ARG, "the output is the input: choose another name");
    return DPI_STATUS_OK;
}

dpi_status dpi_conversion_write(const char *in_path, const char *out_path,
                                const dpi_write_options *options,
                                const dpi_conversion_change *change, dpi_error *err) {
    dpi_gguf *gguf = NULL;
    DPI_TRY(check_paths(in_path, out_path, err));
    DPI_TRY(dpi_gguf_open(in_path, true, &gguf, err));
    const dpi_status status = dpi_conversion_write_open(gguf, out_path, options, change, err);
    dpi_gguf_close(gguf);
    return status;
}

dpi_status dpi_conversion_write_open(const dpi_gguf *gguf, const char *out_path,
                                     const dpi_write_options *options,
                                     const dpi_conversion_change *change, dpi_error *err) {
    dpi_conversion c;
    DPI_TRY(dpi_conversion_begin(&c, options, true, out_path, err));
    c.change = change;
    return dpi_conversion_end(&c, convert(&c, gguf, err), err);
}

dpi_status dpi_conversion_visit(const dpi_gguf *gguf, const dpi_write_options *options,
                                const dpi_conversion_change *change,
                                const dpi_conversion_sink *sink, dpi_error *err) {
    dpi_conversion c;
    DPI_TRY(set_up(&c, options, true, err));
    c.change = change, c.sink = sink;
    return convert(&c, gguf, err);
}
